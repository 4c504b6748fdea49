"""The excess risk that noisy gradient descent leaves while records are replaced, and what is saved over retraining.

Source: Lemmas G.16 and G.17, the proof of Theorem 5.1 and Table 1 of Chourasia and Shah, Forget Unlearning (ICML 2023).
Notation as in `deletion`. The excess risk is ``E[f_D(theta)] - min f_D``; the losses without their regulariser are
convex and ``L``-Lipschitz, and ``kappa = smoothness / strong_convexity``.
"""

import math
from typing import NamedTuple

from certified_unlearning.accounting.core.checks import require_count, require_positive
from certified_unlearning.accounting.core.gaussians import check_order
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.deletion.conditions import require_request_size
from certified_unlearning.errors import ParameterError


def condition_number(problem: Problem) -> float:
    """Return ``kappa``.

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
        ParameterError: A value makes no sense.
        AssumptionError: ``strong_convexity`` is 0.
    """
    _check_target(alpha, dimension, epsilon)
    scale = problem.lipschitz / problem.n
    return 10 * condition_number(problem) * alpha * dimension * scale**2 / (problem.strong_convexity * epsilon)


class StepsForRisk(NamedTuple):
    """Real numbers of steps, at least 0, that Theorem 5.1 asks of learning and of every request for its risk bound."""

    learning: float
    deletion: float


def steps_for_risk(problem: Problem, *, alpha: float, dimension: int, epsilon: float, records: int) -> StepsForRisk:
    """Return the steps that keep the excess risk below `certified_risk`, with ``eta = 1 / (2 smoothness)``.

    ``4 kappa log(epsilon n^2 / (4 alpha d))`` and ``4 kappa log(max(5 kappa, 8 epsilon r^2 / (alpha d)))``.

    Args:
        problem: The constants.
        alpha: Rényi order, above 1.
        dimension: ``d``.
        epsilon: ``epsilon_dp``.
        records: ``r``, the most records of one request.

    Raises:
        ParameterError: A value makes no sense.
        AssumptionError: ``strong_convexity`` is 0.
    """
    _check_target(alpha, dimension, epsilon)
    require_request_size(records, problem.n)
    kappa = condition_number(problem)
    signal = epsilon / (alpha * dimension)
    learning = 4 * kappa * math.log(signal * problem.n**2 / 4)
    return StepsForRisk(max(learning, 0.0), 4 * kappa * math.log(max(5 * kappa, 8 * signal * records**2)))


class ComparedMethod(NamedTuple):
    """A row of Table 1: gradients of single records saved at a request, up to constants and ``log(1 / delta)``."""

    method: str
    source: str
    has_secret_state: bool
    saved: float


def table_1(*, n: int, dimension: int, epsilon: float, request: int) -> list[ComparedMethod]:
    """Return Table 1: one record a request, fixed in advance, all methods at one target risk.

    Args:
        n: Number of records.
        dimension: ``d``.
        epsilon: Of ``(epsilon, delta)``-DP.
        request: ``i``, from 1 on.

    Raises:
        ParameterError: A value makes no sense, or a logarithm of the table is not above 0.
    """
    require_count(least=1, n=n, dimension=dimension, request=request)
    require_positive(epsilon=epsilon)
    signal = epsilon * n / math.sqrt(dimension)
    published = signal / math.log(request * dimension) ** 2 if request * dimension > 1 else 0.0
    if min(signal, published) <= 1:
        raise ParameterError(
            "Table 1 needs request * dimension > 1 and epsilon n > sqrt(dimension) max(1, log(request dimension)^2), "
            f"got epsilon = {epsilon}, n = {n}, dimension = {dimension}, request = {request}"
        )
    return [
        ComparedMethod(
            "Noisy-m-A-SGD", "Ullah et al., Theorem 1", False, math.sqrt(dimension) * (1 - math.sqrt(dimension) / n)
        ),
        ComparedMethod("Perturbed-GD", "Neel et al., Theorem 9", True, n * math.log(signal)),
        ComparedMethod("Perturbed-GD", "Neel et al., Theorem 28", False, n * math.log(published)),
        ComparedMethod("Noisy-GD", "Theorem 5.1", False, n * math.log(min(n, signal))),
    ]


def _check_target(alpha: float, dimension: int, epsilon: float) -> None:
    check_order(alpha)
    require_count(least=1, dimension=dimension)
    require_positive(epsilon=epsilon)
