"""How floating-point arithmetic and a discrete noise sampler weaken a guarantee.

A computed step ends near the exact one. Let two runs of noisy steps update the same point. The updates of computed runs
differ by up to *two* step errors more than the updates of exact runs. This holds in every step, even if the data agree.
So the sensitivity of a step in shifted interpolation (`pooling`) has two summands: the difference between the updates
of exact runs, and the two step errors. The derivation follows.

Let ``A_t`` be the weights that step ``t`` computes before it adds noise, as a function of the weights from which the
step starts. Let ``V_t = A_t + tau Z_t`` with exact Gaussian noise ``Z_t``. The computed weights are the rounding of
``A_t + tau z_t``, where the sampler computes ``z_t`` from the same uniform numbers, so that ``|z_t - Z_t| <= kappa``.
Rounding and projection are functions of the exact sum, so they reveal only what the sum reveals. They displace the
start of the next step by at most ``u |V|``. The sampler's error displaces it by ``tau kappa``. Hence ``V_(t+1) =
phi(V_t) + e_t + tau Z_(t+1)``, where ``phi`` is the exact update. The error ``e_t`` is a function of the past, and
``|e_t|`` is at most the *step error* ``rho``. This is all that the interpolation requires: its shifts may depend on the
past, but not on future noise. (The two numbers of each pair that the Box-Muller method draws are used within one step.)
The interpolation's guarantee is for ``V_T``. The published numbers are ``V_T`` after rounding, with noise that is off
by up to ``tau kappa``, the *resolution*. The guarantee does not cover smaller differences, for example attacks on the
last bits of floating-point noise (Mironov, CCS 2012).

The step error holds for losses of linear scores, if rows have norm at most 1 and if `objectives` or compiled steps
compute the losses. The unit roundoff is ``u``, and ``gamma_k = k u / (1 - k u)`` holds for every order of summation of
``k`` terms (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1). A score is off by ``gamma_f |w|``. A
coefficient with a derivative of at most ``q`` is off by ``q`` times the error of the score, plus the rounding of
sigmoid or softmax. Twice that rounding is counted, which also covers the product with a class weight of at most 1. The
sum of ``n`` gradients is off by ``gamma_D n``, where ``D`` is the largest number of terms added one after another. The
rest of the update has five roundings. ``|w|`` is at most ``|w_0| + M/m`` plus the norm of the accumulated noise, which
is Gaussian because the regulariser's gradient is linear.

The squared loss of a target ``y`` in [-1, 1] has the residual ``r = x'w - y`` as its coefficient, which grows with
``w``. Every step projects on a ball of radius ``R``, so ``M = R + 1`` bounds the residual. A score is off by ``gamma_f
|w|``, the difference between score and ``y`` is off by ``u M`` more, and the sum of ``n`` gradients is off by ``gamma_D
M n``. Weights are projected before they are stored, so ``|w|`` is at most ``R`` plus the projection's rounding, ``(d +
6) u R``, and no noise accumulates. The noise of the step lengthens the sum before the projection, and the rounding of
that sum is ``u`` times the sum's length. A row of norm ``1 + e`` has a gradient of norm at most ``(1 + e)^2 M``.
"""

import math
from dataclasses import dataclass
from typing import Literal

from certified_unlearning.accounting.core.checks import require_count, require_positive
from certified_unlearning.accounting.core.losses import ridge_radius
from certified_unlearning.errors import ParameterError

UNIT_ROUNDOFF = {"float32": 2.0**-24, "float64": 2.0**-53}
"""Largest relative error of one operation."""
SMALLEST_NORMAL = {"float32": 2.0**-126, "float64": 2.0**-1022}
RADIUS_ERROR = {"float32": 2.0**-14, "float64": 2.0**-42}
"""Absolute error of a radius that `randomness` computes, apart from relative errors."""
NORM_EXCESS = 1.1e-6
"""Largest excess of a row's norm above 1. Rows are checked to 1e-6, possibly before they are stored as float32."""
FAILURE = 2.0**-512
"""Probability that one random norm exceeds its bound. The tail that the sampler cuts off has the same probability."""
ROWS_IN_A_ROW = 65_536
"""Number of rows in the largest block of `objectives`. The gradients of a block are added one after another."""
LEAST_BLOCK = 1024
"""Number of rows in the smallest block of `objectives`."""
LARGEST_SIGMA = 1e15
"""Largest noise scale. With more noise, weights could exceed the largest float32."""
SHARE = 0.1
"""Largest share of a guarantee that a plan spends on rounding."""

Noise = Literal["every step", "publication", "publication, fed back"]
"""Where noise is added. With `publication`, the next steps start from the weights without noise. With
`publication, fed back`, they start from the noisy weights."""


@dataclass(frozen=True)
class Rounding:
    """Error bounds of a computed step, and the probability that they fail.

    Attributes:
        fixed: The part of the step error that does not depend on the noise.
        per_noise: The part of the step error that depends on the noise, divided by the standard deviation ``tau`` of a
            step's noise.
        resolution: Distance ``kappa`` of the sampler's noise from exact noise, in standard deviations.
        failure: Probability, per step, that weights or noise have a larger norm than assumed.
        norm_excess: Largest excess of a row's norm above 1.
    """

    fixed: float = 0.0
    per_noise: float = 0.0
    resolution: float = 0.0
    failure: float = 0.0
    norm_excess: float = 0.0

    def step_error(self, noise_std: float) -> float:
        """Return the step error ``rho`` for noise of this standard deviation."""
        return self.fixed + self.per_noise * noise_std

    def failure_of(self, steps: float) -> float:
        """Return the probability that the error bounds fail in a run of this many steps."""
        return self.failure * steps


EXACT = Rounding()
"""Exact arithmetic and exact noise, as the papers assume."""


def required_sigma(sigma: float) -> float:
    """Return a noise scale as a Python number.

    Raises:
        ParameterError: The scale is 0 or negative, or it is so large that weights could overflow.
    """
    require_positive(sigma=sigma)
    if sigma > LARGEST_SIGMA:
        raise ParameterError(
            f"sigma must be at most {LARGEST_SIGMA:g}, got {sigma}: with more noise, weights may overflow"
        )
    return float(sigma)


def rounding(
    *,
    n: int,
    features: int,
    classes: int,
    strong_convexity: float,
    lipschitz: float,
    step_size: float,
    dtype: str,
    start_norm: float = 0.0,
    noise: Noise = "every step",
    projects: bool = False,
) -> Rounding:
    """Return the rounding of one computed step of logistic, softmax or ridge regression.

    Args:
        n: Number of records.
        features: Number of columns of a row.
        classes: Number of classes: 2 for logistic regression, more for softmax regression, 1 for ridge regression.
        strong_convexity: Strong convexity ``m`` of the regulariser.
        lipschitz: Lipschitz constant ``M``. For ridge regression it is ``R + 1``, where ``R`` is the radius of the
            ball.
        step_size: Step size ``eta``.
        dtype: ``float32`` or ``float64``.
        start_norm: Norm of the mean of the starting weights.
        noise: Where noise is added. Ridge regression needs noise in every step.
        projects: Whether every step projects onto a ball. Ridge regression needs this.

    Returns:
        The step error (see the module's docstring); infinite if rounding alone could make weights grow.
    """
    require_count(least=1, n=n, features=features, classes=classes)
    require_positive(strong_convexity=strong_convexity, lipschitz=lipschitz, step_size=step_size)
    unit = UNIT_ROUNDOFF[dtype]
    dimension = features if classes == 2 else features * classes
    if classes == 1:
        # The difference alone would lose the digits of a small radius.
        radius = max(lipschitz - 1, ridge_radius(strong_convexity)) * (1 + (dimension + 6) * unit)
        lipschitz = radius + 1
    slope, coefficient_error, sums = _of_loss(classes, lipschitz)
    longest_sum = min(n, ROWS_IN_A_ROW) + math.ceil(n / LEAST_BLOCK) + 2
    gradient_error = coefficient_error * unit + sums * _gamma(longest_sum, unit)
    # The factor 1.01 covers interactions of these errors and rows that are up to `NORM_EXCESS` too long.
    at_origin = 1.01 * step_size * gradient_error + 20 * unit * step_size * max(lipschitz, 1.0)
    at_origin += 8 * (1 + step_size) * math.sqrt(dimension) * SMALLEST_NORMAL[dtype]
    per_norm = 1.01 * step_size * slope * _gamma(features, unit) + 6 * unit
    if projects:
        per_norm += (dimension + 6) * unit
    if classes == 1:
        if not projects or noise != "every step":
            raise ParameterError(
                "ridge regression by noisy steps needs noise and a projection onto a ball in every step, got "
                f"noise = {noise!r} and projects = {projects}"
            )
        return _in_a_ball(radius, at_origin, per_norm, dimension, dtype)
    rate = min(step_size * strong_convexity, 1.0)
    growth = per_norm / rate
    if growth >= 0.5:
        return Rounding(math.inf, math.inf, resolution(dimension, dtype), 0.0, NORM_EXCESS)
    # Three parts bound the weights' norm: the start with M / m, the noise so far, and the effect of earlier step errors
    # on both.
    norm = (start_norm + lipschitz / strong_convexity + at_origin / rate) / (1 - growth)
    kappa = resolution(dimension, dtype)
    longest = longest_noise(dimension)
    norm_per_noise = (longest * (1 / math.sqrt(rate * (2 - rate)) + 1 / math.sqrt(rate)) + kappa / rate) / (1 - growth)
    if noise == "publication":
        norm_per_noise, fed_back = 0.0, 0.0
    else:
        fed_back = kappa
    per_noise = per_norm * norm_per_noise + fed_back
    if noise != "every step":
        # Accountants call a step's noise sqrt(2 eta) sigma. Here the noise has standard deviation sigma itself.
        per_noise /= math.sqrt(2 * step_size)
    return Rounding(at_origin + per_norm * norm, per_noise, kappa, (dimension + 4) * FAILURE, NORM_EXCESS)


def _of_loss(classes: int, lipschitz: float) -> tuple[float, float, float]:
    """Return bounds on a coefficient's derivative, on a coefficient's rounding error, and on a sum of coefficients.

    The bound on the derivative is ``q``. The bound on the rounding error is in units of ``u``. The sum is that of the
    absolute values of a record's coefficients.
    """
    if classes == 1:
        return 1.0, 2 * lipschitz, lipschitz
    return (0.25, 8.0, 1.0) if classes == 2 else (0.5, 2.0 * classes + 16, 2.0)


def _in_a_ball(norm: float, at_origin: float, per_norm: float, dimension: int, dtype: str) -> Rounding:
    """Return the rounding of steps from projected weights, whose norm is at most ``norm``."""
    kappa = resolution(dimension, dtype)
    return Rounding(
        fixed=at_origin + per_norm * norm,
        per_noise=6 * UNIT_ROUNDOFF[dtype] * (longest_noise(dimension) + kappa) + kappa,
        resolution=kappa,
        failure=(dimension + 4) * FAILURE,
        norm_excess=(1 + NORM_EXCESS) ** 2 - 1,
    )


def resolution(dimension: int, dtype: str) -> float:
    """Return ``kappa``: the largest distance of a step's noise from exact noise, in standard deviations.

    `randomness` draws pairs by the method of Box and Muller. A pair's radius is ``r = sqrt(-2 log U)``, off by at most
    `RADIUS_ERROR` plus ``4 u r``. If ``U`` comes from an integer, it is exact to ``2^-w``, where ``w`` is 31 or 63. If
    ``U`` comes from a float, it is exact to ``u``. So ``r^2`` is off by ``2^-w / U + 2 u`` plus the rounding of
    logarithm and root. For the smallest and the largest ``U``, this error would be large, so these ``U`` are drawn with
    1024 more bits. The angle is off by ``18 u``. Together with the scaling by the noise's standard deviation, each of
    ``ceil(d / 2)`` pairs is off by `RADIUS_ERROR` plus ``24 u r``. The compiled noise (`engine.compiled`) is computed
    in the same way, with the C library's logarithm, cosine and sine.
    """
    pairs = -(-dimension // 2)
    return RADIUS_ERROR[dtype] * math.sqrt(pairs) + 24 * UNIT_ROUNDOFF[dtype] * longest_noise(2 * pairs)


def longest_noise(dimension: int) -> float:
    """Return the norm that a vector of ``d`` standard normal numbers exceeds with probability at most `FAILURE`."""
    return math.sqrt(dimension) + math.sqrt(-2 * math.log(FAILURE))


def _gamma(count: int, unit: float) -> float:
    return count * unit / (1 - count * unit) if count * unit < 0.5 else math.inf
