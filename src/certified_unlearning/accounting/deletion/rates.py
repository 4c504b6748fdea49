"""Rates of Rényi bounds for noisy gradient descent on strongly convex losses, and noise that the bounds require.

Source: Chourasia, Ye, Shokri, Differential privacy dynamics of Langevin diffusion and noisy gradient descent (NeurIPS
2021). A step is ``theta <- theta - eta grad f_D(theta) + sqrt(2 eta) sigma N(0, I)``. Every bound is linear in the
order: ``alpha (S_g / (n sigma))^2 factor``, where ``factor`` is a time. ``S_g / n`` is
``problem.sensitivity(records)``, ``lambda`` is ``strong_convexity``, and ``beta`` is ``smoothness``.
"""

import math

import numpy as np

from certified_unlearning.accounting.core.checks import require_count, require_positive
from certified_unlearning.accounting.core.curves import RenyiCurve
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.errors import AssumptionError, ParameterError


def lemma_5_rate(problem: Problem) -> float:
    """Return the damping rate of Lemma 5, ``lambda``. At this rate, all distributions are ``lambda / (2 sigma^2)``-LSI.

    Raises:
        AssumptionError: ``strong_convexity`` is 0, or ``step_size`` is not below ``1 / smoothness``.
    """
    problem.require_strong_convexity()
    limit = 1 / problem.smoothness
    if problem.step_size >= limit:
        raise AssumptionError(
            f"Lemma 5 needs step_size < 1 / smoothness = {limit}, got step_size = {problem.step_size}"
        )
    return problem.strong_convexity


def sharp_rate(problem: Problem) -> float:
    """Return the damping rate for a point start, ``lambda (2 - eta lambda)``: the fixed point of Lemmas 8 and 9.

    Raises:
        AssumptionError: ``strong_convexity`` is 0, or ``step_size`` is not below ``1 / smoothness``.
    """
    rate = lemma_5_rate(problem)
    return rate * (2 - problem.step_size * rate)


def least_sigma(problem: Problem, *, alpha: float, epsilon: float) -> float:
    """Return the least ``sigma`` at which Corollary 1's bound is at most ``epsilon`` for any number of steps.

    The limit for many steps is ``alpha (S_g / (n sigma))^2 / lambda``. The result has a relative error of about 1e-15
    and is never too small.

    Args:
        problem: The constants.
        alpha: Rényi order, above 1.
        epsilon: Target epsilon.

    Raises:
        AssumptionError: ``strong_convexity`` is 0, or ``step_size`` is not below ``1 / smoothness``.
    """
    check_order(alpha)
    require_positive(epsilon=epsilon)
    factor = 1 / lemma_5_rate(problem)

    def divergence(sigma: float) -> float:
        return float(linear_curve(problem.sensitivity(1), sigma, factor)(np.array([alpha]))[0])

    sigma = math.sqrt(divergence(1.0) / epsilon)
    # Rounding must not push the result above its target.
    nudge = 1e-16
    while divergence(sigma) > epsilon:
        nudge *= 2
        sigma *= 1 + nudge
    return sigma


def linear_curve(sensitivity: float, sigma: float, factor: float) -> RenyiCurve:
    """Return the curve ``alpha (sensitivity / sigma)^2 factor``.

    Args:
        sensitivity: Distance between the gradients of ``f_D`` and ``f_D'``.
        sigma: Noise scale.
        factor: A time, at least 0, possibly infinite.
    """
    require_positive(sigma=sigma)
    log_slope = 2 * math.log(sensitivity / sigma) + _log(factor)
    return RenyiCurve(lambda alpha: np.log(alpha) + log_slope)


def check_steps(steps: float) -> None:
    """Raise `ParameterError` unless ``steps`` is a whole number, at least 0, or infinite."""
    if steps != math.inf:
        require_count(least=0, steps=steps)


def check_order(alpha: float) -> None:
    """Raise `ParameterError` unless ``alpha`` is finite and above 1."""
    if not (math.isfinite(alpha) and alpha > 1):
        raise ParameterError(f"alpha must be finite and above 1, got {alpha}")


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf
