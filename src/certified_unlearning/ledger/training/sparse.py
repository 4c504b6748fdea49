"""Sparse rows: the three arrays of a CSR matrix, and labels, in one file for each version.

Each version has a new file. When the new version is the current one, the file of the previous version is overwritten
and deleted, like old weights. A removed row becomes empty, so that its number of entries is gone, too. Rows are float32
numbers.
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
    """The content of a file.

    Attributes:
        rows: Rows, float32, without duplicate entries.
        labels: Classes as int8, or targets of regression as float64.
    """

    rows: csr_array
    labels: NDArray[Any]

    def without(self, gone: Sequence[int]) -> "Content":
        """Return this content with empty rows and zero labels in some places."""
        if not len(gone):
            return self
        places, labels = np.asarray(gone, np.int64), self.labels.copy()
        labels[places] = 0
        return Content(sparse.wiped(self.rows, places), labels)

    def followed_by(self, other: "Content") -> "Content":
        """Return the rows and labels of this content, followed by those of another content."""
        rows = vstack([self.rows, other.rows], format="csr")
        return Content(rows, np.concatenate([self.labels, other.labels]))

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Yield the file's arrays by name; their types are always the same."""
        yield "entries", self.rows.data
        yield "columns", self.rows.indices.astype(np.int32, copy=False)
        yield "ends", self.rows.indptr.astype(np.int64, copy=False)
        yield "labels", self.labels

    def save(self, path: Path) -> None:
        """Write the content to a file, durably and atomically."""
        content = safetensors.numpy.save(dict(self.arrays()))
        with atomic_path(path) as temporary:
            # Only the owner may read the rows, even if the directory is opened for others to read the weights.
            temporary.touch(mode=0o600)
            temporary.write_bytes(content)


def read(path: Path, features: int) -> Content:
    """Read the content of a file.

    Raises:
        DataError: The file cannot be read, or is damaged.
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
    """A writer that saves rows and labels in one file."""

    def __init__(self) -> None:
        self._blocks: list[Content] = []

    def add(self, rows: Any, labels: NDArray[Any]) -> None:
        """See `Writer.add`."""
        self._blocks.append(Content(rows, labels))

    def save(self, path: Path) -> None:
        """Write all blocks to a file."""
        rows = vstack([block.rows for block in self._blocks], format="csr")
        Content(rows, np.concatenate([block.labels for block in self._blocks])).save(path)


class SparseCopy(TrainingCopy):
    """Rows and labels of one version, in a file of their own; see `TrainingCopy`."""

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
        """See `TrainingCopy.holds`. The whole file was written, so all of it is read."""
        return self._digest(key, (), None) == planned

    def changed(self, version: int, gone: Sequence[int], waiting: Waiting | None) -> "SparseCopy":
        """See `TrainingCopy.changed`. The copy of this version is not changed."""
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
        """See `TrainingCopy.positions`. Rows are in the table's order."""
        return np.asarray(rows, np.int64)
