"""A float32 matrix that stays in its file: rows are read into memory only on access."""

import os
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.errors import DataError, StorageError

_NUMBERS_AT_ONCE = 1 << 22
"""Number of entries that are read and put in place together."""


class StoredRows:
    """Rows of a matrix inside a file, sliced like the rows of an array: ``rows[10:20]`` reads ten rows.

    The file is read, not mapped into memory, and stays open: replacing it does not change these rows.

    Attributes:
        shape: Number of rows and of columns.
        dtype: float32.

    Args:
        path: The file.
        offset: Offset of the first row in the file, in bytes.
        shape: Number of rows and of columns.
    """

    dtype = np.dtype(np.float32)
    ndim = 2

    def __init__(self, path: str | Path, offset: int, shape: tuple[int, int]) -> None:
        self.shape = shape
        self._path = path
        self._offset = offset
        self._file = Path(path).open("rb", buffering=0)  # noqa: SIM115 (open as long as the rows are)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> NDArray[np.float32]:
        start, stop, _ = rows.indices(len(self))
        out = np.empty((max(stop - start, 0), self.shape[1]), np.float32)
        self.read_into(out, start)
        return out

    def read_into(self, out: NDArray[np.float32], start: int) -> None:
        """Fill ``out``, contiguous, shape ``(rows, columns)``, with the rows from ``start`` on.

        Raises:
            DataError: The file cannot be read or is shorter than it should be.
        """
        left = out.reshape(-1).view(np.uint8).data
        try:
            self._file.seek(self._offset + start * self.shape[1] * self.dtype.itemsize)
            while left and (count := self._file.readinto(left)):
                left = left[count:]
        except OSError as error:
            raise DataError(f"cannot read {self._path}: {error.strerror or error}") from error
        if left:
            raise DataError(f"{self._path} is damaged: it ends before row {start + len(out)} of {len(self)}")


def in_order(
    rows: StoredRows, places: NDArray[np.int64], directory: str | Path, *, factors: NDArray[np.float32] | None = None
) -> StoredRows:
    """Return the rows in a new order. They are stored in a new nameless file, which vanishes when it is closed.

    Args:
        rows: The rows; they are read once, from the first to the last.
        places: New place of each row: a permutation, shape ``(n,)``.
        directory: Directory with room for the file.
        factors: Factor on each of ``rows``, shape ``(n,)``; by default, rows are not scaled.

    Raises:
        StorageError: The file cannot be written, or the disk is full.
        DataError: The rows cannot be read.
    """
    at_once = max(1, _NUMBERS_AT_ONCE // rows.shape[1])
    try:
        with tempfile.NamedTemporaryFile(dir=directory, prefix=".rows-in-order.") as file:
            # This reserves all the room, or fails here. Otherwise a full disk would kill the process when it writes
            # through the memory map.
            os.posix_fallocate(file.fileno(), 0, max(1, len(rows) * rows.shape[1] * rows.dtype.itemsize))
            written = np.memmap(file, rows.dtype, "r+", shape=rows.shape)
            for start in range(0, len(rows), at_once):
                some = slice(start, start + at_once)
                block = rows[some]
                if factors is not None:
                    block *= factors[some, None]
                written[places[some]] = block
            written.flush()
            return StoredRows(file.name, 0, rows.shape)
    except OSError as error:
        reason = error.strerror or error
        raise StorageError(f"cannot write {len(rows)} rows in another order to {directory}: {reason}") from error
