"""Langevin unlearning's own accountant: privacy recuperation through a log-Sobolev inequality (LSI).

Source: Chien, Wang, Chen, Li, Langevin unlearning (NeurIPS 2024), strongly convex case, ``C_LSI = 2 sigma^2 / m``.
A step is ``x <- x - eta grad f_D(x) + sqrt(2 eta) sigma N(0, I)``, then optionally a projection on a ball: ``sigma``
is not the per-step standard deviation, and the ball's radius enters none of these bounds.

Every value is an upper bound. Rényi divergences are two-sided: the larger of both directions. Assumed of the caller:
requests fixed in advance; a start that is itself ``C_LSI``-LSI (a point, or a Gaussian of variance at most
``2 sigma^2 / m``); and, for the unlearning bounds, learning run to stationarity (`stationarity` says what a finite
run adds to delta).
"""

import math
from collections.abc import Sequence

import numpy as np

from certified_unlearning.accounting.checks import (
    require_count,
    require_counts,
    require_positive,
    require_probability,
)
from certified_unlearning.accounting.conversion import EpsilonAtOrder, epsilon_from_renyi
from certified_unlearning.accounting.problem import Problem
from certified_unlearning.accounting.search import Array
from certified_unlearning.errors import AssumptionError, ParameterError

# A request so many requests ago acts at orders above 2^56: neither its steps nor its Hölder factor change a double.
RECENT_REQUESTS = 56


def initial_renyi(
    alpha: float | Array, problem: Problem, *, sigma: float, records: int, learning_steps: float = math.inf
) -> float | Array:
    """Return an upper bound on the Rényi divergence between models learned on data that differ in ``records``.

    Theorem 3.3, strongly convex: ``eps0 = (4 alpha S^2 M^2 / (m sigma^2 n^2)) (1 - exp(-m eta T))``
    (``replace``; a quarter of it for ``zero-out``).

    Args:
        alpha: Rényi order or orders, above 1.
        problem: The constants.
        sigma: Noise scale.
        records: ``S``.
        learning_steps: ``T``; infinite for learning to stationarity.

    Raises:
        ParameterError: A value makes no sense.
        AssumptionError: ``step_size`` exceeds ``1 / smoothness``.
    """
    check_assumptions(problem, sigma)
    if learning_steps != math.inf:
        require_count(least=0, learning_steps=learning_steps)
    learned = -math.expm1(-problem.strong_convexity * problem.step_size * learning_steps)
    return _checked_orders(alpha) * math.exp(_log_renyi_per_order(problem, sigma, records)) * learned


def unlearning_renyi(
    alpha: float | Array, problem: Problem, *, sigma: float, records: int, steps: int
) -> float | Array:
    """Return an upper bound on the Rényi divergence between the unlearned and the retrained model.

    Theorem 3.2, case 3, from Theorem 3.3 at infinite ``T``: ``exp(-eta m K / alpha) eps0(alpha)``.

    Args:
        alpha: Rényi order or orders, above 1.
        problem: The constants.
        sigma: Noise scale.
        records: ``S``, removed in one request.
        steps: ``K``.

    Raises:
        ParameterError: A value makes no sense.
        AssumptionError: ``step_size`` exceeds ``1 / smoothness``.
    """
    return sequential_renyi(alpha, problem, sigma=sigma, records_per_request=records, steps=[steps])


def sequential_renyi(
    alpha: float | Array, problem: Problem, *, sigma: float, records_per_request: int, steps: Sequence[int]
) -> float | Array:
    """Return an upper bound on the Rényi divergence of unlearned from retrained model after the last request.

    Corollary 3.4 (Hölder exponent 2), starting from Theorem 3.2 for the first request, which needs no triangle
    inequality. It speaks of the model after the last request only, not of all published models jointly.

    Args:
        alpha: Rényi order or orders, above 1.
        problem: The constants.
        sigma: Noise scale.
        records_per_request: ``S`` of each request.
        steps: ``K_1, K_2, ...``, one for each request.

    Raises:
        ParameterError: A value makes no sense.
        AssumptionError: ``step_size`` exceeds ``1 / smoothness``.
    """
    check_assumptions(problem, sigma)
    require_counts("steps", steps, least=0)
    orders = _checked_orders(alpha)
    with np.errstate(over="ignore"):
        bounds: Array = np.exp(log_sequential_renyi(np.ravel(orders), problem, sigma, records_per_request, steps))
    return bounds.reshape(np.shape(orders))[()]


def initial_epsilon(
    problem: Problem, *, sigma: float, delta: float, records: int, learning_steps: float = math.inf
) -> float:
    """Return an upper bound on epsilon between models learned on data that differ in ``records``.

    Theorem 3.3, strongly convex, converted by Prop. M.2; arguments and errors as for `initial_renyi`.
    """

    def curve(alpha: Array) -> Array:
        return np.asarray(initial_renyi(alpha, problem, sigma=sigma, records=records, learning_steps=learning_steps))

    return epsilon_from_renyi(curve, delta).epsilon


def epsilon(problem: Problem, *, sigma: float, delta: float, records: int, steps: int) -> float:
    """Return an upper bound on epsilon between the unlearned and the retrained model.

    Theorem 3.2, case 3, converted by Prop. M.2; arguments and errors as for `unlearning_renyi`.
    """
    return sequential_epsilon(problem, sigma=sigma, delta=delta, records_per_request=records, steps=[steps])


def sequential_epsilon(
    problem: Problem, *, sigma: float, delta: float, records_per_request: int, steps: Sequence[int]
) -> float:
    """Return an upper bound on epsilon between unlearned and retrained model after the last request.

    Corollary 3.4, converted by Prop. M.2; arguments and errors as for `sequential_renyi`.
    """
    check_assumptions(problem, sigma)
    require_probability(delta=delta)
    require_counts("steps", steps, least=0)
    return converted(problem, sigma, delta, records_per_request, steps).epsilon


def converted(
    problem: Problem, sigma: float, delta: float, records_per_request: int, steps: Sequence[int]
) -> EpsilonAtOrder:
    """Return epsilon and its order for arguments that have been checked (planning asks thousands of times)."""

    def curve(alpha: Array) -> Array:
        with np.errstate(over="ignore"):
            bounds: Array = np.exp(log_sequential_renyi(alpha, problem, sigma, records_per_request, steps))
        return bounds

    return epsilon_from_renyi(curve, delta)


def log_sequential_renyi(
    alpha: Array, problem: Problem, sigma: float, records_per_request: int, steps: Sequence[int]
) -> Array:
    """Return the logarithm of `sequential_renyi` at a vector of orders, for arguments that have been checked.

    ``eps^(s)(alpha) = exp(-eta m K_s / alpha) (alpha - 1/2) / (alpha - 1) (eps0(2 alpha) + eps^(s-1)(2 alpha))``
    unrolls into a sum: what enters ``j`` requests before the last is ``eps0(2^(j+1) alpha)``, and it has passed all
    requests from there on, the one at ``j`` acting at the order ``2^j alpha``. Logarithms, because ``2^j`` outgrows
    a double.
    """
    latest_first = np.array(steps[-RECENT_REQUESTS:][::-1], dtype=np.float64)[:, np.newaxis]
    earlier = len(steps) - len(latest_first)
    age = np.arange(len(latest_first))[:, np.newaxis]
    order = np.ldexp(alpha, age)
    log_entering = (age + 1) * math.log(2)
    log_hoelder = np.log1p(0.5 / (order - 1))
    if earlier == 0:  # The oldest is the very first request: eps0(alpha), no triangle inequality.
        log_entering[-1] = age[-1] * math.log(2)
        log_hoelder[-1] = 0.0
    else:
        # Leaving out the steps of the s = earlier requests before enlarges the bound:
        # eps0(2 alpha) + eps^(s)(2 alpha) <= eps0(2 alpha) (1 + 2 + 4 + ... + 2^(s-1) + 2^(s-1)).
        log_entering[-1] += math.log(1.5) + earlier * math.log(2) + math.log1p(-(0.5 ** (earlier - 1)) / 3)
    log_passed = np.cumsum(log_hoelder - problem.step_size * problem.strong_convexity * latest_first / order, axis=0)
    log_terms = log_passed + log_entering
    largest = log_terms.max(axis=0)
    log_sum = largest + np.log(np.exp(log_terms - largest).sum(axis=0))
    logs: Array = np.log(alpha) + _log_renyi_per_order(problem, sigma, records_per_request) + log_sum
    return logs


def check_assumptions(problem: Problem, sigma: float) -> None:
    """Check the conditions of Theorems 3.2 (case 3) and 3.3 (strongly convex) with ``C_LSI = 2 sigma^2 / m``.

    ``sigma^2 / m < C_LSI`` holds, and ``eta <= (2/m) (1 - sigma^2 / (m C_LSI)) = 1/m`` follows from ``eta <= 1/L``.

    Raises:
        ParameterError: ``sigma`` is not above 0.
        AssumptionError: ``step_size`` exceeds ``1 / smoothness`` by more than the rounding of that quotient.
    """
    require_positive(sigma=sigma)
    limit = 1 / problem.smoothness
    if problem.step_size > math.nextafter(limit, math.inf):
        raise AssumptionError(
            "Langevin unlearning's theorems for strongly convex losses need step_size <= 1 / smoothness = "
            f"{limit}, got step_size = {problem.step_size}"
        )


def _log_renyi_per_order(problem: Problem, sigma: float, records: int) -> float:
    """Return the logarithm of ``eps0(alpha) / alpha`` at infinite ``T``: ``sensitivity^2 / (m sigma^2)``."""
    return 2 * math.log(problem.sensitivity(records) / sigma) - math.log(problem.strong_convexity)


def _checked_orders(alpha: float | Array) -> Array:
    orders = np.asarray(alpha, dtype=np.float64)
    if not np.all(np.isfinite(orders) & (orders > 1)):
        raise ParameterError(f"alpha must be finite and above 1, got {alpha}")
    return orders
