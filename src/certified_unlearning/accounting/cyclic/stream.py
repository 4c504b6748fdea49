"""Streams of removal requests to noisy gradient descent on cyclic mini-batches.

Records are split once, independently of their values, into ``l`` batches of ``b`` records. Step ``t`` uses batch ``(t -
1) mod l``. Learning takes ``T`` steps. At request ``j``, zeros or other records take the places of the request's
records. Then ``K_j`` more steps continue the cycle. The comparator makes the same steps in the same order on data that
lacked all removed records from the start. In a step, the two runs differ in those records of its batch that are removed
*later*. The number of these records goes up and down from step to step, so no method simpler than `pooling` is correct.

If the places of records are not given, the records of each request are assumed to fill the batches visited just before
the request, the last one first. This is the worst case: no batch is visited more often, and a difference in a later
step is contracted less often and meets less noise. Each request is placed independently of the others, so more than
``b`` records of a batch may be counted. This gives an upper bound.
"""

import math
from collections.abc import Iterator
from itertools import accumulate, repeat

import numpy as np

from certified_unlearning.accounting.core import single_steps
from certified_unlearning.accounting.core.curves import Cycle, GaussianCurve, Places, Schedule
from certified_unlearning.accounting.core.pooling import Pool, mu_of_all
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.core.search import Array, Whole
from certified_unlearning.accounting.shifted.interpolation import contraction_gap, phase
from certified_unlearning.errors import AssumptionError, InfeasibleError, ParameterError

FORGOTTEN = 30.0
"""Differences that have faded by ``exp(-30)`` are combined into one distance, which is an upper bound."""
MOST_COUNTED = 2 * 10**7
"""Largest number of steps in one array. Each step temporarily needs up to 230 bytes of memory."""
MOST_IN_ALL = 10**18
"""Largest number of steps that the counting integers can hold. A difference that would need more steps to fade is
treated as permanent."""
STEPS_OF_PIECE = 10**6
"""The joint curve of all models is computed in pieces of at most this many steps; a longer request is one piece."""


def curve(problem: Problem, schedule: Schedule) -> GaussianCurve:
    """Return how well the model after the last request of a schedule can be distinguished from a retrained one.

    Retraining means the same steps of learning and of every request, in the same order and from the same start, on data
    that lacked all removed records from the start.

    Args:
        problem: The constants of a *batch*: ``n`` is ``b``, and ``smoothness`` holds for the mean loss of every batch.
            An example is ``1/4 + lambda`` for logistic regression on rows of norm at most 1.
        schedule: Noise, learning steps, the steps of every request, and the cycle.

    Raises:
        ParameterError: The schedule has no cycle, or ``n`` is not its batch size.
        AssumptionError: ``step_size`` exceeds ``2 / L``, or the adjacency is ``remove``, under which removed records
            have no place in a batch.
        InfeasibleError: The differences of more than `MOST_COUNTED` steps have not faded, or there are more than
            `MOST_IN_ALL` steps.
    """
    check(problem, schedule)
    steps = Steps(problem, schedule.sigma)
    return GaussianCurve(steps.answered(steps.before_answer(Requests.of(schedule)), schedule.steps[-1:]))


def largest_curve(problem: Problem, schedule: Schedule) -> GaussianCurve:
    """Return the `curve` after one of the requests: the request whose model is easiest to distinguish."""
    check(problem, schedule)
    steps, requests, largest = Steps(problem, schedule.sigma), Requests.before(schedule), 0.0
    places = schedule.places or repeat(None)
    for number, records, held in zip(range(len(schedule.steps)), schedule.records, places, strict=False):
        requests = requests.after(records, schedule.steps[max(number - 1, 0) : number], held)
        largest = max(largest, steps.answered(steps.before_answer(requests), schedule.steps[number : number + 1]))
    return GaussianCurve(largest)


def joint_curve(problem: Problem, schedule: Schedule) -> GaussianCurve:
    """Return the curve for an observer that keeps every published model, including the learned one.

    Given all models published so far, both runs continue from the same point. So the steps between two publications are
    counted separately, and the ``mu^2`` of all publications add up (adaptive composition of Gaussian DP).

    Args:
        problem: The constants of a batch, as for `curve`.
        schedule: Noise, learning steps, the steps of every request, and the cycle.

    Raises:
        ParameterError: The schedule has no cycle, or ``n`` is not its batch size.
        AssumptionError: ``step_size`` exceeds ``2 / L``, or the adjacency is ``remove``.
        InfeasibleError: There are too many steps, as for `curve`.
    """
    check(problem, schedule)
    return joint_curve_of(Steps(problem, schedule.sigma), Requests.of(schedule), schedule)


def joint_curve_of(step: "Steps", requests: "Requests", schedule: Schedule) -> GaussianCurve:
    """Return the `joint_curve` of a schedule from its requests. Raises the same errors as `joint_curve`."""
    # The step before which each model was published; learning begins with step 0.
    learning_steps = int(schedule.learning_steps)
    ends = np.array((0, learning_steps, *schedule.steps), dtype=np.int64).cumsum()
    last = int(ends[-1])
    if last == 0:
        return GaussianCurve(0.0)
    # The window is that of the last model's steps, because the differing records of these steps are already counted.
    first = learning_steps - step.window if learning_steps > 2 * step.window else 0
    if not single_steps.takes(last - first):
        return GaussianCurve(_joint_mu_of_runs(requests, step, ends))
    some_cut = (ends[1:] - ends[:-1]).max() > 2 * step.window
    mu = single_steps.mu_of_all(
        step.sensitivities(requests.differing(first, last)),
        ends,
        first=first,
        window=step.window,
        decays=step.decays,
        noise_std=step.agreeing.noise_std,
        distance=step.largest_distance(requests) if some_cut else 0.0,
    )
    return GaussianCurve(mu)


def _joint_mu_of_runs(requests: "Requests", step: "Steps", ends: Whole) -> float:
    """Return the ``mu`` of `joint_curve`, computed from groups of successive steps.

    In all steps of a group, the two runs differ in the same number of records.
    """
    begins, ends = ends[:-1], ends[1:]
    starts: Whole = np.where(ends - begins > 2 * step.window, ends - step.window, begins)
    some = ends > starts
    begins, starts, ends = begins[some], starts[some], ends[some]
    # Stretches of steps that do not contract are never cut, and no largest distance exists for them.
    cut = starts > begins
    distances = np.zeros(len(cut))
    if cut.any():
        distances[cut] = step.largest_distance(requests)
    total = 0.0
    for piece in _pieces(starts, ends):
        first, last = (min(int(each), requests.steps) for each in (starts[piece][0], ends[piece][-1]))
        steps, records, firsts = _runs(requests.differing(first, last), starts[piece] - first, ends[piece] - first)
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
    """Yield groups of stretches whose steps fit in one array."""
    begin = 0
    while begin < len(starts):
        end = max(begin + 1, int(ends.searchsorted(starts[begin] + STEPS_OF_PIECE, side="right")))
        yield slice(begin, end)
        begin = end


def last_visited(cycle: Cycle, records: int, *, steps: int) -> Places:
    """Return places for records that fill the batch of the last step, then that of the step before it, and so on."""
    full, rest = divmod(records, cycle.batch_size)
    counts = [cycle.batch_size] * full + [rest] * (rest > 0)
    return tuple(((steps - 1 - back) % cycle.batches, count) for back, count in enumerate(counts))


class Requests:
    """The requests of a schedule. They determine how many records differ in each step, whatever the arithmetic.

    Attributes:
        cycle: The mini-batches.
        pairs: A column for each batch of each request: the batch, the number of the request's records there, and the
            number of steps before the request.
        records: Number of records that all requests remove.
        steps: Number of steps before the last answer.
    """

    def __init__(self, cycle: Cycle, pairs: Whole, records: int, steps: int) -> None:
        self.cycle, self.pairs, self.records, self.steps = cycle, pairs, records, steps
        self._differing: tuple[int, int, Array] | None = None
        self._runs: tuple[int, Array, Array] | None = None

    @classmethod
    def before(cls, schedule: Schedule) -> "Requests":
        """Return the state before the first request of a schedule that has a cycle."""
        assert schedule.cycle is not None
        return cls(schedule.cycle, np.empty((3, 0), dtype=np.int64), 0, int(schedule.learning_steps))

    @classmethod
    def of(cls, schedule: Schedule) -> "Requests":
        """Return all requests of a schedule that has a cycle."""
        none = cls.before(schedule)
        ends = list(accumulate(schedule.steps[:-1], initial=none.steps))
        columns = [
            (batch, count, end)
            for records, held, end in zip(schedule.records, schedule.places or repeat(None), ends, strict=False)
            for batch, count in (last_visited(none.cycle, records, steps=end) if held is None else held)
        ]
        return none._with(columns, sum(schedule.records), ends[-1])

    def after(self, records: int, answer: tuple[int, ...], places: Places | None) -> "Requests":
        """Return these requests and one more.

        Args:
            records: Number of records that the new request removes.
            answer: Number of steps that answered the previous request, as a tuple of one number; empty before the first
                request.
            places: Places of the records; None for the worst places.
        """
        steps = self.steps + sum(answer)
        held = last_visited(self.cycle, records, steps=steps) if places is None else places
        return self._with([(batch, count, steps) for batch, count in held], self.records + records, steps)

    def _with(self, columns: list[tuple[int, int, int]], records: int, steps: int) -> "Requests":
        new = np.array(columns, dtype=np.int64).reshape(-1, 3).T
        return Requests(self.cycle, np.concatenate([self.pairs, new], axis=1), records, steps)

    def differing(self, start: int, end: int) -> Array:
        """Return, for each step from ``start`` to ``end``, the number of records in which the two runs differ.

        These are the records of the step's batch that are removed later.

        Raises:
            InfeasibleError: There are too many steps to count.
        """
        latest = self._differing
        # Each request calls this method twice: for exact and for computed arithmetic.
        if latest is None or latest[:2] != (start, end):
            latest = self._differing = (start, end, self._counted(start, end))
        return latest[2]

    def runs(self, start: int) -> tuple[Array, Array]:
        """Return runs of steps from ``start`` to the last answer: their lengths and numbers of differing records."""
        latest = self._runs
        if latest is None or latest[0] != start:
            ends = np.array([self.steps - start])
            steps, records, _ = _runs(self.differing(start, self.steps), np.array([0]), ends)
            latest = self._runs = (start, steps, records)
        return latest[1:]

    def _counted(self, start: int, end: int) -> Array:
        batches, pairs, steps = self.cycle.batches, self.pairs, end - start
        if single_steps.takes(steps):
            return single_steps.differing(pairs, batches=batches, start=start, steps=steps)
        if steps > MOST_COUNTED:
            raise InfeasibleError(
                f"the guarantee would have to count {steps} steps whose differences have not faded, but it can count "
                f"at most {MOST_COUNTED:.0e} steps; raise step_size * strong_convexity, or learn for fewer steps"
            )
        batch, records, until = pairs[:, np.searchsorted(pairs[2], start, side="right") :]
        width = max(1, min(batches, steps))
        epochs = -(-steps // width)
        first = (batch - start) % batches
        # The number of a batch's last visit, counted from 0; -1 if there is no visit.
        last = (np.minimum(until, end) - 1 - start - first) // batches
        some = last >= 0
        visits = np.bincount((last * width + first)[some], records[some], minlength=epochs * width)
        later = visits.astype(float, copy=False).reshape(epochs, width)
        if epochs > 1:
            later = later[::-1].cumsum(axis=0)[::-1]
        return later.reshape(-1)[:steps]


def _runs(differing: Array, starts: Whole, ends: Whole) -> tuple[Array, Array, Whole]:
    """Return the groups of successive steps in which two runs differ in the same number of records.

    Args:
        differing: Number of records in which the two runs differ, for each step. In all later steps, the runs differ in
            no record.
        starts: Shape ``(stretches,)``: the first step of each stretch that is counted on its own.
        ends: The step after the last step of each stretch. It is at most the next stretch's start. The last stretch
            ends after all steps in which the two runs differ.

    Returns:
        The number of steps and the number of differing records of each group, shape ``(groups,)``; and the index of
        each stretch's first group.
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


class Steps:
    """Noisy steps on mini-batches, with constants that are computed once.

    Attributes:
        problem: The constants.
        agreeing: A step whose batch is the same in both runs.
        of_a_record: Increase of the sensitivity for each differing record. More records may be counted than a batch
            holds.
        window: Number of steps after which a difference has faded.
        decays: The factors by which steps shrink a distance.
    """

    def __init__(self, problem: Problem, sigma: float) -> None:
        """Set the constants and the noise scale. Raises the same errors as `curve`."""
        self.problem = problem
        self.agreeing, one = (phase(problem, sigma=sigma, records=number, steps=1) for number in (0, 1))
        self.of_a_record = one.sensitivity - self.agreeing.sensitivity
        gap = contraction_gap(problem)
        self.window = math.ceil(min(FORGOTTEN / gap, MOST_IN_ALL)) if gap > 0 else MOST_IN_ALL
        self.decays = single_steps.Decays(self.agreeing.contraction_gap)

    def sensitivities(self, records: Array) -> Array:
        """Return the sensitivity of each step, given the number of records in which its two batches differ."""
        return self.agreeing.sensitivity + records * self.of_a_record

    def largest_distance(self, requests: Requests) -> float:
        """Return the largest possible distance between two runs.

        The distance is largest after infinitely many steps in each of which the runs differ in all removed records.
        """
        sensitivity = self.agreeing.sensitivity + requests.records * self.of_a_record
        return sensitivity / self.agreeing.contraction_gap

    def before_answer(self, requests: Requests) -> Pool:
        """Return the pooled effect of all requests, of which the last one is not answered yet."""
        steps = requests.steps
        # Steps slightly older than the window change nothing, and keeping them saves a new search for the visits.
        start = steps - self.window if steps > 2 * self.window else 0
        distance = self.largest_distance(requests) if start else 0.0
        if steps > start and single_steps.takes(steps - start):
            return single_steps.pool(
                self.sensitivities(requests.differing(start, steps)),
                decays=self.decays,
                noise_std=self.agreeing.noise_std,
                starting_distance=distance,
            )
        lengths, records = requests.runs(start)
        return Pool.of_runs(
            lengths,
            self.sensitivities(records),
            contraction_gap=self.agreeing.contraction_gap,
            noise_std=self.agreeing.noise_std,
            starting_distance=distance,
        )

    def answered(self, before: Pool, steps: tuple[int, ...]) -> float:
        """Return ``mu`` after the steps that answer the last request; ``steps`` is empty before the first request."""
        return before.followed_by(*map(self.agreeing.lasting, steps)).mu()


def check(problem: Problem, schedule: Schedule) -> None:
    """Raise the errors of `curve` unless the schedule has batches of ``n`` records and its steps can be counted."""
    if schedule.cycle is None:
        raise ParameterError("the schedule needs a cycle of mini-batches, got cycle = None")
    if problem.n != schedule.cycle.batch_size:
        raise ParameterError(f"n must be the batch size, {schedule.cycle.batch_size}, got {problem.n}")
    if problem.adjacency == "remove":
        raise AssumptionError(
            "with cyclic mini-batches, an erased record must keep its place: adjacency must be replace or zero-out, "
            "got remove"
        )
    require_countable(schedule.learning_steps + sum(schedule.steps))


def require_countable(steps: float) -> None:
    """Raise `InfeasibleError` if learning and all requests together have more than `MOST_IN_ALL` steps."""
    if steps > MOST_IN_ALL:
        raise InfeasibleError(f"learning_steps and steps must add up to at most {MOST_IN_ALL:.0e}, got {steps}")
