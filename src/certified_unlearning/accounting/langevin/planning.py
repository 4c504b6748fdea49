"""Searches for the fewest unlearning steps, the least noise and the most records that meet a target.

The searches work with every accountant. All except `least_steps_after` assume learning to stationarity. For
``shifted``, the resulting plans hold after any number of learning steps: after fewer steps, there is less to unlearn,
and retraining stops equally early.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from certified_unlearning.accounting.core.checks import require_count, require_positive, require_probability
from certified_unlearning.accounting.core.conversion import least_over_orders, mu_from_epsilon, order_overhead
from certified_unlearning.accounting.core.curves import PrivacyCurve, RenyiCurve, Schedule
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.core.rounding import EXACT
from certified_unlearning.accounting.core.search import MOST_STEPS, Array, bisect, least_whole
from certified_unlearning.accounting.langevin.accountants import (
    AccountantName,
    accountant_called,
    certified,
    rounding_price,
)
from certified_unlearning.accounting.shifted.arithmetic import langevin_floor
from certified_unlearning.errors import InfeasibleError
from certified_unlearning.text import counted

# The conversion searches orders up to 5e34, and the best order may be far above the least feasible one.
LARGEST_EXCESS = 1e25
# The number of doublings from the least positive sigma to the largest, rounded up.
MOST_DOUBLINGS = 2200


class PlannedRequest(NamedTuple):
    """The steps of one request, and the epsilon that is certified after them."""

    steps: int
    epsilon: float


def least_steps(
    problem: Problem,
    *,
    sigma: float,
    epsilon: float,
    delta: float,
    records: int,
    minimum_steps: int = 0,
    accountant: AccountantName = "lsi",
) -> int:
    """Return the least number of unlearning steps after which the certified epsilon is at most ``epsilon``.

    This solves Langevin unlearning's Algorithm 5 exactly. The result is 0 if the target is met without any steps.

    Args:
        problem: The constants.
        sigma: Noise scale.
        epsilon: Target epsilon.
        delta: Strictly between 0 and 1.
        records: Number of records removed at once.
        minimum_steps: The smallest number of steps considered (1 in the paper).
        accountant: Name of the accountant.

    Raises:
        AssumptionError: The analysis needs another step size, or strong convexity.
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
        accountant=accountant,
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
    accountant: AccountantName = "lsi",
) -> list[PlannedRequest]:
    """Return, for each request in turn, the fewest steps that meet the target, given the steps of earlier requests.

    Source: Langevin unlearning, Algorithms 6 to 8.

    Args:
        problem: The constants.
        sigma: Noise scale.
        epsilon: Target epsilon after every request.
        delta: Strictly between 0 and 1.
        records_per_request: Number of records removed by each request.
        requests: Number of requests.
        minimum_steps: The smallest number of steps considered (1 in the paper).
        accountant: Name of the accountant.

    Raises:
        AssumptionError: The analysis needs another step size, or strong convexity.
        InfeasibleError: A request would need more than 10^12 steps, or the target is below about 1e-24.
    """
    target = _Target(problem, accountant, epsilon, delta)
    require_count(least=0, minimum_steps=minimum_steps)
    require_count(least=1, requests=requests, records_per_request=records_per_request)
    problem.sensitivity(records_per_request * requests)  # refuses more records than the problem has
    schedule = Schedule(sigma=sigma, records_per_request=(), steps=())
    planned = []
    for _ in range(requests):
        request = _plan_next(schedule, records_per_request, target, minimum_steps)
        schedule = schedule.followed_by(records=records_per_request, steps=request.steps)
        planned.append(request)
    return planned


def least_steps_after(
    problem: Problem,
    schedule: Schedule,
    *,
    records: int,
    epsilon: float,
    delta: float,
    minimum_steps: int = 0,
    accountant: AccountantName = "lsi",
) -> PlannedRequest:
    """Return the fewest steps with which one more request meets the target, given the earlier requests.

    The certified epsilon is `unlearning_epsilon` of the schedule with that request. ``shifted`` uses the schedule's
    number of learning steps. The other accountants always assume learning to stationarity.

    Args:
        problem: The constants.
        schedule: Noise and learning steps, and the records and steps of the earlier requests, if there are any.
        records: Number of records removed by the next request.
        epsilon: Target epsilon.
        delta: Strictly between 0 and 1.
        minimum_steps: The smallest number of steps considered (1 in the paper).
        accountant: Name of the accountant.

    Raises:
        ParameterError: ``records`` exceeds the number of remaining records.
        AssumptionError: The analysis needs another step size, or strong convexity.
        InfeasibleError: More than 10^12 steps would be needed, or the target is below about 1e-24.
    """
    target = _Target(problem, accountant, epsilon, delta)
    require_count(least=0, minimum_steps=minimum_steps)
    problem.sensitivity(records, removed_before=sum(schedule.records))  # refuses more records than are left
    return _plan_next(schedule, records, target, minimum_steps)


def least_sigma(
    problem: Problem,
    *,
    steps: int,
    epsilon: float,
    delta: float,
    records: int,
    accountant: AccountantName = "lsi",
) -> float:
    """Return the least noise scale at which the certified epsilon after ``steps`` steps is at most ``epsilon``.

    This solves Langevin unlearning's Algorithm 4 with a relative error of about 1e-12. The returned scale meets the
    target.

    Args:
        problem: The constants.
        steps: Number of unlearning steps.
        epsilon: Target epsilon.
        delta: Strictly between 0 and 1.
        records: Number of records removed at once.
        accountant: Name of the accountant.

    Raises:
        AssumptionError: The analysis needs another step size, or strong convexity.
        InfeasibleError: The target is below about 1e-24.
    """
    target = _Target(problem, accountant, epsilon, delta)
    schedule = Schedule(sigma=1.0, records_per_request=records, steps=(steps,))
    # If even the least double suffices, it is returned.
    sigma = max(target.noise_factor_needed(schedule), sys.float_info.min)
    if problem.rounding != EXACT:
        sigma = _with_room_for_rounding(target, replace(schedule, sigma=sigma))
    nudge = 1e-15
    while target.epsilon_of(replace(schedule, sigma=sigma)) > epsilon:
        sigma *= 1 + nudge
        nudge *= 2
    return sigma


def _with_room_for_rounding(target: "_Target", schedule: Schedule) -> float:
    """Return a noise scale that meets the target with rounding, found by increasing the schedule's scale.

    Raises:
        InfeasibleError: Rounding costs too much at every scale.
    """
    sigma = schedule.sigma
    for _ in range(MOST_DOUBLINGS):
        try:
            needed = sigma * target.noise_factor_needed(replace(schedule, sigma=sigma))
        except InfeasibleError:
            sigma *= 2
            continue
        if needed <= sigma:
            return sigma
        sigma = needed
    raise InfeasibleError(
        f"for every sigma, rounding takes too much of epsilon = {target.epsilon} at delta = {target.delta}; raise "
        "epsilon, or use dtype float64"
    )


def most_records(
    problem: Problem,
    *,
    sigma: float,
    steps: int,
    epsilon: float,
    delta: float,
    accountant: AccountantName = "lsi",
) -> int:
    """Return the largest number of records that ``steps`` steps can remove at once with at most ``epsilon``.

    Args:
        problem: The constants.
        sigma: Noise scale.
        steps: Number of unlearning steps.
        epsilon: Target epsilon.
        delta: Strictly between 0 and 1.
        accountant: Name of the accountant.

    Returns:
        The number of records, ``S``: at most ``n``, or at most ``n - 1`` with adjacency ``remove``.

    Raises:
        AssumptionError: The analysis needs another step size, or strong convexity.
        InfeasibleError: Not even one record can be removed.
    """
    target = _Target(problem, accountant, epsilon, delta)

    def is_too_many(records: int) -> bool:
        return target.epsilon_of(Schedule(sigma=sigma, records_per_request=records, steps=(steps,))) > epsilon

    if is_too_many(1):
        raise InfeasibleError(
            f"with steps = {steps} and sigma = {sigma}, the removal of even one record exceeds epsilon = {epsilon}; "
            "raise steps, sigma or epsilon"
        )
    limit = problem.n - 1 if problem.adjacency == "remove" else problem.n
    return bisect(1, limit + 1, is_too_many) - 1


def _plan_next(schedule: Schedule, records: int, target: "_Target", minimum: int) -> PlannedRequest:
    """Plan one more request after the requests of a schedule."""
    asked = schedule.followed_by(records=records, steps=0)
    method = accountant_called(target.accountant)
    curve_after = method.after_answers(target.problem, asked)

    @cache
    def epsilon_after(steps: int) -> float:
        curve = curve_after(steps)
        return method.certified(target.problem, curve, sigma=schedule.sigma, delta=target.delta).epsilon

    estimate = target.steps_needed(curve_after(0), asked)
    if estimate > MOST_STEPS:
        raise InfeasibleError(
            f"removing {counted(records, 'record')} at a time with epsilon = {target.epsilon} and "
            f"sigma = {schedule.sigma} takes more than {MOST_STEPS:.0e} unlearning steps; raise sigma, epsilon or "
            "step_size * strong_convexity"
        )
    steps = least_whole(estimate, lambda steps: epsilon_after(steps) <= target.epsilon, minimum=minimum)
    return PlannedRequest(steps, epsilon_after(steps))


@dataclass(frozen=True)
class _Target:
    """An (epsilon, delta) target, and the accountant that computes epsilon."""

    problem: Problem
    accountant: AccountantName
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        require_positive(epsilon=self.epsilon)
        require_probability(delta=self.delta)

    def epsilon_of(self, schedule: Schedule) -> float:
        """Return the epsilon that is certified for a schedule."""
        return certified(self.problem, schedule, delta=self.delta, accountant=self.accountant).epsilon

    def steps_needed(self, curve: PrivacyCurve, schedule: Schedule) -> float:
        """Return the number of steps that the last request needs, as a real number that is exact up to rounding.

        Args:
            curve: The curve of the schedule.
            schedule: The schedule, whose last request has no steps yet.
        """
        gap = accountant_called(self.accountant).contraction_gap(self.problem)
        if isinstance(curve, RenyiCurve):
            # At each order, K steps multiply the bound by exp(-gap K / alpha). The least K makes the bound equal to the
            # largest divergence that meets the target.
            return self._least_over_orders(curve, schedule, lambda alpha, log_ratio: alpha / gap * log_ratio)
        floor = self._floor(schedule.sigma)
        if curve.mu <= self._mu:
            return 0.0
        ratio = (curve.mu - floor) / (self._mu - floor)
        if gap == 1:  # One step forgets everything.
            return 1.0
        # After N steps, K more steps multiply mu^2 by c^(2 K) (1 - c^(2 N)) / (1 - c^(2 (N + K))), with c = 1 - gap.
        taken = schedule.learning_steps + sum(schedule.steps)
        if gap == 0:
            return taken * (ratio * ratio - 1)
        log_decay = 2 * math.log1p(-gap)
        log_least = np.logaddexp(log_decay * taken, 2 * math.log(ratio) + math.log(-math.expm1(log_decay * taken)))
        return float(log_least) / -log_decay

    def noise_factor_needed(self, schedule: Schedule) -> float:
        """Return the factor by which all noise must be multiplied to just meet the target, exact up to rounding."""
        curve = accountant_called(self.accountant).unlearning_curve(self.problem, schedule)
        # mu is proportional to 1 / sigma, and a Rényi divergence is proportional to 1 / sigma^2 at every order.
        if isinstance(curve, RenyiCurve):
            return math.exp(self._least_over_orders(curve, schedule, lambda _, log_ratio: log_ratio) / 2)
        # This is exact except for the rounding of the noise itself, which grows with the noise.
        relative = 0.0 if self.problem.rounding == EXACT else langevin_floor(self.problem).relative
        self._require_room(relative, schedule.sigma)
        return (curve.mu - relative) / (self._mu - relative)

    @cached_property
    def _mu(self) -> float:
        """The largest mu of Gaussian DP that meets the target."""
        return mu_from_epsilon(self.epsilon, self.delta)

    def _floor(self, sigma: float) -> float:
        """Return the mu that is due to rounding, for any number of steps.

        Raises:
            InfeasibleError: This mu is not below the target's.
        """
        if self.problem.rounding == EXACT:
            return 0.0
        floor = langevin_floor(self.problem).mu(sigma)
        self._require_room(floor, sigma)
        return floor

    def _require_room(self, floor: float, sigma: float) -> None:
        if floor >= self._mu:
            raise InfeasibleError(
                f"rounding alone uses more than epsilon = {self.epsilon} at delta = {self.delta} with sigma = "
                f"{sigma}; raise sigma or epsilon, or use dtype float64"
            )

    def _least_over_orders(
        self, curve: RenyiCurve, schedule: Schedule, requirement: Callable[[Array, Array], Array]
    ) -> float:
        """Return the least requirement, over all orders at which a positive Rényi divergence can meet the target.

        Args:
            curve: Upper bounds on Rényi divergences.
            schedule: The schedule of the bounds.
            requirement: Function to minimise. Its arguments are the orders and, for each order, ``log(D / D_max)``.
                ``D`` is the divergence, and ``D_max`` is the largest divergence that meets the target.
        """
        log_inverse_delta = -math.log(self.delta)
        if log_inverse_delta / self.epsilon > LARGEST_EXCESS:
            raise InfeasibleError(
                f"epsilon = {self.epsilon} at delta = {self.delta} needs Rényi orders above {LARGEST_EXCESS:.0e}; "
                "raise epsilon or delta"
            )
        conversion = accountant_called(self.accountant).conversion
        price = rounding_price(self.problem, sigma=schedule.sigma, epsilon=self.epsilon, delta=self.delta).epsilon
        epsilon = self.epsilon - price
        if epsilon <= 0:
            raise InfeasibleError(
                f"rounding alone uses {price:.2g} of epsilon = {self.epsilon} with sigma = {schedule.sigma}; raise "
                "sigma or epsilon, or use dtype float64"
            )

        def at(log_excess: Array) -> Array:
            room = epsilon - order_overhead(log_excess, log_inverse_delta, conversion)
            alpha = 1 + np.exp(log_excess)
            with np.errstate(divide="ignore", invalid="ignore"):
                needed = requirement(alpha, curve.log_divergence(alpha) - np.log(room))
            return np.where(room > 0, needed, np.inf)

        return least_over_orders(at, curve)[0]
