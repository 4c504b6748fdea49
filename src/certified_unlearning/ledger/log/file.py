"""The file that holds a second copy of a log: one line of JSON for each transaction of the ledger, with its events.

A line counts only if it is complete. An incomplete line at the end, as after a power failure, was never confirmed,
because the ledger commits after the line is on the disk. Every event contains its own hash and the hash of the event
before. Each line can be written in only one way, so every changed byte is noticed. The module has no heavy imports.
"""

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from certified_unlearning.errors import DataError, StorageError
from certified_unlearning.files import atomic_path, content_key

Row = tuple[int, str, str, str | None, str, str, str]
"""An event as a row of the ledger: number, time, kind, subject, payload as text, previous hash, hash."""
GENESIS = "0" * 64
"""The previous hash of the first event."""
_NAMES = ("sequence", "time", "kind", "subject", "payload", "previous_hash", "hash")
_TYPES = (int, str, str, str | None, str, str, str)
_FIRST_REACH = 1 << 16


class End(NamedTuple):
    """The end of a log.

    Attributes:
        row: The last event; None if the log has no events.
        size: The number of bytes of all complete lines.
    """

    row: Row | None
    size: int


class Content(NamedTuple):
    """The content of a log.

    Attributes:
        rows: The events of the log. Their chain was checked.
        half_written: Whether the log ends with an incomplete line.
    """

    rows: list[Row]
    half_written: bool


def read_log(path: Path) -> Content:
    """Read a log, and check its chain.

    Raises:
        DataError: The log cannot be read, or is damaged.
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
    """Return the end of a log; read only its last line.

    Raises:
        StorageError: The log cannot be read.
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
    """Append a line with events, durably, at the position ``size``. Bytes that followed this position are cut off.

    Raises:
        StorageError: The log cannot be written; it then ends where it ended before.
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
    """Truncate a log to ``size`` bytes.

    Raises:
        StorageError: The log cannot be written.
    """
    try:
        with path.open("r+b", buffering=0) as file:
            file.truncate(size)
            os.fsync(file.fileno())
    except OSError as error:
        raise StorageError(f"cannot write the log {path}: {error.strerror}") from error


def write_log(path: Path, rows: Iterable[Row]) -> None:
    """Write a log of these events, one line for each. The file appears whole, and replaces an earlier one.

    Raises:
        StorageError: The log cannot be written.
    """
    with atomic_path(path) as temporary:
        # Only the owner may read the log: it holds pseudonyms of people who asked, in old ledgers their identifiers.
        temporary.touch(mode=0o600)
        with temporary.open("wb") as file:
            file.writelines(_line([row]) for row in rows)


def require_chain(rows: Sequence[Row], path: Path) -> None:
    """Raise `DataError` unless each event follows from the one before, from the first event on."""
    previous = GENESIS
    for number, row in enumerate(rows, 1):
        if row[0] != number or row[5] != previous:
            raise DataError(f"the log {path} is damaged: event {number} does not follow from the one before")
        previous = row[6]


def _line(rows: Sequence[Row]) -> bytes:
    events = [dict(zip(_NAMES, row, strict=True)) for row in rows]
    return json.dumps(events, separators=(",", ":")).encode() + b"\n"


def _rows(line: bytes, path: Path) -> list[Row]:
    """Return the events of a line. Each event must have the hash of its content.

    Raises:
        DataError: The line is damaged.
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
    """Return whether the last line is incomplete; raise `DataError` if it is complete and its last byte was changed."""
    if not rest:
        return False
    try:
        _rows(rest[:-1] + b"\n", path)
    except DataError:
        return True
    raise DataError(f"the log {path} is damaged: its last line does not end as the ledger wrote it")
