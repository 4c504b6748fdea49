"""The distance of a finite learning run from stationarity, and what this distance adds to delta.

The unlearning bounds of `lsi` assume that the learned and the retrained model have reached their stationary
distributions. Two runs of the same noisy gradient steps from starts ``Delta`` apart are ``mu``-Gaussian-DP (shifted
interpolation: Bok, Su, Altschuler, ICML 2024). Each step multiplies ``mu`` by at most ``c = 1 - eta m``. One of the two
runs may start at stationarity.
"""

import math

from certified_unlearning.accounting.core.checks import (
    require_count,
    require_non_negative,
    require_positive,
    require_probability,
)
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.core.search import MOST_STEPS, least_whole
from certified_unlearning.errors import AssumptionError, InfeasibleError, ParameterError


def learned_steps(
    problem: Problem,
    *,
    sigma: float,
    dimension: int,
    start_norm: float,
    start_std: float,
    mu_tolerance: float,
    beta: float,
) -> int:
    """Return the *learned T*: the fewest learning steps ``T`` after which `residual_mu` is at most ``mu_tolerance``.

    Args:
        problem: The constants.
        sigma: Noise scale.
        dimension: ``d``, the number of parameters.
        start_norm: Norm of the start, or of its mean.
        start_std: Standard deviation of each coordinate of the start; 0 for a fixed start.
        mu_tolerance: The largest allowed ``mu``.
        beta: Probability with which each bound on a random distance may fail (see `starting_distance`).

    Raises:
        AssumptionError: ``step_size`` exceeds ``2 / (L + m)``.
        InfeasibleError: More than 10^12 steps would be needed.
    """
    require_positive(mu_tolerance=mu_tolerance)
    distance = starting_distance(
        problem, sigma=sigma, dimension=dimension, start_norm=start_norm, start_std=start_std, beta=beta
    )
    # mu = spread c^T / sqrt(1 - c^(2T)) <= mu_tolerance exactly if c^(-2T) >= 1 + ratio^2.
    ratio = distance / _stationary_std(problem, sigma) / mu_tolerance
    estimate = math.log1p(ratio * ratio) / (-2 * _log_contraction(problem))
    if estimate > MOST_STEPS:
        raise InfeasibleError(
            f"mu_tolerance = {mu_tolerance} takes more than {MOST_STEPS:.0e} learning steps; raise mu_tolerance or "
            "step_size * strong_convexity, or start nearer to 0"
        )

    def is_enough(steps: int) -> bool:
        return residual_mu(problem, sigma=sigma, distance=distance, steps=steps) <= mu_tolerance

    return least_whole(estimate, is_enough, minimum=1)


def starting_distance(
    problem: Problem, *, sigma: float, dimension: int, start_norm: float, start_std: float, beta: float
) -> float:
    """Return a bound on the distance between the start and a draw from the stationary distribution.

    The bound is ``||x_0|| + M/m + r``. The optimum is within ``M/m`` of 0, because at the optimum the regulariser's
    gradient ``m x`` balances data-loss gradients of norm at most ``M``. A stationary draw is within
    ``r = tau / sqrt(1 - c^2) (sqrt(d) + sqrt(2 log(1/beta)))`` of the optimum with probability at least ``1 - beta``,
    where ``tau = sqrt(2 eta) sigma`` and ``c = 1 - eta m``. (The mean square of the distance is at most
    ``tau^2 d / (1 - c^2)``, and the distance concentrates like a Gaussian.) A random start ``N(mean, start_std^2 I)``
    adds ``start_std (sqrt(d) + sqrt(2 log(1/beta)))`` to the bound. The bound on the random start also fails with
    probability ``beta``. So the bound fails with probability at most ``beta`` for a fixed start, and ``2 beta`` for a
    random one.

    Args:
        problem: The constants. All strong convexity must come from a regulariser ``(m/2) ||x||^2``.
        sigma: Noise scale.
        dimension: ``d``, the number of parameters.
        start_norm: ``||x_0||``, or the norm of the start's mean.
        start_std: Standard deviation of each coordinate of the start; 0 for a fixed start.
        beta: Probability with which each bound on a random distance may fail.

    Raises:
        AssumptionError: ``step_size`` exceeds ``2 / (L + m)``.
    """
    require_count(least=1, dimension=dimension)
    require_non_negative(start_norm=start_norm, start_std=start_std)
    require_probability(beta=beta)
    typical_norm = math.sqrt(dimension) + math.sqrt(-2 * math.log(beta))
    stationary_radius = _stationary_std(problem, sigma) * typical_norm
    start_radius = start_norm + start_std * typical_norm
    longest = problem.lipschitz * (1 + problem.rounding.norm_excess)
    return start_radius + longest / problem.strong_convexity + stationary_radius


def residual_mu(problem: Problem, *, sigma: float, distance: float, steps: int) -> float:
    """Return the ``mu`` of Gaussian DP between two runs on the same data from starts ``distance`` apart.

    Shifted interpolation with a sensitivity of 0 and a starting distance of ``Delta`` gives
    ``mu = c^T Delta sqrt((1 - c^2) / (1 - c^(2T))) / tau``. It is infinite for 0 steps. This is an upper bound, which
    is exact on quadratics of curvature ``m``.

    Args:
        problem: The constants.
        sigma: Noise scale.
        distance: Distance of the starts, ``Delta``.
        steps: Number of steps, ``T``.

    Raises:
        AssumptionError: ``step_size`` exceeds ``2 / (L + m)``.
    """
    require_non_negative(distance=distance)
    require_count(least=0, steps=steps)
    spread = distance / _stationary_std(problem, sigma)
    if steps == 0:
        return math.inf if spread > 0 else 0.0
    log_decay = steps * _log_contraction(problem)
    return spread * math.exp(log_decay) / math.sqrt(-math.expm1(2 * log_decay))


def extra_delta(*, mu: float, betas_total: float, epsilon: float) -> float:
    """Return what finite learning adds to a delta that was derived for stationary distributions.

    ``(epsilon, delta)`` for stationary distributions becomes ``(epsilon, delta + tv (1 + e^epsilon))`` after ``T``
    steps, with ``tv = 2 Phi(mu/2) - 1 + betas``. Derivation:

    Let ``nu_T`` and ``nu'_T`` be the distributions of the learned and of the retrained model, each after at least ``T``
    steps, and let ``nu`` and ``nu'`` be the stationary ones. Except with probability ``betas``, the distance between
    the start and the stationary draw is at most `starting_distance`. Then the two runs are ``mu``-Gaussian-DP. Hence,
    by joint convexity, ``TV(nu_T, nu) <= tv``, and likewise ``TV(nu'_T, nu') <= tv``. Unlearning, including a sequence
    of requests, is a Markov kernel ``U``, which cannot increase total variation: ``TV(nu_T U, nu U) <= tv``. For every
    event ``E``,

        ``nu_T U(E) <= nu U(E) + tv <= e^epsilon nu'(E) + delta + tv <= e^epsilon (nu'_T(E) + tv) + delta + tv``,
        ``nu'_T(E) <= nu'(E) + tv <= e^epsilon nu U(E) + delta + tv <= e^epsilon (nu_T U(E) + tv) + delta + tv``.

    Args:
        mu: `residual_mu` after learning.
        betas_total: Probability with which the bound on the starting distance may fail: ``beta`` for a fixed start, ``2
            beta`` for a random one.
        epsilon: The epsilon of the guarantee at stationarity.

    Returns:
        The addition, at most 1.
    """
    require_non_negative(betas_total=betas_total, epsilon=epsilon)
    if not mu >= 0:
        raise ParameterError(f"mu must be at least 0, got {mu}")
    total_variation = min(1.0, math.erf(mu / math.sqrt(8)) + betas_total)
    if total_variation == 0:
        return 0.0
    # exp(epsilon) alone could overflow.
    return min(1.0, total_variation + math.exp(min(0.0, epsilon + math.log(total_variation))))


def _stationary_std(problem: Problem, sigma: float) -> float:
    """Return ``tau / sqrt(1 - c^2) = sigma sqrt(2 / (m (2 - eta m)))``, the standard deviation at stationarity."""
    require_positive(sigma=sigma)
    problem.require_strong_convexity()
    rate = _rate(problem)
    return sigma * math.sqrt(2 / (problem.strong_convexity * (2 - rate)))


def _log_contraction(problem: Problem) -> float:
    """Return ``log c``, computed from ``1 - c = eta m`` without cancellation; minus infinity for ``c = 0``."""
    rate = _rate(problem)
    return math.log1p(-rate) if rate < 1 else -math.inf


def _rate(problem: Problem) -> float:
    """Return ``1 - c = eta m``, after checking that a step contracts by ``c = 1 - eta m``."""
    limit = 2 / (problem.smoothness + problem.strong_convexity)
    if problem.step_size > math.nextafter(limit, math.inf):
        raise AssumptionError(
            "a gradient step contracts by 1 - step_size * strong_convexity only for step_size <= "
            f"2 / (smoothness + strong_convexity) = {limit}, got {problem.step_size}"
        )
    return problem.step_size * problem.strong_convexity
