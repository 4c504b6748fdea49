"""How float64 increases the sensitivity of gradients and minimisers of linear scores.

Two runs on neighbouring records compute gradients that are each off by up to ``rho``. So one record moves a computed
gradient by at most the exact sensitivity plus ``2 rho``. The notation and the bounds on errors of inner products are
those of `accounting.residual.rounding`. A score is off by ``gamma_d X |w|``. A slope is off by ``H`` times the error of
the score, and by a few more roundings. A mean of ``n`` terms is off by ``gamma_n`` times their size. Rows that were
scaled down to norm ``X`` have norm at most ``(1 + (d + 8) u) X``. The bound ``rho`` also holds if a squared loss is
computed from ``X'X / n``.

Noise comes from the sampler of `accounting.core.rounding`. It is within ``kappa`` standard deviations of exact noise,
except with probability `failure`. The rounded sum of weights and noise is a function of the exact sum. The sampler's
error and the rounding displace the start of the next step by up to ``a = tau kappa + u |w|`` (`displaced`). So the
result of that step is off by up to ``a + eta H X^2 a``. This equals an error of ``a / eta + H X^2 a`` in the step's
gradient, which is added to ``rho``. The published weights are off by ``a``. As everywhere in this package, the
guarantee does not cover attacks on differences that are smaller than the error of the published numbers.
"""

import math

from certified_unlearning.accounting.core.checks import require_count, require_non_negative, require_positive
from certified_unlearning.accounting.core.rounding import FAILURE, longest_noise, resolution
from certified_unlearning.accounting.residual.rounding import LEAST, OUTWARD, UNIT, gamma

SLOPE_OPERATIONS = 16
"""Number of roundings in a slope, each relative to the largest slope. It is twice the number of roundings in a sigmoid
or hyperbolic tangent."""
_INTERPLAY = 1.01


def row_excess(features: int) -> float:
    """Return the largest relative amount by which a row exceeds the norm to which it was scaled down."""
    return (features + 8) * UNIT


def gradient_error(
    *, n: int, features: int, row_norm: float, slope: float, smoothness: float, weight_norm: float
) -> float:
    """Return ``rho``, the largest norm of the difference between a computed mean gradient and the exact one.

    Args:
        n: Number of records.
        features: Number of columns of a row.
        row_norm: Largest norm ``X`` of a row.
        slope: Largest ``|phi'|`` for such rows and weights.
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
    """Return the largest distance of stored weights from the end of an exact step.

    Args:
        features: Number of weights.
        noise_std: Standard deviation of the noise on the weights.
        weight_norm: Largest norm of the weights before noise is added.
    """
    noise = noise_std * (longest_noise(features) + resolution(features, "float64"))
    return noise_std * resolution(features, "float64") + (features + 8) * UNIT * (weight_norm + noise)


def failure(features: int, releases: int) -> float:
    """Return the probability that the noise of some release has a larger norm than this module assumes."""
    return releases * (features + 4) * FAILURE


def moved(sensitivity: float, error: float) -> float:
    """Return how far one record moves a computed value: the exact sensitivity plus twice the error, rounded up."""
    if not math.isfinite(error):
        return math.inf
    return (sensitivity + 2 * error) * OUTWARD
