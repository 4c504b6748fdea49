"""The excess risk that noisy gradient descent leaves while records are replaced.

Source: The proof of Theorem 5.1 of Chourasia and Shah, Forget Unlearning (ICML 2023).
The notation is that of `planning`. The excess risk is ``E[f_D(theta)] - min f_D``. The losses without their regulariser
are convex and ``L``-Lipschitz, and ``kappa = smoothness / strong_convexity``.
"""

import math
from typing import NamedTuple

from certified_unlearning.accounting.core.checks import require_count, require_positive
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.deletion.conditions import require_request_size
from certified_unlearning.accounting.deletion.rates import check_order


def condition_number(problem: Problem) -> float:
    """Return the condition number ``kappa``.

    Raises:
        AssumptionError: ``strong_convexity`` is 0.
    """
    problem.require_strong_convexity()
    return problem.smoothness / problem.strong_convexity


def certified_risk(problem: Problem, *, alpha: float, dimension: int, epsilon: float) -> float:
    """Return the excess risk that Theorem 5.1 certifies along a stream: ``10 kappa alpha d L^2 / (lambda eps n^2)``.

    Args:
        problem: The constants.
        alpha: Rényi order, above 1.
        dimension: ``d``.
        epsilon: ``epsilon_dp``.

    Raises:
        AssumptionError: ``strong_convexity`` is 0.
    """
    _check_target(alpha, dimension, epsilon)
    scale = problem.lipschitz / problem.n
    return 10 * condition_number(problem) * alpha * dimension * scale**2 / (problem.strong_convexity * epsilon)


class StepsForRisk(NamedTuple):
    """Numbers of steps that Theorem 5.1's risk bound requires: real numbers, at least 0.

    Attributes:
        learning: Number of learning steps.
        deletion: Number of steps of every request.
    """

    learning: float
    deletion: float


def steps_for_risk(problem: Problem, *, alpha: float, dimension: int, epsilon: float, records: int) -> StepsForRisk:
    """Return the numbers of steps that keep the excess risk below `certified_risk`, with ``eta = 1 / (2 smoothness)``.

    Learning takes ``4 kappa log(epsilon n^2 / (4 alpha d))`` steps, and every request takes
    ``4 kappa log(max(5 kappa, 8 epsilon r^2 / (alpha d)))``.

    Args:
        problem: The constants.
        alpha: Rényi order, above 1.
        dimension: ``d``.
        epsilon: ``epsilon_dp``.
        records: Largest number of records of one request, ``r``.

    Raises:
        AssumptionError: ``strong_convexity`` is 0.
    """
    _check_target(alpha, dimension, epsilon)
    require_request_size(records, problem.n)
    kappa = condition_number(problem)
    signal = epsilon / (alpha * dimension)
    learning = 4 * kappa * math.log(signal * problem.n**2 / 4)
    return StepsForRisk(max(learning, 0.0), 4 * kappa * math.log(max(5 * kappa, 8 * signal * records**2)))


def _check_target(alpha: float, dimension: int, epsilon: float) -> None:
    check_order(alpha)
    require_count(least=1, dimension=dimension)
    require_positive(epsilon=epsilon)
