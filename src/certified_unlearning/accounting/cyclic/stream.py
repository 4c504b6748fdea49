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
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from itertools import accumulate
from typing import NamedTuple

from certified_unlearning.accounting.core.curves import Cycle, GaussianCurve, Places, Schedule
from certified_unlearning.accounting.core.pooling import Phase, Pool, pooled_mu
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.shifted.interpolation import contraction_gap, phase
from certified_unlearning.errors import AssumptionError, ParameterError

FORGOTTEN = 30.0
"""Steps whose differences have faded by ``exp(-30)`` are summed up in one distance: an upper bound."""
DEPTH = 100
"""Requests that one call adds to what the one before has computed."""


class Block(NamedTuple):
    """Steps on unchanging data: learning, or the answer to a request.

    Attributes:
        runs: Numbers of records in which two runs differ, and of steps in a row that differ in so many.
        steps: Their sum.
        cut: Whether earlier steps of it are left out.
    """

    runs: tuple[tuple[int, int], ...]
    steps: int
    cut: bool


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
    if not schedule.steps:
        return GaussianCurve(before_last_answer(problem, schedule).mu())
    # What a planner has asked for, who tries many numbers of steps, is not computed again.
    pool = before_last_answer(problem, replace(schedule, steps=(*schedule.steps[:-1], 0)))
    answer = phase(problem, sigma=schedule.sigma, records=0, steps=schedule.steps[-1])
    return GaussianCurve(pool.followed_by(answer).mu())


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
    _check(problem, schedule)
    parts = [
        _block_mu(problem, schedule.sigma, block.runs, _distance(problem, schedule) if block.cut else 0.0)
        for block in _blocks(schedule, _window(problem))
    ]
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
def before_last_answer(problem: Problem, schedule: Schedule) -> Pool:
    """Return what a schedule comes to whose last answer has no steps yet; arguments and errors as for `curve`."""
    _check(problem, schedule)
    kinds, window = _kinds(problem, schedule.sigma), _window(problem)
    phases: list[Phase] = []
    forgotten, steps = False, 0
    for block in _blocks(schedule, window):
        if steps >= window:
            forgotten = True
            break
        phases = [kinds(*run) for run in block.runs] + phases
        forgotten, steps = block.cut, steps + block.steps
        if forgotten:
            break
    return Pool.of(phases, starting_distance=_distance(problem, schedule) if forgotten else 0.0)


# A new request changes few blocks: those with steps that use its batches.
@lru_cache(maxsize=64 * DEPTH)
def _block_mu(problem: Problem, sigma: float, runs: tuple[tuple[int, int], ...], starting_distance: float) -> float:
    kinds = _kinds(problem, sigma)
    return pooled_mu([kinds(*run) for run in runs], starting_distance=starting_distance)


def _check(problem: Problem, schedule: Schedule) -> None:
    if schedule.cycle is None:
        raise ParameterError("the schedule of mini-batches needs a cycle")
    if problem.n != schedule.cycle.batch_size:
        raise ParameterError(f"n must be the batch size, {schedule.cycle.batch_size}, got {problem.n}")
    if problem.adjacency == "remove":
        raise AssumptionError(
            "cyclic mini-batches need an erased record to keep its place: adjacency must be replace or zero-out, "
            "got remove"
        )


def _window(problem: Problem) -> int:
    gap = contraction_gap(problem)
    return math.ceil(FORGOTTEN / gap) if gap > 0 else 10**18


def _distance(problem: Problem, schedule: Schedule) -> float:
    """Return the most that two runs can be apart: every step differs in all records, for ever."""
    everywhere = _kinds(problem, schedule.sigma)(sum(schedule.records), 1)
    return everywhere.sensitivity / contraction_gap(problem)


@lru_cache(maxsize=16)
def _blocks(schedule: Schedule, window: int) -> tuple[Block, ...]:
    """Return the answers to all requests, the last one first, then learning: the last steps of each, a window long."""
    cycle = schedule.cycle
    assert cycle is not None
    ends = list(accumulate(schedule.steps, initial=int(schedule.learning_steps)))
    differing: Counter[int] = Counter()
    blocks = []
    for number in range(len(ends) - 1, -1, -1):
        first = ends[number - 1] if number else 0
        start = max(first, ends[number] - window)
        runs = _runs(cycle, start, ends[number], differing)
        blocks.append(Block(runs, ends[number] - start, start > first))
        if number:
            places = schedule.places[number - 1] if schedule.places else None
            # What a request removes differs in all steps before it.
            for batch, count in places or last_visited(cycle, schedule.records[number - 1], steps=first):
                differing[batch] += count
    return tuple(blocks)


def _runs(cycle: Cycle, start: int, end: int, differing: Mapping[int, int]) -> tuple[tuple[int, int], ...]:
    """Return the steps from ``start`` to ``end`` as numbers of records in which they differ, and of such steps."""
    if end - start <= len(differing):
        met = ((step, differing.get(step % cycle.batches, 0)) for step in range(start, end))
        visits = [(step, count) for step, count in met if count]
    else:
        visits = sorted(
            (step, count)
            for batch, count in differing.items()
            for step in range(start + (batch - start) % cycle.batches, end, cycle.batches)
        )
    runs: list[tuple[int, int]] = []
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
    return tuple(runs)


@lru_cache(maxsize=16)
def _kinds(problem: Problem, sigma: float) -> Callable[[int, int], Phase]:
    """Return what makes a phase of numbers of records and steps: of two runs that differ in so many records a step.

    They may be more than a batch holds.
    """
    agreeing, one = (phase(problem, sigma=sigma, records=records, steps=1) for records in (0, 1))
    gap, noise_std, base = one.contraction_gap, one.noise_std, agreeing.sensitivity
    of_a_record = one.sensitivity - base
    return cache(lambda records, steps: Phase(steps, gap, base + records * of_a_record, noise_std))
