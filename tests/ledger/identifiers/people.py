"""Tables whose identifiers cannot lie in a file by chance; and ledgers as the last release wrote them."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pandas as pd

from certified_unlearning.ledger.store import Ledger
from tests.ledger.tables import write_new, write_table

SCHEMA = """
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
"""Of the last release; `released.sql` is what that release wrote itself."""


@contextmanager
def last_release() -> Iterator[None]:
    """In the block, `init` makes the tables of the last release; what is written to them later follows from that."""

    def make_tables(self: Ledger, key: bytes) -> None:
        statement = ""
        for line in SCHEMA.splitlines(keepends=True):
            statement += line
            if sqlite3.complete_statement(statement):
                self._connection.execute(statement)
                statement = ""

    with patch.object(Ledger, "_make_tables", make_tables):
        yield


def address(person: str) -> str:
    """Return an identifier that stands in no file but by mistake."""
    return f"{person}@unlikely-name.example"


def write_addresses(path: Path, *, new: bool = False) -> pd.DataFrame:
    """Write a table of people, or of new people, with such identifiers."""
    table = write_new(path) if new else write_table(path)
    table["person"] = table["person"].map(address)
    table.to_csv(path, index=False)
    return table


def files_with(directory: Path, *needles: bytes) -> set[str]:
    """Return the names of the files of a directory in which one of the texts lies, whatever its case."""
    found = set()
    for path in directory.rglob("*"):
        content = path.read_bytes().lower() if path.is_file() else b""
        if any(needle.lower() in content for needle in needles):
            found.add(path.name)
    return found
