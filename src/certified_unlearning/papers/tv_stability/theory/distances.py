"""Total variation in the proofs: Pinsker's bound, Lemma 33's bound, a bound for groups, and Proposition 5's example."""

import math

import numpy as np

from certified_unlearning.accounting.core.checks import require_count, require_non_negative, require_positive
from certified_unlearning.accounting.tv.distances import gaussian_tv, require_batch
from certified_unlearning.errors import ParameterError


def gaussian_tv_bound(gap: float) -> float:
    """Return the bound ``gap / sqrt(2 pi)``, at most 1, on `gaussian_tv`."""
    require_non_negative(gap=gap)
    return min(1.0, gap / math.sqrt(2 * math.pi))


def gaussian_renyi(gap: float, alpha: float) -> float:
    """Return the Rényi divergence of order ``alpha >= 1`` of two Gaussians with the same covariance; KL at order 1.

    Raises:
        ParameterError: ``gap`` is below 0, or ``alpha`` below 1.
    """
    require_non_negative(gap=gap)
    require_order(alpha)
    return alpha * gap**2 / 2


def pinsker(divergence: float) -> float:
    """Return Pinsker's bound ``sqrt(KL / 2)`` on the total variation, at most 1."""
    require_non_negative(divergence=divergence)
    return min(1.0, math.sqrt(divergence / 2))


def bretagnolle_huber(divergence: float) -> float:
    """Return Lemma 33's bound ``sqrt(1 - exp(-KL))`` on the total variation.

    Lemma 33 uses the limit of Rényi divergences at order 1, which is the Kullback-Leibler divergence.
    """
    require_non_negative(divergence=divergence)
    return math.sqrt(-math.expm1(-divergence))


def group_stability(rho: float, *, replaced: int = 0, added: int = 0) -> float:
    """Return Remark 1's bound, at most 1, on the total variation of outputs if data sets differ in a group of records.

    Args:
        rho: The stability under adding or removing one record.
        replaced: The number ``k_1`` of records that are replaced by others in the second data set.
        added: The number ``k_2`` of records by which the second data set is larger. (Remark 5 prints the two counts
            swapped.)

    Raises:
        ParameterError: ``rho`` or a count is below 0.
    """
    require_non_negative(rho=rho)
    require_count(least=0, replaced=replaced, added=added)
    return min(1.0, (2 * replaced + added) * rho)


def last_iterate_tv(*, n: int, batch_size: int, steps: int, lipschitz: float, sigma: float) -> float:
    """Return the exact total variation of noisy SGD's last iterates in the example of Proposition 5 (derived).

    All losses except one are 0, and the remaining loss is linear with slope ``G`` or ``-G``. The example shows that the
    bound ``8 sqrt(T) G / (n sigma)`` of Proposition 1 has the right order. The mean moves by ``2 i G / m``, where the
    binomial ``i`` counts the batches with the record of this loss.

    Args:
        n: The number of records.
        batch_size: The batch size ``m``.
        steps: The number ``T`` of steps.
        lipschitz: The slope ``G``.
        sigma: The standard deviation of a step's noise in each coordinate.
    """
    require_batch(n, batch_size)
    require_count(least=1, steps=steps)
    require_positive(lipschitz=lipschitz, sigma=sigma)
    from scipy.stats import binom

    hits = np.arange(steps + 1)
    gaps = 2 * hits * lipschitz / (batch_size * math.sqrt(steps) * sigma)
    tv = np.array([gaussian_tv(float(gap)) for gap in gaps])
    return float(np.dot(binom.pmf(hits, steps, batch_size / n), tv))


def require_order(alpha: float) -> None:
    """Raise `ParameterError` unless a Rényi order is finite and at least 1."""
    if not 1 <= alpha < math.inf:
        raise ParameterError(f"alpha must be a finite number, at least 1, got {alpha!r}")
