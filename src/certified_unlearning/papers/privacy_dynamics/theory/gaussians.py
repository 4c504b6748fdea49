"""The distributions of noisy gradient descent: log-Sobolev constants, and Gaussians for quadratic losses.

Source: Lemmas 5, 8, 9 and Appendix E of Chourasia, Ye, Shokri (NeurIPS 2021), with Appendix E extended to any Hessian.
Every upper bound in `dynamics` is tested against the exact divergences here. Theorem 3, the paper's lower bound, is a
simplified form of `exact_quadratic`. The notation is that of `dynamics`.
"""

import math

import numpy as np
import numpy.typing as npt

from certified_unlearning.accounting.core.checks import require_non_negative, require_positive
from certified_unlearning.accounting.core.curves import RenyiCurve
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.deletion.rates import check_steps, linear_curve, sharp_rate
from certified_unlearning.errors import AssumptionError


def exact_quadratic(
    problem: Problem, *, sigma: float, steps: float, records: int = 1, start_variance: float = 0.0
) -> RenyiCurve:
    """Return the exact divergence under the losses ``lambda |theta - x|^2 / 2`` on the whole space.

    From a point, the divergence is ``alpha (S_g / (n sigma))^2 (2 - eta lambda) (1 - rho^K) / (4 lambda (1 + rho^K))``
    with ``rho = 1 - eta lambda`` (Appendix E, for any ``lambda``).

    Args:
        problem: The constants of the problem; ``smoothness`` is not used.
        sigma: The noise scale.
        steps: The number ``K`` of steps; may be infinite.
        records: The number of records in which the two data sets differ.
        start_variance: The variance of the Gaussian start in every coordinate; 0 for a point.

    Raises:
        AssumptionError: ``strong_convexity`` is 0, or ``step_size`` is not below ``1 / strong_convexity``.
    """
    return exact_hessian(
        [problem.strong_convexity],
        [problem.sensitivity(records)],
        step_size=problem.step_size,
        sigma=sigma,
        steps=steps,
        start_variance=start_variance,
    )


def exact_hessian(
    curvatures: npt.ArrayLike,
    gradient_gap: npt.ArrayLike,
    *,
    step_size: float,
    sigma: float,
    steps: float,
    start_variance: float = 0.0,
) -> RenyiCurve:
    """Return the exact divergence under the losses ``(theta - x)^T H (theta - x) / 2`` on the whole space.

    In each coordinate, the two distributions are Gaussians with the same variance, and the terms ``alpha gap^2 / (2
    variance)`` add up.

    Args:
        curvatures: The eigenvalues of ``H``, shape ``(d,)``.
        gradient_gap: ``grad f_D - grad f_D'`` in the basis of the eigenvectors of ``H``, shape ``(d,)``. The
            gradients are means over records, not sums.
        step_size: The step size ``eta``.
        sigma: The noise scale.
        steps: The number ``K`` of steps; may be infinite.
        start_variance: The variance of the Gaussian start in every coordinate; 0 for a point.

    Raises:
        AssumptionError: A curvature is 0, or ``step_size`` is not below the inverse of every curvature.
    """
    curvature, gap = np.asarray(curvatures, dtype=np.float64), np.asarray(gradient_gap, dtype=np.float64)
    _require_contraction(float(curvature.min()), step_size)
    _require_contraction(float(curvature.max()), step_size)
    require_positive(sigma=sigma)
    require_non_negative(start_variance=start_variance)
    check_steps(steps)
    if steps == 0:
        return linear_curve(1.0, sigma, 0.0)
    log_kept = steps * np.log1p(-step_size * curvature)
    moved = -np.expm1(log_kept)
    # The variance and the squared mean gap are both divided by 1 - rho^K; the variance also by sigma^2.
    spread = np.exp(2 * log_kept) * (start_variance / sigma**2) / moved
    spread += 2 * (1 + np.exp(log_kept)) / (curvature * (2 - step_size * curvature))
    return linear_curve(1.0, sigma, float(np.sum((gap / curvature) ** 2 * moved / (2 * spread))))


def theorem_3(problem: Problem, *, sigma: float, steps: float, records: int = 1) -> RenyiCurve:
    """Return Theorem 3, a *lower* bound on the divergence for two data sets and the losses ``|theta - x|^2 / 2``.

    The bound is ``alpha (S_g / (n sigma))^2 (1 - exp(-eta K)) / 4``. Arguments are those of `lower_bound`.

    Raises:
        AssumptionError: ``strong_convexity`` or ``smoothness`` is not 1, or ``step_size`` is not below 1.
    """
    require_unit_curvature(problem, "Theorem 3", step_limit=1)
    return lower_bound(problem, sigma=sigma, steps=steps, records=records)


def lower_bound(problem: Problem, *, sigma: float, steps: float, records: int = 1) -> RenyiCurve:
    """Return Theorem 3's bound for any strong convexity.

    If descent starts at a point, the bound is below `exact_quadratic`. The bound is ``alpha (S_g / (n sigma))^2 (1 -
    exp(-lambda eta K)) / (4 lambda)``.

    Args:
        problem: The constants of the problem; ``smoothness`` is not used.
        sigma: The noise scale.
        steps: The number ``K`` of steps; may be infinite.
        records: The number of records in which the two data sets differ.

    Raises:
        AssumptionError: ``strong_convexity`` is 0, or ``step_size`` is not below ``1 / strong_convexity``.
    """
    _require_contraction(problem.strong_convexity, problem.step_size)
    check_steps(steps)
    done = -math.expm1(-problem.strong_convexity * problem.step_size * steps)
    return linear_curve(problem.sensitivity(records), sigma, done / (4 * problem.strong_convexity))


def inverse_lsi(problem: Problem, *, sigma: float, steps: float, start: float) -> float:
    """Return ``1 / c`` after some steps; each step multiplies it by ``(1 - eta lambda)^2`` and adds ``2 eta sigma^2``.

    If ``1 / c`` is at most ``2 sigma^2 / lambda`` at the start, it never exceeds this value (Lemma 5). For
    `exact_quadratic`, ``1 / c`` is the variance.

    Args:
        problem: The constants of the problem.
        sigma: The noise scale.
        steps: The number ``K`` of steps; may be infinite.
        start: ``1 / c`` of the start: 0 for a point, or the variance of a Gaussian.

    Raises:
        AssumptionError: ``strong_convexity`` is 0, or ``step_size`` is not below ``1 / smoothness``.
    """
    require_positive(sigma=sigma)
    require_non_negative(start=start)
    check_steps(steps)
    fixed = 2 * sigma**2 / sharp_rate(problem)
    log_kept = 2 * steps * math.log1p(-problem.step_size * problem.strong_convexity)
    return math.exp(log_kept) * start - math.expm1(log_kept) * fixed


def require_unit_curvature(problem: Problem, theorem: str, *, step_limit: float) -> None:
    """Raise `AssumptionError` unless the losses are ``|theta - x|^2 / 2`` and ``step_size`` is below the limit."""
    if problem.strong_convexity != 1 or problem.smoothness != 1:
        raise AssumptionError(
            f"{theorem} is about the losses |theta - x|^2 / 2: it needs strong_convexity = smoothness = 1, got "
            f"strong_convexity = {problem.strong_convexity}, smoothness = {problem.smoothness}"
        )
    if problem.step_size >= step_limit:
        raise AssumptionError(f"{theorem} needs step_size < {step_limit}, got step_size = {problem.step_size}")


def _require_contraction(curvature: float, step_size: float) -> None:
    if curvature <= 0:
        raise AssumptionError(f"a quadratic loss needs curvatures above 0, got {curvature}")
    if step_size >= 1 / curvature:
        raise AssumptionError(
            f"a quadratic loss needs step_size < 1 / curvature = {1 / curvature}, got step_size = {step_size}"
        )
