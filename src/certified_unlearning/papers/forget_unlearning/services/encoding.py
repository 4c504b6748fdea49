"""Encode-then-delete: requests that copy the target into other records before it is deleted (Theorem 4.5's requester).

On `linear_losses` of one coordinate: the target is ``L`` or ``-L``, the last record; all others are 0. The model is
pulled to the other side, so a negative one speaks for ``L``. Hypothesis 1 is ``L``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from certified_unlearning.papers.forget_unlearning.services.interaction import Array, ObservedReleases, Request


@dataclass(frozen=True)
class Reading:
    """How a requester weighs releases: each is read less what is left in it of the one before.

    Attributes:
        first: Weight of the learned model.
        later: Weight of every later release.
        kept: Share of a release that the next one holds.
    """

    first: float
    later: float
    kept: float


@dataclass(frozen=True)
class EncodeThenDelete:
    """Reads the first ``p`` releases, writes what they say over all other records, and has the target deleted.

    Attributes:
        n: Number of records.
        size: ``L``.
        observed_releases: ``p``, at least 1: while it reads, it asks for nothing new (record 0 becomes 0, as it was).
        reading: How it weighs what it sees.
    """

    n: int
    size: float
    observed_releases: int
    reading: Reading

    @property
    def observes(self) -> tuple[int, ...]:
        """The first ``p`` releases."""
        return tuple(range(self.observed_releases))

    @property
    def deletion(self) -> int:
        """The request that deletes the target."""
        return self.observed_releases + self.n - 1

    def request(self, number: int, releases: ObservedReleases[Array], own: Sequence[Request]) -> Request:
        """Wait, write one record a request, delete; afterwards repeat the last record written."""
        interactions = len(releases[0])
        if number < self.observed_releases:
            return one_record(np.zeros(interactions), index=0)
        if number == self.deletion:
            return one_record(np.zeros(interactions), index=self.n - 1)
        if number > self.observed_releases:
            payload = own[self.observed_releases - 1].records[:, 0]
        else:
            payload = np.where(self._evidence(releases) < 0, self.size, -self.size)
        return one_record(payload, index=min(number - self.observed_releases, self.n - 2))

    def _evidence(self, releases: ObservedReleases[Array]) -> Array:
        """Return what is negative where the target is more likely to be ``L``."""
        evidence = self.reading.first * releases[0]
        for number in range(1, self.observed_releases):
            evidence = evidence + self.reading.later * (releases[number] - self.reading.kept * releases[number - 1])
        return evidence


@dataclass(frozen=True)
class FixedRequests:
    """As many requests as encode-then-delete on one release, fixed in advance: zeros over zeros, then the deletion.

    Attributes:
        n: Number of records.
        interactions: How many.
    """

    n: int
    interactions: int

    @property
    def observes(self) -> tuple[int, ...]:
        """Nothing."""
        return ()

    @property
    def deletion(self) -> int:
        """The request that deletes the target."""
        return self.n

    def request(self, number: int, releases: ObservedReleases[Array], own: Sequence[Request]) -> Request:
        """Write zeros, record by record, the target last; afterwards over the first record."""
        return one_record(np.zeros(self.interactions), index=number - 1 if number <= self.n else 0)


def one_record(values: Array, *, index: int) -> Request:
    """Return the request that replaces record ``index`` in every interaction, by values ``(interactions, ...)``."""
    return Request(np.broadcast_to(index, (len(values), 1)), values[:, None])


def databases(hypothesis: int, interactions: int, *, n: int, size: float) -> Array:
    """Return databases of zeros whose last record, the target, is ``size`` (hypothesis 1) or ``-size`` (0)."""
    records = np.zeros((interactions, n))
    records[:, -1] = size if hypothesis else -size
    return records


def says_negative(released: Sequence[Array]) -> Array:
    """Guess ``L`` where the sum of all releases from the deletion on is negative."""
    guesses: Array = np.sum(released, axis=0) < 0
    return guesses
