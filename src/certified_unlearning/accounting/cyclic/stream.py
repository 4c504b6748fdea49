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
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from certified_unlearning.accounting.core.curves import Cycle, GaussianCurve, Places, Schedule
from certified_unlearning.accounting.core.pooling import Phase, pooled_mu
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.shifted.interpolation import contraction_gap, phase
from certified_unlearning.errors import AssumptionError, ParameterError

FORGOTTEN = 50.0
"""Steps whose differences have faded by ``exp(-50)`` are summed up in one distance: an upper bound."""


class Block(NamedTuple):
    """Steps on unchanging data: learning, or the answer to one request.

    Attributes:
        first: Steps taken before.
        last: Steps taken when it ends.
        differing: In how many records of a batch the two runs differ; batches that are not named agree.
    """

    first: int
    last: int
    differing: tuple[tuple[int, int], ...]


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
    phases, distance = _all_but_last_answer(problem, unanswered)
    answer = [phase(problem, sigma=schedule.sigma, records=0, steps=schedule.steps[-1])] if schedule.steps else []
    return GaussianCurve(pooled_mu([*phases, *answer], starting_distance=distance))


def largest_curve(problem: Problem, schedule: Schedule) -> GaussianCurve:
    """Return the largest `curve` after any request of a schedule: no model was ever easier to tell."""
    return GaussianCurve(
        max((curve(problem, schedule.up_to(number)).mu for number in range(1, len(schedule.steps) + 1)), default=0.0)
    )


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
    parts = []
    for block in _blocks(schedule, cycle):
        start = max(block.first, block.last - window)
        distance = _distance(problem, schedule) if start > block.first else 0.0
        parts.append(pooled_mu(_phases(problem, schedule.sigma, cycle, block, start), starting_distance=distance))
    return GaussianCurve(math.hypot(*parts))


def last_visited(cycle: Cycle, records: int, *, steps: int) -> Places:
    """Return where records lie that fill the batches of the last of so many steps, and of those before, backwards."""
    full, rest = divmod(records, cycle.batch_size)
    counts = [cycle.batch_size] * full + [rest] * (rest > 0)
    return tuple(((steps - 1 - back) % cycle.batches, count) for back, count in enumerate(counts))


@lru_cache(maxsize=64)
def _all_but_last_answer(problem: Problem, schedule: Schedule) -> tuple[tuple[Phase, ...], float]:
    """Return all phases but the last block's, and how far apart the runs are before the first of them."""
    cycle = _checked(problem, schedule)
    blocks = _blocks(schedule, cycle)
    start = max(0, blocks[-1].last - _window(problem))
    distance = _distance(problem, schedule) if start else 0.0
    counted = [_phases(problem, schedule.sigma, cycle, block, start) for block in blocks if block.last > start]
    return tuple(each for phases in counted for each in phases), distance


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


def _distance(problem: Problem, schedule: Schedule) -> float:
    """Return the most that two runs can be apart: every step differs in all records, for ever."""
    return _differing_in(problem, schedule.sigma, sum(schedule.records)).sensitivity / contraction_gap(problem)


def _blocks(schedule: Schedule, cycle: Cycle) -> list[Block]:
    """Return learning and the answer to each request, with what the later requests remove."""
    ends = list(accumulate(schedule.steps, initial=int(schedule.learning_steps)))
    places = schedule.places or [
        last_visited(cycle, records, steps=end) for records, end in zip(schedule.records, ends, strict=False)
    ]
    later: Counter[int] = Counter()
    blocks = []
    for number in reversed(range(len(ends))):
        blocks.append(Block(ends[number - 1] if number else 0, ends[number], tuple(later.items())))
        if number:
            later.update(dict(places[number - 1]))
    return blocks[::-1]


def _phases(problem: Problem, sigma: float, cycle: Cycle, block: Block, start: int) -> list[Phase]:
    """Return a block's steps from step ``start`` on: runs of steps that differ in equally many records."""
    first = max(block.first, start)
    visits = sorted(
        (step, count)
        for batch, count in block.differing
        for step in range(first + (batch - first) % cycle.batches, block.last, cycle.batches)
    )
    runs: list[tuple[int, int]] = []  # numbers of records and of steps
    step = first
    for visit, count in visits:
        if visit > step:
            runs.append((0, visit - step))
        if visit == step and runs and runs[-1][0] == count:
            runs[-1] = count, runs[-1][1] + 1
        else:
            runs.append((count, 1))
        step = visit + 1
    if block.last > step:
        runs.append((0, block.last - step))
    kinds = {records: _differing_in(problem, sigma, records) for records, _ in runs}
    return [replace(kinds[records], steps=steps) for records, steps in runs]


def _differing_in(problem: Problem, sigma: float, records: int) -> Phase:
    """Return a step of two runs that differ in records of its batch, be they more than it holds."""
    if records <= problem.n:
        return phase(problem, sigma=sigma, records=records, steps=1)
    agreeing, full = (phase(problem, sigma=sigma, records=count, steps=1) for count in (0, problem.n))
    of_a_record = (full.sensitivity - agreeing.sensitivity) / problem.n
    return replace(full, sensitivity=agreeing.sensitivity + records * of_a_record)
