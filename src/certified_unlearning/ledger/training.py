"""The training copy: rows and labels as plain numbers in two files, digested with a key, zeroed where removed.

For a model that learns by mini-batches the copy is dealt: rows lie in the order in which batches are read, those of two
classes signed as `engine.minibatch` takes them, and a third file says where each row of the table lies.
"""

import hashlib
import hmac
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.errors import DataError
from certified_unlearning.files import atomic_path, synchronise
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.state import State

_ROWS_AT_ONCE = 65_536


def deal(directory: ModelDirectory, features: int, *, classes: int, key: int) -> None:
    """Deal the rows, which lie in the table's order, into the order that follows from a key.

    Args:
        directory: Where the training copy lies.
        features: Columns of a row.
        classes: Number of classes.
        key: Of the order.
    """
    from certified_unlearning.engine.minibatch import (  # Not at the top: quick commands need no torch.
        dealt_order,
        places_in,
    )

    rows = np.memmap(directory.features, np.float32, mode="r").reshape(-1, features)
    labels = np.fromfile(directory.labels, np.int8)
    order = dealt_order(len(rows), key)
    dealt = labels[order]
    with atomic_path(directory.features) as temporary, temporary.open("wb") as file:
        for start in range(0, len(order), _ROWS_AT_ONCE):
            some = slice(start, start + _ROWS_AT_ONCE)
            block = np.take(rows, order[some], axis=0)
            if classes == 2:
                block *= -dealt[some, None].astype(np.float32)
            file.write(block.data)
    for path, array in ((directory.labels, dealt), (directory.places, places_in(order))):
        with atomic_path(path) as temporary:
            array.tofile(temporary)


def numbers(path: Path, dtype: type[np.generic] | np.dtype[Any], count: int) -> NDArray[Any]:
    """Return all numbers of a file of the training copy.

    Raises:
        DataError: It cannot be read, or there are more or fewer.
    """
    try:
        found = np.fromfile(path, dtype)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    if len(found) != count:
        raise DataError(f"{path} is damaged: it holds {len(found):,} numbers, not {count:,}")
    return found


def labels_of(directory: ModelDirectory) -> tuple[Path, np.dtype[Any]]:
    """Return where the labels lie, and their type: classes as int8, targets of regression as float64."""
    file = directory.label_file()
    return file, np.dtype(np.float64 if file == directory.targets else np.int8)


def positions(directory: ModelDirectory, rows: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where rows of the table lie in the training copy."""
    wanted = np.asarray(rows, dtype=np.int64)
    if not directory.places.exists():
        return wanted
    return np.array(np.memmap(directory.places, np.int64, mode="r")[wanted])


class Waiting(NamedTuple):
    """Rows that wait to stand in the training copy, whose end may hold some of them already.

    Attributes:
        version: The version that adds them.
        after: How many rows stand before them.
    """

    version: int
    after: int


def waiting_of(state: State) -> Waiting | None:
    """Return which rows wait; None where no version that adds records was begun."""
    planned = state.planned
    return None if planned is None or planned.addition is None else Waiting(planned.version, state.rows)


def append(directory: ModelDirectory, features: int, waiting: Waiting) -> None:
    """Write rows that wait and their labels to the end of the training copy, durably; twice changes nothing."""
    for path, added, row_bytes in _files_of_waiting(directory, features, waiting):
        with path.open("r+b") as file, added.open("rb") as source:
            file.seek(waiting.after * row_bytes)
            shutil.copyfileobj(source, file, _ROWS_AT_ONCE * row_bytes)
            file.flush()
            os.fsync(file.fileno())
    synchronise(directory.features.parent)


def _files_of_waiting(directory: ModelDirectory, features: int, waiting: Waiting) -> list[tuple[Path, Path, int]]:
    """Return the files of the training copy, those of what waits for them, and how many bytes a row has."""
    labels, kind = labels_of(directory)
    return [
        (directory.features, directory.added_features(waiting.version), 4 * features),
        (labels, directory.added_labels(waiting.version), kind.itemsize),
    ]


def digest(
    directory: ModelDirectory,
    features: int,
    key: bytes,
    without: Sequence[int] = (),
    waiting: Waiting | None = None,
) -> str:
    """Return the keyed digest (HMAC-SHA-256) of the training copy.

    Args:
        directory: Where it lies.
        features: Columns of a row.
        key: The key.
        without: Rows that count as zeros, whatever they still are.
        waiting: Rows that count as standing at its end, whatever stands there yet.

    Raises:
        DataError: A file cannot be read, or ends within a row.
    """
    keyed = hmac.new(key, digestmod="sha256")
    gone = np.sort(positions(directory, without))
    labels, kind = labels_of(directory)
    files = [(directory.features, 4 * features, gone), (labels, kind.itemsize, gone)]
    if directory.places.exists():
        files.append((directory.places, 8, gone[:0]))
    added = {} if waiting is None else {path: file for path, file, _ in _files_of_waiting(directory, features, waiting)}
    for path, row_bytes, zeroed in files:
        parts = [(path, _size(path) if waiting is None else waiting.after * row_bytes)]
        parts += [(added[path], _size(added[path]))] if path in added else []
        keyed.update(f"{path.name} {sum(size for _, size in parts)} {row_bytes}\n".encode())
        start = 0
        for block in _blocks(parts, row_bytes):
            rows = np.frombuffer(block, np.uint8).reshape(-1, row_bytes)
            first, last = np.searchsorted(zeroed, [start, start + len(rows)])
            rows[zeroed[first:last] - start] = 0
            keyed.update(block)
            start += len(rows)
    return keyed.hexdigest()


def _size(path: Path) -> int:
    """Return a file's size in bytes; raise `DataError` where it cannot be read."""
    try:
        return path.stat().st_size
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error


def _blocks(parts: Sequence[tuple[Path, int]], row_bytes: int) -> Iterator[bytearray]:
    """Yield so many bytes of each file, many rows at a time.

    Raises:
        DataError: A file cannot be read, is shorter, or ends within a row.
    """
    for path, size in parts:
        try:
            with path.open("rb") as file:
                while size and (block := bytearray(file.read(min(size, _ROWS_AT_ONCE * row_bytes)))):
                    if len(block) % row_bytes:
                        raise DataError(f"{path} is damaged: it ends within a row")
                    size -= len(block)
                    yield block
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}") from error
        if size:
            raise DataError(f"{path} is damaged: {size:,} bytes are missing at its end")


def first_row_left(directory: ModelDirectory, features: int, owned: Sequence[int], count: int) -> int | None:
    """Return the first row that is nobody's and not zero, if there is one.

    Args:
        directory: Where the training copy lies.
        features: Columns of a row.
        owned: The rows that are somebody's.
        count: How many rows there are; what stands behind them an `add` has begun to write.
    """
    rows = np.memmap(directory.features, np.float32, mode="r", shape=(count, features))
    nobodys = np.setdiff1d(np.arange(count), positions(directory, owned))
    left = nobodys[(rows[nobodys] != 0).any(axis=1)]
    return int(left[0]) if len(left) else None


def digest_of_file(path: Path, key: bytes) -> str:
    """Return the keyed digest of any file.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hmac.new(key, digestmod="sha256")).hexdigest()


def tag(key: bytes, identifier: str, row: int) -> bytes:
    """Return what only this key's owner can write beside a person's row."""
    return hmac.digest(key, f"{row} {identifier}".encode(), "sha256")[:16]


def take(directory: ModelDirectory, features: int, rows: Sequence[int]) -> tuple[NDArray[np.float32], NDArray[Any]]:
    """Return copies of rows of the table, and of their labels, as they lie in the training copy."""
    places, (labels, kind) = positions(directory, rows), labels_of(directory)
    stored = np.memmap(directory.features, np.float32, mode="r").reshape(-1, features)
    return np.array(stored[places]), np.array(np.memmap(labels, kind, mode="r")[places])


def zero(directory: ModelDirectory, features: int, rows: Sequence[int]) -> None:
    """Overwrite rows and their labels with zeros, durably. Doing it twice changes nothing."""
    labels, kind = labels_of(directory)
    for path, row_bytes in ((directory.features, 4 * features), (labels, kind.itemsize)):
        zeros = bytes(row_bytes)
        with path.open("r+b", buffering=0) as file:
            for row in positions(directory, rows).tolist():
                os.pwrite(file.fileno(), zeros, row * row_bytes)
            os.fsync(file.fileno())
    synchronise(directory.features.parent)
