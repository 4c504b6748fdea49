"""Random CSV files, valid and broken, read through our door and by Python's strict `csv`.

``python -m tests.data.csv_fuzz 200000`` runs so many of each; CI runs 2000.
"""

import csv
import gzip
import io
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from certified_unlearning.data.tables import csv_file, table_file
from certified_unlearning.errors import DataError

ALPHABET = [*"abcdefghijklm12340", ",", ",", '"', '"', "\n", "\r\n", "\r", " ", "é", "𝄞", ";", "\t", "'"]
NO_BREAKS = str.maketrans("\r\n", "xx")
Rows = list[list[str]]


class SmallBlocks(io.RawIOBase):
    """A file that gives a few bytes at a time, as the end of a reader's block does."""

    def __init__(self, path: Path, size: int) -> None:
        self._file = gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")  # noqa: SIM115
        self._size = size

    def readable(self) -> bool:
        return True

    def read1(self, size: int = -1) -> bytes:
        return self._file.read(self._size)

    def close(self) -> None:
        self._file.close()
        super().close()


@contextmanager
def small_blocks(size: int) -> Iterator[None]:
    usual = csv_file._binary
    csv_file._binary = lambda path: SmallBlocks(Path(path), size)  # type: ignore[assignment,return-value]
    try:
        yield
    finally:
        csv_file._binary = usual


def valid(draw: random.Random) -> str:
    """A table as `csv.writer` writes it, which is one for `csv.reader`, too; a lone header looks like one of commas."""
    while strictly((text := _written(draw)).encode()) is None:
        pass
    return text


def _written(draw: random.Random) -> str:
    width = draw.randint(1, 6)

    def value() -> str:
        return "".join(draw.choices(ALPHABET, k=draw.choice([0, 1, 2, 3, 8])))

    # A name over several lines is refused.
    header = [f"{place}{value()}".translate(NO_BREAKS) for place in range(width)] if width > 1 else ["name"]
    rows = [[value() for _ in range(width)] for _ in range(draw.randint(0, 8))]
    text = io.StringIO(newline="")
    quoting = draw.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
    writer = csv.writer(text, quoting=quoting, lineterminator=draw.choice(["\n", "\r\n", "\r"]))
    writer.writerows([header, *rows])
    return text.getvalue()


def broken(draw: random.Random) -> bytes:
    """A table in which some bytes were lost, added or exchanged; by chance it may still be one."""
    content = bytearray(valid(draw).encode())
    for _ in range(draw.randint(1, 3)):
        place = draw.randrange(len(content) + 1)
        match draw.choice(["add", "add", "drop", "change"]):
            case "add":
                content[place:place] = draw.choice([b'"', b'"', b",", b"\n", b"\xff", b"\xc3"])
            case "drop":
                del content[place : place + draw.choice([1, 1, 5])]
            case "change":
                content[place : place + 1] = draw.choice([b'"', b",", b"\n", b"x", b"\xe9"])
    return bytes(content)


def strictly(content: bytes) -> Rows | None:
    """What Python's strict `csv` makes of it; None if it is no table."""
    try:
        text = content.decode("utf-8-sig")
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
    except (UnicodeDecodeError, csv.Error):
        return None
    if not rows or len({len(row) for row in rows}) > 1 or len(set(rows[0])) < len(rows[0]):
        return None
    return rows


def read(path: Path, rows_at_once: int) -> Rows:
    """What we make of it: the header and all rows."""
    names = table_file.column_names(str(path))
    rows: Rows = [names]
    for batch in table_file.batches(str(path), names, rows_at_once):
        rows += [list(row) for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)]
    return rows


def outcome(content: bytes, directory: Path, draw: random.Random) -> str:
    """``equal``, ``refused``, or an error: the two readings differ."""
    path = directory / draw.choice(["t.csv", "t.csv", "t.CSV.gz"])
    path.write_bytes(gzip.compress(content, 1) if path.suffix == ".gz" else content)
    with small_blocks(draw.choice([1, 16, 17, 24, 64, 4096])):
        try:
            found = read(path, draw.randint(1, 5))
        except DataError as error:
            return "refused" if len(str(error).splitlines()) == 1 else f"several lines: {error}"
    expected = strictly(content)
    assert found == expected, (content, found, expected)
    return "equal"


def fuzz(count: int, seed: int, directory: Path) -> dict[str, Counter[str]]:
    """Read so many valid and so many broken files; raise AssertionError at the first that is read wrongly."""
    draw = random.Random(seed)
    found: dict[str, Counter[str]] = {"valid": Counter(), "broken": Counter()}
    for _ in range(count):
        text = draw.choice(["", "", "\ufeff"]) + valid(draw)
        found["valid"][outcome(text.encode(), directory, draw)] += 1
        found["broken"][outcome(broken(draw), directory, draw)] += 1
    return found


def joined(draw: random.Random) -> tuple[bytes, int]:
    """A table without quotes into which two were put, at the ends of values; and how many rows it has."""
    width, count = draw.randint(2, 5), draw.randint(2, 8)
    rows: list[list[Any]] = [[f"v{row}.{column}" for column in range(width)] for row in range(count)]
    (row, column), (other, place) = (
        (draw.randrange(count), draw.randrange(width)),
        (draw.randrange(count), draw.randrange(width)),
    )
    rows[row][column] = '"' + rows[row][column]
    rows[other][place] += '"'
    header = [f"h{place}" for place in range(width)]
    ending = draw.choice(["\n", "\r\n", "\r"])
    return ending.join(",".join(each) for each in [header, *rows]).encode(), count


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        print(fuzz(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0, Path(scratch)))
