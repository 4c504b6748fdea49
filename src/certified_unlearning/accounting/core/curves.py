"""Privacy curves, which accountants return, and schedules of noisy steps, which they hold for."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import compress
from operator import is_not

import numpy as np

from certified_unlearning.accounting.core.checks import make_plain, require_count, require_counts, require_positive
from certified_unlearning.accounting.core.kept import Kept
from certified_unlearning.accounting.core.search import Array
from certified_unlearning.errors import ParameterError


@dataclass(frozen=True)
class RenyiCurve:
    """Upper bounds on a two-sided Rényi divergence, order by order.

    Attributes:
        log_divergence: Maps an array of orders above 1 to the logarithms of the bounds.
        orders: The only orders at which the curve is known, increasing; None where it is known at all orders.
    """

    log_divergence: Callable[[Array], Array]
    orders: Array | None = None

    def __call__(self, alpha: Array) -> Array:
        """Return the bounds at an array of orders."""
        with np.errstate(over="ignore"):
            bounds: Array = np.exp(self.log_divergence(alpha))
        return bounds


@dataclass(frozen=True)
class GaussianCurve:
    """``mu``-Gaussian differential privacy: no test tells the two laws apart better than ``N(0, 1)`` and ``N(mu, 1)``.

    Attributes:
        mu: At least 0.
    """

    mu: float

    def __post_init__(self) -> None:
        if not self.mu >= 0:
            raise ParameterError(f"mu must be at least 0, got {self.mu}")


PrivacyCurve = RenyiCurve | GaussianCurve


Places = tuple[tuple[int, int], ...]
"""Where in a cycle the records of one request lie: batches, counted from 0, and how many of the records each holds."""


@dataclass(frozen=True)
class Cycle:
    """Mini-batches, one after another and over again: step ``t``, counted from 0, uses batch ``t mod l``.

    Attributes:
        batches: ``l``.
        batch_size: ``b``; ``l b`` is the number of records, with those of norm 0 that fill the last batch.

    Raises:
        ParameterError: A value makes no sense.
    """

    batches: int
    batch_size: int

    def __post_init__(self) -> None:
        require_count(least=1, batches=self.batches, batch_size=self.batch_size)
        make_plain(self, "batches", "batch_size")

    @classmethod
    def of(cls, records: int, *, batch_size: int) -> "Cycle":
        """Return the mini-batches of so many records: as many as they fill, the last one with rows of zeros."""
        return cls(-(-records // batch_size), batch_size)

    @property
    def records(self) -> int:
        """``l b``."""
        return self.batches * self.batch_size


@dataclass(frozen=True)
class Schedule:
    """Noisy steps of learning, then of one removal request after another.

    Attributes:
        sigma: Noise scale; a step's noise has standard deviation ``sqrt(2 eta) sigma`` in every coordinate.
        records_per_request: Records that a request removes: one size for all, or one for each request; no two requests
            share a record.
        steps: ``K_1, K_2, ...``, the steps of each request; none, with sizes ``()``, before the first request.
        learning_steps: ``T``; infinite for learning to stationarity, which ``lsi`` and ``lsi-tight`` always assume.
        cycle: The mini-batches of a step; None where every step uses all records.
        places: Where in the cycle each request's records lie; None where they may lie anywhere.

    Raises:
        ParameterError: A value makes no sense.
    """

    sigma: float
    records_per_request: int | tuple[int, ...]
    steps: tuple[int, ...]
    learning_steps: float = math.inf
    cycle: Cycle | None = None
    places: tuple[Places, ...] | None = None

    def __post_init__(self) -> None:
        require_positive(sigma=self.sigma)
        sizes, steps = self.records_per_request, tuple(self.steps)
        if not isinstance(sizes, tuple):
            require_count(least=1, records_per_request=sizes)
            sizes = int(sizes)
        elif len(sizes) != len(self.steps):
            raise ParameterError(
                "records_per_request must be one number for all requests or one for each, as many as steps has "
                f"({len(self.steps)}), got {len(sizes)}"
            )
        elif sizes:
            sizes = require_counts("records_per_request", sizes, least=1)
        if sizes != ():
            steps = require_counts("steps", steps, least=0)
        if self.learning_steps != math.inf:
            require_count(least=0, learning_steps=self.learning_steps)
        make_plain(self, "sigma", "learning_steps")
        object.__setattr__(self, "records_per_request", sizes)
        object.__setattr__(self, "steps", steps)
        if self.cycle is not None:
            self._check_cycle(self.cycle)

    def _check_cycle(self, cycle: Cycle) -> None:
        if self.learning_steps == math.inf:
            raise ParameterError("mini-batches need a finite number of learning_steps: a cycle has no stationary law")
        if sum(self.records) > cycle.records:
            raise ParameterError(f"records must be at most n = {cycle.records}, got {sum(self.records)}")
        if self.places is not None:
            _check_places(self.places, self.records, cycle)

    @property
    def records(self) -> tuple[int, ...]:
        """How many records each request removes."""
        sizes = self.records_per_request
        return sizes if isinstance(sizes, tuple) else (sizes,) * len(self.steps)

    def followed_by(self, *, records: int, steps: int, places: Places | None = None) -> "Schedule":
        """Return the schedule with one more request; ``places`` where those of the others are known too."""
        earlier = () if not self.steps else self.places
        known = None if earlier is None or places is None else (*earlier, places)
        return replace(self, records_per_request=(*self.records, records), steps=(*self.steps, steps), places=known)


STREAMS = 16
"""Streams of requests of which what was checked is kept."""
_CHECKED: Kept[tuple[Cycle, tuple[Places, ...], tuple[int, ...]]] = Kept(STREAMS)
"""What was checked: a schedule that grows by one request after another is not checked from its start each time."""


def _check_places(known: tuple[Places, ...], sizes: tuple[int, ...], cycle: Cycle) -> None:
    """Raise `ParameterError` unless requests of these sizes can lie there."""
    if len(known) != len(sizes):
        raise ParameterError(f"places must be those of {len(sizes)} requests, got those of {len(known)}")
    before = _CHECKED.longest(
        lambda each: known[:1] == each[1][:1] and (cycle, known[: len(each[1])], sizes[: len(each[1])]) == each,
        lambda each: len(each[1]),
    )
    checked = () if before is None else before[1]
    number = len(checked)
    for places, records in zip(known[number:], sizes[number:], strict=True):
        _check_places_of_one(places, records, cycle)
    # Equal ones may be of other types.
    others = compress(known, map(is_not, known, checked))
    if type(known) is tuple and all(map(of_usual_types, (*others, *known[number:]))):
        _CHECKED.keep((cycle, known, sizes), instead_of=before)


def of_usual_types(places: Places) -> bool:
    """Return whether places are tuples of Python's own whole numbers."""
    return type(places) is tuple and all(
        type(pair) is tuple and type(pair[0]) is type(pair[1]) is int for pair in places
    )


def were_checked(places: object) -> bool:
    """Return whether these places, the very object, are those of a schedule that was checked lately, all of tuples."""
    return any(places is checked for _, checked, _ in _CHECKED)


@lru_cache(maxsize=4096)
def _check_places_of_one(places: Places, records: int, cycle: Cycle) -> None:
    """Raise `ParameterError` unless a request of this size can lie there; planners ask often."""
    if sum(count for _, count in places) != records:
        raise ParameterError(f"places must hold the request's {records} records, got {places}")
    for batch, count in places:
        require_count(least=0, batch=batch)
        require_count(least=1, count=count)
        if batch >= cycle.batches or count > cycle.batch_size:
            raise ParameterError(
                f"places must name batches from 0 to {cycle.batches - 1} and at most {cycle.batch_size} records "
                f"of each, got {count} records of batch {batch}"
            )
