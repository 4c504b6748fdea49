"""Sparse rows: the three arrays of a CSR matrix, and labels, in one file a version.

A version's file is written beside the one before, which is overwritten and deleted when the version counts, as old
weights are. A removed row becomes an empty one: how many entries it had is gone, too. Rows are float32 numbers.
"""

import functools
import hmac
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError
from scipy.sparse import csr_array, vstack

from certified_unlearning.accounting.residual.rounding import Terms
from certified_unlearning.engine.objectives import sparse
from certified_unlearning.errors import DataError
from certified_unlearning.files import atomic_path
from certified_unlearning.ledger.training.copies import Asked, TrainingCopy, Waiting, Writer


class Content(NamedTuple):
    """What a file holds.

    Attributes:
        rows: float32, without duplicate entries.
        labels: Classes as int8, targets of regression as float64.
    """

    rows: csr_array
    labels: NDArray[Any]

    def without(self, gone: Sequence[int]) -> "Content":
        """Return the same with empty rows, and zeros for their labels, in some places."""
        if not len(gone):
            return self
        places, labels = np.asarray(gone, np.int64), self.labels.copy()
        labels[places] = 0
        return Content(sparse.wiped(self.rows, places), labels)

    def followed_by(self, other: "Content") -> "Content":
        """Return these rows, and others behind them."""
        rows = vstack([self.rows, other.rows], format="csr")
        return Content(rows, np.concatenate([self.labels, other.labels]))

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Yield the arrays of a file by name, always of the same types."""
        yield "entries", self.rows.data
        yield "columns", self.rows.indices.astype(np.int32, copy=False)
        yield "ends", self.rows.indptr.astype(np.int64, copy=False)
        yield "labels", self.labels

    def save(self, path: Path) -> None:
        """Write a file, durably and whole or not at all."""
        content = safetensors.numpy.save(dict(self.arrays()))
        with atomic_path(path) as temporary:
            # For the owner's eyes only, even if somebody opens the directory so that others can read the weights.
            temporary.touch(mode=0o600)
            temporary.write_bytes(content)


def read(path: Path, features: int) -> Content:
    """Read a file.

    Raises:
        DataError: It cannot be read, or is damaged.
    """
    try:
        arrays = safetensors.numpy.load(path.read_bytes())
        parts = arrays["entries"], arrays["columns"], arrays["ends"]
        rows = sparse.canonical(csr_array(parts, shape=(len(parts[2]) - 1, features)))
        labels = arrays["labels"]
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    except (SafetensorError, KeyError, ValueError, DataError) as error:
        raise DataError(f"{path} is damaged: {error}") from error
    if len(labels) != rows.shape[0]:
        raise DataError(f"{path} is damaged: it holds {len(labels):,} labels, not {rows.shape[0]:,}")
    return Content(rows, labels)


class SparseFile(Writer):
    """Rows and labels that become a file together."""

    def __init__(self) -> None:
        self._blocks: list[Content] = []

    def add(self, rows: Any, labels: NDArray[Any]) -> None:
        """See `Writer.add`."""
        self._blocks.append(Content(rows, labels))

    def save(self, path: Path) -> None:
        """Write the file."""
        rows = vstack([block.rows for block in self._blocks], format="csr")
        Content(rows, np.concatenate([block.labels for block in self._blocks])).save(path)


class SparseCopy(TrainingCopy):
    """Rows and labels of a version in a file of its own; see `TrainingCopy`."""

    @property
    def place(self) -> Path:
        """See `TrainingCopy.place`."""
        return self._directory.sparse_rows(self._version)

    @functools.cached_property
    def _content(self) -> Content:
        return read(self.place, self._features)

    def rows(self, count: int) -> Any:
        """See `TrainingCopy.rows`."""
        self._require(count)
        return self._content.rows.astype(np.float64)

    def stored(self, count: int) -> Any:
        """See `TrainingCopy.stored`."""
        self._require(count)
        return self._content.rows

    def stored_at(self, places: NDArray[np.int64], count: int) -> Any:
        """See `TrainingCopy.stored_at`."""
        return self.stored(count)[places]

    def labels(self, count: int) -> NDArray[Any]:
        """See `TrainingCopy.labels`."""
        self._require(count)
        return self._content.labels

    def _require(self, count: int) -> None:
        found = len(self._content.labels)
        if found != count:
            raise DataError(f"{self.place} is damaged: it holds {found:,} rows, not {count:,}")

    def take(self, rows: Sequence[int]) -> tuple[Any, NDArray[Any]]:
        """See `TrainingCopy.take`."""
        return self._content.rows[list(rows)], self._content.labels[list(rows)]

    def digests(self, asked: Sequence[Asked]) -> list[str]:
        """See `TrainingCopy.digests`."""
        return [self._digest(*each) for each in asked]

    def _digest(self, key: bytes, without: Sequence[int], waiting: Waiting | None) -> str:
        keyed = hmac.new(key, digestmod="sha256")
        for name, array in self._with(without, waiting).arrays():
            keyed.update(f"{name} {array.nbytes} {array.dtype.str}\n".encode())
            keyed.update(np.ascontiguousarray(array).data)
        return keyed.hexdigest()

    def holds(self, gone: Sequence[int], waiting: Waiting | None, planned: str, key: bytes) -> bool:
        """See `TrainingCopy.holds`: all was written, so all is read."""
        return self._digest(key, (), None) == planned

    def changed(self, version: int, gone: Sequence[int], waiting: Waiting | None) -> "SparseCopy":
        """See `TrainingCopy.changed`; the copy of this version stays as it is."""
        self._with(gone, waiting).save(self._directory.sparse_rows(version))
        return SparseCopy(self._directory, self._features, version)

    def _with(self, gone: Sequence[int], waiting: Waiting | None) -> Content:
        content = self._content
        if waiting is not None:
            content = content.followed_by(read(self._directory.added_rows(waiting.version), self._features))
        return content.without(gone)

    def first_row_left(self, owned: Sequence[int], count: int) -> int | None:
        """See `TrainingCopy.first_row_left`."""
        entries = sparse.entries_of_rows(self._content.rows)[:count].copy()
        entries[list(owned)] = 0
        return int(entries.argmax()) if entries.any() else None

    def terms_with(self, waiting: Waiting) -> Terms:
        """See `TrainingCopy.terms_with`."""
        return sparse.terms(self._with([], waiting).rows)

    def positions(self, rows: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
        """See `TrainingCopy.positions`: rows lie in the table's order."""
        return np.asarray(rows, np.int64)
