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
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.accounting.core.curves import Cycle, GaussianCurve, Places, Schedule
from certified_unlearning.accounting.core.pooling import Phase, Pool, mu_of_all
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.core.search import Array
from certified_unlearning.accounting.shifted.interpolation import contraction_gap, phase
from certified_unlearning.errors import AssumptionError, ParameterError

FORGOTTEN = 30.0
"""Steps whose differences have faded by ``exp(-30)`` are summed up in one distance: an upper bound."""
DEPTH = 100
"""Requests that one call adds to what the one before has computed."""
Whole: TypeAlias = NDArray[np.int64]
"""Whole numbers."""


class Requests(NamedTuple):
    """A schedule but for its noise and the steps of its last answer; `Schedule` has checked what stands here.

    Planners try many of both, and each new request leaves most of this as it was: what follows from it is kept.
    """

    cycle: Cycle
    learning_steps: int
    records: tuple[int, ...]
    earlier_steps: tuple[int, ...]
    places: tuple[Places, ...] | None

    def __hash__(self) -> int:
        """Return a hash of the last request only: the time of a request is not to grow with those before it."""
        last_places = None if self.places is None else self.places[-1:]
        return hash((self.cycle, self.learning_steps, len(self.records), self.records[-1:], last_places))

    @property
    def steps(self) -> int:
        """Steps before the last answer."""
        return self.learning_steps + sum(self.earlier_steps)

    @classmethod
    def of(cls, schedule: Schedule, number: int | None = None) -> "Requests":
        """Return the requests of a schedule that has a cycle, or the first ``number`` of them."""
        assert schedule.cycle is not None
        places = None if schedule.places is None else schedule.places[:number]
        steps = schedule.steps[:number][:-1]
        return cls(schedule.cycle, int(schedule.learning_steps), schedule.records[:number], steps, places)

    def first(self, number: int) -> "Requests":
        """Return the first requests, fewer than all."""
        places = None if self.places is None else self.places[:number]
        return self._replace(
            records=self.records[:number], earlier_steps=self.earlier_steps[:number][:-1], places=places
        )

    def but_the_last(self) -> "Requests":
        """Return all requests but the last one."""
        return self.first(len(self.records) - 1)


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
    ends = np.array([*accumulate((*requests.earlier_steps, *schedule.steps[-1:]), initial=requests.learning_steps)])
    begins = np.concatenate([[0], ends[:-1]])
    starts = np.maximum(begins, ends - min(window, int(ends[-1])))
    some = ends > starts
    begins, starts, ends = begins[some], starts[some], ends[some]
    if not len(ends):
        return GaussianCurve(0.0)
    cut = starts > begins
    step, of_a_record = _step(problem, schedule.sigma)
    steps, records, firsts = _runs(_visits(requests, 0), starts, ends)
    mu = mu_of_all(
        steps,
        step.sensitivity + records * of_a_record,
        firsts,
        contraction_gap=step.contraction_gap,
        noise_std=step.noise_std,
        # Steps that do not contract are never cut, and have no such distance.
        starting_distances=cut * _distance(problem, schedule.sigma, requests) if cut.any() else np.zeros(len(cut)),
    )
    return GaussianCurve(mu)


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
    return pool.followed_by(*(replace(_step(problem, sigma)[0], steps=steps) for steps in last)).mu()


@lru_cache(maxsize=4 * DEPTH)
def _largest_mu(problem: Problem, sigma: float, requests: Requests, last: tuple[int, ...]) -> float:
    if not last:
        return 0.0
    before = _largest_mu(problem, sigma, requests.but_the_last(), requests.earlier_steps[-1:])
    return max(before, _mu(problem, sigma, requests, last))


@lru_cache(maxsize=64)
def _before_last_answer(problem: Problem, sigma: float, requests: Requests) -> Pool:
    window = _window(problem)
    # What is a little older than the window makes no difference; to leave it in spares finding the visits again.
    start = requests.steps - window if requests.steps > 2 * window else 0
    steps, records = _runs_before_last_answer(requests, start)
    step, of_a_record = _step(problem, sigma)
    return Pool.of_runs(
        steps,
        step.sensitivity + records * of_a_record,
        contraction_gap=step.contraction_gap,
        noise_std=step.noise_std,
        starting_distance=_distance(problem, sigma, requests) if start else 0.0,
    )


# Of one request it is asked twice: in exact arithmetic, and as computed.
@lru_cache(maxsize=4)
def _runs_before_last_answer(requests: Requests, start: int) -> tuple[Array, Array]:
    steps, records, _ = _runs(_visits(requests, start), np.array([start]), np.array([requests.steps]))
    return steps, records


def _runs(visits: Whole, starts: Whole, ends: Whole) -> tuple[Array, Array, Whole]:
    """Return the runs of steps that differ in as many records.

    Args:
        visits: In which steps two runs differ, and in how many records: what `_visits` returns.
        starts: Shape ``(stretches,)``: the first step of each stretch that is counted on its own.
        ends: The step after its last one; each is at most the next one's start, and none is empty.

    Returns:
        How many steps, in how many records; shape ``(runs,)``; and the number of each stretch's first run.
    """
    visited, records = visits
    low, high = np.searchsorted(visited, [starts, ends])
    if len(visited) > (high - low).sum():
        counted = np.zeros(len(visited) + 1, dtype=np.int64)
        np.add.at(counted, low, 1)
        np.add.at(counted, high, -1)
        kept = counted.cumsum()[:-1] > 0
        visited, records = visited[kept], records[kept]
        high = (high - low).cumsum()
    # Marks: visits, and the ends of stretches. Before each lie equal steps, since the mark before.
    at = high + np.arange(len(ends))
    marks, after = np.empty((2, len(visited) + len(ends)), dtype=np.int64)
    is_visit = np.ones(len(marks), dtype=bool)
    is_visit[at] = False
    marks[is_visit], marks[at] = visited, ends
    after[0], after[1:] = starts[0], marks[:-1] + 1
    after[at[:-1] + 1] = starts[1:]
    steps, differing = np.zeros((2, 2 * len(marks)))
    steps[::2], steps[1::2] = marks - after, is_visit
    differing[1::2][is_visit] = records
    some = steps > 0
    firsts = np.concatenate([[0], some.cumsum()[2 * at[:-1] + 1]])
    return steps[some], differing[some], firsts


@lru_cache(maxsize=16)
def _step(problem: Problem, sigma: float) -> tuple[Phase, float]:
    """Return a step whose batch agrees, and by how much each differing record raises its sensitivity.

    More may differ than a batch holds.
    """
    agreeing, one = (phase(problem, sigma=sigma, records=number, steps=1) for number in (0, 1))
    return agreeing, one.sensitivity - agreeing.sensitivity


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
    step, of_a_record = _step(problem, sigma)
    return (step.sensitivity + sum(requests.records) * of_a_record) / step.contraction_gap


# Of one request it is asked twice: what the last model tells, and what all do.
@lru_cache(maxsize=4)
def _visits(requests: Requests, start: int) -> Whole:
    """Return in which steps from ``start`` to the last request two runs differ.

    Those are the steps whose batch has a record that is removed later.

    Returns:
        Shape ``(2, visits)``: the steps, increasing, and in how many records.
    """
    batches = requests.cycle.batches
    for number in range(DEPTH, len(requests.records), DEPTH):
        _pairs(requests.first(number))
    pairs = _pairs(requests)
    batch, records, until = pairs[:, np.searchsorted(pairs[2], start, side="right") :]
    last = until - 1 - (until - 1 - batch) % batches
    number = np.maximum((last - start) // batches + 1, 0)
    if number.sum() > requests.steps - start:
        return _visits_step_by_step(batch, records, until, batches, np.arange(start, requests.steps))
    back = np.arange(number.sum()) - np.repeat(number.cumsum() - number, number)
    visited, records = np.repeat([last, records], number, axis=1)
    visited -= batches * back
    order = visited.argsort()
    visited, records = visited[order], records[order]
    first = np.flatnonzero(np.diff(visited, prepend=-1))
    return np.stack([visited[first], np.add.reduceat(records, first)]) if len(first) else pairs[:2, :0]


def _visits_step_by_step(batch: Whole, records: Whole, until: Whole, batches: int, steps: Whole) -> Whole:
    """Return `_visits` where most steps visit records that are removed later: for each, how many of its batch are.

    Args:
        batch: Where records lie, one number for each batch of each request.
        records: How many.
        until: The steps before their request.
        batches: ``l``.
        steps: All steps, increasing.
    """
    order = np.lexsort((until, batch))
    # Whole numbers that rise by batch, and within one by the request.
    times = int(steps[-1]) + 2
    places = batch[order] * times + until[order]
    before = np.concatenate([[0], records[order].cumsum()])
    of_step = steps % batches
    later = (
        before[np.searchsorted(places, (of_step + 1) * times)]
        - before[np.searchsorted(places, of_step * times + steps, side="right")]
    )
    some = later > 0
    return np.stack([steps[some], later[some]])


@lru_cache(maxsize=16)
def _pairs(requests: Requests) -> Whole:
    """Return a column for each batch of each request: the batch, the records there, the steps before the request."""
    if not requests.records:
        return np.empty((3, 0), dtype=np.int64)
    end = requests.steps
    places = requests.places[-1] if requests.places else last_visited(requests.cycle, requests.records[-1], steps=end)
    new = np.array([(batch, count, end) for batch, count in places], dtype=np.int64).reshape(-1, 3).T
    return np.concatenate([_pairs(requests.but_the_last()), new], axis=1)
