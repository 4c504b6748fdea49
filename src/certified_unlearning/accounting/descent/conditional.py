"""Descent-to-Delete with a published state, compared with real retraining, which adds noise only once.

The algorithm is that of `descent.shifted.published_state_curve`. Learning publishes ``w_0``. Every request takes
noiseless steps, starting from the last published model ``w_(j-1)``. Then the request publishes ``w_j = phi_j(w_(j-1)) +
sigma Z_j``. The comparator of that curve is a retrained model that was published, noised and continued at the same
times. Here, as in real retraining, the retrained model is trained once and noised once. Then the noise that is fed back
distinguishes the two models, and more parameters make this effect stronger.

Derivation: With or without projection onto a ball, the ``I_j`` steps ``phi_j`` contract by ``gamma^(I_j)`` towards the
optimum ``w*_j``. Removing ``b_j`` records moves the optimum by at most ``Delta_j = sensitivity(b_j) / m``. So the
distance ``N_j = ||phi_j(w_(j-1)) - w*_j||`` is at most ``gamma^(I_j) (||phi_(j-1)(w_(j-2)) - w*_(j-1) + sigma Z_(j-1)||
+ Delta_j)``, and

* its root mean square is at most ``r_j = gamma^(I_j) (sqrt(r_(j-1)^2 + sigma^2 d) + Delta_j)``, ``r_0 = gamma^T D``,
  because the noise is independent of the past (Minkowski);
* as a function of ``Z_0, ..., Z_(j-1)``, it has the Lipschitz constant ``l_j = gamma^(I_j) sqrt(l_(j-1)^2 + sigma^2)``,
  ``l_0 = 0``;
* hence, by the concentration of Gaussian measure, ``N_j <= r_j + l_j sqrt(2 log(1/beta))`` except with probability
  ``beta``, which is counted only once for all requests.

Given the past, the last model is distributed as ``N(phi_j(w_(j-1)), sigma^2 I)``. The retrained one is distributed as
``N(w*_j + v, sigma^2 I)``, where ``||v|| <= gamma^T D`` because learning is finite. If ``N_j`` is within its bound, the
two distributions are ``mu``-Gaussian-DP with ``mu = (r_j + l_j sqrt(2 log(1/beta)) + gamma^T D) / sigma``. The
hockey-stick divergence is jointly convex and at most 1. The distribution of the retrained model is a mixture over the
same pasts, too. All components of this mixture are equal. So in *both* directions

    ``delta <= (1 - beta) delta_of(mu, epsilon) + beta``.

The summand ``beta`` has no factor ``e^epsilon``. In the inequality ``Q(E) <= e^epsilon P(E) + ...``, each past that
breaks the bound on ``N_j`` increases the right side by at most the probability of this past, because ``Q(E) <= 1``.

The bound covers the last model, and requests that were fixed in advance. The end of a computed phase is within ``rho``
(``rounding_distance``) of the end of the exact phase. With the same noise, the distance of the computed run from the
exact run is at most ``e_j``, where ``e_0 = rho`` and ``e_j = gamma^(I_j) e_(j-1) + rho``. Computed retraining is within
``rho`` of exact retraining. Together, this increases ``mu`` by ``(e_j + rho) / sigma``.
"""

import math
import sys
from collections.abc import Sequence
from typing import NamedTuple, TypedDict

from certified_unlearning.accounting.core.checks import require_count, require_non_negative, require_probability
from certified_unlearning.accounting.core.conversion import epsilon_from_mu, mu_from_epsilon
from certified_unlearning.accounting.core.curves import Schedule
from certified_unlearning.accounting.core.pooling import NoisyPhase
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.core.search import MOST_STEPS, least_whole
from certified_unlearning.accounting.descent.published import ROUNDING, require_descent_step_size
from certified_unlearning.accounting.descent.shifted import request_schedule
from certified_unlearning.accounting.shifted.interpolation import contraction_gap
from certified_unlearning.errors import InfeasibleError
from certified_unlearning.text import counted

# The share of delta that covers the failure of distance bounds.
BETA_SHARE = 0.01


class Conditions(TypedDict):
    """The keyword arguments that this module's functions share: all arguments except requests and target."""

    dimension: int
    learning_steps: float
    starting_distance: float
    rounding_distance: float


def conditions_of(problem: Problem, *, sigma: float, dimension: int, learning_steps: float) -> Conditions:
    """Return the `Conditions` of learning from the origin, with the rounding of the problem's arithmetic.

    Args:
        problem: The constants.
        sigma: Standard deviation of the published noise.
        dimension: Number of parameters, ``d``.
        learning_steps: Number of learning steps, ``T``.
    """
    error = problem.rounding.step_error(math.sqrt(2 * problem.step_size) * sigma)
    return {
        "dimension": dimension,
        "learning_steps": learning_steps,
        "starting_distance": (1 + problem.rounding.norm_excess) * problem.lipschitz / problem.strong_convexity,
        "rounding_distance": error / contraction_gap(problem),
    }


def fed_back_noise(dimension: int, delta: float) -> float:
    """Return the norm of the fed-back noise, in standard deviations.

    The first request must shrink this norm below ``mu``.
    """
    return math.sqrt(dimension) + _deviation(_shares(delta)[0])


def conditional_mu(
    problem: Problem,
    *,
    sigma: float,
    dimension: int,
    records_per_request: int | Sequence[int],
    steps_per_request: Sequence[int],
    learning_steps: float,
    starting_distance: float,
    beta: float,
    rounding_distance: float = 0.0,
) -> float:
    """Return the ``mu`` of Gaussian DP that holds given the past, except with probability ``beta`` over the past.

    ``mu`` is ``(r_j + l_j sqrt(2 log(1/beta)) + e_j + gamma^T D + rho) / sigma``, as the module's docstring derives.
    Any delta that follows from ``mu`` must be increased by ``beta``.

    Args:
        problem: The constants. The step size must be `descent_step_size`.
        sigma: Standard deviation of the published noise, also for the learned model.
        dimension: ``d``, the number of parameters.
        records_per_request: Numbers of records ``b_1, b_2, ...`` of the requests, or one number for all.
        steps_per_request: Numbers of steps ``I_1, I_2, ...`` of the requests.
        learning_steps: Number of steps of learning and of retraining, ``T``; infinite for converged learning.
        starting_distance: Largest distance ``D`` of the start of learning from the optimum, on any admissible data:
            ``2 R`` in a ball of radius ``R``, or ``M / m`` if learning starts at 0.
        beta: Largest probability that the models published earlier are such that ``mu`` does not hold.
        rounding_distance: Largest distance ``rho`` between the end of a computed noiseless phase and the end of the
            exact phase, from any start. Apart from this distance, only ``norm_excess`` of ``problem.rounding`` is
            counted.

    Raises:
        ParameterError: The requests remove more records than exist.
        AssumptionError: The step size is not `descent_step_size`, or ``m = 0``.
    """
    require_probability(beta=beta)
    schedule = request_schedule(sigma, records_per_request, steps_per_request, learning_steps)
    learned = _learned(problem, learning_steps, starting_distance, rounding_distance)
    distance = _last_distance(problem, schedule, dimension, learned)
    return _mu(distance, learned, sigma, beta)


def conditional_epsilon(
    problem: Problem,
    *,
    sigma: float,
    dimension: int,
    records_per_request: int | Sequence[int],
    steps_per_request: Sequence[int],
    learning_steps: float,
    starting_distance: float,
    delta: float,
    rounding_distance: float = 0.0,
) -> float:
    """Return the epsilon at ``delta`` between the last published model and one that was retrained and noised once.

    The bound is two-sided. ``beta`` is a hundredth of ``delta``, and the rest is the delta of the Gaussian curve.

    Args:
        problem: The constants. The step size must be `descent_step_size`.
        sigma: Standard deviation of the published noise, also for the learned model.
        dimension: ``d``, the number of parameters.
        records_per_request: Numbers of records ``b_1, b_2, ...`` of the requests, or one number for all.
        steps_per_request: Numbers of steps ``I_1, I_2, ...`` of the requests.
        learning_steps: Number of steps of learning and of retraining, ``T``; infinite for converged learning.
        starting_distance: Largest distance ``D`` of the start from the optimum, see `conditional_mu`.
        delta: Delta of the guarantee, strictly between 0 and 1.
        rounding_distance: Largest distance ``rho`` between the end of a computed noiseless phase and the end of the
            exact phase.

    Raises:
        ParameterError: The requests remove more records than exist.
        AssumptionError: The step size is not `descent_step_size`, or ``m = 0``.
    """
    beta, gaussian_delta = _shares(delta)
    mu = conditional_mu(
        problem,
        sigma=sigma,
        dimension=dimension,
        records_per_request=records_per_request,
        steps_per_request=steps_per_request,
        learning_steps=learning_steps,
        starting_distance=starting_distance,
        beta=beta,
        rounding_distance=rounding_distance,
    )
    return epsilon_from_mu(mu, gaussian_delta)


def least_conditional_steps(
    problem: Problem,
    *,
    sigma: float,
    dimension: int,
    records_per_request: int | Sequence[int],
    steps_per_request: Sequence[int],
    next_records: int,
    learning_steps: float,
    starting_distance: float,
    epsilon: float,
    delta: float,
    rounding_distance: float = 0.0,
) -> int:
    """Return the least number of steps that one more request needs for a `conditional_epsilon` of at most ``epsilon``.

    Args:
        problem: The constants. The step size must be `descent_step_size`.
        sigma: Standard deviation of the published noise, also for the learned model.
        dimension: ``d``, the number of parameters.
        records_per_request: Numbers of records ``b_1, b_2, ...`` of the earlier requests; empty before the first one.
        steps_per_request: Numbers of steps ``I_1, I_2, ...`` of the earlier requests.
        next_records: Number of records that the next request removes.
        learning_steps: Number of steps of learning and of retraining, ``T``; infinite for converged learning.
        starting_distance: Largest distance ``D`` of the start from the optimum, see `conditional_mu`.
        epsilon: Target epsilon.
        delta: Delta of the guarantee, strictly between 0 and 1.
        rounding_distance: Largest distance ``rho`` between the end of a computed noiseless phase and the end of the
            exact phase.

    Returns:
        The number of steps; 0 if the target is met without steps.

    Raises:
        ParameterError: ``next_records`` exceeds the number of remaining records.
        AssumptionError: The step size is not `descent_step_size`, or ``m = 0``.
        InfeasibleError: No number of steps meets the target, or more than 10^12 would be needed.
    """
    beta, gaussian_delta = _shares(delta)
    mu = mu_from_epsilon(epsilon, gaussian_delta)
    earlier = request_schedule(sigma, records_per_request, steps_per_request, learning_steps)
    learned = _learned(problem, learning_steps, starting_distance, rounding_distance)
    before = _last_distance(problem, earlier, dimension, learned)
    moved = _moved(problem, next_records, sum(earlier.records))

    def distance_after(steps: int) -> _Distance:
        return _answered(before, _decay(problem, steps), moved, sigma, dimension, rounding_distance)

    def is_enough(steps: int) -> bool:
        return epsilon_from_mu(_mu(distance_after(steps), learned, sigma, beta), gaussian_delta) <= epsilon

    room = mu * sigma - learned.bound(beta) - rounding_distance
    if room <= ROUNDING * mu * sigma:
        raise InfeasibleError(
            f"no number of steps removes {counted(next_records, 'record')} with epsilon = {epsilon} at delta = "
            f"{delta}: learning and rounding alone leave a distance of {learned.bound(beta) + rounding_distance}, "
            f"which noise of sigma = {sigma} does not hide; raise sigma, epsilon or learning_steps"
        )
    if is_enough(0):
        return 0
    # If m = L, one step forgets everything, and any estimate suffices.
    to_forget = distance_after(0).bound(beta) - rounding_distance
    rate = -NoisyPhase(1, contraction_gap(problem), 0.0, 0.0).log_decay
    estimate = math.log(to_forget / room) / rate if rate > 0 else math.inf
    if estimate > MOST_STEPS:
        raise InfeasibleError(
            f"removing {counted(next_records, 'record')} with epsilon = {epsilon} and sigma = {sigma} takes more than "
            f"{MOST_STEPS:.0e} steps; raise sigma, epsilon or step_size * strong_convexity"
        )
    return least_whole(estimate, is_enough, minimum=1)


def least_conditional_sigma(
    problem: Problem,
    *,
    dimension: int,
    records: int,
    steps: int,
    learning_steps: float,
    starting_distance: float,
    epsilon: float,
    delta: float,
    rounding_distance: float = 0.0,
) -> float:
    """Return the least published noise at which the `conditional_epsilon` of a first request is at most ``epsilon``.

    As ``sigma`` grows, ``mu`` falls only to ``gamma^I (sqrt(d) + sqrt(2 log(1/beta)))``, the cost of feeding the noise
    back. So noise cannot compensate for too few steps. With enough steps, the result is the root of a quadratic
    equation, increased until it meets the target in floating-point arithmetic, too.

    Args:
        problem: The constants; its step size must be `descent_step_size`.
        dimension: ``d``, the number of parameters.
        records: Number of records that the first request removes.
        steps: Number of steps of the first request, ``I_1``.
        learning_steps: Number of steps of learning and of retraining, ``T``; infinite for converged learning.
        starting_distance: Largest distance ``D`` of the start from the optimum, see `conditional_mu`.
        epsilon: Target epsilon.
        delta: Delta of the guarantee, strictly between 0 and 1.
        rounding_distance: Largest distance ``rho`` between the end of a computed noiseless phase and the end of the
            exact phase.

    Raises:
        ParameterError: ``records`` exceeds ``problem.n``.
        AssumptionError: The step size is not `descent_step_size`, or ``m = 0``.
        InfeasibleError: There are too few steps for any amount of noise.
    """
    beta, gaussian_delta = _shares(delta)
    mu = mu_from_epsilon(epsilon, gaussian_delta)
    require_count(least=0, steps=steps)
    require_count(least=1, dimension=dimension)
    learned = _learned(problem, learning_steps, starting_distance, rounding_distance)
    decay = _decay(problem, steps)
    left = mu - decay * _deviation(beta)
    slope = (left - decay * math.sqrt(dimension)) * (left + decay * math.sqrt(dimension))
    if left <= decay * math.sqrt(dimension) * (1 + ROUNDING):
        raise InfeasibleError(
            f"with steps = {steps}, the fed-back noise of the learned model alone exceeds epsilon = {epsilon} at "
            f"delta = {delta} for every sigma; raise steps or epsilon"
        )
    # This solves decay sqrt(learned^2 + sigma^2 d) = left sigma - fixed for sigma.
    fixed = decay * (_moved(problem, records, 0) + learned.rounding) + rounding_distance + learned.bound(beta)
    spread = math.sqrt(dimension * fixed**2 + slope * learned.root_mean_square**2)
    sigma = max((left * fixed + decay * spread) / slope, sys.float_info.min)
    nudge = 1e-15
    while (
        conditional_epsilon(
            problem,
            sigma=sigma,
            dimension=dimension,
            records_per_request=records,
            steps_per_request=(steps,),
            learning_steps=learning_steps,
            starting_distance=starting_distance,
            delta=delta,
            rounding_distance=rounding_distance,
        )
        > epsilon
    ):
        sigma *= 1 + nudge
        nudge *= 2
    return sigma


class _Distance(NamedTuple):
    """Bounds on the distance between the optimum and the parameters before noise is added.

    Attributes:
        root_mean_square: Root mean square ``r_j`` of the distance.
        lipschitz: Lipschitz constant ``l_j`` of the distance as a function of all noise published before.
        rounding: Rounding error ``e_j`` of the distance.
    """

    root_mean_square: float
    lipschitz: float
    rounding: float

    def bound(self, beta: float) -> float:
        """Return the bound that the distance exceeds with probability at most ``beta``."""
        return self.root_mean_square + self.lipschitz * _deviation(beta) + self.rounding


def _learned(problem: Problem, learning_steps: float, starting_distance: float, rounding_distance: float) -> _Distance:
    """Return the distance from the optimum after learning or retraining."""
    require_descent_step_size(problem)
    require_non_negative(starting_distance=starting_distance, rounding_distance=rounding_distance)
    return _Distance(_decay(problem, learning_steps) * starting_distance, 0.0, rounding_distance)


def _last_distance(problem: Problem, schedule: Schedule, dimension: int, learned: _Distance) -> _Distance:
    """Return the distance from the optimum after a schedule's requests, before the last noise is added."""
    require_count(least=1, dimension=dimension)
    distance, removed = learned, 0
    for records, steps in zip(schedule.records, schedule.steps, strict=True):
        moved = _moved(problem, records, removed)
        # The rounding of learning is that of one phase.
        distance = _answered(
            distance, _decay(problem, steps), moved, schedule.sigma, dimension, rounding_distance=learned.rounding
        )
        removed += records
    return distance


def _answered(
    before: _Distance, decay: float, moved: float, sigma: float, dimension: int, rounding_distance: float
) -> _Distance:
    """Return the distance from the optimum after one more request, before noise is added.

    Args:
        before: The distance before the last model was published.
        decay: The factor by which the request's steps shrink a distance.
        moved: The distance by which the request moves the optimum.
        sigma: Standard deviation of the published noise.
        dimension: Number of parameters.
        rounding_distance: Rounding error of the request's steps.
    """
    return _Distance(
        decay * (math.hypot(before.root_mean_square, sigma * math.sqrt(dimension)) + moved),
        decay * math.hypot(before.lipschitz, sigma),
        decay * before.rounding + rounding_distance,
    )


def _moved(problem: Problem, records: int, removed_before: int) -> float:
    """Return ``Delta``, the largest distance by which removing records moves the optimum."""
    gradients = problem.sensitivity(records, removed_before=removed_before)
    return gradients / problem.strong_convexity


def _decay(problem: Problem, steps: float) -> float:
    """Return ``gamma^steps``, the factor by which steps shrink a distance."""
    return math.exp(NoisyPhase(steps, contraction_gap(problem), 0.0, 0.0).log_decay)


def _deviation(beta: float) -> float:
    """Return a bound on how far a 1-Lipschitz function of a Gaussian exceeds the function's mean.

    The bound fails with probability at most ``beta``.
    """
    return math.sqrt(-2 * math.log(beta))


def _mu(distance: _Distance, learned: _Distance, sigma: float, beta: float) -> float:
    """Return the sum of both models' distances, divided by the noise. A tiny quotient is not rounded down to 0."""
    return max((distance.bound(beta) + learned.bound(beta)) / sigma, sys.float_info.min)


def _shares(delta: float) -> tuple[float, float]:
    """Return ``beta`` and the remaining part of ``delta``, which is the delta of the Gaussian curve."""
    require_probability(delta=delta)
    beta = BETA_SHARE * delta
    return beta, delta - beta
