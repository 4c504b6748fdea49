"""Privacy curves, which accountants return, and schedules of noisy steps, which accountants analyse."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from operator import index
from typing import Any, ClassVar

import numpy as np

from certified_unlearning.accounting.core.checks import make_plain, require_count, require_counts, require_positive
from certified_unlearning.accounting.core.search import Array
from certified_unlearning.errors import ParameterError
from certified_unlearning.text import counted


@dataclass(frozen=True)
class RenyiCurve:
    """Upper bounds on a two-sided Rényi divergence, one for each order.

    Attributes:
        log_divergence: Maps an array of orders above 1 to the logarithms of the bounds.
        orders: The only orders at which the curve is known, in increasing order; None if the curve is known at all
            orders.
    """

    log_divergence: Callable[[Array], Array]
    orders: Array | None = None
    mu: ClassVar[None] = None
    """The ``mu`` of Gaussian differential privacy, which a Rényi curve does not have."""

    def __call__(self, alpha: Array) -> Array:
        """Return the bounds at an array of orders."""
        with np.errstate(over="ignore"):
            bounds: Array = np.exp(self.log_divergence(alpha))
        return bounds


@dataclass(frozen=True)
class GaussianCurve:
    """``mu``-Gaussian DP: telling two models apart is at least as hard as telling ``N(0, 1)`` from ``N(mu, 1)``.

    Attributes:
        mu: The mean of the second Gaussian, at least 0.
    """

    mu: float

    def __post_init__(self) -> None:
        if not self.mu >= 0:
            raise ParameterError(f"mu must be at least 0, got {self.mu}")


PrivacyCurve = RenyiCurve | GaussianCurve


Places = tuple[tuple[int, int], ...]
"""Places of one request's records in a cycle. Each pair consists of a batch's index, counted from 0, and the number of
the request's records in this batch."""


@dataclass(frozen=True)
class Cycle:
    """Mini-batches in a fixed cyclic order. Step ``t``, counted from 0, uses batch ``t mod l``.

    Attributes:
        batches: Number of batches, ``l``.
        batch_size: Batch size ``b``. ``l b`` is the number of records, including records of norm 0 that fill the last
            batch.
    """

    batches: int
    batch_size: int

    def __post_init__(self) -> None:
        require_count(least=1, batches=self.batches, batch_size=self.batch_size)
        make_plain(self, "batches", "batch_size")

    @classmethod
    def of(cls, records: int, *, batch_size: int) -> "Cycle":
        """Return the mini-batches for a number of records. The last batch is padded with rows of zeros."""
        return cls(-(-records // batch_size), batch_size)

    @property
    def records(self) -> int:
        """Number of records, ``l b``."""
        return self.batches * self.batch_size


@dataclass(frozen=True)
class Schedule:
    """Noisy steps: those of learning, followed by those of successive removal requests.

    Attributes:
        sigma: Noise scale. A step's noise has standard deviation ``sqrt(2 eta) sigma`` in every coordinate.
        records_per_request: Number of records that a request removes: one number for all requests, or one number for
            each request. No two requests share a record.
        steps: Numbers of steps ``K_1, K_2, ...`` of the requests. Before the first request, ``steps`` and
            ``records_per_request`` are empty.
        learning_steps: Number of learning steps ``T``; infinite for learning to stationarity, which ``lsi`` and
            ``lsi-tight`` always assume.
        cycle: The mini-batches that steps use; None if every step uses all records.
        places: Places of each request's records in the cycle; None if they may be anywhere.
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
                "records_per_request must be one number for all requests, or one number for each request, "
                f"got {counted(len(sizes), 'number')} for {counted(len(self.steps), 'request')}"
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
            raise ParameterError(
                "learning_steps must be finite for mini-batches, because steps on a cycle of batches have no "
                "stationary distribution"
            )
        _require_so_many(sum(self.records), cycle)
        if self.places is not None:
            if len(self.places) != len(self.records):
                raise ParameterError(
                    f"places must be given for all {len(self.records)} requests, got places for {len(self.places)}"
                )
            places = zip(self.places, self.records, strict=True)
            object.__setattr__(self, "places", tuple(_checked_places(each, size, cycle) for each, size in places))

    @property
    def records(self) -> tuple[int, ...]:
        """Number of records that each request removes."""
        sizes = self.records_per_request
        return sizes if isinstance(sizes, tuple) else (sizes,) * len(self.steps)

    def followed_by(self, *, records: int, steps: int, places: Places | None = None) -> "Schedule":
        """Return the schedule with one more request.

        Pass ``places`` only if the places of all other requests are known. Only the new request is checked, so the time
        does not depend on the number of earlier requests.
        """
        require_count(least=1, **{f"records_per_request[{len(self.steps)}]": records})
        if self.cycle is not None:
            _require_so_many(sum(self.records) + records, self.cycle)
            places = None if places is None else _checked_places(places, records, self.cycle)
        earlier = self.places if self.steps else ()
        return self._with(
            records_per_request=(*self.records, int(records)),
            steps=(*self.steps, _steps_of(len(self.steps), steps)),
            places=None if earlier is None or places is None else (*earlier, places),
        )

    def answered_by(self, steps: int) -> "Schedule":
        """Return the schedule with another number of steps for the last request."""
        return self._with(steps=(*self.steps[:-1], _steps_of(len(self.steps) - 1, steps)))

    def _with(self, **changes: Any) -> "Schedule":
        """Return the schedule with some values replaced. The new values must already be checked."""
        changed = object.__new__(Schedule)
        changed.__dict__.update(self.__dict__, **changes)
        return changed


def _steps_of(request: int, steps: int) -> int:
    """Return the number of steps of a request as a Python number. Requests are counted from 0."""
    require_count(least=0, **{f"steps[{request}]": steps})
    return int(steps)


def _require_so_many(records: int, cycle: Cycle) -> None:
    if records > cycle.records:
        raise ParameterError(f"records must be at most n = {cycle.records}, got {records}")


def plain_places(places: Places) -> Places:
    """Return places as tuples of Python integers. If they already have this form, return the same object."""
    usual = type(places) is tuple and all(
        type(pair) is tuple and type(pair[0]) is type(pair[1]) is int for pair in places
    )
    return places if usual else tuple((index(batch), index(count)) for batch, count in places)


def _checked_places(places: Places, records: int, cycle: Cycle) -> Places:
    """Return the `plain_places` of a request that removes this many records.

    Raises:
        ParameterError: The request's records cannot be at these places.
    """
    if sum(count for _, count in places) != records:
        raise ParameterError(
            f"places must have counts that add up to {records}, the request's number of records, got {places}"
        )
    for batch, count in places:
        require_count(least=0, batch=batch)
        require_count(least=1, count=count)
        if batch >= cycle.batches or count > cycle.batch_size:
            raise ParameterError(
                f"places must name batches from 0 to {cycle.batches - 1} and at most {cycle.batch_size} records "
                f"of each batch, got {count} records of batch {batch}"
            )
    return plain_places(places)
