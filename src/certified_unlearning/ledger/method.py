"""The interface of a mechanism to a ledger: learn, plan and carry out removals, make certificates."""

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
    """State that a mechanism keeps from one request to the next. It depends on the records, so it must stay secret.

    Attributes:
        arrays: The arrays by name.
        header: The rest of the state, as JSON.
        restored: Name of the last restore from a backup; None if there was none. It changes the random draws from this
            secret, so that they differ from those of a lost version.
    """

    arrays: Mapping[str, NDArray[Any]]
    header: Mapping[str, Any]
    restored: str | None = None


class Answered(NamedTuple):
    """A batch that was carried out, and how all rows were read for it (None if the plan determines how)."""

    batch: Batch
    reading: Reading | None


class Outcome(NamedTuple):
    """A new version of a model.

    Attributes:
        weights: The published weights, shape ``(d,)``.
        reading: The way in which all rows were read for the version; see `Answered`.
        secret: The state that is needed, in addition to the weights, to answer the next request; None if there is none.
    """

    weights: NDArray[Any]
    reading: Reading | None = None
    secret: Secret | None = None


class RemovedRows(NamedTuple):
    """The rows and labels (or targets) of removed records, before they were zeroed; sparse rows stay sparse."""

    rows: Any
    labels: NDArray[Any]


class LedgerPlan(Planned, Protocol):
    """Constants that are fixed before a model is learned. They are a Pydantic model, stored in `model.json`."""

    @property
    def mechanism(self) -> str:
        """The mechanism's name in the table of mechanisms."""


PlanT = TypeVar("PlanT", bound=LedgerPlan)


class Method(ABC, Generic[PlanT]):
    """The method by which a directory's model learns, and by which records are removed from it.

    Args:
        directory: The model directory.
        plan: The plan of the mechanism.
        dataset: The name of the data in certificates.
        features: The name of the features in certificates.
        hashed: The settings with which columns of text were converted to numbers.
    """

    plans: ClassVar[tuple[type, ...]]
    """The types of plans that this method carries out."""
    advice: ClassVar[type[Advice[Any]] | None] = None
    """Advice to try if a version hardly tells the classes apart; None if the quality of versions is not measured."""
    needs_what_it_removes: bool = False
    """Whether a removal is computed from the records that it removes."""
    stays_on_the_cpu: bool = False
    """Whether the method always computes on the CPU."""
    no_additions: ClassVar[str | None] = None
    """The reason why records cannot be added to the method's models; None if they can."""
    no_audits: ClassVar[str | None] = None
    """The reason why the models cannot be audited with single records as canaries; None if they can."""

    def __init__(
        self, directory: ModelDirectory, plan: PlanT, dataset: str, features: str, hashed: tuple[Text, ...] = ()
    ) -> None:
        self._directory, self._plan, self._dataset, self._features = directory, plan, dataset, features
        self._hashed = hashed

    def noise(self) -> tuple[float, bool] | None:
        """Return the noise of published weights, in the form of `estimators.objective.PublicObjective`.

        By default, return None, because the noise is not known or the weights are not those of a minimiser.
        """
        return None

    def deal(self) -> None:
        """Put the training copy into the order in which it is read; by default, the order is unchanged."""

    @abstractmethod
    def learn(self, device: torch.device) -> Outcome:
        """Learn version 1 from the training copy."""

    def plan_after(self, answered: Sequence[Answered]) -> PlanT:
        """Return the plan for the version after these batches; it includes the records that they added."""
        return self._plan

    def planned(
        self, answered: Sequence[Answered], rows: Sequence[int], added: int = 0, waiting: Waiting | None = None
    ) -> Removal:
        """Plan the removal of rows, given the earlier removals.

        By default, a removal takes no noisy steps.

        Args:
            answered: The batches that led to the current version.
            rows: The rows of the table to remove.
            added: The number of records that the same version adds.
            waiting: The files in which the added records wait.
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
        """Carry out a batch. Its rows are zero in the training copy already, and added records are at the copy's end.

        After an interruption at any moment, the method is called again for the same batch, from the same version.

        Args:
            weights: Weights of the current version, shape ``(d,)``.
            secret: Secret of the current version.
            answered: The batches that led to the current version.
            batch: The batch.
            rows: The batch's rows of the table, ascending.
            taken: The batch's records before they were zeroed, for a method that `needs_what_it_removes`. None if the
                batch adds records, or if an interrupted `apply` has zeroed them.
            device: The device on which noisy steps are computed.
        """

    def check(
        self, weights: NDArray[Any], secret: Secret | None, answered: Sequence[Answered], left: Sequence[int]
    ) -> None:
        """Recompute as much as possible from the remaining records, and compare the current version with the result.

        By default nothing is recomputed: nobody keeps the noise, and without it, published weights cannot be
        recomputed.

        Args:
            weights: Weights of the current version, shape ``(d,)``.
            secret: Secret of the current version.
            answered: The batches that led to the current version.
            left: Rows of the table that belong to somebody.

        Raises:
            DataError: The current version differs from what was computed.
        """

    def shards(self, secret: Secret | None) -> "CertifiedShards":
        """Return the ensemble that computes the answers of a version without published weights.

        Args:
            secret: Secret state of the version.

        Raises:
            DataError: The mechanism publishes weights, or the secret is missing.
        """
        raise DataError("the weights are missing, and nothing can be predicted without them")

    @abstractmethod
    def certificate(self, answered: Sequence[Answered], data_digest: str, lost: int = 0) -> LedgerCertificate:
        """Return the certificate of the version after these batches.

        Args:
            answered: The batches.
            data_digest: Keyed digest of the remaining records.
            lost: The number of other versions that were published, and then lost by restores from backups.
        """

    def is_of(self, certificate: Certificate, answered: Sequence[Answered], lost: int = 0) -> bool:
        """Return whether a certificate from any release agrees with these batches; arguments as in `certificate`."""
        return certificate.is_like(self.certificate(answered, "", lost))


def answered_of(state: State) -> list[Answered]:
    """Return the batches that led to the current version."""
    return [Answered(version.batch, version.reading) for version in state.versions if version.batch is not None]


def current_of(answered: Sequence[Answered]) -> int:
    """Return the number of the version after these batches."""
    return answered[-1].batch.version if answered else 1


def added_by(answered: Sequence[Answered]) -> int:
    """Return the number of records that these batches added."""
    return sum(batch.records_added for batch, _ in answered)


def noise_key() -> int:
    """Draw the key of a run's noise from the operating system. The key is used for one run, and not stored."""
    return secrets.randbits(128)
