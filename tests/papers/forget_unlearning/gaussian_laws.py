"""Laws of the model on quadratic losses, which are Gaussians: what bounds, plans and simulations are compared with."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from certified_unlearning.accounting.core.checks import require_non_negative, require_positive
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.core.search import Array
from certified_unlearning.accounting.deletion.rates import (
    check_order,
)
from certified_unlearning.errors import AssumptionError, ParameterError
from certified_unlearning.papers.forget_unlearning.theory.exact import exact_deletion_curve, kept_after
from certified_unlearning.papers.privacy_dynamics.theory.gaussians import inverse_lsi


def require_gradient_norm(largest: float, lipschitz: float) -> None:
    """Raise `AssumptionError` unless the largest gradient norm of a record's loss is at most ``lipschitz``."""
    if not largest <= lipschitz:
        raise AssumptionError(
            f"bounded gradients: no loss may have a gradient longer than lipschitz = {lipschitz}, got length {largest}"
        )


class GaussianLaw(NamedTuple):
    """A Gaussian: its mean, shape ``(d,)``, and its variance, the same in every coordinate."""

    mean: Array
    variance: float


def law_after(
    problem: Problem,
    start: GaussianLaw,
    record_means: Sequence[npt.ArrayLike],
    steps: Sequence[float],
    *,
    sigma: float,
) -> GaussianLaw:
    """Return the law of the model after learning and any requests.

    Args:
        problem: The constants.
        start: The law before; a point has variance 0, `planning.start_variance` is the paper's.
        record_means: Mean of the records of every phase: learning, then each request, shape ``(d,)`` each.
        steps: Steps of every phase; may be infinite.
        sigma: Noise scale.

    Raises:
        ParameterError: A value makes no sense, or there are not as many means as numbers of steps.
        AssumptionError: ``strong_convexity`` is 0, ``step_size`` is not below ``1 / smoothness``, or a mean is longer
            than ``lipschitz``.
    """
    if len(record_means) != len(steps):
        raise ParameterError(f"record_means and steps must be equally many, got {len(record_means)} and {len(steps)}")
    mean, variance = np.asarray(start.mean, dtype=np.float64), start.variance
    require_non_negative(variance=variance)
    for record_mean, count in zip(record_means, steps, strict=True):
        gradient = np.asarray(record_mean, dtype=np.float64)
        require_gradient_norm(float(np.linalg.norm(gradient)), problem.lipschitz)
        variance = inverse_lsi(problem, sigma=sigma, steps=count, start=variance)
        kept = kept_after(problem, count)
        mean = kept * mean - (1 - kept) * gradient / problem.strong_convexity
    return GaussianLaw(mean, variance)


def gaussian_divergence(law: GaussianLaw, reference: GaussianLaw, *, alpha: float) -> float:
    """Return the exact Rényi divergence of one law from another; infinite where it is not defined.

    With ``w = alpha v2 + (1 - alpha) v1`` above 0: ``alpha |m1 - m2|^2 / (2 w)``, and in each coordinate
    ``log(v2 / v1) / 2 + log(v2 / w) / (2 (alpha - 1))``.

    Args:
        law: The first argument, of mean ``m1`` and variance ``v1``.
        reference: The second, of ``m2`` and ``v2``.
        alpha: Rényi order, above 1.

    Raises:
        ParameterError: A value makes no sense.
    """
    check_order(alpha)
    first, second = law.variance, reference.variance
    require_positive(variance=first, reference_variance=second)
    # Rounding of equal variances would swamp divergences below 1e-12.
    mixed = second if first == second else alpha * second + (1 - alpha) * first
    if mixed <= 0:
        return math.inf
    gap = float(np.sum((np.asarray(law.mean) - np.asarray(reference.mean)) ** 2))
    spread = math.log(second / first) + math.log(second / mixed) / (alpha - 1)
    return alpha * gap / (2 * mixed) + np.size(law.mean) * spread / 2


def exact_risk(problem: Problem, law: GaussianLaw, record_mean: npt.ArrayLike) -> float:
    """Return the exact excess risk, ``(lambda / 2) (|mean + mean(x) / lambda|^2 + d variance)``.

    Args:
        problem: The constants.
        law: Of the model.
        record_mean: Mean of the records at which the risk is asked for, shape ``(d,)``.

    Raises:
        AssumptionError: ``strong_convexity`` is 0, or the mean is longer than ``lipschitz``.
    """
    problem.require_strong_convexity()
    gradient = np.asarray(record_mean, dtype=np.float64)
    require_gradient_norm(float(np.linalg.norm(gradient)), problem.lipschitz)
    distance = np.asarray(law.mean) + gradient / problem.strong_convexity
    return problem.strong_convexity / 2 * (float(distance @ distance) + distance.size * law.variance)


def least_exact_steps(problem: Problem, *, sigma: float, alpha: float, epsilon: float) -> int:
    """Return the least steps after a deletion that bring `exact_deletion_curve` down to ``epsilon``, learned for ever.

    Raises:
        ParameterError: A value makes no sense.
        AssumptionError: ``strong_convexity`` is 0, or ``step_size`` is not below ``1 / smoothness``.
    """
    require_positive(epsilon=epsilon)
    check_order(alpha)
    at_once = float(exact_deletion_curve(problem, sigma=sigma, steps=0)(np.array([alpha]))[0])
    slope = -2 * math.log1p(-problem.step_size * problem.strong_convexity)
    return max(0, math.ceil(math.log(at_once / epsilon) / slope))
