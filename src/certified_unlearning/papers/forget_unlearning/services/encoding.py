"""Encode-then-delete: requests that copy the target into other records before its deletion (Theorem 4.5's requester).

The records are those of `linear_losses`. The last record is the target: ``L`` under hypothesis 1 and ``-L`` under
hypothesis 0. All other records are 0. A positive record moves the model downwards, so a negative model indicates ``L``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from certified_unlearning.papers.forget_unlearning.services.interaction import Array, ObservedReleases, Request


@dataclass(frozen=True)
class Reading:
    """The weights with which a requester adds up releases.

    From each later release, the requester subtracts the part of the preceding release that the later release contains.

    Attributes:
        first: The weight of the learned model.
        later: The weight of every later release.
        kept: The share of a release that the next one contains.
    """

    first: float
    later: float
    kept: float


@dataclass(frozen=True)
class EncodeThenDelete:
    """A requester that guesses the target, overwrites all other records with the guess, and then deletes the target.

    The guess depends on ``p`` releases.

    Attributes:
        n: The number of records.
        size: The size ``L`` of the target.
        observed_releases: ``p``, at least 1. While the requester observes, its requests change nothing: they set record
            0 to 0, the value that it already has.
        reading: The weights of the observed releases.
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
        """The number of the request that deletes the target."""
        return self.observed_releases + self.n - 1

    def request(self, number: int, releases: ObservedReleases[Array], own: Sequence[Request]) -> Request:
        """Wait, write one record per request, delete the target, and afterwards repeat the last write."""
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
        """Return a number that is negative if the target is more likely to be ``L``."""
        evidence = self.reading.first * releases[0]
        for number in range(1, self.observed_releases):
            evidence = evidence + self.reading.later * (releases[number] - self.reading.kept * releases[number - 1])
        return evidence


@dataclass(frozen=True)
class FixedRequests:
    """A requester with fixed requests that overwrite zeros with zeros and then delete the target.

    There are as many requests as in encode-then-delete with one observed release.

    Attributes:
        n: The number of records.
        interactions: The number of interactions.
    """

    n: int
    interactions: int

    @property
    def observes(self) -> tuple[int, ...]:
        """No release."""
        return ()

    @property
    def deletion(self) -> int:
        """The number of the request that deletes the target."""
        return self.n

    def request(self, number: int, releases: ObservedReleases[Array], own: Sequence[Request]) -> Request:
        """Overwrite one record after another with 0, the target last; afterwards, overwrite record 0 with 0."""
        return one_record(np.zeros(self.interactions), index=number - 1 if number <= self.n else 0)


def one_record(values: Array, *, index: int) -> Request:
    """Return the request that replaces record ``index`` by the given values, shape ``(interactions, ...)``."""
    return Request(np.broadcast_to(index, (len(values), 1)), values[:, None])


def databases(hypothesis: int, interactions: int, *, n: int, size: float) -> Array:
    """Return databases of zeros, except for the last record, which is the target.

    The target is ``size`` under hypothesis 1 and ``-size`` under hypothesis 0.
    """
    records = np.zeros((interactions, n))
    records[:, -1] = size if hypothesis else -size
    return records


def says_negative(released: Sequence[Array]) -> Array:
    """Guess ``L`` if the sum of all releases from the deletion on is negative."""
    guesses: Array = np.sum(released, axis=0) < 0
    return guesses
