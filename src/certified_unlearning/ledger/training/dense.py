"""Dense rows and labels, as plain numbers in two files, with keyed digests. Removed rows are zeroed.

For a model that learns by mini-batches, the copy is dealt: its rows are in the order in which batches are read. With
two classes, each row is multiplied by its label, as `engine.minibatch` requires. A third file has the place of each row
of the table.
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
from certified_unlearning.ledger.training.copies import Asked, TrainingCopy, Waiting, Writer

_ROWS_AT_ONCE = 65_536
_BYTES_AT_ONCE = 1 << 18
"""Number of bytes that are digested together: they stay in the processor's cache until all digests have read them."""


def deal(directory: ModelDirectory, features: int, *, classes: int, key: int) -> None:
    """Reorder the rows from the table's order to the order that follows from a key.

    Args:
        directory: The model directory.
        features: The number of columns of a row.
        classes: Number of classes.
        key: The key of the order.
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
        DataError: The file cannot be read, or does not hold ``count`` numbers.
    """
    try:
        found = np.fromfile(path, dtype)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    if len(found) != count:
        raise DataError(f"{path} is damaged: it holds {len(found):,} numbers, not {count:,}")
    return found


def labels_of(directory: ModelDirectory) -> tuple[Path, np.dtype[Any]]:
    """Return the path of the labels, and their type: int8 for classes, float64 for targets of regression."""
    file = directory.label_file()
    return file, np.dtype(np.float64 if file == directory.targets else np.int8)


def positions(directory: ModelDirectory, rows: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the places of rows of the table in the training copy."""
    wanted = np.asarray(rows, dtype=np.int64)
    if not directory.places.exists():
        return wanted
    try:
        return np.array(np.memmap(directory.places, np.int64, mode="r")[wanted])
    except (IndexError, ValueError) as error:  # An empty file raises a ValueError.
        raise DataError(f"{directory.places} is damaged: {error}") from error


class DenseFiles(Writer):
    """A writer of rows and labels to their files, block by block.

    Args:
        features: The open file of rows.
        labels: The open file of labels, in the same directory.
    """

    def __init__(self, features: IO[bytes], labels: IO[bytes]) -> None:
        self._files = features, labels

    def add(self, rows: NDArray[np.float32], labels: NDArray[Any]) -> None:
        """See `Writer.add`."""
        for file, block in zip(self._files, (rows, labels), strict=True):
            file.write(block.data)

    def synchronise(self) -> None:
        """Write the files to the disk, so that they survive a crash."""
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

    def digests(self, asked: Sequence[Asked]) -> list[str]:
        """See `TrainingCopy.digests`."""
        labels, kind = labels_of(self._directory)
        files = [(self._directory.features, 4 * self._features), (labels, kind.itemsize)]
        if self._directory.places.exists():
            files.append((self._directory.places, 8))
        found = [_Digest(each.key, np.sort(self.positions(each.without))) for each in asked]
        for path, row_bytes in files:
            added = [self._added(path, each.waiting) for each in asked]
            sizes = [_size(path) if each.waiting is None else each.waiting.after * row_bytes for each in asked]
            for digest, size, behind in zip(found, sizes, added, strict=True):
                whole = size if behind is None else size + _size(behind)
                digest.begin(f"{path.name} {whole} {row_bytes}\n", empties=path != self._directory.places)
            start = 0
            for block in _blocks(path, max(sizes), row_bytes):
                for digest, size in zip(found, sizes, strict=True):
                    digest.add(block[: max(0, size - start * row_bytes)], row_bytes)
                start += len(block) // row_bytes
            for digest, behind in zip(found, added, strict=True):
                if behind is not None:
                    for block in _blocks(behind, _size(behind), row_bytes):
                        digest.add(block, row_bytes)
        return [digest.keyed.hexdigest() for digest in found]

    def _added(self, path: Path, waiting: Waiting | None) -> Path | None:
        """Return the file whose rows wait to enter a file of the copy; None if no rows wait."""
        if waiting is None:
            return None
        return next((added for file, added, _ in self._files_of(waiting) if file == path), None)

    def holds(self, gone: Sequence[int], waiting: Waiting | None, planned: str, key: bytes) -> bool:
        """See `TrainingCopy.holds`. If rows were only zeroed, not added, only the zeroed rows are read.

        All other rows were read when the previous state was checked.
        """
        if waiting is not None:
            return self.digests([Asked(key)]) == [planned]
        rows, labels = self.take(gone)
        return not (rows.any() or labels.any())

    def changed(self, version: int, gone: Sequence[int], waiting: Waiting | None) -> "DenseCopy":
        """See `TrainingCopy.changed`. The files of the previous version are changed in place."""
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
        """Return, for each file of the copy: the file, the file that is appended to it, and the bytes of a row."""
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
        """See `TrainingCopy.terms_with`. Return None, because the number of rows determines the numbers of terms."""

    def positions(self, rows: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
        """See `TrainingCopy.positions`."""
        return positions(self._directory, rows)


def _size(path: Path) -> int:
    """Return a file's size in bytes; raise `DataError` if it cannot be read."""
    try:
        return path.stat().st_size
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error


def _blocks(path: Path, size: int, row_bytes: int) -> Iterator[memoryview]:
    """Yield the first ``size`` bytes of a file, in blocks of whole rows. Each block reuses the last one's memory.

    Raises:
        DataError: The file cannot be read, has fewer than ``size`` bytes, or ends within a row.
    """
    if size % row_bytes:
        raise DataError(f"{path} is damaged: it ends within a row")
    memory = memoryview(bytearray(max(1, _BYTES_AT_ONCE // row_bytes) * row_bytes))
    try:
        with path.open("rb", buffering=0) as file:
            while size:
                block = memory[: min(size, len(memory))]
                left = block
                while left and (count := file.readinto(left)):
                    left = left[count:]
                if left:
                    raise DataError(
                        f"{path} is damaged: {size - len(block) + len(left):,} bytes are missing at its end"
                    )
                yield block
                size -= len(block)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error


class _Digest:
    """A keyed digest of rows, in which some rows are digested as zeros.

    Args:
        key: The key of the digest.
        gone: Places of the rows that are digested as zeros, sorted.
    """

    def __init__(self, key: bytes, gone: NDArray[np.int64]) -> None:
        self.keyed, self._gone = hmac.new(key, digestmod="sha256"), gone

    def begin(self, head: str, *, empties: bool) -> None:
        """Begin the digest of a file.

        Args:
            head: A text that identifies the file and its size.
            empties: Whether the file has rows that are digested as zeros.
        """
        self.keyed.update(head.encode())
        self._row, self._empty = 0, self._gone if empties else self._gone[:0]

    def add(self, block: memoryview, row_bytes: int) -> None:
        """Add the next rows to the digest; the block is not changed."""
        rows = np.frombuffer(block, np.uint8).reshape(-1, row_bytes)
        first, last = np.searchsorted(self._empty, [self._row, self._row + len(rows)])
        places = self._empty[first:last] - self._row
        kept = rows[places]
        rows[places] = 0
        self.keyed.update(block)
        rows[places] = kept
        self._row += len(rows)
