"""The fewest steps and the least noise with which mini-batch Langevin unlearning meets a target."""

import math
from dataclasses import replace

from certified_unlearning.accounting.core.checks import require_count
from certified_unlearning.accounting.core.conversion import mu_from_epsilon
from certified_unlearning.accounting.core.curves import Places, Schedule
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.core.rounding import EXACT
from certified_unlearning.accounting.core.search import MOST_STEPS, least_whole
from certified_unlearning.accounting.cyclic import stream
from certified_unlearning.accounting.streams import Stream
from certified_unlearning.errors import InfeasibleError
from certified_unlearning.text import counted

MOST_ROUNDS = 1000
"""Largest number of iterations of a search for noise. The search converges geometrically or not at all."""


def least_steps_after(requests: Stream, *, records: int, minimum_steps: int = 0, places: Places | None = None) -> int:
    """Return the fewest steps with which one more request meets the target of a stream.

    Args:
        requests: The earlier requests and the target.
        records: Number of records removed by the next request.
        minimum_steps: The smallest number of steps considered.
        places: Places of the records; None for the worst places.

    Raises:
        ParameterError: ``records`` exceeds the number of remaining records.
        AssumptionError: The step size is too large.
        InfeasibleError: Rounding alone uses up the target, or more than 10^12 steps would be needed.
    """
    require_count(least=1, records=records)
    require_count(least=0, minimum_steps=minimum_steps)
    before, answer = requests.before_answer(records=records, places=places), requests.computed.agreeing
    target, floor, sigma = requests.target, requests.floor, requests.schedule.sigma

    def mu(steps: int) -> float:
        return before.followed_by(answer.lasting(steps)).mu()

    if floor >= target:
        raise InfeasibleError(
            f"rounding alone uses more than epsilon = {requests.epsilon} with sigma = {sigma:.6g}; learn again with "
            "more noise"
        )
    ratio = max(1.0, (mu(0) - floor) / (target - floor))
    gap = answer.contraction_gap
    estimate = math.log(ratio) / -math.log1p(-gap) if 0 < gap < 1 else float(minimum_steps)
    if estimate > MOST_STEPS or (gap == 0 and mu(int(MOST_STEPS)) > target):
        raise InfeasibleError(
            f"removing {counted(records, 'record')} with epsilon = {requests.epsilon} and sigma = {sigma:.6g} takes "
            "more than "
            f"{MOST_STEPS:.0e} steps; raise sigma, epsilon or step_size * strong_convexity"
        )
    return least_whole(estimate, lambda steps: mu(steps) <= target, minimum=minimum_steps)


def least_sigma(problem: Problem, schedule: Schedule, *, epsilon: float, delta: float) -> float:
    """Return the least noise scale with which a schedule meets the target after every request.

    Args:
        problem: The constants of a batch, as for `stream.curve`.
        schedule: Cycle, learning steps and requests; its ``sigma`` is not used.
        epsilon: Target epsilon.
        delta: Strictly between 0 and 1.

    Raises:
        AssumptionError: The step size is too large.
        InfeasibleError: Rounding costs too much at every scale.
    """
    target = mu_from_epsilon(epsilon, delta)

    def mu(sigma: float) -> float:
        return stream.largest_curve(problem, replace(schedule, sigma=sigma)).mu

    exact = replace(problem, rounding=EXACT)
    sigma = stream.largest_curve(exact, replace(schedule, sigma=1.0)).mu / target
    for _ in range(MOST_ROUNDS):
        # Apart from the rounding of the noise itself, mu is proportional to 1 / sigma, so sigma converges from below.
        excess = mu(sigma) / target
        if excess <= 1:
            return sigma
        sigma *= excess * (1 + 1e-12)
    raise InfeasibleError(
        f"for every sigma, rounding takes too much of epsilon = {epsilon} at delta = {delta}; raise epsilon, or use "
        "dtype float64"
    )
