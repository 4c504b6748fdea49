"""The state of a ledger, computed from its events: versions of the model, the planned batch, waiting requests."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from certified_unlearning.errors import LedgerError
from certified_unlearning.ledger.database.events import Event
from certified_unlearning.ledger.store import Ledger
from certified_unlearning.text import counted
from certified_unlearning.vocabulary import Reading

if TYPE_CHECKING:  # All commands import this module, and few of them read a ledger.
    from certified_unlearning.certificate.base import Stated
    from certified_unlearning.certificate.ledger import LedgerCertificate, Scope


@dataclass(frozen=True)
class Addition:
    """Records that are added to a model. Their owners are in the ledger's table of rows.

    Attributes:
        people: The number of people.
        records: The number of rows.
        source: Path of the file that the records came from.
        source_digest: Keyed digest of that file.
    """

    people: int
    records: int
    source: str
    source_digest: str


@dataclass(frozen=True)
class Batch:
    """Requests that are answered together, with sequence numbers in ``(after, up_to]``, and records that are added.

    Attributes:
        version: The number of the version that answers the requests.
        after: The sequence number of the last request in an earlier batch, or 0.
        up_to: The sequence number of the last request of this batch.
        requests: The number of people who are removed; 0 if records are added while no request waits.
        records: The number of rows that are removed.
        steps: The number of noisy steps that remove the rows, ``K``; 0 for a Newton step or a refit.
        training_digest: Keyed digest of the training copy without the removed rows and with the added ones.
        places: The mini-batches or slices of the removed rows, with the number of rows in each; None if there are none.
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
        """Return the payload of the batch's event."""
        optional = ("places", "addition")
        return {name: value for name, value in asdict(self).items() if value is not None or name not in optional}

    @property
    def command(self) -> str:
        """The command that makes the version: `apply` or `add`."""
        return "apply" if self.addition is None else "add"

    @property
    def records_added(self) -> int:
        """The number of rows that are added."""
        return 0 if self.addition is None else self.addition.records


@dataclass(frozen=True)
class Version:
    """A version of the model.

    Attributes:
        version: The version's number: 1, 2, 3, ...; after a restore, numbers continue after the largest one ever used.
        time: The time when it became the current version.
        batch: The batch that it answered; None for version 1.
        weights_sha256: Digest of the file with its weights.
        certificate_sha256: Digest of its certificate file.
        epsilon: Epsilon of its certificate. This and the next three numbers are None if the certificate covers answers,
            not weights.
        delta: The delta of the target.
        extra_delta: The addition to delta for learning that stopped before stationarity.
        epsilon_all_published: The epsilon of the certificate against somebody who kept every version.
        reading: The way in which all records were read for the version; None if noisy steps alone made it.
        secret_digest: Keyed digest of its secret; None if it has none.
        kind: Kind of its certificate; None if an earlier release did not record it.
        removed_before: Whether records were removed from an earlier version.
        event: The number of its event.
        lost_before: The number of lost versions that were published before this version. This version is not derived
            from the lost versions.
        lost_since: The number of lost versions that were published after this version. In its statement about all
            versions, this version's certificate does not count these lost versions.
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
        """Whether records were removed from this version or an earlier one."""
        return self.removed_before or (self.batch is not None and self.batch.records > 0)

    @property
    def stated(self) -> "Stated":
        """The certificate's numbers, as the ledger records them.

        If later versions were lost, epsilon for all versions is left out.
        """
        from certified_unlearning.certificate.base import Stated

        every = None if self.lost_since else self.epsilon_all_published
        return Stated(self.epsilon, self.delta, self.extra_delta, every)

    @property
    def certificate(self) -> "type[LedgerCertificate]":
        """The kind of certificate; for events of earlier releases, it follows from what they recorded."""
        from certified_unlearning.certificate.kinds import OF_LEDGERS

        if self.kind is not None:
            return OF_LEDGERS[self.kind]
        if self.epsilon is None:
            return OF_LEDGERS["ensemble"]
        if self.delta == 0:
            return OF_LEDGERS["exact"]
        # Noisy steps keep no secret. The first version of a refit keeps a secret, though it answers no request.
        return OF_LEDGERS["steps" if self.secret_digest is None else "residual"]

    @property
    def scope(self) -> "Scope":
        """The scope of the certificate's statement: the people against whom it holds."""
        scope = self.certificate.scope(self.stated, f"version {self.version}")
        lost = self.lost_before + self.lost_since
        if not lost:
            return scope
        counts = "and the epsilon for all versions takes lost versions into account"
        if self.stated.epsilon_all_published is None:
            counts = "so nothing is stated about all versions together"
        # A guarantee of equal answers needs no assumption on the restore.
        supposed = (
            "; this assumes that no model was a reason for the restore" if self.certificate.publishes_weights else ""
        )
        return scope._replace(
            sentence=f"{scope.sentence}. {counted(lost, 'published version')} "
            f"{'was' if lost == 1 else 'were'} lost before the directory was restored from a backup, {counts}{supposed}"
        )


@dataclass(frozen=True)
class Start:
    """Record of the creation of the model directory.

    Attributes:
        id_column: The column of the user's table that identifies the person of each row.
        records: The number of rows.
        people: The number of different identifiers.
        model_sha256: Digest of `model.json`.
        training_digest: Keyed digest of the training copy.
        source: Path of the file that the data came from.
        source_digest: Keyed digest of that file.
        source_modified: The time of the file's last change, in nanoseconds. (The size is not recorded: to somebody who
            knows all other records, it would tell the length of a removed one.)
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
        """Return the fields for the payload of the first event."""
        return asdict(self)


class Restored(NamedTuple):
    """The last restore from a backup that lost files of later events.

    Attributes:
        time: The time when `replay` recorded the restore, in UTC.
        name: A random name: every restore has a different name, and a migration keeps it.
        to: The number of the event from which the model continued after the restore.
    """

    time: str
    name: str
    to: int


@dataclass(frozen=True)
class State:
    """The state of a ledger, computed from all its events.

    Attributes:
        start: The first event.
        versions: The current version, which is the last one, and all earlier versions that it follows from.
        planned: The batch that an `apply` or an `add` has begun and not finished; None if there is none.
        waiting: The number of requests that are in no batch yet, except those about records that a restore lost.
        last_request: The sequence number of the last request that waits or is in a batch.
        largest_version: The largest number of a version that was ever planned.
        lost: Published versions that were lost in restores from backups. The current version is not derived from these
            versions.
        restored: The last restore; None if there was none.
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
        """Return the time when a version became current; None if the version was lost, or is not current yet."""
        return next((version.time for version in self.versions if version.version == number), None)

    @property
    def next_version(self) -> int:
        """The number of the next version to be planned. No number is used in two plans."""
        return self.largest_version + 1

    def is_gone(self, request: Event) -> bool:
        """Return whether a restore lost the records of a request or hold.

        A restore loses records that `add` had added after the backup.
        """
        came_with = int(request.payload.get("added_with", 1))
        planned = None if self.planned is None else self.planned.version
        return came_with not in (1, planned) and self.time_of(came_with) is None

    def answers_lost(self, request: Event) -> list[Version]:
        """Return the lost versions that were made without the records of a request."""
        return [each for each in self.lost if each.batch is not None and request.sequence <= each.batch.up_to]

    @property
    def answered_up_to(self) -> int:
        """The sequence number of the last request that the current version answered."""
        return self.batches[-1].up_to if self.batches else 0

    @property
    def pending(self) -> int:
        """The number of requests that the current version does not answer."""
        return self.waiting + (self.planned.requests if self.planned else 0)

    @property
    def records_removed(self) -> int:
        """The number of rows that were removed from the model, up to the current version."""
        return sum(batch.records for batch in self.batches)

    @property
    def rows(self) -> int:
        """The number of rows of the current training copy, including those of removed records."""
        return self.start.records + self.records_added

    @property
    def records_added(self) -> int:
        """The number of rows that were added since the start, including those of removed records."""
        return sum(batch.records_added for batch in self.batches)

    @property
    def people_added(self) -> int:
        """The number of people whose records were added since the start."""
        return sum(batch.addition.people for batch in self.batches if batch.addition is not None)

    def added_with(self, row: int) -> int:
        """Return the number of the version with which a row entered the training copy; 1 for the original rows."""
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
        """The keyed digest of the training copy, with the current version's key."""
        return self.batches[-1].training_digest if self.batches else self.start.training_digest


def read_state(ledger: Ledger) -> State:
    """Return the state that follows from a ledger's events.

    Raises:
        LedgerError: The events contradict each other.
    """
    events = ledger.events("initialised", "planned", "applied", "restored")
    try:
        first, *later = events
        if first.kind != "initialised":
            raise LedgerError(f"{ledger.path} was tampered with: its first event is not that of `unlearn init`")
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
    """The state of a model after each event, in the order of the events.

    Between two restores, the list of versions only grows, so a point in time is stored as this list and a length.
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
        """Process the next event, and return whether it follows from the previous events."""
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
        """Go back to the state after an event. Versions published since then stay published, and count as lost."""
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
