"""An attack on a mechanism, ready to run, and its measured advantage."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from certified_unlearning.papers.forget_unlearning.services.advantage import Measured
from certified_unlearning.papers.forget_unlearning.services.interaction import (
    Array,
    Key,
    Requester,
    Service,
    interact,
    sealed,
)

AT_ONCE = 10_000
"""The number of interactions in memory at once."""


@dataclass(frozen=True)
class Scenario:
    """An attack on a mechanism, ready to run.

    Attributes:
        databases: A function that returns one database per interaction, given a hypothesis (0 or 1), the number of
            interactions and a key.
        service: The mechanism.
        requester: A function that returns the requester, given the number of interactions and a key, which only random
            requesters use.
        publish: The function that returns the released part of a model.
        adversary: A function that returns guesses, given the release of the deletion and all later releases.
        requests: The number of requests.
        deletion: The number of the request that deletes the target.
        target: The index of the attacked record.
    """

    databases: Callable[[int, int, Key], Array]
    service: Service[Any]
    requester: Callable[[int, Key], Requester[Any]]
    publish: Callable[[Any], Any]
    adversary: Callable[[Sequence[Any]], Array]
    requests: int
    deletion: int
    target: int

    def guesses(self, hypothesis: int, interactions: int, key: Key) -> Array:
        """Return the adversary's guesses in the given number of interactions under one hypothesis."""
        guesses = []
        for start in range(0, interactions, AT_ONCE):
            count = min(AT_ONCE, interactions - start)
            address: Key = (*key, hypothesis, start)
            interaction = interact(
                self.databases(hypothesis, count, (*address, "data")),
                self.service,
                self.requester(count, sealed(*address, "requester")),
                self.publish,
                requests=self.requests,
                deletion=self.deletion,
                target=self.target,
                key=address,
            )
            guesses.append(np.asarray(self.adversary(interaction.released), dtype=bool))
        return np.concatenate(guesses)

    def measure(self, interactions: int, key: Key) -> Measured:
        """Run all interactions under both hypotheses, with separate noise."""
        clock = time.monotonic()
        right, wrong = (int(self.guesses(hypothesis, interactions, key).sum()) for hypothesis in (1, 0))
        return Measured(interactions, right, wrong, time.monotonic() - clock)
