"""How often the mini-batches of a run contain the record of an edit.

Source: Claims 1 to 10 of appendix C. Batches are uniform subsets without replacement, independent over the steps.
Noise can only avoid recomputations, so these probabilities are upper bounds for every mini-batch method.
"""

import math

from certified_unlearning.accounting.core.checks import require_count
from certified_unlearning.accounting.tv.distances import require_batch


def subsampling_tv(*, n: int, batch_size: int, steps: int) -> float:
    """Return ``1 - (1 - m / n)^T``, the probability that some batch of a run contains a record.

    This is exactly the total variation between the batches of a run with the record and those of a run without the
    record. It is also exactly the probability that sub-sample-GD (Algorithm 20) recomputes when the record is deleted.

    Args:
        n: Number of records before the deletion.
        batch_size: Batch size ``m``.
        steps: Number of steps ``T``.
    """
    require_batch(n, batch_size)
    require_count(least=0, steps=steps)
    return probability_of_any(batch_size / n, steps)


def subsampling_tv_bound(*, n: int, batch_size: int, steps: int) -> float:
    """Return Claim 4's bound on `subsampling_tv`, ``T m / n``, but at most 1."""
    require_batch(n, batch_size)
    require_count(least=0, steps=steps)
    return min(1.0, steps * batch_size / n)


def probability_of_any(probability: float, times: int) -> float:
    """Return ``1 - (1 - p)^times``, to full relative precision for small ``p``."""
    if probability == 1:
        return float(times > 0)
    return -math.expm1(times * math.log1p(-probability))


def probability_each(any_of_them: float, times: int) -> float:
    """Return the ``p`` at which ``1 - (1 - p)^times`` has a given value. This inverts `probability_of_any`."""
    return -math.expm1(math.log1p(-any_of_them) / times)
