"""What the ledger asks of a mechanism: to learn, to plan a removal, to carry it out, to certify the result."""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import torch
from numpy.typing import NDArray

from certified_unlearning.certificate.base import Certificate
from certified_unlearning.certificate.ledger import LedgerCertificate
from certified_unlearning.data.tables.declaration import Text
from certified_unlearning.errors import DataError
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.methods.advice import Advice
from certified_unlearning.ledger.state import Batch, State
from certified_unlearning.ledger.training.copies import Waiting
from certified_unlearning.mechanisms.learners.duration import Planned
from certified_unlearning.mechanisms.learners.history import Removal
from certified_unlearning.vocabulary import Reading

if TYPE_CHECKING:
    from certified_unlearning.mechanisms.certified_sgd.ensemble import CertifiedShards


class Secret(NamedTuple):
    """State that a mechanism keeps from one request to the next. It depends on the records, so nobody else may see it.

    Attributes:
        arrays: The arrays by name.
        header: Everything else, as JSON.
        restored: Name of the last restore from a backup, with which draws from this secret differ from those of a lost
            version. None if there was no restore.
    """

    arrays: Mapping[str, NDArray[Any]]
    header: Mapping[str, Any]
    restored: str | None = None


class Answered(NamedTuple):
    """A batch that was carried out, and whether all rows were read for it; None if the plan alone says so."""

    batch: Batch
    reading: Reading | None


class Outcome(NamedTuple):
    """A new version.

    Attributes:
        weights: The published weights, shape ``(d,)``.
        reading: As in `Answered`.
        secret: What the next request needs besides, if anything.
    """

    weights: NDArray[Any]
    reading: Reading | None = None
    secret: Secret | None = None


class RemovedRows(NamedTuple):
    """The rows and labels, or targets, of records that are removed, as they were; sparse rows stay sparse."""

    rows: Any
    labels: NDArray[Any]


class LedgerPlan(Planned, Protocol):
    """Constants that are fixed before a directory's model is learned: a pydantic model, which `model.json` holds."""

    @property
    def mechanism(self) -> str:
        """Its name in the table of mechanisms."""


PlanT = TypeVar("PlanT", bound=LedgerPlan)


class Method(ABC, Generic[PlanT]):
    """How the model of a directory learns, and how records leave it.

    Args:
        directory: The model's.
        plan: What was planned.
        dataset: What certificates call the data.
        features: What certificates call the features.
        hashed: How columns of text became numbers.
    """

    plans: ClassVar[tuple[type, ...]]
    """The types of its plans."""
    advice: ClassVar[type[Advice[Any]] | None] = None
    """Advice to try if a version hardly tells the classes apart; None if the quality of versions is not measured."""
    needs_what_it_removes: bool = False
    """Whether removals are computed from the records that they remove."""
    stays_on_the_cpu: bool = False
    """Whether it always computes on the CPU."""
    no_additions: ClassVar[str | None] = None
    """Why records cannot be added to its models; None where they can."""
    no_audits: ClassVar[str | None] = None
    """Why its models cannot be audited with single records as canaries; None where they can."""

    def __init__(
        self, directory: ModelDirectory, plan: PlanT, dataset: str, features: str, hashed: tuple[Text, ...] = ()
    ) -> None:
        self._directory, self._plan, self._dataset, self._features = directory, plan, dataset, features
        self._hashed = hashed

    def noise(self) -> tuple[float, bool] | None:
        """Return the noise of published weights as `estimators.objective.PublicObjective` has it.

        By default it is unknown, or the weights are not a minimiser's.
        """
        return None

    def deal(self) -> None:
        """Put the training copy into the order in which it is read; by default it stays as it is."""

    @abstractmethod
    def learn(self, device: torch.device) -> Outcome:
        """Learn version 1 from the training copy."""

    def plan_after(self, answered: Sequence[Answered]) -> PlanT:
        """Return the plan of the version that batches led to: it knows of the records that they added."""
        return self._plan

    def planned(
        self, answered: Sequence[Answered], rows: Sequence[int], added: int = 0, waiting: Waiting | None = None
    ) -> Removal:
        """Return how rows of the table are going to be removed, given what was removed before.

        By default that takes no noisy steps.

        Args:
            answered: The batches that the current version has behind it.
            rows: The rows.
            added: How many are added with the same version.
            waiting: Where these wait.
        """
        return Removal(len(rows), 0)

    @abstractmethod
    def remove(
        self,
        weights: NDArray[Any],
        secret: Secret | None,
        answered: Sequence[Answered],
        batch: Batch,
        rows: Sequence[int],
        taken: RemovedRows | None,
        device: torch.device,
    ) -> Outcome:
        """Carry out a batch: its rows are zero in the training copy by now, and records that it adds stand at its end.

        After an interruption at any moment, it is called again for the same batch, from the same version.

        Args:
            weights: Weights of the current version, shape ``(d,)``.
            secret: Secret of the current version.
            answered: The batches that led to it.
            batch: The batch.
            rows: Its rows of the table, ascending.
            taken: Its records, for a method that `needs_what_it_removes`; None if the batch adds records, or if an
                interrupted `apply` has zeroed them.
            device: Where noisy steps are taken.
        """

    def check(
        self, weights: NDArray[Any], secret: Secret | None, answered: Sequence[Answered], left: Sequence[int]
    ) -> None:
        """Compare the current version with what follows from the remaining records, if anything does.

        By default nothing does: without the noise, which nobody keeps, published weights follow from no records.

        Args:
            weights: Weights of the current version, shape ``(d,)``.
            secret: Secret of the current version.
            answered: The batches that led to it.
            left: Rows of the table that belong to somebody.

        Raises:
            DataError: It is not what follows.
        """

    def shards(self, secret: Secret | None) -> "CertifiedShards":
        """Return what computes the answers of a version that publishes no weights.

        Args:
            secret: Secret of the version.

        Raises:
            DataError: The mechanism publishes weights, or the secret is missing.
        """
        raise DataError("the weights are missing, without which nothing can be predicted")

    @abstractmethod
    def certificate(self, answered: Sequence[Answered], data_digest: str, lost: int = 0) -> LedgerCertificate:
        """Return the certificate of the version that these batches led to.

        Args:
            answered: The batches.
            data_digest: Keyed digest of the records that are left.
            lost: How many versions were published beside those of the batches, and lost by restores from backups.
        """

    def is_of(self, certificate: Certificate, answered: Sequence[Answered], lost: int = 0) -> bool:
        """Return whether a certificate is what these batches give, whichever code wrote it; arguments as above."""
        return certificate.is_like(self.certificate(answered, "", lost))


def answered_of(state: State) -> list[Answered]:
    """Return the batches that led to the current version."""
    return [Answered(version.batch, version.reading) for version in state.versions if version.batch is not None]


def current_of(answered: Sequence[Answered]) -> int:
    """Return the number of the version that batches led to."""
    return answered[-1].batch.version if answered else 1


def added_by(answered: Sequence[Answered]) -> int:
    """Return how many records batches added."""
    return sum(batch.records_added for batch, _ in answered)


def noise_key() -> int:
    """Draw the key of a run's noise: from the operating system, used once, kept nowhere."""
    return secrets.randbits(128)
