"""Mini-batches under insertions and under edits of many records: Claims 4 to 10 of appendix C."""

import math

import numpy as np
import numpy.typing as npt

from certified_unlearning.accounting.core.checks import require_count
from certified_unlearning.accounting.tv.distances import require_batch
from certified_unlearning.accounting.tv.subsampling import subsampling_tv
from certified_unlearning.errors import ParameterError


def insertion_tv(*, n: int, batch_size: int, steps: int) -> float:
    """Return ``1 - (1 - m / (n + 1))^T``: `subsampling_tv` of a record that is inserted into ``n`` records."""
    require_batch(n, batch_size)
    return subsampling_tv(n=n + 1, batch_size=batch_size, steps=steps)


def replaced_members(
    *, n: int, batch_size: int, replaced: int = 0, added: int = 0, removed: int = 0
) -> npt.NDArray[np.float64]:
    """Return the distribution of the number of replaced members in a batch after one edit of many records.

    Proposition 9's proof uses this distribution. The edit replaces ``k_1`` records and either adds or removes ``k_2``
    more.

    Args:
        n: The number of records before the edit.
        batch_size: The batch size ``m``.
        replaced: The number ``k_1`` of replaced records.
        added: The number ``k_2`` of records that the edit adds; 0 if it removes some.
        removed: The number ``k_2`` of records that the edit removes; 0 if it adds some.

    Returns:
        The probabilities of 0 to ``m`` replaced members, shape ``(m + 1,)``.

    Raises:
        ParameterError: Records are both added and removed.
    """
    _require_edit(n, batch_size, replaced, added, removed)
    from scipy.stats import hypergeom

    counts = np.arange(batch_size + 1)
    law: npt.NDArray[np.float64] = hypergeom.pmf(counts, n + added, replaced + added + removed, batch_size)
    return law


def batch_edit_probability(
    *, n: int, batch_size: int, steps: int, replaced: int = 0, added: int = 0, removed: int = 0
) -> float:
    """Return the probability that one edit of many records changes some batch of a run (derived).

    For sub-sample-GD, it is exactly the probability that the edit causes a recomputation: ``1 - (C(n - k, m) / C(n,
    m))^T`` if ``k`` records are removed. Arguments and errors are those of `replaced_members`; ``steps`` is ``T``.
    """
    require_count(least=0, steps=steps)
    _require_edit(n, batch_size, replaced, added, removed)
    changed, members = replaced + added + removed, n + added
    if batch_size > members - changed:
        return float(steps > 0)
    # Each factor is for one more record that is not in a batch. With logarithms, small probabilities keep their digits.
    log_none = math.fsum(math.log1p(-batch_size / (members - number)) for number in range(changed))
    return -math.expm1(steps * log_none)


def one_by_one_recomputations(*, n: int, batch_size: int, steps: int, removed: int) -> float:
    """Return the mean number of recomputations of sub-sample-GD if records are deleted one after another.

    Appendix C.8 says that one edit for all these records saves at most a factor of 2. This statement compares two
    bounds for rare recomputation. `batch_edit_probability` is at most 1, whereas this number grows with the number of
    deleted records (derived).

    Raises:
        ParameterError: Too few records would be left for a batch.
    """
    require_batch(n, batch_size)
    require_count(least=0, removed=removed)
    if n - removed < batch_size:
        raise ParameterError(
            f"removed must be at most n - batch_size = {n} - {batch_size}, so that a batch is left, got {removed}"
        )
    return math.fsum(subsampling_tv(n=n - gone, batch_size=batch_size, steps=steps) for gone in range(removed))


def _require_edit(n: int, batch_size: int, replaced: int, added: int, removed: int) -> None:
    require_batch(n, batch_size)
    require_count(least=0, replaced=replaced, added=added, removed=removed)
    if added and removed:
        raise ParameterError(
            f"either added or removed must be 0, got added = {added}, removed = {removed}; if another record is "
            "added in the place of a removed record, count the removed record as replaced"
        )
    if replaced + removed > n or n - removed < batch_size:
        raise ParameterError(
            f"replaced + removed must be at most n = {n}, and at least batch_size = {batch_size} records must remain, "
            f"got replaced = {replaced}, removed = {removed}"
        )
