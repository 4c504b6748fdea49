"""Streams of removal requests to noisy gradient descent on cyclic mini-batches.

Records are dealt once, without looking at them, into ``l`` batches of ``b``; step ``t`` uses batch ``(t - 1) mod l``.
Learning takes ``T`` steps, request ``j`` zeroes or replaces its records in their places, ``K_j`` more steps carry on
with the cycle. The model is compared with a run of the same steps in the same order whose data lacked all removed
records from the start: a step differs between the two in as many records of its batch as are removed *later*. That
goes up and down from step to step, so nothing less than `pooling` is right.

Where the places of records are unknown, the records of each request are taken to fill the batches visited last before
the request, backwards. That is the worst: a difference of the same size in a later step is contracted as often or less
and meets less noise, and no batch is visited more often. (Each request is placed without looking at the others, so a
batch may count more than ``b`` records of several: an upper bound.)
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from itertools import accumulate

from certified_unlearning.accounting.core.curves import Cycle, GaussianCurve, Places, Schedule
from certified_unlearning.accounting.core.pooling import Phase, Pool, pooled_mu
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.shifted.interpolation import contraction_gap, phase
from certified_unlearning.errors import AssumptionError, ParameterError

FORGOTTEN = 30.0
"""Steps whose differences have faded by ``exp(-30)`` are summed up in one distance: an upper bound."""
DEPTH = 100
"""Requests that one call adds to what the one before has computed."""


def curve(problem: Problem, schedule: Schedule) -> GaussianCurve:
    """Return how well the model after the last request of a schedule can be told from a retrained one.

    Retrained: the same start and the same steps, of learning and of every request, in the same order, on data that
    lacked all removed records from the start.

    Args:
        problem: The constants of a *batch*: ``n`` is ``b``, and ``smoothness`` holds for the mean loss of every batch
            (``1/4 + lambda`` does for logistic regression with rows of norm at most 1).
        schedule: Noise, learning steps, the steps of every request, and the cycle.

    Raises:
        ParameterError: The schedule has no cycle, or ``n`` is not its batch size.
        AssumptionError: ``step_size`` exceeds ``2 / L``, or the adjacency is ``remove``, which leaves no place.
    """
    # Planners try many numbers of steps for the last request: all before it is computed once.
    unanswered = replace(schedule, steps=(*schedule.steps[:-1], 0)) if schedule.steps else schedule
    pool = _all_but_last_answer(problem, unanswered)
    if schedule.steps:
        pool = pool.followed_by(phase(problem, sigma=schedule.sigma, records=0, steps=schedule.steps[-1]))
    return GaussianCurve(pool.mu())


def largest_curve(problem: Problem, schedule: Schedule) -> GaussianCurve:
    """Return the largest `curve` after any request of a schedule: no model was ever easier to tell."""
    for number in range(DEPTH, len(schedule.steps), DEPTH):
        _largest_mu(problem, schedule.up_to(number))
    return GaussianCurve(_largest_mu(problem, schedule))


def joint_curve(problem: Problem, schedule: Schedule) -> GaussianCurve:
    """Return what an observer learns who keeps every published model, the learned one included.

    Given what was published so far, both runs go on from one point: blocks count each on its own, and their ``mu^2``
    add up (adaptive composition of Gaussian DP).

    Args:
        problem: As for `curve`.
        schedule: As for `curve`.

    Raises:
        ParameterError: As for `curve`.
        AssumptionError: As for `curve`.
    """
    cycle, window = _checked(problem, schedule), _window(problem)
    kinds, parts = _kinds(problem, schedule.sigma), []
    distance = kinds(sum(schedule.records), 1).sensitivity / contraction_gap(problem)
    for first, last, differing in _blocks(schedule, cycle):
        start = max(first, last - window)
        phases = _phases(kinds, cycle, start, last, differing)
        parts.append(pooled_mu(phases, starting_distance=distance if start > first else 0.0))
    return GaussianCurve(math.hypot(*parts))


def last_visited(cycle: Cycle, records: int, *, steps: int) -> Places:
    """Return where records lie that fill the batches of the last of so many steps, and of those before, backwards."""
    full, rest = divmod(records, cycle.batch_size)
    counts = [cycle.batch_size] * full + [rest] * (rest > 0)
    return tuple(((steps - 1 - back) % cycle.batches, count) for back, count in enumerate(counts))


@lru_cache(maxsize=4 * DEPTH)
def _largest_mu(problem: Problem, schedule: Schedule) -> float:
    if not schedule.steps:
        return 0.0
    return max(_largest_mu(problem, schedule.up_to(len(schedule.steps) - 1)), curve(problem, schedule).mu)


@lru_cache(maxsize=64)
def _all_but_last_answer(problem: Problem, schedule: Schedule) -> Pool:
    """Return all phases but the last answer's, which has no steps."""
    cycle = _checked(problem, schedule)
    start = max(0, int(schedule.learning_steps) + sum(schedule.steps) - _window(problem))
    kinds = _kinds(problem, schedule.sigma)
    counted: list[list[Phase]] = []
    for first, last, differing in _blocks(schedule, cycle):
        if last <= start and first < last:
            break
        counted.append(_phases(kinds, cycle, max(first, start), last, differing))
    # The most that two runs can be apart: every step differs in all records, for ever.
    distance = kinds(sum(schedule.records), 1).sensitivity / contraction_gap(problem) if start else 0.0
    return Pool.of([each for phases in reversed(counted) for each in phases], starting_distance=distance)


def _checked(problem: Problem, schedule: Schedule) -> Cycle:
    if schedule.cycle is None:
        raise ParameterError("the schedule of mini-batches needs a cycle")
    if problem.n != schedule.cycle.batch_size:
        raise ParameterError(f"n must be the batch size, {schedule.cycle.batch_size}, got {problem.n}")
    if problem.adjacency == "remove":
        raise AssumptionError(
            "cyclic mini-batches need an erased record to keep its place: adjacency must be replace or zero-out, "
            "got remove"
        )
    return schedule.cycle


def _window(problem: Problem) -> int:
    gap = contraction_gap(problem)
    return math.ceil(FORGOTTEN / gap) if gap > 0 else 10**18


def _blocks(schedule: Schedule, cycle: Cycle) -> Iterator[tuple[int, int, Counter[int]]]:
    """Yield the answer to each request, the last one first, then learning: steps on unchanging data.

    Of each the number of steps before it and at its end, and in how many records of a batch the two runs differ: those
    that later requests remove. The counter is changed afterwards.
    """
    ends = list(accumulate(schedule.steps, initial=int(schedule.learning_steps)))
    differing: Counter[int] = Counter()
    for number in range(len(ends) - 1, 0, -1):
        yield ends[number - 1], ends[number], differing
        known = schedule.places
        places = known[number - 1] if known else None
        records = schedule.records[number - 1]
        for batch, count in places or last_visited(cycle, records, steps=ends[number - 1]):
            differing[batch] += count
    yield 0, ends[0], differing


def _phases(
    kinds: Callable[[int, int], Phase], cycle: Cycle, start: int, end: int, differing: Mapping[int, int]
) -> list[Phase]:
    """Return the steps from ``start`` to ``end``: runs of steps that differ in equally many records."""
    if end - start <= len(differing):
        met = ((step, differing.get(step % cycle.batches, 0)) for step in range(start, end))
        visits = [(step, count) for step, count in met if count]
    else:
        visits = sorted(
            (step, count)
            for batch, count in differing.items()
            for step in range(start + (batch - start) % cycle.batches, end, cycle.batches)
        )
    runs: list[tuple[int, int]] = []  # numbers of records and of steps
    step = start
    for visit, count in visits:
        if visit > step:
            runs.append((0, visit - step))
        if visit == step and runs and runs[-1][0] == count:
            runs[-1] = count, runs[-1][1] + 1
        else:
            runs.append((count, 1))
        step = visit + 1
    if end > step:
        runs.append((0, end - step))
    return [kinds(records, steps) for records, steps in runs]


def _kinds(problem: Problem, sigma: float) -> Callable[[int, int], Phase]:
    """Return what makes a phase of numbers of records and steps: of two runs that differ in so many records a step.

    They may be more than a batch holds.
    """
    agreeing, one = (phase(problem, sigma=sigma, records=records, steps=1) for records in (0, 1))
    gap, noise_std, base = one.contraction_gap, one.noise_std, agreeing.sensitivity
    of_a_record = one.sensitivity - base
    return cache(lambda records, steps: Phase(steps, gap, base + records * of_a_record, noise_std))
