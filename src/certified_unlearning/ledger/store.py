"""The ledger: a log to which events are only appended. Each event contains the hash of the previous event.

`Ledger` opens the SQLite file, appends events, and looks them up. `Ledger.owners` has the owner of each row. The file
has everything that a request needs, and nothing else: no features, no labels, and no digests of single records. People
have pseudonyms in it. Functions take people's identifiers in clear text, and return people's names in the ledger. There
are no heavy imports, so that a request takes a fraction of a second.
"""

import json
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from certified_unlearning.errors import DataError, LedgerError
from certified_unlearning.files import content_key
from certified_unlearning.ledger.database.events import COLUMNS, Event, Kind, PersonalKind, event_of, payload_of
from certified_unlearning.ledger.database.owners import Owners
from certified_unlearning.ledger.database.schema import connected, make_tables
from certified_unlearning.ledger.identifiers.keys import MissingKeyError, in_words, place_of, read_key_file
from certified_unlearning.ledger.identifiers.names import FORMATS, Names, Pseudonyms, key_check
from certified_unlearning.ledger.log.file import GENESIS, Row
from certified_unlearning.ledger.log.second_place import Last, Standing, follow, standing_of

_INSERT = f"INSERT INTO events ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"


class Earlier(NamedTuple):
    """An event as it was before a migration.

    Attributes:
        sequence: The event's number.
        sealed: A keyed digest of the event's hash before the migration (`Names.sealed`).
        hidden: The digest of the content that the event's leaf does not show; None if the leaf shows everything.
        tag: Proof that a migration wrote the sealed hash.
    """

    sequence: int
    sealed: str
    hidden: str | None
    tag: bytes


class Ledger:
    """An open ledger file.

    Use `create` or `opened` to get one. Everything is written inside `transaction`.

    Attributes:
        path: The file.
        owners: The owners of the rows.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, key: bytes | None = None) -> None:
        self.path = path
        self._connection = connection
        self._key = key
        self.owners = Owners(connection, lambda: self.names)

    @classmethod
    @contextmanager
    def create(cls, path: Path, key: bytes) -> Iterator["Ledger"]:
        """Make an empty ledger, which is open until the block ends.

        Args:
            path: The file of the ledger.
            key: The key that replaces identifiers by pseudonyms.
        """
        with connected(path, "mode=rwc") as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            # Pseudonyms are inserted all over their table, so 64 MB of it stay in memory; SQLite's default is 2 MB.
            connection.execute("PRAGMA cache_size = -65536")
            ledger = cls(path, connection, key)
            connection.execute("BEGIN IMMEDIATE")
            make_tables(connection, key)
            connection.execute("COMMIT")
            yield ledger

    @classmethod
    @contextmanager
    def opened(cls, path: Path, *, read_only: bool = False) -> Iterator["Ledger"]:
        """Open a ledger, which is closed when the block ends.

        Raises:
            DataError: The file is missing or damaged.
            StorageError: The file cannot be opened or written, or another command keeps it busy.
        """
        if not path.exists():
            raise DataError(
                f"{path.parent} is not a model directory ({path.name} is missing); `unlearn init` makes one"
            )
        mode = "mode=rw"
        if read_only:
            # If SQLite may not make its side files and there are none, no command is writing either.
            lonely = not os.access(path.parent, os.W_OK) and not path.with_name(f"{path.name}-wal").exists()
            mode = "immutable=1" if lonely else "mode=ro"
        with connected(path, mode) as connection:
            yield cls(path, connection)

    @property
    def names(self) -> Names:
        """The format in which the ledger names people. It is read each time, because a migration may change it.

        Raises:
            DataError: A later release wrote the ledger.
        """
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if version not in FORMATS:
            raise DataError(f"the ledger {self.path} has the format {version} of a later release: use that release")
        return FORMATS[version](self.key)

    def key(self) -> bytes:
        """Return the key of identifiers.

        Raises:
            MissingKeyError: The key cannot be read.
            LedgerError: The key is not the one that `init` made.
        """
        if self._key is None:
            self._key = self.key_in(place_of(self.path.parent))
        return self._key

    def key_in(self, place: Path) -> bytes:
        """Return the key in the file ``place``; this raises the same errors as `key`."""
        key = read_key_file(place, self.names.without_key)
        # Old releases did not record the check value.
        if (self._key_check() or key_check(key)) != key_check(key):
            raise LedgerError(
                f"{in_words(place)} was replaced or is another model's: it is not the key that `unlearn init` made, "
                "and with another key, people would have other names in the ledger"
            )
        return key

    def missing_key(self) -> MissingKeyError | None:
        """Return the error that says why the key of identifiers cannot be read; None if it can be read.

        Raises:
            LedgerError: The key is not the one that `init` made.
        """
        try:
            self.key()
        except MissingKeyError as error:
            return error
        return None

    def _key_check(self) -> str | None:
        """Return the recorded check value of the key, if there is one."""
        if self.names.hides_people:
            row = self._connection.execute("SELECT key_check FROM identifier_key").fetchone()
            if row is None:
                raise LedgerError(f"{self.path} was tampered with: it does not say which key of identifiers it uses")
            return str(row[0])
        first = self._connection.execute("SELECT payload FROM events ORDER BY sequence LIMIT 1").fetchone()
        return None if first is None else payload_of(first[0], 1).get("key_check")

    @contextmanager
    def transaction(self, *, follows: bool = True) -> Iterator[None]:
        """Append all or nothing: what the block appends is durable when the block ends, and undone if it raises.

        If there is a second copy of the log, this copy is written first.

        Args:
            follows: Whether the second copy of the log is written. A migration rewrites this copy afterwards.

        Raises:
            DataError: The second copy of the log has events that the ledger lacks, or has other events.
            StorageError: The second copy of the log is missing, or cannot be written.
        """
        self._connection.execute("BEGIN IMMEDIATE")
        take_back: Callable[[], object] | None = None
        try:
            before = self.last()
            yield
            take_back = self._follow(before) if follows else None
            self._connection.execute("COMMIT")
        except BaseException:
            # If the disk was full, SQLite has rolled back by itself.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            # If the events were committed nevertheless, the second copy of the log gets them with the next event.
            if take_back is not None:
                take_back()
            raise

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """If the block raises, undo what it wrote; the surrounding transaction continues."""
        self._connection.execute("SAVEPOINT attempt")
        try:
            yield
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK TO attempt")
            raise
        self._connection.execute("RELEASE attempt")

    def _follow(self, before: Last) -> Callable[[], object] | None:
        """Write new events to the second copy of the log.

        Return a function that undoes this, or None if nothing was written.
        """
        path = self.log()
        if path is None or self.last() == before:
            return None
        is_new = any(event.sequence > before.sequence for event in self.events("logged"))
        return follow(path, self.path.parent, before, self.hash_of, self.rows_after, is_new=is_new)

    def log(self) -> Path | None:
        """Return the file of the second copy of the log; None if the ledger names no second copy."""
        query = "SELECT payload FROM events WHERE kind = 'logged' ORDER BY sequence DESC LIMIT 1"
        row = self._connection.execute(query).fetchone()
        path = None if row is None else json.loads(row[0])["path"]
        return None if path is None else Path(path)

    def earlier_logs(self) -> list[Path]:
        """Return the files of earlier second copies of the log, which no command writes any more."""
        paths = [event.payload["path"] for event in self.events("logged")]
        places = dict.fromkeys(Path(path) for path in paths if path is not None)
        return [place for place in places if place != self.log()]

    def standing(self) -> Standing | None:
        """Return the state of the second copy of the log, compared with the ledger.

        None if the ledger names no second copy.
        """
        path = self.log()
        return None if path is None else standing_of(path, self.last(), self.hash_of)

    def last(self) -> Last:
        """Return the number and the hash of the last event."""
        row = self._connection.execute("SELECT sequence, hash FROM events ORDER BY sequence DESC LIMIT 1").fetchone()
        return Last(0, GENESIS) if row is None else Last(*row)

    def hash_of(self, sequence: int) -> str | None:
        """Return the hash of the event with this number; None if there is no such event."""
        row = self._connection.execute("SELECT hash FROM events WHERE sequence = ?", (sequence,)).fetchone()
        return None if row is None else str(row[0])

    def rows_after(self, sequence: int) -> list[Row]:
        """Return the rows of all events with numbers above ``sequence``, in order."""
        query = f"SELECT {COLUMNS} FROM events WHERE sequence > ? ORDER BY sequence"
        return self._connection.execute(query, (sequence,)).fetchall()

    def insert(self, rows: Iterable[Row]) -> None:
        """Append events that were recorded elsewhere. They are not changed, so heads and receipts stay valid."""
        self._connection.executemany(_INSERT, rows)

    def append(self, kind: Kind, payload: dict[str, Any]) -> None:
        """Append an event of this kind, without a subject."""
        self._append(kind, [(None, payload)])

    def append_requests(self, kind: PersonalKind, requests: Mapping[str, dict[str, Any]]) -> None:
        """Append a request, a hold, or the answer that there are no records, for each person.

        Args:
            kind: The kind of the events.
            requests: The payload of the event of each person, by identifier. It has the number of the person's
                ``records``, the terms and, if the records were added after the start, the version ``added_with``.
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
        query = f"SELECT {COLUMNS} FROM events WHERE kind IN ({marks}) ORDER BY sequence"
        return [event_of(row) for row in self._connection.execute(query, kinds)]

    def request_of(self, subject: str) -> Event | None:
        """Return the request to remove a person's records; None if there is none, or if it is on hold."""
        return self._event_of("requested", subject)

    def hold_of(self, subject: str) -> Event | None:
        """Return the hold on a person's request, if there was one; it may have been released since."""
        return self._event_of("held", subject)

    def answered_absent(self) -> dict[str, Event]:
        """Return the answers to people who had no records in the data, by their names in the ledger."""
        return {str(event.subject): event for event in self.events("absent")}

    def request_named(self, name: str) -> Event | None:
        """Return the result of `request_of`, for a person's name in the ledger."""
        return self._event_named("requested", name)

    def _event_of(self, kind: Kind, identifier: str) -> Event | None:
        return self._event_named(kind, self.names.stored(identifier))

    def _event_named(self, kind: Kind, name: str) -> Event | None:
        query = f"SELECT {COLUMNS} FROM events WHERE kind = ? AND subject = ?"
        row = self._connection.execute(query, (kind, name)).fetchone()
        return None if row is None else event_of(row)

    def requests_after(self, sequence: int) -> list[Event]:
        """Return the requests with numbers above ``sequence``, in order."""
        query = f"SELECT {COLUMNS} FROM events WHERE kind = 'requested' AND sequence > ? ORDER BY sequence"
        return [event_of(row) for row in self._connection.execute(query, (sequence,))]

    def holds(self) -> list[Event]:
        """Return the requests that are on hold, in order."""
        query = (
            f"SELECT {COLUMNS} FROM events AS hold WHERE kind = 'held' AND NOT EXISTS "
            "(SELECT 1 FROM events WHERE kind = 'requested' AND subject = hold.subject) ORDER BY sequence"
        )
        return [event_of(row) for row in self._connection.execute(query)]

    def count_requests(self, after: int) -> tuple[int, int]:
        """Return how many requests have a number above ``after``, and the largest of these numbers.

        If no request has a number above ``after``, return 0 and ``after``.
        """
        query = "SELECT count(*), coalesce(max(sequence), ?) FROM events WHERE kind = 'requested' AND sequence > ?"
        count, last = self._connection.execute(query, (after, after)).fetchone()
        return count, last

    def requests(self, after: int, up_to: int, gone: Callable[[Event], bool]) -> dict[str, int]:
        """Return, for each request in a range, the number of records that the person had at the time of the request.

        Args:
            after: The number of the last event before the requests.
            up_to: The number of the last request.
            gone: A function that returns whether the person whom a request names has no records left. Requests for
                which the function returns true are left out.
        """
        query = f"SELECT {COLUMNS} FROM events WHERE kind = 'requested' AND sequence > ? AND sequence <= ?"
        events = [event_of(row) for row in self._connection.execute(query, (after, up_to))]
        return {str(event.subject): int(event.payload["records"]) for event in events if not gone(event)}

    def empty_log(self) -> bool:
        """Move everything from SQLite's write-ahead log into the file, so that this log keeps no deleted content.

        While another command is reading, the write-ahead log stays unchanged.

        Returns:
            Whether the write-ahead log is empty now.
        """
        return not self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]

    def hide_people(self, earlier: Iterable[Earlier]) -> None:
        """Give all people pseudonyms, and write all tables in the present format, inside a transaction.

        Args:
            earlier: Each event as it was before the migration, so that its leaf in proofs and its former hash stay
                known.
        """
        key, names = self.key(), Pseudonyms(self.key)
        events = self._connection.execute(f"SELECT {COLUMNS} FROM events ORDER BY sequence").fetchall()
        owners = [(record.identifier, record.row) for record in self.owners.records()]
        requested = self.owners.people_requested()
        kept = [*earlier]
        for table in ("events", "records", "spellings"):
            self._connection.execute(f"DROP TABLE IF EXISTS {table}")
        make_tables(self._connection, key)
        previous, rows = GENESIS, []
        for sequence, time, kind, subject, text, _, _ in events:
            row = (sequence, time, kind, None if subject is None else names.stored(subject), text, previous)
            previous = content_key(row)
            rows.append((*row, previous))
        self._connection.executemany(_INSERT, rows)
        self.owners.add_records(owners)
        self.owners.insert_spellings((names.folded(each), names.stored(each)) for each in sorted(requested))
        self._connection.executemany("INSERT INTO earlier_hashes VALUES (?, ?, ?, ?)", kept)

    def earlier(self) -> list[Earlier]:
        """Return the events as they were before a migration; an empty list if there was none."""
        if not self.names.hides_people:
            return []
        query = "SELECT sequence, sealed, hidden, tag FROM earlier_hashes ORDER BY sequence"
        return [Earlier._make(row) for row in self._connection.execute(query)]

    def verify_chain(self) -> list[Event]:
        """Recompute the hashes of all events.

        Returns:
            All events, in order.

        Raises:
            LedgerError: An event was edited, inserted or removed.
        """
        previous, events = GENESIS, list[Event]()
        for count, row in enumerate(self._connection.execute(f"SELECT {COLUMNS} FROM events ORDER BY sequence"), 1):
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
        """Return the number of the event with this hash; None if there is no such event."""
        row = self._connection.execute("SELECT sequence FROM events WHERE hash = ?", (event_hash,)).fetchone()
        return None if row is None else int(row[0])
