"""What the ledger asks of a mechanism: to learn, to plan a removal, to carry it out, to certify the result."""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from certified_unlearning.certificate.kinds import AnyCertificate
from certified_unlearning.ledger.state import Batch, State
from certified_unlearning.mechanisms.learners.learner import Removal
from certified_unlearning.vocabulary import Reading


class Secret(NamedTuple):
    """What a mechanism keeps from one request to the next, and nobody else may see: it depends on the records.

    Attributes:
        arrays: By name.
        header: What else is to be known, as JSON has it.
    """

    arrays: Mapping[str, NDArray[Any]]
    header: Mapping[str, Any]


class Answered(NamedTuple):
    """A batch that was carried out, and whether all rows were read for it; None where a plan alone says so."""

    batch: Batch
    reading: Reading | None


class Outcome(NamedTuple):
    """A new version.

    Attributes:
        weights: What is published, shape ``(d,)``.
        reading: Of `Answered`.
        secret: What the next request needs besides, if anything.
    """

    weights: NDArray[Any]
    reading: Reading | None = None
    secret: Secret | None = None


class Taken(NamedTuple):
    """The rows and labels of records that are removed, as they were."""

    rows: NDArray[np.float32]
    labels: NDArray[np.int8]


class Method(ABC):
    """How the model of a directory learns, and how records leave it."""

    keeps_a_secret: bool = False
    """Whether versions have a `Secret`, and removals need the records that they remove."""

    @abstractmethod
    def deal(self) -> None:
        """Bring the training copy into the order in which it is read."""

    @abstractmethod
    def learn(self, device: torch.device) -> Outcome:
        """Learn version 1 from the training copy."""

    @abstractmethod
    def planned(self, answered: Sequence[Answered], rows: Sequence[int]) -> Removal:
        """Return how rows of the table are going to be removed, given what was removed before."""

    @abstractmethod
    def remove(
        self,
        weights: NDArray[Any],
        secret: Secret | None,
        answered: Sequence[Answered],
        batch: Batch,
        taken: Taken | None,
        device: torch.device,
    ) -> Outcome:
        """Carry out a batch, whose rows are zero in the training copy by now.

        Args:
            weights: Of the current version, shape ``(d,)``.
            secret: Of the current version.
            answered: The batches that it has behind it.
            batch: The batch.
            taken: Its records, for who `keeps_a_secret`; None if they are lost: an interrupted `apply` had zeroed them.
            device: Where noisy steps are taken.
        """

    @abstractmethod
    def certificate(self, answered: Sequence[Answered], data_digest: str) -> AnyCertificate:
        """Return the certificate of the version that these batches led to.

        Args:
            answered: The batches.
            data_digest: Keyed digest of the records that are left.
        """

    @abstractmethod
    def is_of(self, certificate: AnyCertificate, answered: Sequence[Answered]) -> bool:
        """Return whether a certificate speaks of these batches."""


def answered_of(state: State) -> list[Answered]:
    """Return the batches that the current version has behind it."""
    return [Answered(version.batch, version.reading) for version in state.versions if version.batch is not None]


def noise_key() -> int:
    """Draw the key of a run's noise: from the operating system, used once, kept nowhere."""
    return secrets.randbits(128)
