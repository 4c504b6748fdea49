"""The requests to one model on mini-batches, and the guarantee so far."""

from dataclasses import replace
from typing import NamedTuple

from certified_unlearning.accounting.core.conversion import epsilon_from_mu, mu_from_epsilon
from certified_unlearning.accounting.core.curves import GaussianCurve, Places, Schedule, plain_places
from certified_unlearning.accounting.core.pooling import Pool
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.core.rounding import EXACT
from certified_unlearning.accounting.cyclic import stream
from certified_unlearning.accounting.langevin.accountants import CertifiedRequest
from certified_unlearning.accounting.shifted.arithmetic import langevin_floor


class Stream:
    """The requests to one model that uses cyclic mini-batches, with the target and the guarantee so far.

    A stream is a value: `after` returns a new stream with one more request. The new stream reuses the results of the
    old one, so the time of a request does not depend on the number of earlier requests. Results are cached in the
    stream. In the worst case, threads that use a stream at the same time compute the same value twice.

    Attributes:
        schedule: Noise, cycle, learning steps, and the requests so far.
        epsilon: Target epsilon after every request.
        delta: Target delta.
        target: The largest ``mu`` that meets the target epsilon and delta.
        floor: The ``mu`` that is due to rounding alone, for any number of steps.
        computed: The steps with the rounding of their arithmetic.
        exact: The steps in exact arithmetic.
    """

    def __init__(self, problem: Problem, schedule: Schedule, *, epsilon: float, delta: float) -> None:
        """Set the constants and the requests that were already answered. Raises the same errors as `stream.curve`.

        Args:
            problem: The constants of a batch, with the rounding of the arithmetic.
            schedule: Noise, cycle, learning steps, and requests.
            epsilon: Target epsilon, above 0.
            delta: Strictly between 0 and 1.
        """
        stream.check(problem, schedule)
        self.schedule, self.epsilon, self.delta = schedule, epsilon, delta
        self.target = mu_from_epsilon(epsilon, delta)
        is_exact = problem.rounding == EXACT
        self.floor = 0.0 if is_exact else langevin_floor(problem).mu(schedule.sigma)
        self.computed = stream.Steps(problem, schedule.sigma)
        self.exact = self.computed if is_exact else stream.Steps(replace(problem, rounding=EXACT), schedule.sigma)
        self._requests = stream.Requests.of(schedule)
        nothing = CertifiedRequest(0.0, 0.0)
        self._largest = None if schedule.steps else _Largest(nothing, nothing)
        self._next: _Next | None = None

    @property
    def problem(self) -> Problem:
        """The constants of a batch, with the rounding of the arithmetic."""
        return self.computed.problem

    @property
    def largest(self) -> "_Largest":
        """The guarantee that holds after every request, with rounding and in exact arithmetic."""
        if self._largest is None:
            of_each = [stream.largest_curve(each.problem, self.schedule).mu for each in (self.computed, self.exact)]
            self._largest = _Largest(*[self._certified(mu) for mu in of_each])
        return self._largest

    def before_answer(self, *, records: int, places: Places | None = None) -> Pool:
        """Return the pooled effect of all requests and of a new, unanswered one. `after` reuses the result.

        Args:
            records: Number of records that the request removes.
            places: Places of the records; None for the worst places. If None, the worst places are used for the earlier
                requests, too.

        Raises:
            ParameterError: Fewer than ``records`` records remain, or the records cannot be at these places.
            InfeasibleError: There are too many steps. The limit is that of `stream.curve`.
        """
        return self._asked(records, places).before

    def after(self, *, records: int, steps: int, places: Places | None = None) -> "Stream":
        """Return the stream with one more request that takes ``steps``; see `before_answer` for the other arguments."""
        asked = self._asked(records, places)
        stream.require_countable(asked.requests.steps + steps)
        longer = object.__new__(Stream)
        longer.__dict__.update(self.__dict__)
        longer.schedule, longer._requests, longer._next = asked.schedule.answered_by(steps), asked.requests, None
        longer._largest = None
        if asked.goes_on and self._largest is not None:
            computed = exact = self.computed.answered(asked.before, (steps,))
            if self.exact is not self.computed:
                exact = self.exact.answered(self.exact.before_answer(asked.requests), (steps,))
            before = self._largest
            longer._largest = _Largest(self._larger(before.computed, computed), self._larger(before.exact, exact))
        return longer

    def all_published(self) -> GaussianCurve:
        """Return the curve for an observer that keeps every published model, see `stream.joint_curve`."""
        return stream.joint_curve_of(self.computed, self._requests, self.schedule)

    def _asked(self, records: int, places: Places | None) -> "_Next":
        latest = self._next
        if latest is None or (latest.records, latest.places) != (records, places):
            schedule = self.schedule.followed_by(records=records, steps=0, places=places)
            # If the places of one request are not given, the places of all requests are ignored.
            goes_on = schedule.places is not None or not self.schedule.places
            if goes_on:
                held = None if schedule.places is None else schedule.places[-1]
                requests = self._requests.after(int(records), self.schedule.steps[-1:], held)
            else:
                requests = stream.Requests.of(schedule)
            told = None if places is None else plain_places(places)
            before = self.computed.before_answer(requests)
            self._next = latest = _Next(int(records), told, schedule, requests, before, goes_on)
        return latest

    def _larger(self, known: CertifiedRequest, mu: float) -> CertifiedRequest:
        return known if known.mu is not None and mu <= known.mu else self._certified(mu)

    def _certified(self, mu: float) -> CertifiedRequest:
        return CertifiedRequest(epsilon_from_mu(mu, self.delta), mu)


class _Largest(NamedTuple):
    """The guarantee that holds after every request, with rounding and in exact arithmetic."""

    computed: CertifiedRequest
    exact: CertifiedRequest


class _Next(NamedTuple):
    """The next request of a stream, as it was last computed.

    Attributes:
        records: Number of records that the request removes.
        places: Places of the records; None for the worst places.
        schedule: The schedule with this request, which has no steps yet.
        requests: All requests, including this one.
        before: The pooled effect of all requests, including this one, which is not answered yet.
        goes_on: Whether the records of earlier requests are counted at the same places as before this request.
    """

    records: int
    places: Places | None
    schedule: Schedule
    requests: stream.Requests
    before: Pool
    goes_on: bool
