"""The Rényi divergence and information of two Gaussians on the line, on which Lemmas 2 and 3 can be tested."""

import math
from typing import NamedTuple


class Gaussian(NamedTuple):
    """``N(mean, variance)``."""

    mean: float
    variance: float


def renyi_divergence(alpha: float, first: Gaussian, second: Gaussian) -> float:
    """Return ``R_alpha(first || second)``, which is infinite if ``(1 - alpha) v + alpha v'`` is not above 0.

    Args:
        alpha: The Rényi order, above 1.
        first: The distribution in the first argument.
        second: The distribution in the second argument.
    """
    mixed = (1 - alpha) * first.variance + alpha * second.variance
    if mixed <= 0:
        return math.inf
    logs = math.log(mixed) - (1 - alpha) * math.log(first.variance) - alpha * math.log(second.variance)
    return alpha * (first.mean - second.mean) ** 2 / (2 * mixed) - logs / (2 * (alpha - 1))


def information_ratio(alpha: float, first: Gaussian, second: Gaussian) -> float:
    """Return ``I_alpha / E_alpha``: the mean squared slope of the log density ratio under the tilted distribution.

    The tilted distribution, proportional to ``p^alpha p'^(1 - alpha)``, is a Gaussian.

    Args:
        alpha: The Rényi order, above 1.
        first: The distribution ``p``.
        second: The distribution ``p'``, so broad that the divergence is finite.
    """
    variance = 1 / (alpha / first.variance + (1 - alpha) / second.variance)
    mean = variance * (alpha * first.mean / first.variance + (1 - alpha) * second.mean / second.variance)
    slope = 1 / second.variance - 1 / first.variance
    at_zero = first.mean / first.variance - second.mean / second.variance
    return (at_zero + slope * mean) ** 2 + slope**2 * variance


def lemma_3_left(alpha: float, first: Gaussian, second: Gaussian) -> float:
    """Return ``R_alpha + alpha (alpha - 1) dR_alpha / d alpha``, the left side of Lemma 3, in closed form.

    Args:
        alpha: The Rényi order, above 1.
        first: The distribution in the first argument.
        second: The distribution in the second argument, so broad that the divergence is finite.
    """
    change = second.variance - first.variance
    mixed = first.variance + alpha * change
    squared_gap = (first.mean - second.mean) ** 2
    logs = math.log(mixed) - (1 - alpha) * math.log(first.variance) - alpha * math.log(second.variance)
    d_logs = change / mixed + math.log(first.variance / second.variance)
    d_renyi = squared_gap / (2 * mixed) - alpha * squared_gap * change / (2 * mixed**2)
    d_renyi -= d_logs / (2 * (alpha - 1)) - logs / (2 * (alpha - 1) ** 2)
    return renyi_divergence(alpha, first, second) + alpha * (alpha - 1) * d_renyi
