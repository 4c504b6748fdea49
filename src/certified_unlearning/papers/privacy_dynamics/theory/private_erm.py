"""Private empirical risk minimisation by noisy gradient descent: its constants, and its excess risk.

Source: Theorem 4, Lemma 6 and Table 1 of Chourasia, Ye, Shokri, Differential privacy dynamics of Langevin diffusion and
noisy gradient descent (NeurIPS 2021). The notation is that of `dynamics`. The excess risk is ``max over D of
E[f_D(theta_K) - f_D(theta*)]``, where ``theta*`` is the minimiser over the set onto which steps are projected.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

from certified_unlearning.accounting.core.checks import (
    require_count,
    require_non_negative,
    require_positive,
    require_probability,
)
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.deletion.rates import check_order, check_steps, least_sigma
from certified_unlearning.errors import AssumptionError, ParameterError


@dataclass(frozen=True)
class Recipe:
    """The constants of a run of noisy gradient descent (Theorem 4).

    Attributes:
        problem: The constants of the problem, with the step size ``lambda / (2 beta^2)``; the adjacency is ``replace``.
        sigma: The noise scale.
        steps: The number ``K`` of steps: ``real_steps`` rounded up, but at least 1. Privacy holds for every number of
            steps.
        real_steps: The number ``K*``; below 0 if the target is so strict that the risk bound is trivial.
        alpha: The Rényi order.
        epsilon: An upper bound on the Rényi divergence at ``alpha``, whatever the number of steps.
        risk_bound: An upper bound on the excess risk (Eq. 77), if the minimiser is in the relative interior of the set.
    """

    problem: Problem
    sigma: float
    steps: int
    real_steps: float
    alpha: float
    epsilon: float
    risk_bound: float


def recipe_for_renyi(
    *,
    n: int,
    dimension: int,
    lipschitz: float,
    strong_convexity: float,
    smoothness: float,
    alpha: float,
    epsilon: float,
) -> Recipe:
    """Return Theorem 4's recipe for a Rényi divergence of at most ``epsilon`` at the order ``alpha``.

    The constants are ``sigma^2 = 4 alpha L^2 / (lambda epsilon n^2)``, ``K* = (2 beta^2 / lambda^2) log(n^2 epsilon /
    (alpha d))``. A strongly convex Lipschitz loss needs a bounded set, of diameter at most ``2 L / lambda``.

    Args:
        n: The number of records.
        dimension: The dimension ``d``.
        lipschitz: The Lipschitz constant ``L`` of each record's loss *with* its regulariser, on the set onto which
            steps are projected.
        strong_convexity: The strong convexity ``lambda``.
        smoothness: The smoothness ``beta``.
        alpha: The Rényi order, above 1.
        epsilon: The target.

    Raises:
        AssumptionError: ``strong_convexity`` is 0 or exceeds ``smoothness``.
    """
    require_count(least=1, dimension=dimension)
    check_order(alpha)
    require_positive(epsilon=epsilon)
    problem = _tuned(n, lipschitz, strong_convexity, smoothness)
    noise_to_signal = alpha * dimension / (n**2 * epsilon)
    return _recipe(
        problem,
        alpha,
        epsilon,
        noise_to_signal=noise_to_signal,
        risk_bound=10 * smoothness * (lipschitz / strong_convexity) ** 2 * noise_to_signal,
    )


def recipe_for_dp(
    *,
    n: int,
    dimension: int,
    lipschitz: float,
    strong_convexity: float,
    smoothness: float,
    epsilon: float,
    delta: float,
) -> Recipe:
    """Return Theorem 4's recipe for ``(epsilon, delta)``-DP.

    The recipe is the one for the divergence ``epsilon / 2`` at the order ``alpha = 1 + (2 / epsilon) log(1 / delta)``,
    but with the theorem's simpler and slightly larger ``K* = (2 beta^2 / lambda^2) log(n^2 epsilon^2 / (4 d log(1 /
    delta)))``.

    Args:
        n: The number of records.
        dimension: The dimension ``d``.
        lipschitz: The Lipschitz constant ``L`` of each record's loss *with* its regulariser, on the set onto which
            steps are projected.
        strong_convexity: The strong convexity ``lambda``.
        smoothness: The smoothness ``beta``.
        epsilon: The target epsilon, at most ``2 log(1 / delta)``.
        delta: The target delta, strictly between 0 and 1.

    Raises:
        AssumptionError: ``strong_convexity`` is 0 or exceeds ``smoothness``, or ``epsilon`` is too large.
    """
    require_count(least=1, dimension=dimension)
    require_positive(epsilon=epsilon)
    require_probability(delta=delta)
    log_inverse_delta = -math.log(delta)
    if epsilon > 2 * log_inverse_delta:
        raise AssumptionError(
            f"Theorem 4 needs epsilon <= 2 log(1 / delta) = {2 * log_inverse_delta}, got epsilon = {epsilon}"
        )
    problem = _tuned(n, lipschitz, strong_convexity, smoothness)
    noise_to_signal = 4 * dimension * log_inverse_delta / (n * epsilon) ** 2
    return _recipe(
        problem,
        1 + 2 * log_inverse_delta / epsilon,
        epsilon / 2,
        noise_to_signal=noise_to_signal,
        risk_bound=20 * smoothness * (lipschitz / strong_convexity) ** 2 * noise_to_signal,
    )


def lemma_6(problem: Problem, *, sigma: float, steps: float, dimension: int, lipschitz: float) -> float:
    """Return Lemma 6's bound on the excess risk, if the minimiser is in the relative interior of the set.

    The bound is ``(2 beta L^2 / lambda^2) exp(-lambda eta K) + 2 beta d sigma^2 / lambda``.

    Args:
        problem: The constants of the problem.
        sigma: The noise scale.
        steps: The number ``K`` of steps, a real number of at least 0.
        dimension: The dimension ``d``.
        lipschitz: The Lipschitz constant ``L`` of each record's loss *with* its regulariser on the set;
            ``problem.lipschitz`` is the constant without the regulariser.

    Raises:
        AssumptionError: ``strong_convexity`` is 0, or ``step_size`` exceeds ``lambda / (2 beta^2)``.
    """
    _check_utility(problem, sigma, dimension)
    require_positive(lipschitz=lipschitz)
    require_non_negative(steps=steps)
    rate, smoothness = problem.strong_convexity, problem.smoothness
    start = 2 * smoothness * (lipschitz / rate) ** 2 * math.exp(-rate * problem.step_size * steps)
    return start + 2 * smoothness * dimension * sigma**2 / rate


def risk_from_start(problem: Problem, *, sigma: float, steps: float, dimension: int, squared_distance: float) -> float:
    """Return the bound in the proof of Lemma 6 before it is simplified (derived, not the paper's claim).

    The bound is ``(beta / 2) rho^K E|theta_0 - theta*|^2 + (beta d sigma^2 / lambda) (1 - rho^K)`` with ``rho = 1 - eta
    lambda``. The bound is Eq. 81 unrolled, and holds if the minimiser is in the relative interior of the set.

    Args:
        problem: The constants of the problem.
        sigma: The noise scale.
        steps: The number ``K`` of steps; may be infinite.
        dimension: The dimension ``d``.
        squared_distance: The mean squared distance ``E|theta_0 - theta*|^2``.

    Raises:
        AssumptionError: ``strong_convexity`` is 0, or ``step_size`` exceeds ``lambda / (2 beta^2)``.
    """
    _check_utility(problem, sigma, dimension)
    require_non_negative(squared_distance=squared_distance)
    check_steps(steps)
    rate, smoothness = problem.strong_convexity, problem.smoothness
    log_kept = steps * math.log1p(-rate * problem.step_size)
    noise = -math.expm1(log_kept) * dimension * sigma**2 / rate
    return smoothness * (math.exp(log_kept) * squared_distance / 2 + noise)


class ComparedMethod(NamedTuple):
    """A row of Table 1, for 1-Lipschitz losses; the row omits constants, and it omits factors of ``log(1 / delta)``."""

    method: str
    utility: float
    gradients: float | None
    condition: str


def table_1(
    *, n: int, dimension: int, strong_convexity: float, smoothness: float, epsilon: float
) -> list[ComparedMethod]:
    """Return Table 1: excess risk and gradient evaluations of methods of private empirical risk minimisation.

    Args:
        n: The number of records.
        dimension: The dimension ``d``.
        strong_convexity: The strong convexity ``lambda``.
        smoothness: The smoothness ``beta``.
        epsilon: The epsilon of ``(epsilon, delta)``-DP.

    Raises:
        ParameterError: A logarithm of the table is not above 0.
    """
    require_count(least=2, n=n)
    require_count(least=1, dimension=dimension)
    require_positive(strong_convexity=strong_convexity, smoothness=smoothness, epsilon=epsilon)
    signal = (n * epsilon) ** 2 / dimension
    if signal * min(1.0, strong_convexity) <= 1:
        raise ParameterError(
            "Table 1 needs n^2 epsilon^2 min(1, strong_convexity) > dimension, got "
            f"n = {n}, epsilon = {epsilon}, strong_convexity = {strong_convexity}, dimension = {dimension}"
        )
    condition_number = smoothness / strong_convexity
    best = 1 / (strong_convexity * signal)
    steps = math.log(signal)
    return [
        ComparedMethod("noisy SGD", best * math.log(n) ** 2, n**2, ""),
        ComparedMethod("DP-SVRG", best * math.log(n), (n + condition_number) * math.log(strong_convexity * signal), ""),
        ComparedMethod("output perturbation", best * condition_number, condition_number * n * steps, ""),
        ComparedMethod("objective perturbation", best, None, "epsilon >= beta / (2 lambda)"),
        ComparedMethod(
            "noisy GD", best * condition_number, condition_number**2 * n * steps, "epsilon <= 2 log(1 / delta)"
        ),
    ]


def _tuned(n: int, lipschitz: float, strong_convexity: float, smoothness: float) -> Problem:
    require_positive(strong_convexity=strong_convexity, smoothness=smoothness)
    return Problem(n, strong_convexity, smoothness, lipschitz, strong_convexity / (2 * smoothness**2))


def _recipe(problem: Problem, alpha: float, epsilon: float, *, noise_to_signal: float, risk_bound: float) -> Recipe:
    condition_number = problem.smoothness / problem.strong_convexity
    real_steps = -2 * condition_number**2 * math.log(noise_to_signal)
    return Recipe(
        problem,
        sigma=least_sigma(problem, alpha=alpha, epsilon=epsilon),
        steps=max(1, math.ceil(real_steps)),
        real_steps=real_steps,
        alpha=alpha,
        epsilon=epsilon,
        risk_bound=risk_bound,
    )


def _check_utility(problem: Problem, sigma: float, dimension: int) -> None:
    require_positive(sigma=sigma)
    require_count(least=1, dimension=dimension)
    problem.require_strong_convexity()
    limit = problem.strong_convexity / (2 * problem.smoothness**2)
    # The limit itself is allowed, however the quotient was rounded.
    if problem.step_size > math.nextafter(limit, math.inf):
        raise AssumptionError(
            f"Lemma 6 needs step_size <= strong_convexity / (2 smoothness^2) = {limit}, "
            f"got step_size = {problem.step_size}"
        )
