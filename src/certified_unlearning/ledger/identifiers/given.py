"""Identifiers from options and files, converted to text by the same rules as in tables.

The module has no heavy imports.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from certified_unlearning.data.tables import csv_file
from certified_unlearning.data.tables.declaration import text_of
from certified_unlearning.data.tables.spellings import ROUNDED, folded
from certified_unlearning.errors import DataError, ParameterError

_ROWS_AT_ONCE = 1 << 16
_NAME = re.compile(r"([^\W\d]*[ ._-])?(id|ids|identifier|uuid|number|key)", re.IGNORECASE)
"""Names that columns of identifiers often have."""


class Given(NamedTuple):
    """Identifiers that somebody gave.

    Attributes:
        people: The different identifiers, in the order in which they were given.
        repeated: The identifiers that were given more than once.
        likely_header: The first line of a file without the expected header, if this line may be the name of another
            column.
    """

    people: tuple[str, ...]
    repeated: tuple[str, ...]
    likely_header: str | None


class _Lines(NamedTuple):
    """The content of a file of identifiers; attributes as in `Given`."""

    identifiers: list[str]
    likely_header: str | None


def given_people(identifiers: Sequence[str], file: Path | None, column: str) -> Given:
    """Return the identifiers that were given as options and in a file.

    A file with a header and no row below it names nobody. An empty file is refused: an export may have failed.

    Args:
        identifiers: The identifiers that were given as options.
        file: A CSV file of one column, or with a column named like the data's identifier column.
        column: The name of the data's identifier column.

    Raises:
        ParameterError: Nobody is named, or somebody is named by a number that a program has rounded.
        DataError: The file cannot be read.
    """
    lines = _Lines([], None) if file is None else _read(file, column)
    given = [*identifiers, *lines.identifiers]
    rounded = next((identifier for identifier in given if ROUNDED.fullmatch(identifier)), None)
    if rounded is not None:
        raise ParameterError(
            f"identifier {rounded!r} is a number that a program has rounded, so it may be somebody else's; export "
            "identifiers as text; nothing was recorded"
        )
    if not given and file is None:
        raise ParameterError("no identifier is named; give --id, or --file with a file of identifiers")
    counts = Counter(str(text_of(identifier)) for identifier in given)
    repeated = tuple(identifier for identifier, count in counts.items() if count > 1)
    return Given(tuple(counts), repeated, lines.likely_header)


def require_once(given: Given, file: Path | None, advice: str = "") -> None:
    """Raise `ParameterError` if an identifier is given twice, and `DataError` if a file contains no identifier.

    Args:
        given: The given identifiers.
        file: The file.
        advice: The end of the message about identifiers that were given twice.
    """
    if not given.people:
        raise DataError(f"{file} holds no identifiers")
    if given.repeated:
        raise ParameterError(f"{subject_of(given.repeated)} named more than once; nothing was recorded{advice}")


@contextmanager
def recorded_in_utf8() -> Iterator[None]:
    """Raise `ParameterError`, with a one-line message, if the block gives SQLite a text that is not UTF-8."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise ParameterError(f"{error.object!r} is not UTF-8 text; nothing was recorded") from error


def subject_of(identifiers: Sequence[str]) -> str:
    """Return the identifiers as the subject of a sentence, with its verb."""
    first = f"identifier {identifiers[0]!r}"
    return f"{first} is" if len(identifiers) == 1 else f"{first} (and {len(identifiers) - 1:,} more) are"


def _read(path: Path, column: str) -> _Lines:
    if path.suffix.lower() in (".parquet", ".pq"):
        raise DataError(f"{path} is named like Parquet, but identifiers are read from CSV; export them as CSV")
    blocks = csv_file.read(path, _ROWS_AT_ONCE)
    first = next(blocks, [[]])[0]
    rows = [row for block in blocks for row in block]
    if first.count(column) > 1:
        raise DataError(f"{path} has two columns {column!r}; rename one")
    likely_header = None
    if column in first:
        place = first.index(column)
    elif not first:
        raise DataError(f"{path} is empty; to name nobody, give a file that has only the header {column!r}")
    elif len(first) == 1 and column in re.split(r"[;\t|]", first[0]):
        csv_file.require_commas(path)
        raise DataError(f"{path} has one column, {first[0]!r}, but none that is called {column!r}")
    elif len(first) > 1:
        raise DataError(f"{path} has several columns and none of them is called {column!r}")
    else:
        likely_header = str(text_of(first[0])) if _may_be_header(first[0], column, [row[0] for row in rows]) else None
        place, rows = 0, [first, *rows]
    empty = next((number for number, row in enumerate(rows, 1) if not row[place].strip()), None)
    if empty is not None:
        raise DataError(f"{path}, row {empty}: {column} is missing; leave out the row")
    return _Lines([row[place] for row in rows], likely_header)


def _may_be_header(first: str, column: str, others: Sequence[str]) -> bool:
    """Return whether the first line reads like a column's name, or lacks digits while all other lines have some."""
    if folded(first) == folded(column) or _NAME.fullmatch(first.strip()):
        return True
    return bool(others) and not re.search(r"\d", first) and all(re.search(r"\d", other) for other in others)
