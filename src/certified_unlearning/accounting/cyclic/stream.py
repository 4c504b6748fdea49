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
from functools import cache, lru_cache
from itertools import accumulate
from typing import NamedTuple

from certified_unlearning.accounting.core.curves import Cycle, GaussianCurve, Places, Schedule
from certified_unlearning.accounting.core.pooling import Phase, Pool
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


class Requests(NamedTuple):
    """A schedule but for its noise and the steps of its last answer; `Schedule` has checked what stands here.

    Planners try many of both, and each new request leaves most of this as it was: what follows from it is kept.
    """

    cycle: Cycle
    learning_steps: int
    records: tuple[int, ...]
    earlier_steps: tuple[int, ...]
    places: tuple[Places, ...] | None

    @classmethod
    def of(cls, schedule: Schedule, number: int | None = None) -> "Requests":
        """Return the requests of a schedule that has a cycle, or the first ``number`` of them."""
        assert schedule.cycle is not None
        places = None if schedule.places is None else schedule.places[:number]
        steps = schedule.steps[:number][:-1]
        return cls(schedule.cycle, int(schedule.learning_steps), schedule.records[:number], steps, places)

    def but_the_last(self) -> "Requests":
        """Return all requests but the last one."""
        places = None if self.places is None else self.places[:-1]
        return self._replace(records=self.records[:-1], earlier_steps=self.earlier_steps[:-1], places=places)


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
    _check(problem, schedule)
    return GaussianCurve(_mu(problem, schedule.sigma, Requests.of(schedule), schedule.steps[-1:]))


def largest_curve(problem: Problem, schedule: Schedule) -> GaussianCurve:
    """Return the largest `curve` after any request of a schedule: no model was ever easier to tell."""
    _check(problem, schedule)
    largest = 0.0
    for number in (*range(DEPTH, len(schedule.steps), DEPTH), len(schedule.steps)):
        requests, last = Requests.of(schedule, number), schedule.steps[:number][-1:]
        largest = _largest_mu(problem, schedule.sigma, requests, last)
    return GaussianCurve(largest)


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
    requests, window = Requests.of(schedule), _window(problem)
    blocks = _earlier_blocks(requests, window)
    parts = [
        _block_pool(
            problem, schedule.sigma, block.runs, _distance(problem, schedule.sigma, requests) if block.cut else 0.0
        ).mu()
        for block in (*(_answer(steps, window) for steps in schedule.steps[-1:]), *blocks)
    ]
    return GaussianCurve(math.hypot(*parts))


def last_visited(cycle: Cycle, records: int, *, steps: int) -> Places:
    """Return where records lie that fill the batches of the last of so many steps, and of those before, backwards."""
    full, rest = divmod(records, cycle.batch_size)
    counts = [cycle.batch_size] * full + [rest] * (rest > 0)
    return tuple(((steps - 1 - back) % cycle.batches, count) for back, count in enumerate(counts))


def before_last_answer(problem: Problem, schedule: Schedule) -> Pool:
    """Return what a schedule comes to whose last answer has no steps yet; arguments and errors as for `curve`."""
    _check(problem, schedule)
    return _before_last_answer(problem, schedule.sigma, Requests.of(schedule))


def _mu(problem: Problem, sigma: float, requests: Requests, last: tuple[int, ...]) -> float:
    pool = _before_last_answer(problem, sigma, requests)
    kinds = _kinds(problem, sigma)
    return pool.followed_by(*(kinds(0, steps) for steps in last)).mu()


@lru_cache(maxsize=4 * DEPTH)
def _largest_mu(problem: Problem, sigma: float, requests: Requests, last: tuple[int, ...]) -> float:
    if not last:
        return 0.0
    before = _largest_mu(problem, sigma, requests.but_the_last(), requests.earlier_steps[-1:])
    return max(before, _mu(problem, sigma, requests, last))


@lru_cache(maxsize=64)
def _before_last_answer(problem: Problem, sigma: float, requests: Requests) -> Pool:
    kinds, window = _kinds(problem, sigma), _window(problem)
    blocks: list[Block] = []
    steps = 0
    for block in _earlier_blocks(requests, window):
        if steps >= window:
            break
        blocks.append(block)
        steps += block.steps
    forgotten = len(blocks) <= len(requests.earlier_steps) or blocks[-1].cut
    first = blocks.pop()
    pool = _block_pool(problem, sigma, first.runs, _distance(problem, sigma, requests) if forgotten else 0.0)
    return pool.followed_by(*(kinds(*run) for block in reversed(blocks) for run in block.runs))


# A new request changes few blocks: those with steps that use its batches.
@lru_cache(maxsize=64 * DEPTH)
def _block_pool(problem: Problem, sigma: float, runs: tuple[tuple[int, int], ...], starting_distance: float) -> Pool:
    kinds = _kinds(problem, sigma)
    return Pool.of([kinds(*run) for run in runs], starting_distance=starting_distance)


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


def _distance(problem: Problem, sigma: float, requests: Requests) -> float:
    """Return the most that two runs can be apart: every step differs in all records, for ever."""
    everywhere = _kinds(problem, sigma)(sum(requests.records), 1)
    return everywhere.sensitivity / contraction_gap(problem)


def _answer(steps: int, window: int) -> Block:
    """Return the last answer, in which nothing differs any more: its last steps, a window long."""
    return Block(((0, min(steps, window)),), min(steps, window), steps > window)


@lru_cache(maxsize=16)
def _earlier_blocks(requests: Requests, window: int) -> tuple[Block, ...]:
    """Return all answers but the last one, the latest first, then learning: the last steps of each, a window long."""
    cycle = requests.cycle
    ends = list(accumulate(requests.earlier_steps, initial=requests.learning_steps))
    differing: Counter[int] = Counter()
    blocks = []
    for number in range(len(ends) - 1, -1, -1):
        if requests.records:
            places = requests.places[number] if requests.places else None
            # What a request removes differs in all steps before it.
            for batch, count in places or last_visited(cycle, requests.records[number], steps=ends[number]):
                differing[batch] += count
        first = ends[number - 1] if number else 0
        start = max(first, ends[number] - window)
        blocks.append(Block(_runs(cycle, start, ends[number], differing), ends[number] - start, start > first))
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
