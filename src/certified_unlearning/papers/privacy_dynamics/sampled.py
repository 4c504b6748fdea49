"""The Rényi divergence of two Gaussians with the same unknown variance, from samples, with a confidence interval.

The divergence is ``alpha (m - m')^2 / (2 v)``. Student's interval of the gap ``m - m'`` and the chi-square interval of
``v`` are exact, and each misses with half the allowed probability. The divergence grows with the gap and falls with the
variance. If neither interval misses, the divergence is therefore between its values at the ends of the intervals. The
interval holds for all orders at once.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from certified_unlearning.errors import ParameterError

Array = npt.NDArray[np.float64]


class Estimate(NamedTuple):
    """A divergence divided by its order, ``R_alpha / alpha``, and the ends of its confidence interval.

    Attributes:
        value: The plug-in estimate, with the shape of the samples without their last axis.
        low: The lower end, at least 0.
        high: The upper end.
    """

    value: Array
    low: Array
    high: Array


def divergence_by_order(first: Array, second: Array, *, miss: float) -> Estimate:
    """Estimate ``(m - m')^2 / (2 v)``.

    Args:
        first: Independent samples of ``N(m, v)``, shape ``(..., trials)``.
        second: Independent samples of ``N(m', v)``, of the same shape and independent of ``first``.
        miss: The largest probability that an interval misses; strictly between 0 and 1.

    Raises:
        ParameterError: The shapes differ, there are fewer than two trials, or ``miss`` is out of range.
    """
    from scipy.special import chdtri, stdtrit

    if first.shape != second.shape or first.shape[-1] < 2:
        raise ParameterError(
            f"both samples must have the same shape, with at least two trials, got {first.shape} and {second.shape}"
        )
    if not 0 < miss < 1:
        raise ParameterError(f"miss must lie strictly between 0 and 1, got {miss}")
    trials = first.shape[-1]
    freedom = 2 * (trials - 1)
    gap = np.abs(first.mean(axis=-1) - second.mean(axis=-1))
    variance = (first.var(axis=-1, ddof=1) + second.var(axis=-1, ddof=1)) / 2
    # The four ends of the two intervals share the probability of a miss.
    end = miss / 4
    reach = -stdtrit(freedom, end) * np.sqrt(2 * variance / trials)
    least, most = freedom * variance / chdtri(freedom, end), freedom * variance / chdtri(freedom, 1 - end)
    return Estimate(
        gap**2 / (2 * variance), np.maximum(gap - reach, 0.0) ** 2 / (2 * most), (gap + reach) ** 2 / (2 * least)
    )
