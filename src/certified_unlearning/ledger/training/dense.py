"""Dense rows: rows and labels as plain numbers in two files, digested with a key, zeroed where removed.

For a model that learns by mini-batches the copy is dealt: rows lie in the order in which batches are read, those of two
classes signed as `engine.minibatch` takes them, and a third file says where each row of the table lies.
"""

import hmac
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.data.stored_rows import StoredRows
from certified_unlearning.errors import DataError
from certified_unlearning.files import atomic_path, synchronise
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.training.copies import TrainingCopy, Waiting, Writer

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


class DenseFiles(Writer):
    """Rows and labels that are written to their files block by block.

    Args:
        features: The file of rows, open.
        labels: The file of labels, open, in the same directory.
    """

    def __init__(self, features: IO[bytes], labels: IO[bytes]) -> None:
        self._files = features, labels

    def add(self, rows: NDArray[np.float32], labels: NDArray[Any]) -> None:
        """See `Writer.add`."""
        for file, block in zip(self._files, (rows, labels), strict=True):
            file.write(block.data)

    def synchronise(self) -> None:
        """Make the files durable."""
        for file in self._files:
            file.flush()
            os.fsync(file.fileno())
        synchronise(Path(self._files[0].name).parent)


class DenseCopy(TrainingCopy):
    """Rows and labels in two files that every version changes in place; see `TrainingCopy`."""

    @property
    def place(self) -> Path:
        """See `TrainingCopy.place`."""
        return self._directory.features.parent

    def rows(self, count: int) -> NDArray[np.float32]:
        """See `TrainingCopy.rows`."""
        return np.memmap(self._directory.features, np.float32, mode="r", shape=(count, self._features))

    def stored(self, count: int) -> StoredRows:
        """See `TrainingCopy.stored`."""
        try:
            return StoredRows(self._directory.features, 0, (count, self._features))
        except OSError as error:
            raise DataError(f"cannot read {error.filename}: {error.strerror}") from error

    def stored_at(self, places: NDArray[np.int64], count: int) -> NDArray[np.float32]:
        """See `TrainingCopy.stored_at`."""
        stored, rows = self.stored(count), np.empty((len(places), self._features), np.float32)
        for number, place in enumerate(places.tolist()):
            stored.read_into(rows[number : number + 1], place)
        return rows

    def labels(self, count: int) -> NDArray[Any]:
        """See `TrainingCopy.labels`."""
        return numbers(*labels_of(self._directory), count)

    def take(self, rows: Sequence[int]) -> tuple[NDArray[np.float32], NDArray[Any]]:
        """See `TrainingCopy.take`."""
        places, (labels, kind) = self.positions(rows), labels_of(self._directory)
        stored = np.memmap(self._directory.features, np.float32, mode="r").reshape(-1, self._features)
        return np.array(stored[places]), np.array(np.memmap(labels, kind, mode="r")[places])

    def digest(self, key: bytes, without: Sequence[int] = (), waiting: Waiting | None = None) -> str:
        """See `TrainingCopy.digest`."""
        keyed = hmac.new(key, digestmod="sha256")
        gone = np.sort(self.positions(without))
        labels, kind = labels_of(self._directory)
        files = [(self._directory.features, 4 * self._features, gone), (labels, kind.itemsize, gone)]
        if self._directory.places.exists():
            files.append((self._directory.places, 8, gone[:0]))
        added = {} if waiting is None else {path: file for path, file, _ in self._files_of(waiting)}
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

    def changed(self, version: int, gone: Sequence[int], waiting: Waiting | None) -> "DenseCopy":
        """See `TrainingCopy.changed`: the files are those of the version before."""
        if waiting is not None:
            self._append(waiting)
        self._zero(gone)
        return DenseCopy(self._directory, self._features, version)

    def _append(self, waiting: Waiting) -> None:
        for path, added, row_bytes in self._files_of(waiting):
            with path.open("r+b") as file, added.open("rb") as source:
                file.seek(waiting.after * row_bytes)
                shutil.copyfileobj(source, file, _ROWS_AT_ONCE * row_bytes)
                file.flush()
                os.fsync(file.fileno())
        synchronise(self.place)

    def _files_of(self, waiting: Waiting) -> list[tuple[Path, Path, int]]:
        """Return the files of the copy, those of what waits for them, and how many bytes a row has."""
        directory, (labels, kind) = self._directory, labels_of(self._directory)
        return [
            (directory.features, directory.added_features(waiting.version), 4 * self._features),
            (labels, directory.added_labels(waiting.version), kind.itemsize),
        ]

    def _zero(self, rows: Sequence[int]) -> None:
        """Overwrite rows and their labels with zeros, durably."""
        labels, kind = labels_of(self._directory)
        for path, row_bytes in ((self._directory.features, 4 * self._features), (labels, kind.itemsize)):
            zeros = bytes(row_bytes)
            with path.open("r+b", buffering=0) as file:
                for row in self.positions(rows).tolist():
                    os.pwrite(file.fileno(), zeros, row * row_bytes)
                os.fsync(file.fileno())
        synchronise(self.place)

    def first_row_left(self, owned: Sequence[int], count: int) -> int | None:
        """See `TrainingCopy.first_row_left`."""
        rows = self.rows(count)
        nobodys = np.setdiff1d(np.arange(count), self.positions(owned))
        left = nobodys[(rows[nobodys] != 0).any(axis=1)]
        return int(left[0]) if len(left) else None

    def terms_with(self, waiting: Waiting) -> None:
        """See `TrainingCopy.terms_with`: counts say it."""

    def positions(self, rows: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
        """See `TrainingCopy.positions`."""
        return positions(self._directory, rows)


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
