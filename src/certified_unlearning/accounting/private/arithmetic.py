"""How float64 increases the sensitivity of gradients and minimisers of linear scores.

Two runs on neighbouring records compute gradients that are each off by up to ``rho``, so one record moves them by at
most the exact sensitivity plus ``2 rho``. Notation and bounds of inner products are those of
`accounting.residual.rounding`: a score is off by ``gamma_d X |w|``; its slope is off by ``H`` times that and by a few
roundings of its own; a mean of ``n`` terms is off by ``gamma_n`` times their size. Rows that were scaled down to norm
``X`` have norm at most ``1 + (d + 8) u`` times that. A squared loss may be computed from ``X'X / n``: the same bound
holds.

Noise comes from the sampler of `accounting.core.rounding`, within ``kappa`` standard deviations of exact noise, except
with probability `failure`. Rounding of a sum is a function of the sum. Both displace where the next step starts, by up
to ``a = tau kappa + u |w|`` (`displaced`): the next step starts from that end point, not from the one with exact noise.
Its result is off by ``a`` and by ``eta H X^2 a``, so the step's gradient is off by ``a / eta + H X^2 a``, which is
added to ``rho``. The published weights are off by ``a``; as everywhere in this package, questions about smaller
differences are outside the guarantee.
"""

import math

from certified_unlearning.accounting.core.checks import require_count, require_non_negative, require_positive
from certified_unlearning.accounting.core.rounding import FAILURE, longest_noise, resolution
from certified_unlearning.accounting.residual.rounding import LEAST, OUTWARD, UNIT, gamma

SLOPE_OPERATIONS = 16
"""Roundings of a slope, relative to the largest slope: twice those of a sigmoid or a hyperbolic tangent."""
_INTERPLAY = 1.01


def row_excess(features: int) -> float:
    """Return by how much, relatively, the norm of a row that was scaled down to its bound may exceed the bound."""
    return (features + 8) * UNIT


def gradient_error(
    *, n: int, features: int, row_norm: float, slope: float, smoothness: float, weight_norm: float
) -> float:
    """Return ``rho``, the largest distance in norm of a computed mean gradient from the exact one.

    Args:
        n: Number of records.
        features: Number of columns of a row.
        row_norm: Largest norm ``X`` of a row.
        slope: The largest ``|phi'|`` on these rows and weights.
        smoothness: Smoothness ``H``.
        weight_norm: Largest norm of weights.
    """
    require_count(least=1, n=n, features=features)
    require_positive(row_norm=row_norm, smoothness=smoothness)
    require_non_negative(slope=slope, weight_norm=weight_norm)
    row = row_norm * (1 + row_excess(features))
    score = gamma(features) * row * weight_norm
    off = smoothness * (score + 4 * UNIT * row * weight_norm) + SLOPE_OPERATIONS * UNIT * slope
    lengthened = (slope + smoothness * row * weight_norm) * row_excess(features)
    summed = gamma(n + 4) * slope
    return _INTERPLAY * row * (off + summed + lengthened) + features * LEAST


def displaced(*, features: int, noise_std: float, weight_norm: float) -> float:
    """Return the largest distance of stored weights from an exact step's end.

    Args:
        features: Number of weights.
        noise_std: Standard deviation of the noise on them.
        weight_norm: Their largest norm before noise.
    """
    noise = noise_std * (longest_noise(features) + resolution(features, "float64"))
    return noise_std * resolution(features, "float64") + (features + 8) * UNIT * (weight_norm + noise)


def failure(features: int, releases: int) -> float:
    """Return the probability that some noise has a larger norm than assumed here."""
    return releases * (features + 4) * FAILURE


def moved(sensitivity: float, error: float) -> float:
    """Return how far one record moves a computed value: the exact sensitivity plus twice the error; rounded up."""
    if not math.isfinite(error):
        return math.inf
    return (sensitivity + 2 * error) * OUTWARD
