"""The excess risk that noisy gradient descent leaves while records are replaced, and what is saved over retraining.

Source: Lemmas G.16 and G.17, the proof of Theorem 5.1 and Table 1 of Chourasia and Shah, Forget Unlearning (ICML 2023).
Notation as in `deletion`. The excess risk is ``E[f_D(theta)] - min f_D``; the losses without their regulariser are
convex and ``L``-Lipschitz, and ``kappa = smoothness / strong_convexity``.
"""

import math
from typing import NamedTuple

from certified_unlearning.accounting.core.checks import require_count, require_non_negative, require_positive
from certified_unlearning.accounting.core.gaussians import check_order, check_steps, lemma_5_rate
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


def minimiser_shift(problem: Problem, records: int) -> float:
    """Return how far replacing records moves the minimiser at most: ``4 r L / (lambda n)`` (Eq. 120).

    Raises:
        ParameterError: ``records`` is no whole number from 1 to ``n``.
        AssumptionError: ``strong_convexity`` is 0.
    """
    problem.require_strong_convexity()
    require_request_size(records, problem.n)
    return 4 * records * problem.lipschitz / (problem.strong_convexity * problem.n)


def risk_after_edit(problem: Problem, risk: float, *, records: int) -> float:
    """Return Lemma G.16: the excess risk of one and the same model once records are replaced, chosen adaptively or not.

    ``kappa (2 risk + 16 r^2 L^2 / (lambda n^2))``.

    Args:
        problem: The constants.
        risk: Excess risk before.
        records: ``r``.

    Raises:
        ParameterError: A value makes no sense.
        AssumptionError: ``strong_convexity`` is 0.
    """
    require_non_negative(risk=risk)
    moved = problem.strong_convexity * minimiser_shift(problem, records) ** 2
    return condition_number(problem) * (2 * risk + moved)


def risk_after_steps(problem: Problem, risk: float, *, sigma: float, steps: float, dimension: int) -> float:
    """Return Lemma G.17: the excess risk after some steps, ``risk exp(-lambda eta K / 2) + kappa d sigma^2``.

    Args:
        problem: The constants.
        risk: Excess risk before.
        sigma: Noise scale.
        steps: ``K``; may be infinite.
        dimension: ``d``.

    Raises:
        ParameterError: A value makes no sense.
        AssumptionError: ``strong_convexity`` is 0, or ``step_size`` is not below ``1 / smoothness``.
    """
    rate = _check_descent(problem, risk, sigma, steps, dimension)
    return risk * math.exp(-rate * problem.step_size * steps / 2) + condition_number(problem) * dimension * sigma**2


def sharp_risk_after_steps(problem: Problem, risk: float, *, sigma: float, steps: float, dimension: int) -> float:
    """Return what the proof of Lemma G.17 gives before it is simplified (derived, not the paper's claim).

    ``(1 - g)^K risk + eta d sigma^2 smoothness (1 - (1 - g)^K) / g`` with ``g = lambda eta (2 - eta smoothness)``.
    Arguments and errors as for `risk_after_steps`.
    """
    rate = _check_descent(problem, risk, sigma, steps, dimension)
    eta = problem.step_size
    contraction = rate * eta * (2 - eta * problem.smoothness)
    kept = math.pow(1 - contraction, steps)
    return risk * kept + eta * dimension * sigma**2 * problem.smoothness * (1 - kept) / contraction


def starting_risk(problem: Problem, *, sigma: float, dimension: int) -> float:
    """Return a bound on the excess risk of `planning.start_variance`'s start: ``kappa (L^2 / (2 lambda) + d sigma^2)``.

    Raises:
        ParameterError: A value makes no sense.
        AssumptionError: ``strong_convexity`` is 0.
    """
    require_positive(sigma=sigma)
    require_count(least=1, dimension=dimension)
    return condition_number(problem) * (problem.lipschitz**2 / (2 * problem.strong_convexity) + dimension * sigma**2)


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


def gradients_saved(
    problem: Problem, *, alpha: float, dimension: int, epsilon_dp: float, epsilon_dd: float, records: int
) -> float:
    """Return Theorem 5.1's saving over retraining at every request, before steps are rounded; may be negative.

    ``4 kappa n log(min(n^2 epsilon_dd / (4 alpha d), epsilon_dp n^2 / (20 kappa alpha d), n^2 / (32 r^2)))``, gradients
    of single records.

    Args:
        problem: The constants.
        alpha: Rényi order, above 1.
        dimension: ``d``.
        epsilon_dp: Target for present records.
        epsilon_dd: Target for deleted records.
        records: ``r``, the most records of one request.

    Raises:
        ParameterError: A value makes no sense.
        AssumptionError: ``strong_convexity`` is 0.
    """
    _check_target(alpha, dimension, epsilon_dp)
    require_positive(epsilon_dd=epsilon_dd)
    require_request_size(records, problem.n)
    kappa, signal = condition_number(problem), problem.n**2 / (4 * alpha * dimension)
    least = min(epsilon_dd * signal, epsilon_dp * signal / (5 * kappa), (problem.n / records) ** 2 / 32)
    return 4 * kappa * problem.n * math.log(least)


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


def _check_descent(problem: Problem, risk: float, sigma: float, steps: float, dimension: int) -> float:
    require_non_negative(risk=risk)
    require_positive(sigma=sigma)
    require_count(least=1, dimension=dimension)
    check_steps(steps)
    return lemma_5_rate(problem)
