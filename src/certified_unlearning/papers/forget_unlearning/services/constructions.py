"""Services that satisfy the older definitions of unlearning but reveal the deleted records, and attacks on them.

Source: Section 3 and Theorems 3.1 and 3.2 of Chourasia and Shah, Forget Unlearning (ICML 2023); the repaired version of
the counting service is derived here. The services that publish sums and medians publish exactly what retraining would
publish. The counting services keep a secret state. The modules `theory.attacks` and `theory.counting` compute the
advantage of each attack.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from certified_unlearning.engine import randomness
from certified_unlearning.papers.forget_unlearning.services.encoding import one_record
from certified_unlearning.papers.forget_unlearning.services.interaction import Array, Key, ObservedReleases, Request
from certified_unlearning.papers.forget_unlearning.theory.counting import exposed_record, release_of_exposure

# The deleted median becomes this value, which is far below all records.
LOW = -1e6


@dataclass(frozen=True)
class StatisticService:
    """A service that publishes a statistic of the current data.

    The service computes the statistic anew after each request, as retraining would.

    Attributes:
        statistic: A function that returns numbers ``(interactions,)``, given databases ``(interactions, n)``.
    """

    statistic: Callable[[Array], Array]

    def learn(self, databases: Array, key: Key) -> Array:
        """Return the statistic of the data."""
        return self.statistic(databases)

    def answer(self, databases: Array, request: Request, model: Array, key: Key) -> Array:
        """Return the statistic of the new data."""
        return self.statistic(request.applied_to(databases))


# --- Sum and sign -----------------------------------------------------------------------------------------------------


def total(databases: Array) -> Array:
    """Return the sum of the records; a deleted record is 0."""
    sums: Array = databases.sum(axis=1)
    return sums


def signed_databases(hypothesis: int, interactions: int, key: Key) -> Array:
    """Return the databases (-2, target, 2); the target is -1 under hypothesis 1 and 1 under hypothesis 0."""
    return np.tile([-2, -1 if hypothesis else 1, 2], (interactions, 1))


@dataclass(frozen=True)
class SignRequester:
    """A requester that deletes the negative records if the published sum is negative, otherwise the positive ones."""

    observes: tuple[int, ...] = (0,)

    def request(self, number: int, releases: ObservedReleases[Array], own: Sequence[Request]) -> Request:
        """Delete two records, the target among them."""
        indices = np.where(releases[0][:, None] < 0, [0, 1], [1, 2])
        return Request(indices, np.zeros_like(indices))


def says_positive(released: Sequence[Array]) -> Array:
    """Guess 1 if the remaining sum is positive."""
    return np.greater(released[0], 0)


# --- Median -----------------------------------------------------------------------------------------------------------


def median(databases: Array) -> Array:
    """Return the median of an odd number of records."""
    half = databases.shape[1] // 2
    return np.partition(databases, half, axis=1)[:, half]


def median_databases(hypothesis: int, interactions: int, key: Key, *, n: int) -> Array:
    """Return distinct records.

    The first record is the median and the target. It is 0.25 under hypothesis 1 and -0.25 under hypothesis 0.
    """
    others = np.concatenate([np.arange(1, n // 2 + 1), -np.arange(1, n // 2 + 1)])
    return np.tile([0.25 if hypothesis else -0.25, *others], (interactions, 1))


@dataclass(frozen=True)
class MedianRequester:
    """A requester that overwrites randomly drawn records with the published median, and then deletes the median itself.

    The records are drawn without replacement.

    Attributes:
        n: The number of records.
        deletion: The number ``i`` of the request that deletes the median.
        interactions: The number of interactions.
        key: The address of the random draw.
    """

    n: int
    deletion: int
    interactions: int
    key: Key
    observes: tuple[int, ...] = (0,)

    def request(self, number: int, releases: ObservedReleases[Array], own: Sequence[Request]) -> Request:
        """Replace one record."""
        if number == self.deletion:
            return one_record(np.full(self.interactions, LOW), index=0)
        # Every request uses the same permutation: its first entries are a sample without replacement.
        random = randomness.generator(*self.key)
        order = random.permuted(np.tile(np.arange(self.n), (self.interactions, 1)), axis=1)
        return Request(order[:, number - 1 : number], releases[0][:, None])


def says_median(released: Sequence[Array]) -> Array:
    """Guess 1 if the released median is that of hypothesis 1."""
    return np.equal(released[0], 0.25)


# --- Counting with secret state ---------------------------------------------------------------------------------------


class CountingModel(NamedTuple):
    """The secret state of counting and its released part.

    Attributes:
        calls: The number of answered requests.
        deleted: In the printed version, the number of replaced records that were 1; in the repaired version, the bit of
            each replaced record, oldest first.
        release: The released number, with noise.
    """

    calls: int
    deleted: tuple[Array, ...]
    release: Array


@dataclass(frozen=True)
class CountingService:
    """A service that publishes a count with Laplace noise, plus a number from 0 to 1 that depends on deleted bits.

    Both versions are ``(epsilon, 0)``-unlearning. In the printed version, the added number is the mean of the deleted
    bits, whose effect fades. In the repaired version, every release adds a single deleted bit, and each bit is added
    repeatedly.

    Attributes:
        epsilon: The epsilon of every release.
        repaired: Whether the service is the repaired version.
    """

    epsilon: float
    repaired: bool

    def learn(self, databases: Array, key: Key) -> CountingModel:
        """Return the count."""
        nothing = np.zeros(len(databases))
        return self._released(databases, CountingModel(0, () if self.repaired else (nothing,), nothing), key)

    def answer(self, databases: Array, request: Request, model: CountingModel, key: Key) -> CountingModel:
        """Count again, and remember the replaced bits, although a deletion should forget them."""
        rows = np.arange(len(databases))[:, None]
        old = databases[rows, request.indices].sum(axis=1)
        deleted = (*model.deleted, old) if self.repaired else (model.deleted[0] + old,)
        remembered = model._replace(calls=model.calls + 1, deleted=deleted)
        return self._released(request.applied_to(databases), remembered, key)

    def _released(self, databases: Array, model: CountingModel, key: Key) -> CountingModel:
        noise = randomness.generator(*key).laplace(scale=1 / self.epsilon, size=len(databases))
        if model.calls == 0:
            added = np.zeros(len(databases))
        elif self.repaired:
            added = model.deleted[exposed_record(model.calls) - 1]
        else:
            added = model.deleted[0] / model.calls
        return model._replace(release=databases.sum(axis=1) + added + noise)


def release_only(model: CountingModel) -> Array:
    """Return the model without its secret state."""
    return model.release


def bit_databases(hypothesis: int, interactions: int, key: Key) -> Array:
    """Return three bits: the target, then two zeros."""
    return np.tile([hypothesis, 0, 0], (interactions, 1))


@dataclass(frozen=True)
class DeleteFirst:
    """A requester with fixed requests: the first deletes the target, and all others overwrite a zero with a zero.

    Attributes:
        interactions: The number of interactions.
    """

    interactions: int
    observes: tuple[int, ...] = ()

    def request(self, number: int, releases: ObservedReleases[Array], own: Sequence[Request]) -> Request:
        """Replace one record by 0."""
        return one_record(np.zeros(self.interactions, dtype=np.int64), index=0 if number == 1 else 1)


def says_shifted(released: Sequence[Array], *, repaired: bool) -> Array:
    """Guess 1 if hypothesis 1 is more likely.

    The adversary knows that the count is 0, and knows which releases the deleted bit shifts.
    """
    last = len(released)
    if repaired:
        exposures = (release_of_exposure(1, exposure=number) for number in range(1, last + 1))
        shifts = {release: 1.0 for release in exposures if release <= last}
    else:
        shifts = {release: 1 / release for release in range(1, last + 1)}
    evidence = sum(
        np.abs(released[release - 1]) - np.abs(released[release - 1] - shift) for release, shift in shifts.items()
    )
    # If a full shift and its opposite cancel, rounding would break the tie, differently under each hypothesis.
    return np.asarray(evidence) > 1e-9
