"""State that a ledger's events add up to: versions of the model, the batch being applied, requests that wait."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from certified_unlearning.errors import LedgerError
from certified_unlearning.ledger.database.events import Event
from certified_unlearning.ledger.store import Ledger
from certified_unlearning.text import counted
from certified_unlearning.vocabulary import Reading

if TYPE_CHECKING:  # All commands import this, and few of them read a ledger.
    from certified_unlearning.certificate.base import Stated
    from certified_unlearning.certificate.ledger import LedgerCertificate, Scope


@dataclass(frozen=True)
class Addition:
    """Records that are added to a model. The table of the rows' owners says whose they are.

    Attributes:
        people: Number of people.
        records: Number of rows.
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
        addition: The records that are added at the end of the training copy; None if there are none.
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
        """Return the batch that the payload of an event describes."""
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
        version: 1, 2, 3, ...; after a restore, numbers continue after the largest one that was ever used.
        time: When it became the current one.
        batch: The batch that it answered; None for the model of `init`.
        weights_sha256: Digest of its weights file.
        certificate_sha256: Digest of its certificate file.
        epsilon: Epsilon of its certificate; the next three are of its certificate, too. All are None if its answers are
            certified, not its weights.
        delta: The target's delta.
        extra_delta: Addition to delta for learning that stopped before stationarity.
        epsilon_all_published: The guarantee against somebody who kept every version.
        reading: Whether all records were read for it; None where noisy steps alone made it.
        secret_digest: Keyed digest of its secret, if it has one.
        kind: Kind of its certificate; None where an earlier release did not record it.
        removed_before: Whether records were removed from a version before it.
        event: The number of its event.
        lost_before: Number of versions that were published before it and that a restore had lost: it does not follow
            from them.
        lost_since: Number of versions that were published after it and lost: its certificate's statement about all
            versions does not count them.
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
    event: int = 0
    lost_before: int = 0
    lost_since: int = 0

    def __post_init__(self) -> None:
        from certified_unlearning.certificate.kinds import OF_LEDGERS

        if self.kind is not None and self.kind not in OF_LEDGERS:
            raise ValueError(f"there are no certificates of kind {self.kind!r}")

    @property
    def has_removed(self) -> bool:
        """Whether records were removed from it, or from a version before it."""
        return self.removed_before or (self.batch is not None and self.batch.records > 0)

    @property
    def stated(self) -> "Stated":
        """Numbers of its certificate that the ledger repeats; those for all versions only if they count lost ones."""
        from certified_unlearning.certificate.base import Stated

        every = None if self.lost_since else self.epsilon_all_published
        return Stated(self.epsilon, self.delta, self.extra_delta, every)

    @property
    def certificate(self) -> "type[LedgerCertificate]":
        """The kind of its certificate; it also follows from what earlier releases recorded."""
        from certified_unlearning.certificate.kinds import OF_LEDGERS

        if self.kind is not None:
            return OF_LEDGERS[self.kind]
        if self.epsilon is None:
            return OF_LEDGERS["ensemble"]
        if self.delta == 0:
            return OF_LEDGERS["exact"]
        # Noisy steps keep no secret; the first version against exact refits keeps one, and answers no request.
        return OF_LEDGERS["steps" if self.secret_digest is None else "residual"]

    @property
    def scope(self) -> "Scope":
        """The scope of its certificate's statement: for whom it holds."""
        scope = self.certificate.scope(self.stated, f"version {self.version}")
        lost = self.lost_before + self.lost_since
        if not lost:
            return scope
        counts = "which the number for all versions counts"
        if self.stated.epsilon_all_published is None:
            counts = "so nothing is stated of all versions together"
        # Answers that are equal suppose nothing of the restore.
        supposed = "; no model may have been a reason for that" if self.certificate.publishes_weights else ""
        return scope._replace(
            sentence=f"{scope.sentence}. {counted(lost, 'published version')} "
            f"{'was' if lost == 1 else 'were'} lost before the directory was restored from a backup, {counts}{supposed}"
        )


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


class Restored(NamedTuple):
    """The last restore from a backup that lost events which files belonged to.

    Attributes:
        time: When `replay` recorded it, in UTC.
        name: What was drawn to name it: another for every restore, and the same before and after a migration.
        to: The number of the event from which the model went on.
    """

    time: str
    name: str
    to: int


@dataclass(frozen=True)
class State:
    """Everything that the events say.

    Attributes:
        start: The first event.
        versions: The versions that the current one, the last of them, follows from.
        planned: The batch that an `apply` or an `add` has begun and not finished.
        waiting: Requests that no batch contains yet, except those about records that a restore lost.
        last_request: The sequence number of the last request that waits, or that a batch contains.
        largest_version: The largest number of a version that was ever planned.
        lost: Versions that were published, and that the current one does not follow from: restores lost them.
        restored: The last restore; None where there was none.
    """

    start: Start
    versions: tuple[Version, ...]
    planned: Batch | None
    waiting: int
    last_request: int
    largest_version: int
    lost: tuple[Version, ...] = ()
    restored: Restored | None = None

    @property
    def current(self) -> Version:
        """The current version."""
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
        """Return when a version became the current one; None before, and where it was lost."""
        return next((version.time for version in self.versions if version.version == number), None)

    @property
    def next_version(self) -> int:
        """The number of the version that is planned next: no two plans ever have the same."""
        return self.largest_version + 1

    def is_gone(self, request: Event) -> bool:
        """Return whether a restore lost the records that a request or a hold is about: they had come with `add`."""
        came_with = int(request.payload.get("added_with", 1))
        planned = None if self.planned is None else self.planned.version
        return came_with not in (1, planned) and self.time_of(came_with) is None

    def answers_lost(self, request: Event) -> list[Version]:
        """Return the lost versions that had been made without the records of a request."""
        return [each for each in self.lost if each.batch is not None and request.sequence <= each.batch.up_to]

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
    events = ledger.events("initialised", "planned", "applied", "restored")
    try:
        first, *later = events
        if first.kind != "initialised":
            raise LedgerError(f"{ledger.path} was tampered with: its first event is not the making of the model")
        course = _Course(first)
        for event in later:
            if not course.takes(event):
                raise LedgerError(f"{ledger.path} was tampered with: event {event.sequence} does not follow")
    except (KeyError, TypeError, ValueError) as error:
        raise LedgerError(f"{ledger.path} was tampered with: its events contradict each other ({error})") from error
    waiting, last = ledger.count_requests(course.in_batches)
    state = State(
        Start(**first.payload["start"]),
        tuple(course.versions),
        course.planned,
        waiting,
        last,
        course.largest_version,
        course.lost,
        course.restored,
    )
    if course.restored is None:
        return state
    gone = sum(map(state.is_gone, ledger.requests_after(course.in_batches)))
    return replace(state, waiting=waiting - gone)


class _Course:
    """State of a model after each event in turn.

    Between two restores the list of versions only grows, so a point of the course is that list and a length.
    """

    def __init__(self, first: Event) -> None:
        self.versions = [Version(time=first.time, batch=None, event=first.sequence, **first.payload["version"])]
        self.planned: Batch | None = None
        self.in_batches = 0
        self.largest_version = 1
        self.lost: tuple[Version, ...] = ()
        self.restored: Restored | None = None
        self._made = [*self.versions]
        self._points: list[tuple[int, list[Version], int, Batch | None, int]] = []
        self._note(first)

    def takes(self, event: Event) -> bool:
        """Take the next event, and return whether it follows from those before."""
        if event.kind == "planned" and self.planned is None:
            follows = self._plan(Batch.read(event.payload))
        elif event.kind == "applied" and self.planned is not None:
            follows = self._apply(event, self.planned)
        elif event.kind == "restored":
            follows = self._restore(event, event.payload["to"], event.payload["name"])
        else:
            return False
        self._note(event)
        return follows

    def _note(self, event: Event) -> None:
        self._points.append((event.sequence, self.versions, len(self.versions), self.planned, self.in_batches))

    def _plan(self, batch: Batch) -> bool:
        before, self.planned, self.in_batches = self.in_batches, batch, batch.up_to
        self.largest_version += 1
        answers = before < batch.up_to or (before == batch.up_to and batch.addition is not None)
        return batch.version == self.largest_version and batch.after == before and answers

    def _apply(self, event: Event, batch: Batch) -> bool:
        version = Version(
            time=event.time,
            batch=batch,
            removed_before=self.versions[-1].has_removed,
            event=event.sequence,
            lost_before=len(self.lost),
            **event.payload,
        )
        self.versions.append(version)
        self._made.append(version)
        self.planned = None
        return version.version == batch.version

    def _restore(self, event: Event, to: int, name: str) -> bool:
        """Go back to where the model stood after an event: what was published since stays published, and is lost."""
        place = bisect_right(self._points, to, key=lambda point: point[0]) - 1
        if place < 0 or to >= event.sequence:
            return False
        _, versions, count, self.planned, self.in_batches = self._points[place]
        self.versions = versions[:count]
        left = {version.event for version in self.versions}
        self.lost = tuple(version for version in self._made if version.event not in left)
        current = self.versions[-1]
        since = sum(version.event > current.event for version in self.lost)
        self.versions[-1] = replace(current, lost_since=since)
        self.restored = Restored(event.time, name, to)
        return True
