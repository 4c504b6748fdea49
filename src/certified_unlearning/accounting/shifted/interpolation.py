"""Shifted interpolation for learning and unlearning by noisy gradient descent.

The results are exact on quadratics for step sizes up to ``2 / (L + m)``. For larger step sizes, they are upper bounds.

This module computes the phases of a run. From these, `pooling` computes how much the end of the run reveals (Bok, Su,
Altschuler, ICML 2024). The losses must be smooth, and strongly convex or convex. Every value holds with and without
projection onto a ball. The comparator of a guarantee is a run of the same algorithm with the same constants. A
guarantee covers requests that were fixed in advance.
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
    """Return ``1 - c`` for gradient steps, where ``c = max(|1 - eta m|, |1 - eta L|)``.

    For step sizes up to ``2 / (L + m)``, the result is exactly ``eta m``.

    Raises:
        AssumptionError: ``step_size`` exceeds ``2 / L``, so steps could move points apart.
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
            f"rows may be longer than 1 by {problem.rounding.norm_excess}, and steps of step_size = "
            f"{problem.step_size} need not contract for such rows, because strong_convexity = "
            f"{problem.strong_convexity:.3g} is so much smaller than smoothness; raise the regularisation (a smaller C)"
        )
    return max(gap, 0.0)


def phase(problem: Problem, *, sigma: float, records: int, steps: float, removed_before: int = 0) -> NoisyPhase:
    """Return a phase of noisy gradient steps ``x - eta grad f(x) + sqrt(2 eta) sigma N(0, I)``.

    Args:
        problem: The constants.
        sigma: Noise scale.
        records: Number ``S`` of records in which the two data sets differ; 0 if they agree. Rounding is counted in both
            cases.
        steps: Number of steps, possibly infinite.
        removed_before: Number of records that were removed earlier, from both data sets.

    Raises:
        AssumptionError: ``step_size`` exceeds ``2 / L``, or infinitely many steps do not contract.
    """
    require_positive(sigma=sigma)
    require_count(least=0, records=records)
    noise_std = math.sqrt(2 * problem.step_size) * sigma
    updates = _between_updates(problem, noise_std, records, removed_before)
    return NoisyPhase(steps, contraction_gap(problem), updates, noise_std)


def schedule_phases(problem: Problem, schedule: Schedule) -> list[NoisyPhase]:
    """Return the phases of a schedule, for a comparison with the same run on the data that are left after all requests.

    During learning, the two runs differ in the records of all requests. During the steps of request ``j``, they differ
    in the records of later requests.

    Raises:
        ParameterError: The requests remove more records than exist.
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

    Retraining means the same learning run from the same start, on the data after all removals. Its number of steps is
    the total number of steps of learning and of all requests. If learning runs to stationarity, the retrained model is
    at stationarity, too. The curve is the `pooled_mu` of `schedule_phases`. The noise stays the same and the
    sensitivity never increases, so all phases are one block.

    Args:
        problem: The constants.
        schedule: Noise, learning steps, and the steps of every request.

    Raises:
        ParameterError: The requests remove more records than exist.
        AssumptionError: ``step_size`` exceeds ``2 / L``, or infinitely many steps do not contract.
    """
    return GaussianCurve(pooled_mu(schedule_phases(problem, schedule)))


def curve_by_answer(problem: Problem, schedule: Schedule) -> Callable[[int], GaussianCurve]:
    """Return a function that gives the `curve` for each number of steps of the last request."""
    *phases, answer = schedule_phases(problem, schedule)
    before = Pool.of(phases)
    return lambda steps: GaussianCurve(before.followed_by(answer.lasting(steps)).mu())


def joint_curve(problem: Problem, schedule: Schedule, *, learned_published: bool) -> GaussianCurve:
    """Return the curve for an observer that keeps every published model, not only the last.

    Given the models published so far, both runs continue from the same point. So each phase is counted separately, and
    the ``mu^2`` add up (adaptive composition of Gaussian DP). If the learned model was published, the result is close
    to the ``mu`` of learning alone, because a published model cannot be taken back. The comparator consists of the
    models of the retrained run at the same times. The order and the content of requests may depend on published models.
    Three things must be fixed in advance: the set of all removed records, the size of each request, and the number of
    its steps.

    Args:
        problem: The constants.
        schedule: Noise, learning steps, and the steps of every request.
        learned_published: Whether the learned model was published, in addition to the model after each request.

    Raises:
        ParameterError: The requests remove more records than exist.
        AssumptionError: ``step_size`` exceeds ``2 / L``, or infinitely many steps do not contract.
    """
    phases = schedule_phases(problem, schedule)
    first = 1 if learned_published else 2
    parts = [phases[:first], *([phase] for phase in phases[first:])]
    return GaussianCurve(math.hypot(*(pooled_mu(part) for part in parts)))


def initial_curve(problem: Problem, *, sigma: float, records: int, learning_steps: float = math.inf) -> GaussianCurve:
    """Return how well two learned models can be distinguished if their data sets differ in ``records`` records.

    ``mu`` is ``s/tau sqrt((1+c)(1-c^T) / ((1-c)(1+c^T)))`` (Bok et al., strongly convex noisy gradient descent).

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
    """Return the largest distance between the updates of one point on two data sets that differ in ``records``."""
    gradients = problem.sensitivity(records, removed_before=removed_before) if records else 0.0
    error = problem.rounding.step_error(noise_std)
    if error == math.inf:
        raise AssumptionError(
            "rounding alone may drive the weights anywhere: step_size * strong_convexity = "
            f"{problem.step_size * problem.strong_convexity:.2g} is too small for the type of the weights; raise the "
            "regularisation, or use dtype float64"
        )
    # Each of the two computed steps may end one step error away from the end of the exact step.
    return problem.step_size * gradients + 2 * error
