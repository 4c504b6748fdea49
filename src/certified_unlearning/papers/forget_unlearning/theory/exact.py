"""Exact distributions of noisy gradient descent on linear losses, a reference for bounds on deletion and for attacks.

The losses ``<x, theta>`` with ``|x| <= L`` are convex, L-Lipschitz and smooth. With the regulariser ``lambda |theta|^2
/ 2``, a step is ``theta <- (1 - eta lambda) theta - eta mean(x) + sqrt(2 eta) sigma N(0, I)``. Distributions stay
Gaussian with the same variance in every coordinate, and requests move only the means. The formulas of this module are
not in the paper; they are derived here.
"""

import math

from certified_unlearning.accounting.core.curves import RenyiCurve
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.deletion.rates import check_steps, lemma_5_rate, linear_curve, sharp_rate


def kept_after(problem: Problem, steps: float) -> float:
    """Return ``(1 - eta lambda)^steps``, the share of the mean that remains after some steps.

    Raises:
        AssumptionError: ``strong_convexity`` is 0, or ``step_size`` is not below ``1 / smoothness``.
    """
    check_steps(steps)
    return math.exp(steps * math.log1p(-problem.step_size * lemma_5_rate(problem)))


def exact_deletion_curve(
    problem: Problem, *, sigma: float, steps: float, steps_before: float = math.inf, records: int = 1
) -> RenyiCurve:
    """Return the exact divergence of the model from one that never saw the deleted records, in the worst direction.

    Learning starts from a Gaussian with the variance `planning.start_variance`. The divergence is ``alpha (s / sigma)^2
    (1 - eta lambda / 2) (1 - a^steps_before)^2 a^(2 steps) / (2 lambda)`` with the sensitivity ``s`` and ``a = 1 - eta
    lambda``. The divergence never exceeds `deletion_curve`.

    Args:
        problem: The constants of the problem.
        sigma: The noise scale.
        steps: The number of steps since the deletion.
        steps_before: The number of steps, of learning and of requests, while the records were present; may be infinite.
        records: The number of deleted records.

    Raises:
        AssumptionError: ``strong_convexity`` is 0, or ``step_size`` is not below ``1 / smoothness``.
    """
    # sharp_rate / (4 lambda^2) = (1 - eta lambda / 2) / (2 lambda)
    inverse_variance = sharp_rate(problem) / (4 * problem.strong_convexity**2)
    gap = (1 - kept_after(problem, steps_before)) * kept_after(problem, steps)
    return linear_curve(problem.sensitivity(records), sigma, inverse_variance * gap**2)
