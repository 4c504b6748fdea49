"""Noisy gradient descent on linear losses, exactly: what bounds on deletion and attacks are compared with.

The losses ``<x, theta>`` with ``|x| <= L`` are convex, L-Lipschitz and smooth. With the regulariser
``lambda |theta|^2 / 2`` a step is ``theta <- (1 - eta lambda) theta - eta mean(x) + sqrt(2 eta) sigma N(0, I)``: laws
stay Gaussian with one variance in every coordinate, and requests move means only. Not in the paper: derived.
"""

import math

from certified_unlearning.accounting.core.curves import RenyiCurve
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.deletion.rates import check_steps, lemma_5_rate, linear_curve, sharp_rate


def kept_after(problem: Problem, steps: float) -> float:
    """Return ``(1 - eta lambda)^steps``, the share of the mean that is left after some steps.

    Raises:
        AssumptionError: ``strong_convexity`` is 0, or ``step_size`` is not below ``1 / smoothness``.
    """
    check_steps(steps)
    return math.exp(steps * math.log1p(-problem.step_size * lemma_5_rate(problem)))


def exact_deletion_curve(
    problem: Problem, *, sigma: float, steps: float, steps_before: float = math.inf, records: int = 1
) -> RenyiCurve:
    """Return the exact divergence of the model from one that never saw the deleted records, in the worst direction.

    ``alpha (s / sigma)^2 (1 - eta lambda / 2) (1 - a^steps_before)^2 a^(2 steps) / (2 lambda)`` with ``s`` the
    sensitivity and ``a = 1 - eta lambda``, from `planning.start_variance`'s start. Never above `deletion_curve`.

    Args:
        problem: The constants.
        sigma: Noise scale.
        steps: Steps since the deletion.
        steps_before: Steps of learning and requests while the records were present; may be infinite.
        records: Records deleted.

    Raises:
        AssumptionError: ``strong_convexity`` is 0, or ``step_size`` is not below ``1 / smoothness``.
    """
    # sharp_rate / (4 lambda^2) = (1 - eta lambda / 2) / (2 lambda)
    inverse_variance = sharp_rate(problem) / (4 * problem.strong_convexity**2)
    gap = (1 - kept_after(problem, steps_before)) * kept_after(problem, steps)
    return linear_curve(problem.sensitivity(records), sigma, inverse_variance * gap**2)
