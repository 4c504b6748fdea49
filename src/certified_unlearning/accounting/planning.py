"""The least number of unlearning steps, and the least noise, that meet a target (LSI accountant)."""

import math
import sys
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from certified_unlearning.accounting import lsi
from certified_unlearning.accounting.checks import require_count, require_positive, require_probability
from certified_unlearning.accounting.problem import Problem
from certified_unlearning.accounting.search import MOST_STEPS, Array, least_whole, minimise
from certified_unlearning.errors import InfeasibleError

# Orders searched, as the logarithm of (alpha - least feasible alpha) / (least feasible alpha - 1).
LEAST_LOG_ROOM = -40.0
LARGEST_LOG_ROOM = 40.0
# The conversion searches orders up to 5e34, and the best one may lie well above the least feasible.
LARGEST_EXCESS = 1e25


class PlannedRequest(NamedTuple):
    """The steps of one request and the epsilon that is certified after them."""

    steps: int
    epsilon: float


def least_steps(
    problem: Problem, *, sigma: float, epsilon: float, delta: float, records: int, minimum_steps: int = 0
) -> int:
    """Return the least number of unlearning steps after which `lsi.epsilon` is at most ``epsilon``.

    Langevin unlearning, Algorithm 5, solved exactly. 0 where learning itself already meets the target.

    Args:
        problem: The constants.
        sigma: Noise scale.
        epsilon: The target.
        delta: Strictly between 0 and 1.
        records: Number of records removed at once.
        minimum_steps: Where to count from (the paper counts from 1).

    Raises:
        ParameterError: A value makes no sense.
        AssumptionError: ``step_size`` exceeds ``1 / smoothness``.
        InfeasibleError: More than 10^12 steps would be needed, or the target is below about 1e-24.
    """
    plan = least_stream_steps(
        problem,
        sigma=sigma,
        epsilon=epsilon,
        delta=delta,
        records_per_request=records,
        requests=1,
        minimum_steps=minimum_steps,
    )
    return plan[0].steps


def least_stream_steps(
    problem: Problem,
    *,
    sigma: float,
    epsilon: float,
    delta: float,
    records_per_request: int,
    requests: int,
    minimum_steps: int = 0,
) -> list[PlannedRequest]:
    """Return for each request in turn the least steps that meet the target, given those of earlier requests.

    Langevin unlearning, Algorithms 6 to 8, on `lsi.sequential_epsilon`.

    Args:
        problem: The constants.
        sigma: Noise scale.
        epsilon: The target after every request.
        delta: Strictly between 0 and 1.
        records_per_request: Records removed by each request.
        requests: Number of requests.
        minimum_steps: Where to count from (the paper counts from 1).

    Raises:
        ParameterError: A value makes no sense.
        AssumptionError: ``step_size`` exceeds ``1 / smoothness``.
        InfeasibleError: A request would need more than 10^12 steps, or the target is below about 1e-24.
    """
    lsi.check_assumptions(problem, sigma)
    require_positive(epsilon=epsilon)
    require_probability(delta=delta)
    require_count(least=0, minimum_steps=minimum_steps)
    require_count(least=1, requests=requests)
    steps: list[int] = []
    planned = []
    for _ in range(requests):
        request = _least_next_steps(problem, sigma, epsilon, delta, records_per_request, steps, minimum_steps)
        steps.append(request.steps)
        planned.append(request)
    return planned


def least_sigma(problem: Problem, *, steps: int, epsilon: float, delta: float, records: int) -> float:
    """Return the least noise scale at which `lsi.epsilon` after ``steps`` steps is at most ``epsilon``.

    Langevin unlearning, Algorithm 4, solved to about 1e-12 relative; the returned scale meets the target.

    Args:
        problem: The constants.
        steps: Number of unlearning steps.
        epsilon: The target.
        delta: Strictly between 0 and 1.
        records: Number of records removed at once.

    Raises:
        ParameterError: A value makes no sense.
        AssumptionError: ``step_size`` exceeds ``1 / smoothness``.
        InfeasibleError: The target is below about 1e-24.
    """
    require_positive(epsilon=epsilon)
    require_probability(delta=delta)
    require_count(least=0, steps=steps)
    lsi.check_assumptions(problem, sigma=1.0)

    # The Rényi bound is proportional to 1 / sigma^2: at each order the least sigma^2 is bound(sigma = 1) / room.
    def log_variance(alpha: Array, log_room: Array) -> Array:
        return lsi.log_sequential_renyi(alpha, problem, 1.0, records, [steps]) - log_room

    # Where even the least double would do, it is what is returned.
    sigma = max(math.exp(_least_over_orders(log_variance, epsilon, delta) / 2), sys.float_info.min)
    nudge = 1e-15
    while lsi.epsilon(problem, sigma=sigma, delta=delta, records=records, steps=steps) > epsilon:
        sigma *= 1 + nudge
        nudge *= 2
    return sigma


def _least_next_steps(
    problem: Problem,
    sigma: float,
    target: float,
    delta: float,
    records: int,
    earlier: list[int],
    minimum: int,
) -> PlannedRequest:
    rate = problem.step_size * problem.strong_convexity

    # At each order K steps multiply the bound by exp(-rate K / alpha): the least K makes it equal to the room.
    def steps_needed(alpha: Array, log_room: Array) -> Array:
        log_bound = lsi.log_sequential_renyi(alpha, problem, sigma, records, [*earlier, 0])
        return alpha / rate * (log_bound - log_room)

    @cache
    def certified(steps: int) -> float:
        return lsi.converted(problem, sigma, delta, records, [*earlier, steps]).epsilon

    estimate = _least_over_orders(steps_needed, target, delta)
    if estimate > MOST_STEPS:
        raise InfeasibleError(
            f"removing {records} records at a time with epsilon = {target} and sigma = {sigma} takes more than "
            f"{MOST_STEPS:.0e} unlearning steps; raise sigma, epsilon or step_size * strong_convexity"
        )
    steps = least_whole(estimate, lambda steps: certified(steps) <= target, minimum=minimum)
    return PlannedRequest(steps, certified(steps))


def _least_over_orders(requirement: Callable[[Array, Array], Array], target: float, delta: float) -> float:
    """Return the least requirement over the orders that leave room for a Rényi bound below the target.

    ``bound(alpha) + log(1/delta) / (alpha - 1) <= target`` leaves ``target - log(1/delta) / (alpha - 1)`` to the
    bound. With ``alpha - 1 = (1 + e^y) log(1/delta) / target`` that is ``target / (1 + e^-y)``, for every real ``y``.

    Args:
        requirement: Maps orders and logarithms of the room there to what has to be minimised.
        target: The epsilon to meet.
        delta: Its delta.

    Raises:
        InfeasibleError: The target is so small that it would take orders which the conversion does not search.
    """
    least_excess = -math.log(delta) / target
    if least_excess > LARGEST_EXCESS:
        raise InfeasibleError(
            f"epsilon = {target} at delta = {delta} takes Rényi orders above {LARGEST_EXCESS:.0e}; "
            "raise epsilon or delta"
        )

    def at(y: Array) -> Array:
        alpha = 1 + least_excess * (1 + np.exp(y))
        with np.errstate(divide="ignore"):
            return requirement(alpha, math.log(target) - np.log1p(np.exp(-y)))

    return minimise(at, LEAST_LOG_ROOM, LARGEST_LOG_ROOM)[1]
