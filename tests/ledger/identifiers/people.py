"""Tables whose identifiers cannot lie in a file by chance; and ledgers as the last release wrote them."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pandas as pd

from certified_unlearning.ledger.database.schema import statements
from tests.ledger.tables import write_new, write_table

RELEASED = Path(__file__).with_name("released.sql")
"""A ledger that the last release wrote itself."""


@contextmanager
def last_release() -> Iterator[None]:
    """In the block, `init` makes the tables of the last release; what is written to them later follows from that."""

    def make_tables(connection: sqlite3.Connection, key: bytes) -> None:
        for statement in statements(RELEASED.read_text(encoding="utf-8")):
            if statement.startswith("CREATE"):
                connection.execute(statement)

    with patch("certified_unlearning.ledger.store.make_tables", make_tables):
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
