"""Two mechanisms that satisfy a theorem's conditions but break its conclusion, and the attacks on them.

Both mechanisms are derived here. `StreamService` breaks Theorem 4.1 of Chourasia and Shah, Forget Unlearning (ICML
2023), as a statement about all releases after the deletion: each release alone reveals almost nothing, but their
majority reveals everything. `KeyedService` breaks Theorem 4.3: a fixed stream of requests reveals nothing, but a stream
that depends on a single release reveals everything. Neither service has secret state. Records are bits; the target is
the last one, and the others are 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from certified_unlearning.engine import randomness
from certified_unlearning.papers.forget_unlearning.services.encoding import one_record
from certified_unlearning.papers.forget_unlearning.services.interaction import Array, Key, ObservedReleases, Request


def last_bit_databases(hypothesis: int, interactions: int, key: Key, *, n: int) -> Array:
    """Return ``n`` bits that are all 0, except for the last one, which is the hypothesis."""
    bits = np.zeros((interactions, n), dtype=np.uint8)
    bits[:, -1] = hypothesis
    return bits


def randomised_response(bits: Array, epsilon: float, random: np.random.Generator) -> Array:
    """Return bits, each of which is kept with probability ``e^eps / (1 + e^eps)`` and otherwise flipped."""
    flipped = random.random(len(bits)) >= 1 / (1 + np.exp(-epsilon))
    response: Array = bits ^ flipped
    return response


# --- Theorem 4.1: the whole stream ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StreamService:
    """A service that answers a request with a randomised response on the majority bit. Learning publishes the data.

    Attributes:
        epsilon: The epsilon of every response.
    """

    epsilon: float

    def learn(self, databases: Array, key: Key) -> Array:
        """Return the bits."""
        return databases.copy()

    def answer(self, databases: Array, request: Request, model: Array, key: Key) -> Array:
        """Return a bit."""
        after = request.applied_to(databases)
        majority = (2 * after.sum(axis=1, dtype=np.int64) > after.shape[1]).astype(np.uint8)
        return randomised_response(majority, self.epsilon, randomness.generator(*key))


@dataclass(frozen=True)
class CopyThenRepeat:
    """A requester that copies the target bit to all other records and then deletes the target.

    Later requests change nothing.

    Attributes:
        n: The number of records, at least 3; request ``n`` deletes the target.
    """

    n: int
    observes: tuple[int, ...] = (0,)

    def request(self, number: int, releases: ObservedReleases[Array], own: Sequence[Request]) -> Request:
        """Replace one record."""
        bits = releases[0][:, -1]
        if number >= self.n:
            return one_record(np.zeros_like(bits), index=self.n - 1)
        return one_record(bits, index=number - 1)


def says_majority(released: Sequence[Array]) -> Array:
    """Guess 1 if more than half of the releases are 1."""
    return np.greater(2 * np.sum(released, axis=0, dtype=np.int64), len(released))


# --- Theorem 4.3: a key -----------------------------------------------------------------------------------------------


class KeyedModel(NamedTuple):
    """The model, all of which is published.

    Attributes:
        bits: The key, shape ``(interactions, m)``; each of the first ``m`` calls replaces one bit by a randomised
            response.
        calls: The number of answered requests.
        answer: The noisy count that the counting call publishes; 0 at all other calls.
    """

    bits: Array
    calls: int
    answer: Array


@dataclass(frozen=True)
class KeyedService:
    """A service that publishes a random key.

    Each of the first ``m`` calls replaces one bit of the key by a randomised response on the XOR of this bit and the
    target. The next call counts, with noise, the bits in which the other records differ from the key. Later calls
    publish no count: together with the key, a count would reveal the records that these calls delete.

    Attributes:
        epsilon: The epsilon of every call.
        length: The number of bits of the key, ``m``; there are ``m + 1`` records.
    """

    epsilon: float
    length: int

    def learn(self, databases: Array, key: Key) -> KeyedModel:
        """Return a uniform key."""
        shape = (len(databases), self.length)
        bits = randomness.generator(*key).integers(0, 2, shape, dtype=np.uint8)
        return KeyedModel(bits, 0, np.zeros(len(databases)))

    def answer(self, databases: Array, request: Request, model: KeyedModel, key: Key) -> KeyedModel:
        """Replace the next bit of the key.

        The call after the last bit returns a noisy count, and later calls return no count.
        """
        after = request.applied_to(databases)
        random = randomness.generator(*key)
        call = model.calls
        if call < self.length:
            bits = model.bits.copy()
            bits[:, call] = randomised_response(bits[:, call] ^ after[:, -1], self.epsilon, random)
            return KeyedModel(bits, call + 1, model.answer)
        if call == self.length:
            differ = (model.bits ^ after[:, :-1]).sum(axis=1, dtype=np.int64)
            noise = random.laplace(scale=1 / self.epsilon, size=len(after))
            return KeyedModel(model.bits, call + 1, differ + noise)
        return KeyedModel(model.bits, call + 1, np.zeros(len(after)))


@dataclass(frozen=True)
class WriteKey:
    """A requester that writes the published key, or zeros, into the records bit by bit, and then deletes the target.

    Attributes:
        length: The number of bits of the key.
        interactions: The number of interactions.
        adaptive: Whether the requester reads the key.
    """

    length: int
    interactions: int
    adaptive: bool = True

    @property
    def observes(self) -> tuple[int, ...]:
        """The release with the key, if the requester reads the key."""
        return (0,) if self.adaptive else ()

    def request(self, number: int, releases: ObservedReleases[KeyedModel], own: Sequence[Request]) -> Request:
        """Replace one record."""
        if self.adaptive and number <= self.length:
            return one_record(releases[0].bits[:, number - 1], index=number - 1)
        return one_record(np.zeros(self.interactions, dtype=np.uint8), index=number - 1)


def says_count(released: Sequence[KeyedModel]) -> Array:
    """Guess 1 if the count is above half the key's length."""
    guesses: Array = 2 * released[0].answer > released[0].bits.shape[1]
    return guesses
