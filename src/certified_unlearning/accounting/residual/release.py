"""The guarantee of a release with a certified residual, the budget for the residual, and the limits of float64.

The *release* is ``w + N(0, sigma^2 I)``, with fresh noise each time. The weights ``w`` are secret, and their *residual*
``|grad f_R(w)|`` is certified to be at most ``tau``. The *reference* is ``w*_R + N(0, sigma^2 I)``, the exact minimiser
on the remaining records ``R`` with the same noise. By strong convexity, ``|w - w*_R| <= |grad f_R(w)| / m``. So release
and reference are Gaussians whose means are at most ``tau / m`` apart. This gives ``mu``-Gaussian DP with
``mu = tau / (m sigma)``. ``tau`` is the *budget*. It is fixed in advance, and so ``mu`` is fixed, too. The guarantees
are:

- ``mu`` after any number of requests, if requests are fixed in advance and only the last published model is seen;
- ``mu sqrt(k)`` for all ``k`` releases together, including the first one;
- ``mu sqrt(k)`` for all ``k`` releases together, if requests are adaptive, that is, chosen after seeing releases. The
  comparator is the same interaction with exact refits. Given the past, both interactions have the same ``R`` and differ
  by one shift of a Gaussian. With adaptive requests, there is no smaller ``mu`` for the last published model alone,
  because ``R`` depends on earlier releases.

Models that were published before a deletion are outside the guarantee, because both sides of the comparison learn of
the deletion only when it is requested.

The weights are float64 numbers. Their noise comes from the sampler of `accounting.core.rounding`. This noise is within
``kappa sigma`` of exact noise, except with a probability that `noise_delta` accounts for. The rounding of weights plus
noise is a function of their sum. Both arguments fail if the published numbers are coarser than the shift, which
`require_representable` excludes.
"""

import math
from collections.abc import Iterable

from certified_unlearning.accounting.core.checks import (
    require_count,
    require_non_negative,
    require_positive,
    require_probability,
)
from certified_unlearning.accounting.core.conversion import epsilon_from_mu, mu_from_epsilon
from certified_unlearning.accounting.core.rounding import FAILURE, UNIT_ROUNDOFF, longest_noise, resolution
from certified_unlearning.accounting.residual.public import least_curvature
from certified_unlearning.accounting.residual.rounding import OUTWARD, Terms, gradient_error
from certified_unlearning.errors import AssumptionError
from certified_unlearning.text import rounded_up

RESOLUTION_SHARE = 1e-3
"""Largest allowed error of the published numbers, divided by the distance ``budget / m`` of the means."""
ROUNDING_SHARE = 0.05
"""Share of the budget that the rounding of one evaluated gradient may take."""


def mu_of(residual: float, *, strong_convexity: float, sigma: float) -> float:
    """Return ``mu = tau / (m sigma)`` of the last published model for requests fixed in advance, rounded up.

    Args:
        residual: Certified bound ``tau`` on the gradient's norm, or the budget for this norm.
        strong_convexity: Strong convexity ``m``.
        sigma: Standard deviation of the published noise.
    """
    require_non_negative(residual=residual)
    require_positive(strong_convexity=strong_convexity, sigma=sigma)
    return residual / strong_convexity / sigma * OUTWARD


def mu_of_all(mu: float, releases: int) -> float:
    """Return ``mu sqrt(k)`` for all ``k`` releases together, also under adaptive requests, rounded up."""
    require_non_negative(mu=mu)
    require_count(least=1, releases=releases)
    return mu * math.sqrt(releases) * OUTWARD


def budget_of(*, epsilon: float, delta: float, strong_convexity: float, sigma: float) -> float:
    """Return the public budget ``tau = mu m sigma`` whose ``mu`` (see `mu_of`) gives at most ``epsilon`` at ``delta``.

    Raises:
        ParameterError: ``epsilon`` is not above 0, or ``delta`` is not strictly between 0 and 1.
    """
    require_positive(strong_convexity=strong_convexity, sigma=sigma)
    return mu_from_epsilon(epsilon, delta) * strong_convexity * sigma / OUTWARD**2


def together(bounds: Iterable[float]) -> float:
    """Return the joint shift of several models that are released as one, given a bound on each model's shift.

    The noise of different models is independent, so all weights together are one vector with Gaussian noise. The shift
    of its mean is the root of the sum of squared shifts.
    """
    return math.sqrt(math.fsum(bound * bound for bound in bounds)) * OUTWARD


def share_of_each(budget: float, models: int) -> float:
    """Return each model's share of the budget, for equal shares that `together` combines into the budget."""
    require_count(least=1, models=models)
    return budget if models == 1 else budget / math.sqrt(models) / OUTWARD**2


def noise_delta(epsilon: float, *, dimension: int, releases: int) -> float:
    """Return the addition to delta for random norms that are larger than `accounting.core.rounding` assumes."""
    require_non_negative(epsilon=epsilon)
    failure = releases * (dimension + 4) * FAILURE
    return min(1.0, failure * (1 + math.exp(min(epsilon, 700.0))))


def noise_resolution(sigma: float, dimension: int) -> float:
    """Return the largest distance, in Euclidean norm, of published noise from exact Gaussian noise."""
    return sigma * resolution(dimension, "float64")


def largest_weights(*, classes: int, strong_convexity: float, residual: float) -> float:
    """Return a bound on ``|w|`` that holds for every data set.

    The bound follows from ``f(w*) <= f(0)`` and the small distance of ``w`` from ``w*``. ``f(0)`` is ``log(classes)``,
    and at most 1/2 for ridge regression (1 class), whose targets are at most 1 in size.
    """
    require_count(least=1, classes=classes)
    require_positive(strong_convexity=strong_convexity)
    at_origin = 0.5 if classes == 1 else math.log(classes)
    return (math.sqrt(2 * at_origin / strong_convexity) + residual / strong_convexity) * OUTWARD


def require_representable(
    *,
    n: int,
    features: int,
    classes: int,
    strong_convexity: float,
    sigma: float,
    delta: float,
    budget: float,
    terms: Terms | None = None,
    one_vs_rest: bool = False,
    public_curvature: float = 0.0,
) -> None:
    """Raise `AssumptionError` if float64 is too coarse for a budget. This reads no data.

    The rounding of one gradient must use at most `ROUNDING_SHARE` of the budget. The rounding of the published numbers
    and the error of their noise together must use at most `RESOLUTION_SHARE` of the shift ``budget / m``. `noise_delta`
    must be at most delta.

    Args:
        n: Number of records.
        features: Number of columns of a row.
        classes: Number of classes, at least 2; 1 for ridge regression.
        strong_convexity: Strong convexity ``m``.
        sigma: Standard deviation of the published noise.
        delta: Delta of the guarantee.
        budget: Budget ``tau``.
        terms: Numbers of terms in the sums of a gradient; None for those of dense rows.
        one_vs_rest: Whether there is one two-class model for each class against the rest. All these models are released
            as one.
        public_curvature: Curvature that public rows add to ``m``. They add this curvature between the minimiser and the
            weights (see `public`).

    Raises:
        AssumptionError: ``sigma`` or ``strong_convexity`` is too small, and the message names a sufficient value; or
            the budget is so large that `noise_delta` exceeds delta.
    """
    require_count(least=1, n=n, features=features)
    require_positive(sigma=sigma, budget=budget)
    require_probability(delta=delta)
    models, of_each = (classes, 2) if one_vs_rest else (1, classes)
    least = least_curvature(strong_convexity, public_curvature)
    # For ridge regression, the curvature of public rows is the same everywhere, so it tightens the bound on weights,
    # too.
    everywhere = least if classes == 1 else strong_convexity
    weights = largest_weights(classes=of_each, strong_convexity=everywhere, residual=budget)
    unavoidable = math.sqrt(models) * gradient_error(
        records=n,
        n=n,
        features=features,
        classes=of_each,
        weight_norm=weights,
        strong_convexity=strong_convexity,
        terms=terms,
    )
    weights *= math.sqrt(models)
    if unavoidable > ROUNDING_SHARE * budget:
        enough = sigma * unavoidable / (ROUNDING_SHARE * budget)
        raise AssumptionError(
            f"sigma = {sigma:.6g} allows only a gradient of norm {budget:.3g} (strong_convexity = "
            f"{strong_convexity:.3g}, delta = {delta:.3g}), but rounding in float64 may be as large as "
            f"{unavoidable:.3g}; sigma = {rounded_up(enough)} is enough, and a larger strong_convexity (a smaller C) "
            "helps"
        )
    dimension = features * (1 if classes == 2 else classes)
    epsilon = epsilon_from_mu(mu_of(budget, strong_convexity=least, sigma=sigma), delta)
    left_out = noise_delta(epsilon, dimension=dimension, releases=1)
    if left_out > delta:
        raise AssumptionError(
            f"epsilon = {rounded_up(epsilon)} is too large to be guaranteed: the finite range of the noise sampler "
            f"would add {left_out:.2g} to delta = {delta:.3g}; use a smaller epsilon"
        )
    shift = budget / least
    published = UNIT_ROUNDOFF["float64"] * weights + noise_resolution(sigma, dimension)
    published += UNIT_ROUNDOFF["float64"] * sigma * longest_noise(dimension)
    if published > RESOLUTION_SHARE * shift:
        raise AssumptionError(
            f"sigma = {sigma:.6g} allows a distance of {shift:.3g} between means, but published float64 numbers are "
            f"off by up to {published:.3g}: use a larger sigma, epsilon or strong_convexity (a smaller C)"
        )
