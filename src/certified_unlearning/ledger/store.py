"""The ledger's SQLite file: events that are only ever appended, each chained to the one before by its hash.

Beside them lies the table of which rows belong to whom: what a request needs, and no more. Features and labels never
enter this file, nor digests of single records; people stand in it under pseudonyms. Functions take identifiers in
clear, and return people by their names in the ledger. Free of heavy imports: a request takes a fraction of a second.
"""

import json
import os
import re
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from certified_unlearning.data.tables.spellings import Group
from certified_unlearning.errors import DataError, StorageError, UnlearningError
from certified_unlearning.files import content_key
from certified_unlearning.ledger.identifiers.keys import MissingKeyError, in_words, place_of, read_key_file
from certified_unlearning.ledger.identifiers.names import FORMATS, PRESENT, Names, Pseudonyms, key_check
from certified_unlearning.ledger.log.file import GENESIS, Row
from certified_unlearning.ledger.log.second_place import Last, Standing, follow, standing_of

Kind = Literal[
    "initialised", "held", "requested", "absent", "planned", "applied", "exported", "withdrawn", "logged", "restored"
]
PersonalKind = Literal["held", "requested", "absent"]
"""Kinds of events about one person: ``absent`` says that somebody asked who had no records in the data."""

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
    folded TEXT NOT NULL,
    identifier TEXT NOT NULL,
    PRIMARY KEY (folded, identifier)
) STRICT, WITHOUT ROWID;
CREATE TABLE identifier_key (
    key_check TEXT NOT NULL
) STRICT;
CREATE TABLE earlier_hashes (
    sequence INTEGER PRIMARY KEY,
    sealed TEXT NOT NULL,
    hidden TEXT,
    tag BLOB NOT NULL
) STRICT;
"""
_COLUMNS = "sequence, time, kind, subject, payload, previous_hash, hash"
_INSERT = f"INSERT INTO events ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"

_SALT = re.compile(r"[0-9a-f]{32}")


class LedgerError(UnlearningError):
    """Something in a model directory is not what its ledger recorded."""


@dataclass(frozen=True)
class Event:
    """One line of the ledger.

    Attributes:
        sequence: Its number: 1, 2, 3, ...
        time: When, in UTC.
        kind: What happened.
        subject: Whose removal was requested or is on hold, or who had no records, by the ledger's name; None for all
            other kinds.
        payload: Everything else.
        hash: SHA-256 of everything above and of the hash before.
        salt: What hides the payload in proofs, hexadecimal; None where it was recorded without one.
    """

    sequence: int
    time: str
    kind: str
    subject: str | None
    payload: dict[str, Any]
    hash: str
    salt: str | None = None


class Record(NamedTuple):
    """The owner of a row.

    Attributes:
        identifier: The person, by the ledger's name.
        row: The row's number in the training copy.
        tag: Proof that `init` wrote the two together.
    """

    identifier: str
    row: int
    tag: bytes


class Earlier(NamedTuple):
    """An event as it was before a migration.

    Attributes:
        sequence: The event's number.
        sealed: A keyed digest of its hash before the migration (`Names.sealed`).
        hidden: The digest of what its leaf does not show.
        tag: Proof that a migration wrote this.
    """

    sequence: int
    sealed: str
    hidden: str | None
    tag: bytes


class Ledger:
    """An open ledger file.

    Use `create` or `opened`; writing takes place inside `transaction`.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, key: bytes | None = None) -> None:
        self.path = path
        self._connection = connection
        self._key = key

    @classmethod
    @contextmanager
    def create(cls, path: Path, key: bytes) -> Iterator["Ledger"]:
        """Make an empty ledger, for the time of the block.

        Args:
            path: Its file.
            key: The key of identifiers.
        """
        with _connected(path, "mode=rwc") as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            # Pseudonyms are inserted all over their table, so 64 MB of it stay in memory; SQLite's default is 2 MB.
            connection.execute("PRAGMA cache_size = -65536")
            ledger = cls(path, connection, key)
            connection.execute("BEGIN IMMEDIATE")
            ledger._make_tables(key)
            connection.execute("COMMIT")
            yield ledger

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

    @property
    def names(self) -> Names:
        """How people are written; it is read each time, because a migration may come in between.

        Raises:
            DataError: A later release wrote the ledger.
        """
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if version not in FORMATS:
            raise DataError(f"the ledger {self.path} has the format {version}, which a later release wrote: use that")
        return FORMATS[version](self.key)

    def key(self) -> bytes:
        """Return the key of identifiers.

        Raises:
            MissingKeyError: It cannot be read.
            LedgerError: It is another than `init` made.
        """
        if self._key is None:
            self._key = self.key_in(place_of(self.path.parent))
        return self._key

    def key_in(self, place: Path) -> bytes:
        """Return the key that a file holds; raises the same errors as `key`."""
        key = read_key_file(place, self.names.without_key)
        # Old releases did not record it.
        if (self._key_check() or key_check(key)) != key_check(key):
            raise LedgerError(
                f"{in_words(place)} was replaced or is another model's: it is not the key that `unlearn init` made, "
                "and with another one people have other names"
            )
        return key

    def missing_key(self) -> MissingKeyError | None:
        """Return why the key of identifiers cannot be read; None where it can.

        Raises:
            LedgerError: It is another than `init` made.
        """
        try:
            self.key()
        except MissingKeyError as error:
            return error
        return None

    def _key_check(self) -> str | None:
        """Return the check value that the key must give, if one was recorded."""
        if self.names.hides_people:
            row = self._connection.execute("SELECT key_check FROM identifier_key").fetchone()
            if row is None:
                raise LedgerError(f"{self.path} was tampered with: it does not say which key of identifiers it has")
            return str(row[0])
        first = self._connection.execute("SELECT payload FROM events ORDER BY sequence LIMIT 1").fetchone()
        return None if first is None else _payload(first[0], 1).get("key_check")

    def _make_tables(self, key: bytes) -> None:
        """Make the empty tables of the present format, inside a transaction."""
        # Not `executescript`, which would commit.
        for statement in statements(_SCHEMA):
            self._connection.execute(statement)
        self._connection.execute("INSERT INTO identifier_key VALUES (?)", (key_check(key),))
        self._connection.execute(f"PRAGMA user_version = {PRESENT}")

    @contextmanager
    def transaction(self, *, follows: bool = True) -> Iterator[None]:
        """Append all or nothing: what the block appends is durable when it ends, and gone if it raises.

        If the log is kept in a second place, too, it is written there first.

        Args:
            follows: Whether it is; a migration writes it anew afterwards.

        Raises:
            DataError: That log knows more than the ledger, or is of other events.
            StorageError: It is missing, or cannot be written.
        """
        self._connection.execute("BEGIN IMMEDIATE")
        take_back: Callable[[], object] | None = None
        try:
            before = self.last()
            yield
            take_back = self._follow(before) if follows else None
            self._connection.execute("COMMIT")
        except BaseException:
            # SQLite has rolled back by itself if the disk was full.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            # A log that lacks committed events gets them with the next event.
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
        """Write what was appended to the log in the second place; return a function that takes it back, or None."""
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

    def earlier_logs(self) -> list[Path]:
        """Return where the log was kept before, which no command writes any more."""
        paths = [event.payload["path"] for event in self.events("logged")]
        places = dict.fromkeys(Path(path) for path in paths if path is not None)
        return [place for place in places if place != self.log()]

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

    def append_requests(self, kind: PersonalKind, requests: Mapping[str, dict[str, Any]]) -> None:
        """Append a request, a hold, or the answer that there are no records, for each person.

        Args:
            kind: Kind of all of these events.
            requests: What the event of each person records: ``records``, their number; ``added_with``, the version that
                added them if they came after the start; and the terms.
        """
        names = self.names
        self._append(kind, ((names.stored(each), payload) for each, payload in requests.items()))

    def _append(self, kind: Kind, entries: Iterable[tuple[str | None, dict[str, Any]]]) -> None:
        sequence, previous = self.last()
        time = datetime.now(UTC).isoformat(timespec="seconds")
        rows, salted = [], self.names.hides_people
        for subject, payload in entries:
            sequence += 1
            salt = {"salt": secrets.token_hex(16)} if salted else {}
            text = json.dumps(payload | salt, sort_keys=True, separators=(",", ":"), allow_nan=False)
            row = (sequence, time, kind, subject, text, previous)
            previous = content_key(row)
            rows.append((*row, previous))
        self._connection.executemany(_INSERT, rows)

    def events(self, *kinds: Kind) -> list[Event]:
        """Return the events of these kinds, in order."""
        marks = ", ".join("?" * len(kinds))
        query = f"SELECT {_COLUMNS} FROM events WHERE kind IN ({marks}) ORDER BY sequence"
        return [event_of(row) for row in self._connection.execute(query, kinds)]

    def request_of(self, subject: str) -> Event | None:
        """Return the request to remove somebody's records, if there was one that is not on hold."""
        return self._event_of("requested", subject)

    def hold_of(self, subject: str) -> Event | None:
        """Return when somebody's request was put on hold, if it was; it may have been released since."""
        return self._event_of("held", subject)

    def answered_absent(self) -> dict[str, Event]:
        """Return the answers that there are no records of somebody in the data, by the ledger's names."""
        return {str(event.subject): event for event in self.events("absent")}

    def request_named(self, name: str) -> Event | None:
        """Return the same for a person's name in the ledger."""
        return self._event_named("requested", name)

    def _event_of(self, kind: Kind, identifier: str) -> Event | None:
        return self._event_named(kind, self.names.stored(identifier))

    def _event_named(self, kind: Kind, name: str) -> Event | None:
        query = f"SELECT {_COLUMNS} FROM events WHERE kind = ? AND subject = ?"
        row = self._connection.execute(query, (kind, name)).fetchone()
        return None if row is None else event_of(row)

    def requests_after(self, sequence: int) -> list[Event]:
        """Return the requests with larger sequence numbers, in order."""
        query = f"SELECT {_COLUMNS} FROM events WHERE kind = 'requested' AND sequence > ? ORDER BY sequence"
        return [event_of(row) for row in self._connection.execute(query, (sequence,))]

    def holds(self) -> list[Event]:
        """Return the requests that are on hold, in order."""
        query = (
            f"SELECT {_COLUMNS} FROM events AS hold WHERE kind = 'held' AND NOT EXISTS "
            "(SELECT 1 FROM events WHERE kind = 'requested' AND subject = hold.subject) ORDER BY sequence"
        )
        return [event_of(row) for row in self._connection.execute(query)]

    def count_requests(self, after: int) -> tuple[int, int]:
        """Return how many requests have a sequence number above ``after``, and the largest number of all requests."""
        query = "SELECT count(*), coalesce(max(sequence), ?) FROM events WHERE kind = 'requested' AND sequence > ?"
        count, last = self._connection.execute(query, (after, after)).fetchone()
        return count, last

    def add_records(self, owners: Iterable[tuple[str, int]]) -> None:
        """Add rows.

        Args:
            owners: A pair for each row: the person's identifier, and the row's number in the training copy.
        """
        names, people = self.names, dict[str, str]()
        records = []
        for identifier, row in owners:
            if identifier not in people:
                people[identifier] = names.stored(identifier)
            records.append((people[identifier], row, names.tag(people[identifier], row)))
        # In the order of the names, which are random: SQLite appends quickly and inserts slowly.
        records.sort()
        self._connection.executemany("INSERT INTO records (identifier, row, tag) VALUES (?, ?, ?)", records)
        if names.hides_people:
            self._insert_spellings(sorted((names.folded(identifier), name) for identifier, name in people.items()))

    def add_spellings(self, groups: Iterable[Group]) -> None:
        """Add identifiers that a person would take for one, though they count as several people.

        Where people stand under pseudonyms, each one's spelling is there already.
        """
        if self.names.hides_people or not self._has_spellings():
            return
        self._insert_spellings(
            (group.folded, identifier) for group in groups for identifier in group.people if len(group.people) > 1
        )

    def _insert_spellings(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._connection.executemany("INSERT OR IGNORE INTO spellings (folded, identifier) VALUES (?, ?)", pairs)

    def other_spellings(self, identifier: str) -> list[str]:
        """Return the other people who still have rows, and whose identifier a person would take for this one."""
        if not self._has_spellings():
            return []
        names = self.names
        query = (
            "SELECT identifier FROM spellings WHERE folded = ? AND identifier != ? "
            "AND EXISTS (SELECT 1 FROM records WHERE records.identifier = spellings.identifier) ORDER BY identifier"
        )
        found = self._connection.execute(query, (names.folded(identifier), names.stored(identifier)))
        return [str(other) for (other,) in found]

    def like(self, identifier: str) -> str | None:
        """Return somebody with rows whose identifier a person would take for this one."""
        return self._like(identifier, "SELECT identifier FROM records")

    def requested_like(self, identifier: str) -> str | None:
        """Return somebody whose removal was requested, and whose identifier a person would take for this one."""
        return self._like(identifier, _PEOPLE_REQUESTED)

    def _like(self, identifier: str, people: str) -> str | None:
        names = self.names
        wanted = names.folded(identifier)
        if names.hides_people:
            query = f"SELECT identifier FROM spellings WHERE folded = ? AND identifier IN ({people}) LIMIT 1"
            row = self._connection.execute(query, (wanted,)).fetchone()
            return None if row is None else str(row[0])
        everybody = self._connection.execute(f"SELECT DISTINCT * FROM ({people})")
        return next((str(each) for (each,) in everybody if names.folded(each) == wanted), None)

    def alike(self, identifiers: Iterable[str]) -> dict[str, list[str]]:
        """Return look-alikes of some people, among all who have rows or whose removal was requested.

        Args:
            identifiers: The identifiers of these people, in clear.

        Returns:
            The look-alikes of each person who has any, by the ledger's names.
        """
        names = self.names
        if names.hides_people:
            spellings: Iterable[tuple[str, str]] = self._connection.execute("SELECT identifier, folded FROM spellings")
        else:
            spellings = ((each, names.folded(each)) for each in self.people() | self.people_requested())
        by_spelling: dict[str, list[str]] = {}
        for name, spelling in spellings:
            by_spelling.setdefault(spelling, []).append(name)
        found = {}
        for identifier in identifiers:
            name = names.stored(identifier)
            others = [each for each in by_spelling.get(names.folded(identifier), []) if each != name]
            if others:
                found[identifier] = others
        return found

    def _has_spellings(self) -> bool:
        """Return whether there is a table of them: in older ledgers there is none."""
        query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'spellings'"
        return self._connection.execute(query).fetchone() is not None

    def count_records_of(self, identifier: str) -> int:
        """Return the number of a person's rows."""
        return self.count_records_named(self.names.stored(identifier))

    def count_records_named(self, name: str) -> int:
        """Return the same for a person's name in the ledger."""
        query = "SELECT count(*) FROM records WHERE identifier = ?"
        return int(self._connection.execute(query, (name,)).fetchone()[0])

    def row_of(self, identifier: str) -> int | None:
        """Return the first of one person's rows; None where there is none."""
        query = "SELECT min(row) FROM records WHERE identifier = ?"
        row = self._connection.execute(query, (self.names.stored(identifier),)).fetchone()[0]
        return None if row is None else int(row)

    def people(self) -> set[str]:
        """Return everybody who has rows, by the ledger's names."""
        return {str(each) for (each,) in self._connection.execute("SELECT DISTINCT identifier FROM records")}

    def people_requested(self) -> set[str]:
        """Return everybody whose removal was requested, by the ledger's names."""
        return {str(each) for (each,) in self._connection.execute(_PEOPLE_REQUESTED)}

    def count_records(self) -> int:
        """Return the number of rows that belong to somebody."""
        return int(self._connection.execute("SELECT count(*) FROM records").fetchone()[0])

    def count_rows(self) -> int:
        """Return the number of different rows that belong to somebody."""
        return int(self._connection.execute("SELECT count(DISTINCT row) FROM records").fetchone()[0])

    def count_people(self) -> int:
        """Return how many people there are."""
        return int(self._connection.execute("SELECT count(DISTINCT identifier) FROM records").fetchone()[0])

    def rows(self) -> Iterator[int]:
        """Yield the numbers of all rows that belong to somebody."""
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
        events = [event_of(row) for row in self._connection.execute(query, (after, up_to))]
        return {str(event.subject): int(event.payload["records"]) for event in events if not gone(event)}

    def forget_records(self, after: int, up_to: int) -> None:
        """Delete the owners of the rows of these requests.

        The keyed digest of a hidden person's spelling stays, as the pseudonym does: `add` refuses people who come back.
        """
        clear = self._has_spellings() and not self.names.hides_people
        tables = ["records", "spellings"] if clear else ["records"]
        for table in tables:
            self._connection.execute(f"DELETE FROM {table} WHERE {_REQUESTED}", (after, up_to))

    def empty_log(self) -> bool:
        """Move everything from the write-ahead log into the file, so that the log keeps nothing that was deleted.

        While somebody is reading, the log stays as it is until the next time.

        Returns:
            Whether it is empty now.
        """
        return not self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]

    def hide_people(self, earlier: Iterable[Earlier]) -> None:
        """Write everybody under a pseudonym, and all in the present format; in a transaction.

        Args:
            earlier: What each event was before, so that its leaf in proofs and hashes of then stay known.
        """
        key, names = self.key(), Pseudonyms(self.key)
        events = self._connection.execute(f"SELECT {_COLUMNS} FROM events ORDER BY sequence").fetchall()
        owners = [(record.identifier, record.row) for record in self.records()]
        requested = self.people_requested()
        kept = [*earlier]
        for table in ("events", "records", "spellings"):
            self._connection.execute(f"DROP TABLE IF EXISTS {table}")
        self._make_tables(key)
        previous, rows = GENESIS, []
        for sequence, time, kind, subject, text, _, _ in events:
            row = (sequence, time, kind, None if subject is None else names.stored(subject), text, previous)
            previous = content_key(row)
            rows.append((*row, previous))
        self._connection.executemany(f"INSERT INTO events ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        self.add_records(owners)
        self._insert_spellings((names.folded(each), names.stored(each)) for each in sorted(requested))
        self._connection.executemany("INSERT INTO earlier_hashes VALUES (?, ?, ?, ?)", kept)

    def earlier(self) -> list[Earlier]:
        """Return what the events were before a migration; nothing where there was none."""
        if not self.names.hides_people:
            return []
        query = "SELECT sequence, sealed, hidden, tag FROM earlier_hashes ORDER BY sequence"
        return [Earlier._make(row) for row in self._connection.execute(query)]

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
            events.append(event_of(row))
        if not events:
            raise LedgerError(f"{self.path} was tampered with: it holds no events")
        return events

    def hashes(self) -> list[str]:
        """Return the hashes of all events, in order."""
        return [str(each) for (each,) in self._connection.execute("SELECT hash FROM events ORDER BY sequence")]

    def sequence_of(self, event_hash: str) -> int | None:
        """Return the number of the event with this hash."""
        row = self._connection.execute("SELECT sequence FROM events WHERE hash = ?", (event_hash,)).fetchone()
        return None if row is None else int(row[0])


_PEOPLE_REQUESTED = "SELECT subject FROM events WHERE kind = 'requested' AND subject IS NOT NULL"
_REQUESTED = "identifier IN (SELECT subject FROM events WHERE kind = 'requested' AND sequence > ? AND sequence <= ?)"


def statements(script: str) -> Iterator[str]:
    """Yield the statements of an SQL script in which every statement ends at the end of a line."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


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


def event_of(row: Sequence[Any]) -> Event:
    """Return an event, as the ledger's file or a log has it.

    Raises:
        LedgerError: Its payload is none.
    """
    sequence, time, kind, subject, text, _, event_hash = row
    payload = _payload(text, sequence)
    salt = payload.pop("salt", None)
    if salt is not None and not (isinstance(salt, str) and _SALT.fullmatch(salt)):
        raise LedgerError(f"event {sequence} of the ledger was tampered with: {salt!r} is no salt")
    return Event(sequence, time, kind, subject, payload, event_hash, salt)


def _payload(text: str, sequence: int) -> dict[str, Any]:
    try:
        payload = json.loads(text)
    except ValueError as error:
        raise LedgerError(f"event {sequence} of the ledger was tampered with: {error}") from error
    if not isinstance(payload, dict):
        raise LedgerError(f"event {sequence} of the ledger was tampered with: its payload is no object")
    return payload
