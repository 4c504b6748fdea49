"""The tables of a ledger's SQLite file, and the connection to it."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from certified_unlearning.errors import DataError, StorageError
from certified_unlearning.ledger.identifiers.names import PRESENT, key_check

BUSY_SECONDS = 30.0
"""The longest time that a command waits for another command that is writing, in seconds."""

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


def make_tables(connection: sqlite3.Connection, key: bytes) -> None:
    """Make the empty tables of the present format, inside a transaction.

    Args:
        connection: The opened file.
        key: The key of identifiers. Only its check value is stored.
    """
    # `executescript` would commit.
    for statement in statements(_SCHEMA):
        connection.execute(statement)
    connection.execute("INSERT INTO identifier_key VALUES (?)", (key_check(key),))
    connection.execute(f"PRAGMA user_version = {PRESENT}")


def statements(script: str) -> Iterator[str]:
    """Yield the statements of an SQL script in which every statement ends at the end of a line."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


@contextmanager
def connected(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    """Open an SQLite file, which is closed when the block ends. SQLite errors are raised as errors of this package.

    Args:
        path: The file.
        mode: The mode, as in an SQLite URI: ``mode=rw``, ``mode=rwc``, ``mode=ro`` or ``immutable=1``.

    Raises:
        StorageError: The file cannot be opened or written, or another command keeps it busy.
        DataError: The file is damaged.
    """
    try:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=BUSY_SECONDS, isolation_level=None
        )
        try:
            # Committed content is on the disk. Deleted content is overwritten, also on free pages.
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
