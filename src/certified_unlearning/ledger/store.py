"""The ledger's SQLite file: events that are only ever appended, each chained to the one before by its hash.

Beside them lies the table of which rows belong to whom: what a request needs, and no more. Features and labels never
enter this file, nor digests of single records. Free of heavy imports: a request takes a fraction of a second.
"""

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from certified_unlearning.data.tables.spellings import Group, folded
from certified_unlearning.errors import DataError, StorageError, UnlearningError
from certified_unlearning.files import content_key
from certified_unlearning.ledger.log.file import GENESIS, Row
from certified_unlearning.ledger.log.second_place import Last, Standing, follow, standing_of

Kind = Literal["initialised", "held", "requested", "planned", "applied", "exported", "withdrawn", "logged", "restored"]

BUSY_SECONDS = 30.0
"""How long a command waits for another one that is writing."""

_SCHEMA = """
CREATE TABLE events (
    sequence INTEGER PRIMARY KEY,
    time TEXT NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT,
    payload TEXT NOT NULL,
    previous_hash TEXT NOT NULL,
    hash TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_kind ON events (kind, sequence);
CREATE UNIQUE INDEX requested_once ON events (subject) WHERE kind = 'requested';
CREATE TRIGGER events_are_not_edited BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER events_are_not_deleted BEFORE DELETE ON events
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TABLE records (
    identifier TEXT NOT NULL,
    row INTEGER NOT NULL UNIQUE,
    tag BLOB NOT NULL,
    PRIMARY KEY (identifier, row)
) STRICT, WITHOUT ROWID;
CREATE TABLE spellings (
    identifier TEXT PRIMARY KEY,
    folded TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX spellings_by_folded ON spellings (folded);
"""
_COLUMNS = "sequence, time, kind, subject, payload, previous_hash, hash"
_INSERT = f"INSERT INTO events ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"


class LedgerError(UnlearningError):
    """Something in a model directory is not what its ledger recorded."""


@dataclass(frozen=True)
class Event:
    """One line of the ledger.

    Attributes:
        sequence: Its number: 1, 2, 3, ...
        time: When, in UTC.
        kind: What happened.
        subject: Whose removal was requested or is on hold; None for all other kinds.
        payload: What else is to be known.
        hash: SHA-256 of everything above and of the hash before.
    """

    sequence: int
    time: str
    kind: str
    subject: str | None
    payload: dict[str, Any]
    hash: str


class Record(NamedTuple):
    """Whose a row is.

    Attributes:
        identifier: The person.
        row: The row's number in the training copy.
        tag: What shows that `init` wrote the two together.
    """

    identifier: str
    row: int
    tag: bytes


class Ledger:
    """An open ledger file.

    Use `create` or `opened`; writing takes place inside `transaction`.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    @classmethod
    @contextmanager
    def create(cls, path: Path) -> Iterator["Ledger"]:
        """Make an empty ledger, for the time of the block."""
        with _connected(path, "mode=rwc") as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(_SCHEMA)
            yield cls(path, connection)

    @classmethod
    @contextmanager
    def opened(cls, path: Path, *, read_only: bool = False) -> Iterator["Ledger"]:
        """Open a ledger for the time of the block.

        Raises:
            DataError: There is none, or the file is damaged.
            StorageError: It cannot be opened or written, or another command keeps it busy.
        """
        if not path.exists():
            raise DataError(f"{path.parent} is no model directory ({path.name} is missing); `unlearn init` makes one")
        mode = "mode=rw"
        if read_only:
            # Where SQLite may not make its side files and there are none, nobody is writing either.
            lonely = not os.access(path.parent, os.W_OK) and not path.with_name(f"{path.name}-wal").exists()
            mode = "immutable=1" if lonely else "mode=ro"
        with _connected(path, mode) as connection:
            yield cls(path, connection)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing: what the block appends is durable when it ends, and gone when it raises.

        Where the log is kept in a second place, too, it is written there first.

        Raises:
            DataError: That log knows more than the ledger, or is of other events.
            StorageError: It is missing, or cannot be written.
        """
        self._connection.execute("BEGIN IMMEDIATE")
        take_back: Callable[[], object] | None = None
        try:
            before = self.last()
            yield
            take_back = self._follow(before)
            self._connection.execute("COMMIT")
        except BaseException:
            # SQLite has rolled back by itself where the disk was full.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            # A log that lacks what was committed nevertheless gets it with the next event.
            if take_back is not None:
                take_back()
            raise

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Undo what the block writes if it raises; the transaction around it goes on."""
        self._connection.execute("SAVEPOINT attempt")
        try:
            yield
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK TO attempt")
            raise
        self._connection.execute("RELEASE attempt")

    def _follow(self, before: Last) -> Callable[[], object] | None:
        """Write what was appended to the log in the second place; return what takes it back, or None."""
        path = self.log()
        if path is None or self.last() == before:
            return None
        is_new = any(event.sequence > before.sequence for event in self.events("logged"))
        return follow(path, self.path.parent, before, self.hash_of, self.rows_after, is_new=is_new)

    def log(self) -> Path | None:
        """Return where the log is kept in a second place, if it is."""
        query = "SELECT payload FROM events WHERE kind = 'logged' ORDER BY sequence DESC LIMIT 1"
        row = self._connection.execute(query).fetchone()
        path = None if row is None else json.loads(row[0])["path"]
        return None if path is None else Path(path)

    def standing(self) -> Standing | None:
        """Return how that log stands to the ledger; None where there is none."""
        path = self.log()
        return None if path is None else standing_of(path, self.last(), self.hash_of)

    def last(self) -> Last:
        """Return the last event."""
        row = self._connection.execute("SELECT sequence, hash FROM events ORDER BY sequence DESC LIMIT 1").fetchone()
        return Last(0, GENESIS) if row is None else Last(*row)

    def hash_of(self, sequence: int) -> str | None:
        """Return the hash of an event by its number; None where there is none."""
        row = self._connection.execute("SELECT hash FROM events WHERE sequence = ?", (sequence,)).fetchone()
        return None if row is None else str(row[0])

    def rows_after(self, sequence: int) -> list[Row]:
        """Return the events with larger numbers as they are stored, in order."""
        query = f"SELECT {_COLUMNS} FROM events WHERE sequence > ? ORDER BY sequence"
        return self._connection.execute(query, (sequence,)).fetchall()

    def insert(self, rows: Iterable[Row]) -> None:
        """Append events that were recorded elsewhere as they are, so that heads and receipts stay what they were."""
        self._connection.executemany(_INSERT, rows)

    def append(self, kind: Kind, payload: dict[str, Any]) -> None:
        """Append an event."""
        self._append(kind, [(None, payload)])

    def append_requests(self, kind: Literal["held", "requested"], requests: Mapping[str, dict[str, Any]]) -> None:
        """Append a request for each person, or that it is on hold.

        Args:
            kind: Of all of these events.
            requests: What is to be known of each person's: ``records``, how many there are; ``added_with``, the version
                that added them if they came after the start; and the terms.
        """
        self._append(kind, requests.items())

    def _append(self, kind: Kind, entries: Iterable[tuple[str | None, dict[str, Any]]]) -> None:
        sequence, previous = self.last()
        time = datetime.now(UTC).isoformat(timespec="seconds")
        rows = []
        for subject, payload in entries:
            sequence += 1
            text = json.dumps(payload, sort_keys=True, separators=(",", ":"), allow_nan=False)
            row = (sequence, time, kind, subject, text, previous)
            previous = content_key(row)
            rows.append((*row, previous))
        self._connection.executemany(_INSERT, rows)

    def events(self, *kinds: Kind) -> list[Event]:
        """Return the events of these kinds, in order."""
        marks = ", ".join("?" * len(kinds))
        query = f"SELECT {_COLUMNS} FROM events WHERE kind IN ({marks}) ORDER BY sequence"
        return [_event(row) for row in self._connection.execute(query, kinds)]

    def request_of(self, subject: str) -> Event | None:
        """Return the request to remove somebody's records, if there was one that is not on hold."""
        return self._event_of("requested", subject)

    def hold_of(self, subject: str) -> Event | None:
        """Return when somebody's request was put on hold, if it was; it may have been released since."""
        return self._event_of("held", subject)

    def _event_of(self, kind: Kind, subject: str) -> Event | None:
        query = f"SELECT {_COLUMNS} FROM events WHERE kind = ? AND subject = ?"
        row = self._connection.execute(query, (kind, subject)).fetchone()
        return None if row is None else _event(row)

    def requests_after(self, sequence: int) -> list[Event]:
        """Return the requests with larger sequence numbers, in order."""
        query = f"SELECT {_COLUMNS} FROM events WHERE kind = 'requested' AND sequence > ? ORDER BY sequence"
        return [_event(row) for row in self._connection.execute(query, (sequence,))]

    def holds(self) -> list[Event]:
        """Return the requests that are on hold, in order."""
        query = (
            f"SELECT {_COLUMNS} FROM events AS hold WHERE kind = 'held' AND NOT EXISTS "
            "(SELECT 1 FROM events WHERE kind = 'requested' AND subject = hold.subject) ORDER BY sequence"
        )
        return [_event(row) for row in self._connection.execute(query)]

    def count_requests(self, after: int) -> tuple[int, int]:
        """Return how many requests have a sequence number above ``after``, and the largest number of all requests."""
        query = "SELECT count(*), coalesce(max(sequence), ?) FROM events WHERE kind = 'requested' AND sequence > ?"
        count, last = self._connection.execute(query, (after, after)).fetchone()
        return count, last

    def add_records(self, records: Iterable[Record]) -> None:
        """Add rows."""
        self._connection.executemany("INSERT INTO records (identifier, row, tag) VALUES (?, ?, ?)", records)

    def add_spellings(self, groups: Iterable[Group]) -> None:
        """Add identifiers that a person would take for one, though they count as several people."""
        if not self._has_spellings():
            return
        pairs = [(identifier, group.folded) for group in groups for identifier in group.people if len(group.people) > 1]
        self._connection.executemany("INSERT OR IGNORE INTO spellings (identifier, folded) VALUES (?, ?)", pairs)

    def other_spellings(self, identifier: str) -> list[str]:
        """Return the other identifiers that a person would take for this one, of people who still have rows."""
        if not self._has_spellings():
            return []
        query = (
            "SELECT other.identifier FROM spellings AS this JOIN spellings AS other USING (folded) "
            "WHERE this.identifier = ? AND other.identifier != ? "
            "AND EXISTS (SELECT 1 FROM records WHERE records.identifier = other.identifier) ORDER BY other.identifier"
        )
        return [str(other) for (other,) in self._connection.execute(query, (identifier, identifier))]

    def like(self, identifier: str) -> str | None:
        """Return an identifier of somebody's rows that a person would take for this one; reads all of them."""
        return self._like(identifier, "SELECT DISTINCT identifier FROM records")

    def requested_like(self, identifier: str) -> str | None:
        """Return an identifier of a request that a person would take for this one; reads all of them."""
        return self._like(identifier, "SELECT subject FROM events WHERE kind = 'requested' AND subject IS NOT NULL")

    def _like(self, identifier: str, query: str) -> str | None:
        wanted = folded(identifier)
        return next((str(each) for (each,) in self._connection.execute(query) if folded(each) == wanted), None)

    def _has_spellings(self) -> bool:
        """Return whether there is a table of them: in older ledgers there is none."""
        query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'spellings'"
        return self._connection.execute(query).fetchone() is not None

    def count_records_of(self, identifier: str) -> int:
        """Return how many rows are one person's."""
        query = "SELECT count(*) FROM records WHERE identifier = ?"
        return int(self._connection.execute(query, (identifier,)).fetchone()[0])

    def row_of(self, identifier: str) -> int | None:
        """Return the first of one person's rows; None where there is none."""
        query = "SELECT min(row) FROM records WHERE identifier = ?"
        row = self._connection.execute(query, (identifier,)).fetchone()[0]
        return None if row is None else int(row)

    def people(self) -> set[str]:
        """Return the identifiers of everybody who has rows."""
        return {str(each) for (each,) in self._connection.execute("SELECT DISTINCT identifier FROM records")}

    def people_requested(self) -> set[str]:
        """Return the identifiers of everybody whose removal was requested."""
        query = "SELECT subject FROM events WHERE kind = 'requested' AND subject IS NOT NULL"
        return {str(each) for (each,) in self._connection.execute(query)}

    def count_records(self) -> int:
        """Return how many rows are anybody's."""
        return int(self._connection.execute("SELECT count(*) FROM records").fetchone()[0])

    def count_rows(self) -> int:
        """Return how many different rows are anybody's."""
        return int(self._connection.execute("SELECT count(DISTINCT row) FROM records").fetchone()[0])

    def count_people(self) -> int:
        """Return how many people there are."""
        return int(self._connection.execute("SELECT count(DISTINCT identifier) FROM records").fetchone()[0])

    def rows(self) -> Iterator[int]:
        """Yield the numbers of all rows that are somebody's."""
        return (row for (row,) in self._connection.execute("SELECT row FROM records"))

    def records(self) -> Iterator[Record]:
        """Yield everybody's rows."""
        return map(Record._make, self._connection.execute("SELECT identifier, row, tag FROM records"))

    def records_requested(self, after: int, up_to: int) -> list[Record]:
        """Return the rows, sorted, that all requests with sequence numbers in ``(after, up_to]`` are about."""
        query = f"SELECT identifier, row, tag FROM records WHERE {_REQUESTED} ORDER BY row"
        return [Record._make(record) for record in self._connection.execute(query, (after, up_to))]

    def requests(self, after: int, up_to: int, gone: Callable[[Event], bool]) -> dict[str, int]:
        """Return the number of records of everybody who asked in these requests, as it was then.

        Args:
            after: The number of the last event before them.
            up_to: The number of the last of them.
            gone: Whether nothing is left of the records that a request is about, which is then left out.
        """
        query = f"SELECT {_COLUMNS} FROM events WHERE kind = 'requested' AND sequence > ? AND sequence <= ?"
        events = [_event(row) for row in self._connection.execute(query, (after, up_to))]
        return {str(event.subject): int(event.payload["records"]) for event in events if not gone(event)}

    def forget_records(self, after: int, up_to: int) -> None:
        """Delete which rows were those of these requests."""
        tables = ["records", "spellings"] if self._has_spellings() else ["records"]
        for table in tables:
            self._connection.execute(f"DELETE FROM {table} WHERE {_REQUESTED}", (after, up_to))

    def empty_log(self) -> None:
        """Move everything from the write-ahead log into the file, so that the log keeps nothing that was deleted.

        While somebody is reading, the log stays as it is until the next time.
        """
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def verify_chain(self) -> list[Event]:
        """Recompute every hash.

        Returns:
            All events, in order.

        Raises:
            LedgerError: An event was edited, inserted or removed.
        """
        previous, events = GENESIS, list[Event]()
        for count, row in enumerate(self._connection.execute(f"SELECT {_COLUMNS} FROM events ORDER BY sequence"), 1):
            if row[0] != count:
                raise LedgerError(f"{self.path} was tampered with: event {count} is missing")
            if row[5] != previous or row[6] != content_key(row[:6]):
                raise LedgerError(f"{self.path} was tampered with: event {count} is not what was recorded")
            previous = row[6]
            events.append(_event(row))
        if not events:
            raise LedgerError(f"{self.path} was tampered with: it holds no events")
        return events

    def sequence_of(self, event_hash: str) -> int | None:
        """Return the number of the event with this hash."""
        row = self._connection.execute("SELECT sequence FROM events WHERE hash = ?", (event_hash,)).fetchone()
        return None if row is None else int(row[0])


_REQUESTED = "identifier IN (SELECT subject FROM events WHERE kind = 'requested' AND sequence > ? AND sequence <= ?)"


@contextmanager
def _connected(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    """Open the file, and say in one sentence what SQLite complains about."""
    try:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=BUSY_SECONDS, isolation_level=None
        )
        try:
            # Committed means on the disk; deleted means overwritten, on free pages too.
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA secure_delete = ON")
            yield connection
        finally:
            connection.close()
    except sqlite3.OperationalError as error:
        hint = "; is the disk full?" if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_IOERR else ""
        raise StorageError(f"cannot use the ledger {path}: {error}{hint}") from error
    except sqlite3.DatabaseError as error:
        raise DataError(f"the ledger {path} is damaged: {error}") from error


def _event(row: tuple[Any, ...]) -> Event:
    sequence, time, kind, subject, text, _, event_hash = row
    try:
        payload = json.loads(text)
    except ValueError as error:
        raise LedgerError(f"event {sequence} of the ledger was tampered with: {error}") from error
    return Event(sequence, time, kind, subject, payload, event_hash)
