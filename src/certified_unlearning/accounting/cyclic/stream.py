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
from collections.abc import Hashable, Iterator
from functools import lru_cache
from itertools import accumulate
from threading import Lock
from typing import Generic, NamedTuple

import numpy as np

from certified_unlearning.accounting.core import single_steps
from certified_unlearning.accounting.core.curves import Cycle, GaussianCurve, Places, Schedule
from certified_unlearning.accounting.core.kept import Kept, Value
from certified_unlearning.accounting.core.pooling import Phase, Pool, mu_of_all
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.core.search import Array, Whole
from certified_unlearning.accounting.shifted.interpolation import contraction_gap, phase
from certified_unlearning.errors import AssumptionError, InfeasibleError, ParameterError

FORGOTTEN = 30.0
"""Steps whose differences have faded by ``exp(-30)`` are summed up in one distance: an upper bound."""
STREAMS = 32
"""Streams of requests of which what they came to is kept; those that begin alike count as one."""
BRANCHES = 8
"""Of streams that begin alike, as those of a model's copies do, what so many came to that were asked last is kept."""
MOST_COUNTED = 2 * 10**7
"""Steps that are counted in one array; each takes up to 230 bytes of memory on the way."""
MOST_IN_ALL = 10**18
"""More do not fit in the whole numbers that they are counted in; what takes longer to fade never does."""
STEPS_OF_PIECE = 10**6
"""What all models tell is counted in pieces of so many steps, or of one request's."""


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

    def goes_on_from(self, other: "Requests") -> bool:
        """Return whether this is the other, or the other and more requests."""
        number = len(other.records)
        places = None if self.places is None else self.places[:number]
        return (
            self.records[:number] == other.records
            and self.earlier_steps[: len(other.earlier_steps)] == other.earlier_steps
            and (self.cycle, self.learning_steps, places) == (other.cycle, other.learning_steps, other.places)
        )

    @property
    def steps(self) -> int:
        """Steps before the last answer."""
        return self.learning_steps + sum(self.earlier_steps)

    @classmethod
    def of(cls, schedule: Schedule) -> "Requests":
        """Return the requests of a schedule that has a cycle."""
        assert schedule.cycle is not None
        # Whatever places were, what is kept must not change.
        steps, places = schedule.steps[:-1], schedule.places and tuple(schedule.places)
        return cls(schedule.cycle, int(schedule.learning_steps), schedule.records, steps, places)

    def first(self, number: int) -> "Requests":
        """Return the first requests."""
        if number == len(self.records):
            return self
        places = None if self.places is None else self.places[:number]
        return self._replace(
            records=self.records[:number], earlier_steps=self.earlier_steps[:number][:-1], places=places
        )


class _Known(Generic[Value]):
    """What the requests of some streams came to when that was asked last: the next request of each adds to it."""

    def __init__(self) -> None:
        self._streams: dict[Hashable, Kept[tuple[Requests, Value]]] = {}
        self._lock = Lock()

    def longest(self, kind: Hashable, requests: Requests, nothing: Value) -> tuple[int, Value]:
        """Return how many of the requests are known, and what they came to; ``nothing`` where none are."""
        begun = self._streams.get(self._name(kind, requests))
        found = begun and begun.longest(lambda each: requests.goes_on_from(each[0]), lambda each: len(each[0].records))
        return (len(found[0].records), found[1]) if found else (0, nothing)

    def keep(self, kind: Hashable, requests: Requests, value: Value) -> None:
        """Keep what the requests come to."""
        name = self._name(kind, requests)
        with self._lock:
            begun = self._streams.pop(name, None) or Kept(BRANCHES)
            begun.keep((requests, value))
            self._streams[name] = begun
            if len(self._streams) > STREAMS:
                del self._streams[next(iter(self._streams))]

    @staticmethod
    def _name(kind: Hashable, requests: Requests) -> Hashable:
        return kind, requests.learning_steps, requests.records[:1], requests.places and requests.places[:1]


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
        InfeasibleError: More than `MOST_COUNTED` steps have not faded, or there are more than `MOST_IN_ALL`.
    """
    _check(problem, schedule)
    return GaussianCurve(_mu(problem, schedule.sigma, Requests.of(schedule), schedule.steps[-1:]))


def largest_curve(problem: Problem, schedule: Schedule) -> GaussianCurve:
    """Return the largest `curve` after any request of a schedule: no model was ever easier to tell."""
    _check(problem, schedule)
    requests, kind = Requests.of(schedule), (problem, schedule.sigma)
    answered = requests._replace(earlier_steps=schedule.steps)
    known, largest = _LARGEST.longest(kind, answered, 0.0)
    if known == len(schedule.steps):
        return GaussianCurve(largest)
    for number in range(known + 1, len(schedule.steps) + 1):
        last = schedule.steps[number - 1 : number]
        largest = max(largest, _mu(problem, schedule.sigma, requests.first(number), last))
    _LARGEST.keep(kind, answered, largest)
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
        InfeasibleError: As for `curve`.
    """
    _check(problem, schedule)
    requests = Requests.of(schedule)
    # Before which step each model was published; learning begins with step 0.
    ends = np.array(
        (0, requests.learning_steps, *requests.earlier_steps, *schedule.steps[-1:]), dtype=np.int64
    ).cumsum()
    last = int(ends[-1])
    if last == 0:
        return GaussianCurve(0.0)
    step = _step(problem, schedule.sigma)
    # As of the last model's steps, which are then counted already.
    first = requests.learning_steps - step.window if requests.learning_steps > 2 * step.window else 0
    if not single_steps.takes(last - first):
        return GaussianCurve(_joint_mu_of_runs(requests, step, ends))
    some_cut = (ends[1:] - ends[:-1]).max() > 2 * step.window
    mu = single_steps.mu_of_all(
        step.sensitivities(_differing(requests, first, last)),
        ends,
        first=first,
        window=step.window,
        contraction_gap=step.agreeing.contraction_gap,
        noise_std=step.agreeing.noise_std,
        distance=step.largest_distance(requests) if some_cut else 0.0,
    )
    return GaussianCurve(mu)


def _joint_mu_of_runs(requests: Requests, step: "_Step", ends: Whole) -> float:
    """Return what `joint_curve` does, of runs of steps that differ alike."""
    begins, ends = ends[:-1], ends[1:]
    starts: Whole = np.where(ends - begins > 2 * step.window, ends - step.window, begins)
    some = ends > starts
    begins, starts, ends = begins[some], starts[some], ends[some]
    # Steps that do not contract are never cut, and have no such distance.
    cut = starts > begins
    distances = np.zeros(len(cut))
    if cut.any():
        distances[cut] = step.largest_distance(requests)
    total = 0.0
    for piece in _pieces(starts, ends):
        first, last = (min(int(each), requests.steps) for each in (starts[piece][0], ends[piece][-1]))
        steps, records, firsts = _runs(_differing(requests, first, last), starts[piece] - first, ends[piece] - first)
        mu = mu_of_all(
            steps,
            step.sensitivities(records),
            firsts,
            contraction_gap=step.agreeing.contraction_gap,
            noise_std=step.agreeing.noise_std,
            starting_distances=distances[piece],
        )
        total = math.hypot(total, mu)
    return total


def _pieces(starts: Whole, ends: Whole) -> Iterator[slice]:
    """Yield stretches that are together not too many steps to be counted in one array."""
    begin = 0
    while begin < len(starts):
        end = max(begin + 1, int(ends.searchsorted(starts[begin] + STEPS_OF_PIECE, side="right")))
        yield slice(begin, end)
        begin = end


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
    pool, answer = _before_last_answer(problem, sigma, requests), _step(problem, sigma).agreeing
    return pool.followed_by(*map(answer.lasting, last)).mu()


@lru_cache(maxsize=64)
def _before_last_answer(problem: Problem, sigma: float, requests: Requests) -> Pool:
    step, steps = _step(problem, sigma), requests.steps
    # What is a little older than the window makes no difference; to leave it in spares finding the visits again.
    start = steps - step.window if steps > 2 * step.window else 0
    contraction_gap, noise_std = step.agreeing.contraction_gap, step.agreeing.noise_std
    distance = step.largest_distance(requests) if start else 0.0
    if steps > start and single_steps.takes(steps - start):
        sensitivities = step.sensitivities(_differing(requests, start, steps))
        return single_steps.pool(
            sensitivities, contraction_gap=contraction_gap, noise_std=noise_std, starting_distance=distance
        )
    lengths, records = _runs_before_last_answer(requests, start)
    return Pool.of_runs(
        lengths,
        step.sensitivities(records),
        contraction_gap=contraction_gap,
        noise_std=noise_std,
        starting_distance=distance,
    )


# Of one request it is asked twice: in exact arithmetic, and as computed.
@lru_cache(maxsize=4)
def _runs_before_last_answer(requests: Requests, start: int) -> tuple[Array, Array]:
    steps, records, _ = _runs(
        _differing(requests, start, requests.steps), np.array([0]), np.array([requests.steps - start])
    )
    return steps, records


def _runs(differing: Array, starts: Whole, ends: Whole) -> tuple[Array, Array, Whole]:
    """Return the runs of steps that differ in as many records.

    Args:
        differing: In how many records each step differs; all that follow differ in none.
        starts: Shape ``(stretches,)``: the first step of each stretch that is counted on its own.
        ends: The step after its last one; each is at most the next one's start, and the last one is past all that
            differ.

    Returns:
        How many steps, in how many records; shape ``(runs,)``; and the number of each stretch's first run.
    """
    known = len(differing)
    begins = np.ones(known + 1, dtype=bool)
    np.not_equal(differing[1:], differing[:-1], out=begins[1:known])
    begins[np.minimum(starts, known)] = True
    begins[np.minimum(ends, known)] = True
    (firsts,) = begins.nonzero()
    stops = np.append(firsts[1:], ends[-1])
    firsts[-1] = max(known, starts[-1])
    stretch = ends.searchsorted(firsts, side="right")
    some = np.append(starts, ends[-1] + 1)[stretch] <= firsts
    records = np.append(differing, 0.0)[np.minimum(firsts[some], known)]
    return (stops - firsts)[some].astype(float), records, stretch[some].searchsorted(np.arange(len(ends)))


class _Step(NamedTuple):
    """A step on a batch.

    Attributes:
        agreeing: One whose batch agrees.
        of_a_record: By how much each differing record raises its sensitivity. More may differ than a batch holds.
        window: In so many steps a difference has faded.
    """

    agreeing: Phase
    of_a_record: float
    window: int

    def sensitivities(self, records: Array) -> Array:
        """Return those of steps that differ in so many records each."""
        return self.agreeing.sensitivity + records * self.of_a_record

    def largest_distance(self, requests: Requests) -> float:
        """Return the most that two runs can be apart: every step differs in all records, for ever."""
        sensitivity = self.agreeing.sensitivity + sum(requests.records) * self.of_a_record
        return sensitivity / self.agreeing.contraction_gap


@lru_cache(maxsize=16)
def _step(problem: Problem, sigma: float) -> _Step:
    agreeing, one = (phase(problem, sigma=sigma, records=number, steps=1) for number in (0, 1))
    gap = contraction_gap(problem)
    window = math.ceil(min(FORGOTTEN / gap, MOST_IN_ALL)) if gap > 0 else MOST_IN_ALL
    return _Step(agreeing, one.sensitivity - agreeing.sensitivity, window)


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
    steps = schedule.learning_steps + sum(schedule.steps)
    if steps > MOST_IN_ALL:
        raise InfeasibleError(f"learning_steps and steps are more than {MOST_IN_ALL:.0e} together, got {steps}")


# In exact arithmetic and as computed it is asked of one request.
@lru_cache(maxsize=1)
def _differing(requests: Requests, start: int, end: int) -> Array:
    """Return in how many records each step from ``start`` to ``end`` differs.

    Those are the records of its batch that are removed later.

    Raises:
        InfeasibleError: They are too many to count.
    """
    batches, pairs, steps = requests.cycle.batches, _pairs(requests), end - start
    if single_steps.takes(steps):
        return single_steps.differing(pairs, batches=batches, start=start, steps=steps)
    if steps > MOST_COUNTED:
        raise InfeasibleError(
            f"{steps} steps that have not faded are more than the {MOST_COUNTED:.0e} that a guarantee of mini-batches "
            "counts; raise step_size * strong_convexity, or learn for fewer steps"
        )
    batch, records, until = pairs[:, np.searchsorted(pairs[2], start, side="right") :]
    width = max(1, min(batches, steps))
    epochs = -(-steps // width)
    first = (batch - start) % batches
    # Which of a batch's visits, counted from 0, is its last one; -1: none is.
    last = (np.minimum(until, end) - 1 - start - first) // batches
    some = last >= 0
    visits = np.bincount((last * width + first)[some], records[some], minlength=epochs * width)
    later = visits.astype(float, copy=False).reshape(epochs, width)
    if epochs > 1:
        later = later[::-1].cumsum(axis=0)[::-1]
    return later.reshape(-1)[:steps]


def _pairs(requests: Requests) -> Whole:
    """Return a column for each batch of each request: the batch, the records there, the steps before the request."""
    known, pairs = _PAIRS.longest(None, requests, np.empty((3, 0), dtype=np.int64))
    if known == len(requests.records):
        return pairs
    cycle, places = requests.cycle, requests.places
    so_far = requests.learning_steps + sum(requests.earlier_steps[:known])
    new = [
        (batch, count, end)
        for number, end in enumerate(accumulate(requests.earlier_steps[known:], initial=so_far), known)
        for batch, count in (places[number] if places else last_visited(cycle, requests.records[number], steps=end))
    ]
    pairs = np.concatenate([pairs, np.array(new, dtype=np.int64).reshape(-1, 3).T], axis=1)
    _PAIRS.keep(None, requests, pairs)
    return pairs


_PAIRS: _Known[Whole] = _Known()
_LARGEST: _Known[float] = _Known()
