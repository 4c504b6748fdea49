"""State that a ledger's events add up to: versions of the model, the batch being applied, requests that wait."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

from certified_unlearning.ledger.store import Ledger, LedgerError
from certified_unlearning.vocabulary import Reading

if TYPE_CHECKING:  # All commands import this, and few of them read a ledger.
    from certified_unlearning.certificate.base import Certificate, Scope, Stated


@dataclass(frozen=True)
class Addition:
    """Records that are added to a model. Whose they are stands in the table of who has which row.

    Attributes:
        people: How many people's.
        records: How many rows.
        source: The file that they came from.
        source_digest: Its keyed digest.
    """

    people: int
    records: int
    source: str
    source_digest: str


@dataclass(frozen=True)
class Batch:
    """Requests that are answered together: all with sequence numbers in ``(after, up_to]``; and records that are added.

    Attributes:
        version: The version of the model that answers them.
        after: The last request that an earlier batch answered, or 0.
        up_to: The last request of this batch.
        requests: How many people are removed; 0 where records are added while no request waits.
        records: How many rows are removed.
        steps: ``K``, the noisy steps that remove them; 0 where a Newton step or a refit does.
        training_digest: Keyed digest of the training copy without these rows, and with those that are added.
        places: In which mini-batches or slices the rows lie, and how many in each; None where there are none.
        addition: What is added at the end of the training copy; None for nothing.
    """

    version: int
    after: int
    up_to: int
    requests: int
    records: int
    steps: int
    training_digest: str
    places: Sequence[Sequence[int]] | None = None
    addition: Addition | None = None

    @classmethod
    def read(cls, payload: Mapping[str, Any]) -> Self:
        """Return the batch that the payload of an event says."""
        addition = payload.get("addition")
        return cls(**{**payload, "addition": None if addition is None else Addition(**addition)})

    def as_payload(self) -> dict[str, Any]:
        """Return the payload of its event."""
        optional = ("places", "addition")
        return {name: value for name, value in asdict(self).items() if value is not None or name not in optional}

    @property
    def command(self) -> str:
        """The command that makes the version."""
        return "apply" if self.addition is None else "add"

    @property
    def records_added(self) -> int:
        """How many rows are added."""
        return 0 if self.addition is None else self.addition.records


@dataclass(frozen=True)
class Version:
    """A version of the model.

    Attributes:
        version: 1, 2, 3, ...
        time: When it became the current one.
        batch: What it answered; None for the model that was learned.
        weights_sha256: Digest of its weights file.
        certificate_sha256: Digest of its certificate file.
        epsilon: Of its certificate, as the other three; all are None where its answers are certified, not its weights.
        delta: The target's delta.
        extra_delta: What learning that stopped before stationarity adds.
        epsilon_all_published: The guarantee against somebody who kept every version.
        reading: Whether all records were read for it; None where noisy steps alone made it.
        secret_digest: Keyed digest of what it keeps besides its weights, if anything.
        kind: Of its certificate; None where an earlier release did not record it.
        removed_before: Whether records were removed from a version before it.
    """

    version: int
    time: str
    batch: Batch | None
    weights_sha256: str
    certificate_sha256: str
    epsilon: float | None
    delta: float | None
    extra_delta: float | None
    epsilon_all_published: float | None
    reading: Reading | None = None
    secret_digest: str | None = None
    kind: str | None = None
    removed_before: bool = False

    def __post_init__(self) -> None:
        from certified_unlearning.certificate import KINDS

        if self.kind is not None and self.kind not in KINDS:
            raise ValueError(f"there are no certificates of kind {self.kind!r}")

    @property
    def has_removed(self) -> bool:
        """Whether records were removed from it, or from a version before it."""
        return self.removed_before or (self.batch is not None and self.batch.records > 0)

    @property
    def stated(self) -> "Stated":
        """What the ledger repeats of its certificate."""
        from certified_unlearning.certificate.base import Stated

        return Stated(self.epsilon, self.delta, self.extra_delta, self.epsilon_all_published)

    @property
    def certificate(self) -> "type[Certificate]":
        """The kind of its certificate; what earlier releases recorded tells it, too."""
        from certified_unlearning.certificate import KINDS

        if self.kind is not None:
            return KINDS[self.kind]
        if self.epsilon is None:
            return KINDS["ensemble"]
        if self.delta == 0:
            return KINDS["exact"]
        # Noisy steps keep no secret; the first version against exact refits keeps one, and answers no request.
        return KINDS["steps" if self.secret_digest is None else "residual"]

    @property
    def scope(self) -> "Scope":
        """For whom the statement of its certificate holds."""
        return self.certificate.scope(self.stated, f"version {self.version}")


@dataclass(frozen=True)
class Start:
    """Record of the creation of the model directory.

    Attributes:
        id_column: The column of the user's table that says whose a row is.
        records: Number of rows.
        people: Number of identifiers.
        model_sha256: Digest of `model.json`.
        training_digest: Keyed digest of the training copy.
        source: The file that the data came from.
        source_digest: Its keyed digest.
        source_modified: When it was last changed, in nanoseconds. (Not its size: with the other records known,
            that would tell how long a removed one was.)
    """

    id_column: str
    records: int
    people: int
    model_sha256: str
    training_digest: str
    source: str
    source_digest: str
    source_modified: int

    def as_payload(self) -> dict[str, Any]:
        """Return its part of the payload of the first event."""
        return asdict(self)


@dataclass(frozen=True)
class State:
    """Everything that the events say.

    Attributes:
        start: The first event.
        versions: All versions of the model, the current one last.
        planned: The batch that an `apply` or an `add` has begun and not finished.
        waiting: Requests that no batch contains yet.
        last_request: The sequence number of the last of these, or of the last request that a batch contains.
    """

    start: Start
    versions: tuple[Version, ...]
    planned: Batch | None
    waiting: int
    last_request: int

    @property
    def current(self) -> Version:
        """The version that is to be used."""
        return self.versions[-1]

    @property
    def batches(self) -> list[Batch]:
        """The batches that were applied."""
        return [version.batch for version in self.versions if version.batch is not None]

    def answering(self, sequence: int) -> Version | None:
        """Return the version that answered a request, by the request's sequence number; None while it is pending."""
        answers = (version for version in self.versions if version.batch and sequence <= version.batch.up_to)
        return next(answers, None)

    def time_of(self, number: int) -> str | None:
        """Return when a version became the current one; None before."""
        return self.versions[number - 1].time if number <= len(self.versions) else None

    @property
    def answered_up_to(self) -> int:
        """The last request that the current version answered."""
        return self.batches[-1].up_to if self.batches else 0

    @property
    def pending(self) -> int:
        """Requests that the current version does not answer."""
        return self.waiting + (self.planned.requests if self.planned else 0)

    @property
    def records_removed(self) -> int:
        """Rows that the current version does not know."""
        return sum(batch.records for batch in self.batches)

    @property
    def rows(self) -> int:
        """Rows of the current version's training copy, those of removed records included."""
        return self.start.records + self.records_added

    @property
    def records_added(self) -> int:
        """Rows that were added since the start, those of removed records included."""
        return sum(batch.records_added for batch in self.batches)

    @property
    def people_added(self) -> int:
        """How many people's records were added since the start."""
        return sum(batch.addition.people for batch in self.batches if batch.addition is not None)

    def added_with(self, row: int) -> int:
        """Return the version that a row of the training copy came with: 1, or one that added records."""
        most = self.start.records
        for batch in [*self.batches, *([self.planned] if self.planned else [])]:
            if row < most:
                break
            if row < most + batch.records_added:
                return batch.version
            most += batch.records_added
        return 1

    @property
    def training_digest(self) -> str:
        """The digest of the training copy, as the current version's key gives it."""
        return self.batches[-1].training_digest if self.batches else self.start.training_digest


def read_state(ledger: Ledger) -> State:
    """Return what the events add up to.

    Raises:
        LedgerError: They do not add up.
    """
    events = ledger.events("initialised", "planned", "applied")
    try:
        first, *later = events
        if first.kind != "initialised":
            raise LedgerError(f"{ledger.path} was tampered with: its first event is not the model's making")
        start = Start(**first.payload["start"])
        versions = [Version(time=first.time, batch=None, **first.payload["version"])]
        planned: Batch | None = None
        in_batches = 0
        for event in later:
            if event.kind == "planned" and planned is None:
                planned = Batch.read(event.payload)
                answers = in_batches < planned.up_to or (in_batches == planned.up_to and planned.addition is not None)
                follows = planned.version == len(versions) + 1 and planned.after == in_batches and answers
                in_batches = planned.up_to
            elif event.kind == "applied" and planned is not None:
                before = versions[-1].has_removed
                versions.append(Version(time=event.time, batch=planned, removed_before=before, **event.payload))
                follows = planned.version == len(versions) == versions[-1].version
                planned = None
            else:
                follows = False
            if not follows:
                raise LedgerError(f"{ledger.path} was tampered with: event {event.sequence} does not follow")
    except (KeyError, TypeError, ValueError) as error:
        raise LedgerError(f"{ledger.path} was tampered with: its events make no sense ({error})") from error
    waiting, last = ledger.count_requests(in_batches)
    return State(start, tuple(versions), planned, waiting, last)
