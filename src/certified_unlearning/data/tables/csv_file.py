"""Strict reading of a CSV file by Python's `csv`. All rows must have the same length. Every error is one sentence.

A reader that repairs what it cannot parse loses people's rows: an unclosed quote swallows the rows below it. The module
has no heavy imports, because removal requests use it, too, to read files of identifiers.
"""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from certified_unlearning.errors import DataError
from certified_unlearning.text import counted

_UNDECODED = re.compile("[\udc80-\udcff]")
"""The characters into which ``surrogateescape`` turns bytes that are not UTF-8."""
_MAGIC = {b"PAR1": "Parquet", b"\x1f\x8b": "compressed (gzip)", b"PK": "a zip archive or an Excel workbook"}
"""First bytes of common file types that are not text."""
_LINE_BREAK = re.compile(r"\r\n|\r|\n")


class Prose(NamedTuple):
    """Columns of text, whose values may run over several lines with any number of commas.

    A stray quote can make whole rows part of such a value. A line of the value counts as such a row only if it has a
    label in the place of the label column.

    Attributes:
        columns: The names of the columns of text.
        label: The column of labels; None to skip the search for swallowed rows.
        is_label: A function that returns whether a value of the column of labels can be a label.
    """

    columns: Collection[str] = ()
    label: str | None = None
    is_label: Callable[[str], bool] = bool

    def holds_rows(self, values: Sequence[str], names: Sequence[str], place: int) -> bool:
        """Return whether this value contains whole rows, or the end of one row and the beginning of another."""
        lines = [next(csv.reader([line]), []) for line in _LINE_BREAK.split(values[place])]
        if self.label not in names or len(lines) == 1:
            return False
        of_label = names.index(self.label)

        def is_row(fields: Sequence[str]) -> bool:
            return len(fields) == len(names) and self.is_label(fields[of_label])

        first, last = [*values[:place], *lines[0]], [*lines[-1], *values[place + 1 :]]
        return any(map(is_row, lines[1:-1])) or (is_row(first) and is_row(last))


def read(path: str | Path, rows_at_once: int, prose: Prose | None = None) -> Iterator[list[list[str]]]:
    """Yield the rows of a CSV file in blocks; the first block is the header alone. Blank lines are skipped.

    Args:
        path: The file; one whose name ends in ``.gz``, in upper or lower case, is decompressed.
        rows_at_once: The largest number of rows in a block.
        prose: Columns of text, if known.

    Raises:
        DataError: The file cannot be opened or decompressed, or is not UTF-8 text. Or a quote is not closed, text
            follows a closing quote, a row has more or fewer columns than the header, or a quoted value seems to hold
            whole rows. The message names the row, counted from 1 after the header, and its line.
    """
    row, line = 0, 0  # The number and the line of the last row that was read.
    width: int | None = None
    names: list[str] = []
    block: list[list[str]] = []
    with _readable(path), _text(path, "strict") as text:
        reader = csv.reader(text, strict=True)
        try:
            for values in reader:
                first_line, line = line + 1, reader.line_num
                if not values:
                    continue
                if width is None:
                    width, names = len(values), _checked_header(values, path)
                    yield [names]
                    continue
                row += 1
                if len(values) != width:
                    raise DataError(
                        f"{_where(path, row, first_line)} has {counted(len(values), 'column')}, but the header has "
                        f"{width}; is a quote or a comma missing, is there one too many, or is this line not a row?"
                    )
                if values == names and width > 1:
                    raise DataError(
                        f"{_where(path, row, first_line)} repeats the header; leave out the line, and check "
                        "whether two files were joined"
                    )
                if line > first_line and _holds_rows(values, names, prose or Prose()):
                    raise DataError(
                        f"{_where(path, row, first_line)}: a quoted value runs on to line {line}, and its lines "
                        "have as many commas as a row has; is a quote missing, or is there one too many? If not, take "
                        "the line breaks out of the value, declare its column as text, or leave it out"
                    )
                block.append(values)
                if len(block) == rows_at_once:
                    yield block
                    block = []
        except csv.Error as error:
            if width is None:
                raise DataError(f"{path}, line {line + 1}: {_explained(error)}") from error
            raise DataError(f"{_where(path, row + 1, line + 1)}: {_explained(error)}") from error
    if block:
        yield block


def header(path: str | Path) -> list[str]:
    """Return the names of the columns of a CSV file.

    Raises:
        DataError: The file is empty, or `read` raises an error.
    """
    first = next(read(path, 1), None)
    if first is None:
        raise DataError(f"{path} is empty, expected a header with the names of the columns")
    return first[0]


def require_commas(path: str | Path) -> None:
    """Raise `DataError` if the first line has another separator and no comma, or if the file cannot be read."""
    with _readable(path), _text(path, "strict") as text:
        first = text.readline()
    for separator, name in ((";", "semicolons"), ("\t", "tabs"), ("|", "vertical bars")):
        if separator in first and "," not in first:
            raise DataError(
                f"{path} seems to separate its columns by {name}, expected commas; save it as CSV with commas (and "
                "decimal points) or as Parquet"
            )


def _checked_header(names: list[str], path: str | Path) -> list[str]:
    if any("\0" in name for name in names):
        raise DataError(f"{path} is not UTF-8 text: its header holds zero bytes, as UTF-16 does; save it as UTF-8")
    if names[0].strip().lower().startswith("sep="):
        raise DataError(
            f"{path}, line 1: {names[0].strip()} is for spreadsheets, and is not a header; leave out the line"
        )
    broken = next((name for name in names if _LINE_BREAK.search(name)), None)
    if broken is not None:
        raise DataError(
            f"{path}, line 1: the name of a column runs over several lines; is a quote missing, or is there one too "
            "many?"
        )
    return names


def _holds_rows(values: list[str], names: list[str], prose: Prose) -> bool:
    """Return whether two stray quotes may have turned the rows between them into a part of one value.

    In that case, the first line of the value has enough commas to be the end of a row, and a later line has enough
    commas to be the beginning of a row. If the value contains quotes, the row that begins in it may run over several
    lines. Tables of one column are excluded, because every line break would look like this.
    """
    for place, value in enumerate(values):
        if names[place] in prose.columns:
            if prose.holds_rows(values, names, place):
                return True
            continue
        first, *later = (line.count(",") for line in _LINE_BREAK.split(value))
        begins = bool(later) and (sum(later) if '"' in value else max(later)) >= place
        if begins and first >= len(values) - 1 - place and len(values) > 1:
            return True
    return False


def _where(path: str | Path, row: int, line: int) -> str:
    return f"{path}, row {row} (line {line})"


def _explained(error: csv.Error) -> str:
    """Return an error of Python's `csv` in words that a table's owner understands, without values."""
    message = str(error)
    if "unexpected end of data" in message:
        return "a quote is opened and not closed before the end of the file"
    if "expected after" in message:
        return "text follows a closing quote; within a quoted value a quote must be doubled"
    if "field larger than field limit" in message:
        return f"a value is longer than {csv.field_size_limit():,} characters; is a quote not closed?"
    return message


@contextmanager
def _text(path: str | Path, errors: str) -> Iterator[IO[str]]:
    with _binary(path) as binary, io.TextIOWrapper(binary, encoding="utf-8-sig", errors=errors, newline="") as text:
        yield text


def _binary(path: str | Path) -> gzip.GzipFile | io.BufferedReader:
    return gzip.open(path, "rb") if str(path).lower().endswith(".gz") else Path(path).open("rb")


@contextmanager
def _readable(path: str | Path) -> Iterator[None]:
    """Turn errors that occur while a file is read or decoded into a `DataError` of one sentence."""
    try:
        yield
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        if (kind := _kind_of(path)) is not None:
            raise DataError(f"{path} is {kind}, not CSV; name it after its real format, or export it as CSV") from error
        raise DataError(
            f"{_place_of_bad_text(path)} holds the byte 0x{byte:02x}, which is not UTF-8 text; save it as UTF-8"
        ) from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be decompressed ({error}); is it complete, and compressed?") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error


def _kind_of(path: str | Path) -> str | None:
    """Return the kind of a file by its first bytes, if it is known not to be text."""
    if not Path(path).is_file():
        return None  # Pipes are left out, because a pipe cannot be read twice.
    with Path(path).open("rb") as file:
        start = file.read(4)
    return next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), None)


def _place_of_bad_text(path: str | Path) -> str:
    """Return a text that names the first row that is not UTF-8. The file is read again to find this row."""
    if not Path(path).is_file():
        return str(path)
    with _text(path, "surrogateescape") as text:
        rows, row = csv.reader(text), -1
        for values in rows:
            row += bool(values)
            if any(_UNDECODED.search(value) for value in values):
                return _where(path, row, rows.line_num) if row else f"{path}, line {rows.line_num},"
    return str(path)
