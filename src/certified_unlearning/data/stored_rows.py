"""A float32 matrix that stays in its file: its rows are read when they are asked for, and only then take memory."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.errors import DataError


class StoredRows:
    """Rows of a matrix inside a file, sliced like an array's: ``rows[10:20]`` reads ten rows.

    The file is read, not mapped into memory, and stays open: who replaces it does not change these rows.

    Attributes:
        shape: Number of rows and of columns.
        dtype: float32.

    Args:
        path: The file.
        offset: Where in the file the first row starts, in bytes.
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
        """Fill ``out`` (rows, columns), contiguous, with the rows from ``start`` on.

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
