"""The file of a log in a second place: one line of JSON for each transaction of the ledger, with its events.

A line counts only if it is whole. What a power failure left of one at the end of the file was never confirmed, because
the ledger commits after the line is on the disk. Every event carries its hash and that of the event before, and a line
has one form only, so every changed byte is noticed. Free of heavy imports.
"""

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from certified_unlearning.errors import DataError, StorageError
from certified_unlearning.files import atomic_path, content_key

Row = tuple[int, str, str, str | None, str, str, str]
"""An event as the ledger's file has it: number, time, kind, subject, payload as text, previous hash, hash."""
GENESIS = "0" * 64
"""The hash before the first event's."""
_NAMES = ("sequence", "time", "kind", "subject", "payload", "previous_hash", "hash")
_TYPES = (int, str, str, str | None, str, str, str)
_FIRST_REACH = 1 << 16


class End(NamedTuple):
    """Where a log ends.

    Attributes:
        row: Its last event; None where it has none.
        size: How many bytes its whole lines have.
    """

    row: Row | None
    size: int


class Content(NamedTuple):
    """What a log holds.

    Attributes:
        rows: Its events, whose chain was checked.
        half_written: Whether a line that was begun and not finished follows.
    """

    rows: list[Row]
    half_written: bool


def read_log(path: Path) -> Content:
    """Read a log, and check its chain.

    Raises:
        DataError: It cannot be read, or is damaged.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read the log {path}: {error.strerror}") from error
    end = content.rfind(b"\n") + 1
    rows: list[Row] = []
    for line in content[:end].splitlines(keepends=True):
        rows += _rows(line, path)
    require_chain(rows, path)
    return Content(rows, _is_half_written(content[end:], path))


def end_of(path: Path) -> End:
    """Return where a log ends; reads its last line only.

    Raises:
        StorageError: It cannot be read.
        DataError: The line is damaged.
    """
    try:
        with path.open("rb") as file:
            size, reach = file.seek(0, os.SEEK_END), _FIRST_REACH
            while True:
                start = max(0, size - reach)
                file.seek(start)
                content = file.read(size - start)
                end = content.rfind(b"\n") + 1
                begin = content.rfind(b"\n", 0, max(0, end - 1)) + 1
                if begin or not start:
                    break
                reach *= 2
    except OSError as error:
        raise StorageError(f"cannot read the log {path}: {error.strerror}") from error
    _is_half_written(content[end:], path)
    rows = _rows(content[begin:end], path) if end else []
    return End(rows[-1] if rows else None, start + end)


def append(path: Path, size: int, rows: Sequence[Row]) -> None:
    """Append a line with events, durably, after a number of bytes; what else followed them is cut off.

    Raises:
        StorageError: It cannot be written; it ends where it ended before.
    """
    line = _line(rows)
    try:
        with path.open("r+b", buffering=0) as file:
            try:
                file.truncate(size)
                file.seek(size)
                left = memoryview(line)
                while left:
                    left = left[file.write(left) :]
                os.fsync(file.fileno())
            except BaseException:
                file.truncate(size)
                raise
    except OSError as error:
        raise StorageError(f"cannot write the log {path}: {error.strerror}; nothing was recorded") from error


def cut(path: Path, size: int) -> None:
    """Cut off what follows a number of bytes.

    Raises:
        StorageError: It cannot be written.
    """
    try:
        with path.open("r+b", buffering=0) as file:
            file.truncate(size)
            os.fsync(file.fileno())
    except OSError as error:
        raise StorageError(f"cannot write the log {path}: {error.strerror}") from error


def write_log(path: Path, rows: Iterable[Row]) -> None:
    """Write a log of these events, a line for each; it appears whole, and replaces what was there.

    Raises:
        StorageError: It cannot be written.
    """
    with atomic_path(path) as temporary:
        # For the owner's eyes only: it holds the pseudonyms of people who asked, and old ledgers' identifiers.
        temporary.touch(mode=0o600)
        with temporary.open("wb") as file:
            file.writelines(_line([row]) for row in rows)


def require_chain(rows: Sequence[Row], path: Path) -> None:
    """Raise `DataError` unless events follow each other from the first one on."""
    previous = GENESIS
    for number, row in enumerate(rows, 1):
        if row[0] != number or row[5] != previous:
            raise DataError(f"the log {path} is damaged: event {number} does not follow from the one before")
        previous = row[6]


def _line(rows: Sequence[Row]) -> bytes:
    events = [dict(zip(_NAMES, row, strict=True)) for row in rows]
    return json.dumps(events, separators=(",", ":")).encode() + b"\n"


def _rows(line: bytes, path: Path) -> list[Row]:
    """Return the events of a line, each of which must have its own hash.

    Raises:
        DataError: It is damaged.
    """
    try:
        events = json.loads(line)
        rows: list[Any] = [tuple(event[name] for name in _NAMES) for event in events]
        sound = bool(rows) and _line(rows) == line and all(map(_is_event, rows))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"the log {path} is damaged: a line holds no events ({error!r})") from error
    if not sound:
        raise DataError(f"the log {path} is damaged: a line is not what the ledger wrote")
    return rows


def _is_event(row: Sequence[Any]) -> bool:
    typed = all(
        isinstance(value, kind) and not isinstance(value, bool) for value, kind in zip(row, _TYPES, strict=True)
    )
    return typed and content_key(row[:6]) == row[6]


def _is_half_written(rest: bytes, path: Path) -> bool:
    """Return whether a line was begun; raise `DataError` if it was finished and its last byte was changed."""
    if not rest:
        return False
    try:
        _rows(rest[:-1] + b"\n", path)
    except DataError:
        return True
    raise DataError(f"the log {path} is damaged: its last line does not end as the ledger wrote it")
