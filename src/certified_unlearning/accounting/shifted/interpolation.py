"""Shifted interpolation for learning and unlearning by noisy gradient descent.

Exact on quadratics for step sizes up to ``2 / (L + m)``; beyond, an upper bound.

The phases of a run, and what its end reveals by `pooling` (Bok, Su, Altschuler, ICML 2024). The losses must be smooth,
and strongly convex or convex; every value holds with and without projection on a ball. A guarantee compares with a run
of the same algorithm with the same constants, and covers requests that were fixed in advance.
"""

import math
from collections.abc import Callable
from itertools import accumulate

from certified_unlearning.accounting.core.checks import require_count, require_positive
from certified_unlearning.accounting.core.curves import GaussianCurve, Schedule
from certified_unlearning.accounting.core.pooling import NoisyPhase, Pool, pooled_mu
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.errors import AssumptionError


def contraction_gap(problem: Problem) -> float:
    """Return ``1 - c`` for gradient steps, ``c = max(|1 - eta m|, |1 - eta L|)``: exactly ``eta m`` up to ``2/(L+m)``.

    Raises:
        AssumptionError: ``step_size`` exceeds ``2 / L``, so that steps may drive points apart.
    """
    limit = 2 / problem.smoothness
    if problem.step_size > math.nextafter(limit, math.inf):
        raise AssumptionError(
            f"gradient steps contract only for step_size <= 2 / smoothness = {limit}, got {problem.step_size}"
        )
    if problem.step_size <= math.nextafter(2 / (problem.smoothness + problem.strong_convexity), math.inf):
        gap = min(problem.step_size * problem.strong_convexity, 1.0)
        if problem.rounding.norm_excess == 0:
            return gap
    else:
        gap = 1.0
    # The curvature of longer rows grows with the square of their norm.
    steepest = problem.smoothness * (1 + problem.rounding.norm_excess) ** 2
    gap = min(gap, 2 - problem.step_size * steepest)
    if gap <= 0 < problem.rounding.norm_excess:
        raise AssumptionError(
            f"rows may be longer than 1 by {problem.rounding.norm_excess}, and then steps of step_size = "
            f"{problem.step_size} need not contract where strong_convexity = {problem.strong_convexity:.3g} is so much "
            "smaller than smoothness; raise the regularisation (a smaller C)"
        )
    return max(gap, 0.0)


def phase(problem: Problem, *, sigma: float, records: int, steps: float, removed_before: int = 0) -> NoisyPhase:
    """Return a phase of noisy gradient steps ``x - eta grad f(x) + sqrt(2 eta) sigma N(0, I)``.

    Args:
        problem: The constants.
        sigma: Noise scale.
        records: Number ``S`` of records in which the two data sets differ; 0 if they agree. Rounding is added in either
            case.
        steps: Number of steps; may be infinite.
        removed_before: Number of records that are in neither data set any more.

    Raises:
        AssumptionError: ``step_size`` exceeds ``2 / L``, or infinitely many steps do not contract.
    """
    require_positive(sigma=sigma)
    require_count(least=0, records=records)
    noise_std = math.sqrt(2 * problem.step_size) * sigma
    updates = _between_updates(problem, noise_std, records, removed_before)
    return NoisyPhase(steps, contraction_gap(problem), updates, noise_std)


def schedule_phases(problem: Problem, schedule: Schedule) -> list[NoisyPhase]:
    """Return the phases of a schedule, against the same run on the data left after all its requests.

    Learning differs in the records of all requests, and the steps of request ``j`` differ in those of later requests.

    Raises:
        ParameterError: More records are removed than there are.
        AssumptionError: ``step_size`` exceeds ``2 / L``, or infinitely many steps do not contract.
    """
    removed = list(accumulate(schedule.records, initial=0))
    total = removed.pop() if schedule.steps else 0
    learning = phase(problem, sigma=schedule.sigma, records=total, steps=schedule.learning_steps)
    phases = [learning]
    for steps, gone in zip(schedule.steps[:-1], removed[1:], strict=True):
        updates = _between_updates(problem, learning.noise_std, total - gone, gone)
        phases.append(NoisyPhase(steps, learning.contraction_gap, updates, learning.noise_std))
    if schedule.steps:
        phases.append(phase(problem, sigma=schedule.sigma, records=0, steps=schedule.steps[-1]))
    return phases


def curve(problem: Problem, schedule: Schedule) -> GaussianCurve:
    """Return how well the model after the last request of a schedule can be distinguished from a retrained one.

    Retraining means the same learning run from the same start, on the data after all removals, for the same total
    number of steps (learning and every request's); learning to stationarity is compared with stationarity. It is
    `pooled_mu` of `schedule_phases`: the noise stays the same and the sensitivity never increases, so everything is one
    block.

    Args:
        problem: The constants.
        schedule: Noise, learning steps, and the steps of every request.

    Raises:
        ParameterError: More records are removed than there are.
        AssumptionError: ``step_size`` exceeds ``2 / L``, or infinitely many steps do not contract.
    """
    return GaussianCurve(pooled_mu(schedule_phases(problem, schedule)))


def curve_by_answer(problem: Problem, schedule: Schedule) -> Callable[[int], GaussianCurve]:
    """Return `curve` for each number of steps of the last request, with the same arguments and errors."""
    *phases, answer = schedule_phases(problem, schedule)
    before = Pool.of(phases)
    return lambda steps: GaussianCurve(before.followed_by(answer.lasting(steps)).mu())


def joint_curve(problem: Problem, schedule: Schedule, *, learned_published: bool) -> GaussianCurve:
    """Return the curve for an observer that keeps every published model, not only the last.

    Given the models published so far, both runs continue from the same point: each phase counts on its own, and the
    ``mu^2`` add up (adaptive composition of Gaussian DP). If the learned model was published, the result is close to
    learning's own ``mu``, because a published model cannot be recalled. The comparison is with the retrained run's
    models at the same times. The order and the content of requests may depend on published models, as long as the group
    of records that they remove, their sizes and their numbers of steps are fixed in advance.

    Args:
        problem: The constants.
        schedule: Noise, learning steps, and the steps of every request.
        learned_published: Whether the learned model was published, too, or only the model after each request.

    Raises:
        ParameterError: More records are removed than there are.
        AssumptionError: ``step_size`` exceeds ``2 / L``, or infinitely many steps do not contract.
    """
    phases = schedule_phases(problem, schedule)
    first = 1 if learned_published else 2
    parts = [phases[:first], *([phase] for phase in phases[first:])]
    return GaussianCurve(math.hypot(*(pooled_mu(part) for part in parts)))


def initial_curve(problem: Problem, *, sigma: float, records: int, learning_steps: float = math.inf) -> GaussianCurve:
    """Return how well models learned on data that differ in ``records`` can be distinguished.

    ``s/tau sqrt((1+c)(1-c^T) / ((1-c)(1+c^T)))`` (Bok et al., strongly convex noisy gradient descent).

    Args:
        problem: The constants.
        sigma: Noise scale.
        records: Number of records, ``S``.
        learning_steps: Number of learning steps, ``T``; infinite for learning to stationarity.

    Raises:
        AssumptionError: ``step_size`` exceeds ``2 / L``, or infinitely many steps do not contract.
    """
    return GaussianCurve(pooled_mu([phase(problem, sigma=sigma, records=records, steps=learning_steps)]))


def _between_updates(problem: Problem, noise_std: float, records: int, removed_before: int) -> float:
    """Return the largest distance between the two updates of one point, on data that differ in ``records``."""
    gradients = problem.sensitivity(records, removed_before=removed_before) if records else 0.0
    error = problem.rounding.step_error(noise_std)
    if error == math.inf:
        raise AssumptionError(
            "rounding alone may drive the weights anywhere: step_size * strong_convexity = "
            f"{problem.step_size * problem.strong_convexity:.2g} is too small for the type of the weights; raise the "
            "regularisation, or use dtype float64"
        )
    # Each of the two runs may end a step error away from the end in exact arithmetic.
    return problem.step_size * gradients + 2 * error
