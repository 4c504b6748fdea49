"""What stable methods are compared with: shards, stable means. Renewed private releases: `accounting.core.groups`."""

import math

from certified_unlearning.accounting.core.checks import require_count, require_positive


def sharding_speedup(*, shards: int, slices: int, printed: bool = False) -> float:
    """Return how many times less SISA computes for a deletion than retraining does.

    Args:
        shards: ``S``.
        slices: ``R`` of a shard, each with a checkpoint and the same number of epochs.
        printed: Appendix C.1's ``(R + 1) S / 2``, its average case; it is that of the last slice. For a record placed
            uniformly it is ``3 R S / (2 R + 1)``, at most ``1.5 S`` (derived).
    """
    require_count(least=1, shards=shards, slices=slices)
    return (slices + 1) * shards / 2 if printed else 3 * slices * shards / (2 * slices + 1)


def noisy_mean_sigma(*, n: int, rho: float) -> float:
    """Return the noise of a ``rho``-stable mean of records in the unit ball, one replaced: ``sqrt(2 / pi) / (n rho)``.

    Appendix C.9.1 leaves the constant open (derived).
    """
    require_count(least=1, n=n)
    require_positive(rho=rho)
    return math.sqrt(2 / math.pi) / (n * rho)
