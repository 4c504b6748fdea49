"""The training copy: rows and labels as plain numbers in two files, digested with a key, zeroed where removed.

For a model that learns by mini-batches the copy is dealt: rows lie in the order in which batches are read, those of two
classes signed as `engine.minibatch` takes them, and a third file says where each row of the table lies.
"""

import hashlib
import hmac
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.errors import DataError
from certified_unlearning.files import atomic_path
from certified_unlearning.ledger.directory import ModelDirectory, synchronise

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


def digest(directory: ModelDirectory, features: int, key: bytes, without: Sequence[int] = ()) -> str:
    """Return the keyed digest (HMAC-SHA-256) of the training copy.

    Args:
        directory: Where it lies.
        features: Columns of a row.
        key: The key.
        without: Rows that count as zeros, whatever they still are.

    Raises:
        DataError: A file cannot be read, or ends within a row.
    """
    keyed = hmac.new(key, digestmod="sha256")
    gone = np.sort(positions(directory, without))
    labels, kind = labels_of(directory)
    files = [(directory.features, 4 * features, gone), (labels, kind.itemsize, gone)]
    if directory.places.exists():
        files.append((directory.places, 8, gone[:0]))
    for path, row_bytes, zeroed in files:
        try:
            keyed.update(f"{path.name} {path.stat().st_size} {row_bytes}\n".encode())
            with path.open("rb") as file:
                start = 0
                while block := bytearray(file.read(_ROWS_AT_ONCE * row_bytes)):
                    if len(block) % row_bytes:
                        raise DataError(f"{path} is damaged: it ends within a row")
                    rows = np.frombuffer(block, np.uint8).reshape(-1, row_bytes)
                    first, last = np.searchsorted(zeroed, [start, start + len(rows)])
                    rows[zeroed[first:last] - start] = 0
                    keyed.update(block)
                    start += len(rows)
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}") from error
    return keyed.hexdigest()


def first_row_left(directory: ModelDirectory, features: int, owned: Sequence[int]) -> int | None:
    """Return the first row that is nobody's and not zero, if there is one.

    Args:
        directory: Where the training copy lies.
        features: Columns of a row.
        owned: The rows that are somebody's.
    """
    rows = np.memmap(directory.features, np.float32, mode="r").reshape(-1, features)
    nobodys = np.setdiff1d(np.arange(len(rows)), positions(directory, owned))
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
