"""Formulas for SISA, with which stable methods are compared, and for the noise that makes a mean stable.

Renewed private releases are in the module `accounting.core.groups`.
"""

import math

from certified_unlearning.accounting.core.checks import require_count, require_positive


def sharding_speedup(*, shards: int, slices: int, printed: bool = False) -> float:
    """Return SISA's speed-up factor: the computation of retraining divided by the computation of a deletion.

    Args:
        shards: The number ``S`` of shards.
        slices: The number ``R`` of slices of a shard, each with a checkpoint and the same number of epochs.
        printed: Whether to return Appendix C.1's ``(R + 1) S / 2``. The appendix calls this factor the average case,
            but it is the factor of a record in the last slice. For a record in a uniform slice, the factor is ``3 R S /
            (2 R + 1)``, at most ``1.5 S`` (derived).
    """
    require_count(least=1, shards=shards, slices=slices)
    return (slices + 1) * shards / 2 if printed else 3 * slices * shards / (2 * slices + 1)


def noisy_mean_sigma(*, n: int, rho: float) -> float:
    """Return ``sqrt(2 / pi) / (n rho)``, noise that makes a mean in the unit ball ``rho``-stable under replacement.

    The constant is derived; Appendix C.9.1 leaves it open.
    """
    require_count(least=1, n=n)
    require_positive(rho=rho)
    return math.sqrt(2 / math.pi) / (n * rho)
