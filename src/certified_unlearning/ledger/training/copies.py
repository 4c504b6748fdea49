"""The common interface of dense and sparse training copies, which commands and mechanisms use."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.accounting.residual.rounding import Terms
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.state import State

Rows = Any
"""Type of an array, or of a sparse matrix, for which SciPy has no types."""


class Waiting(NamedTuple):
    """Rows that wait in files to be added to the training copy. The end of the copy may have some of them already.

    Attributes:
        version: The number of the version that adds the rows.
        after: The number of rows in the copy, without the waiting rows.
    """

    version: int
    after: int


class Asked(NamedTuple):
    """A digest to compute.

    Attributes:
        key: The key of the digest.
        without: Rows that are digested as removed rows, even if they are not zeroed yet.
        waiting: Rows that are digested as if they were at the end of the copy, even if they are not there yet.
    """

    key: bytes
    without: Sequence[int] = ()
    waiting: Waiting | None = None


def waiting_of(state: State) -> Waiting | None:
    """Return the rows that wait to be added; None if no `add` was started."""
    planned = state.planned
    return None if planned is None or planned.addition is None else Waiting(planned.version, state.rows)


class TrainingCopy(ABC):
    """Rows and labels of a version's records; the rows and labels of removed records are empty.

    Args:
        directory: The model directory.
        features: The number of columns of a row.
        version: The number of the version.
    """

    def __init__(self, directory: ModelDirectory, features: int, version: int) -> None:
        self._directory, self._features, self._version = directory, features, version

    @property
    @abstractmethod
    def place(self) -> Path:
        """The path of the copy, for messages."""

    @abstractmethod
    def rows(self, count: int) -> Rows:
        """Return the first ``count`` rows in the form that objectives read; dense rows stay in their file.

        Raises:
            DataError: The rows cannot be read, or are damaged.
        """

    @abstractmethod
    def stored(self, count: int) -> Rows:
        """Return the first ``count`` rows as they are stored, float32; dense slices are read on access.

        Raises:
            DataError: The rows cannot be read.
        """

    @abstractmethod
    def stored_at(self, places: NDArray[np.int64], count: int) -> Rows:
        """Return some of the stored rows, by their places in the copy. Raises the same errors as `stored`."""

    @abstractmethod
    def labels(self, count: int) -> NDArray[Any]:
        """Return ``count`` labels: classes as int8, targets of regression as float64.

        Raises:
            DataError: The labels cannot be read, or their number is wrong.
        """

    @abstractmethod
    def take(self, rows: Sequence[int]) -> tuple[Rows, NDArray[Any]]:
        """Return the given rows of the table and their labels, in new arrays, as the training copy stores them."""

    @abstractmethod
    def digests(self, asked: Sequence[Asked]) -> list[str]:
        """Return keyed digests (HMAC-SHA-256). All digests are computed in one pass over the rows and labels.

        Raises:
            DataError: A file cannot be read, or is damaged.
        """

    @abstractmethod
    def holds(self, gone: Sequence[int], waiting: Waiting | None, planned: str, key: bytes) -> bool:
        """Return whether a copy that `changed` has just made has the planned digest; its previous state was checked.

        Args:
            gone: Rows of the table that were removed.
            waiting: Rows that were added.
            planned: The planned digest.
            key: Key of the digest.
        """

    @abstractmethod
    def changed(self, version: int, gone: Sequence[int], waiting: Waiting | None) -> "TrainingCopy":
        """Write and return the copy of the next version, with waiting rows at its end, and with removed rows empty.

        The returned copy is durable. After an interruption at any moment, the call can be repeated with the same
        result.

        Args:
            version: The next version.
            gone: Rows of the table that are removed.
            waiting: Rows that are added.
        """

    @abstractmethod
    def first_row_left(self, owned: Sequence[int], count: int) -> int | None:
        """Return the first row that has no owner and is not empty; None if there is none.

        Args:
            owned: The rows that have an owner.
            count: The number of rows. Rows after these come from an unfinished `add`.
        """

    @abstractmethod
    def terms_with(self, waiting: Waiting) -> Terms | None:
        """Return the numbers of terms in sums over all rows, including waiting rows.

        Return None if the number of rows determines the numbers of terms.
        """

    @abstractmethod
    def positions(self, rows: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
        """Return, for each of these rows of the table, its position in the training copy."""


class Writer(ABC):
    """A writer of rows and labels to files, block by block."""

    @abstractmethod
    def add(self, rows: Rows, labels: NDArray[Any]) -> None:
        """Write a block of rows and labels."""
