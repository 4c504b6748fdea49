"""The training copy, whatever its form: what commands and mechanisms ask of it."""

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
"""An array, or a sparse matrix, for which SciPy has no types."""


class Waiting(NamedTuple):
    """Rows that wait to be added to the training copy, whose end may hold some of them already.

    Attributes:
        version: The version that adds them.
        after: Number of rows before them.
    """

    version: int
    after: int


class Asked(NamedTuple):
    """A digest that is asked for.

    Attributes:
        key: Its key.
        without: Rows that count as removed, whatever they still are.
        waiting: Rows that count as standing at the end, whatever stands there yet.
    """

    key: bytes
    without: Sequence[int] = ()
    waiting: Waiting | None = None


def waiting_of(state: State) -> Waiting | None:
    """Return which rows wait; None where no version that adds records was begun."""
    planned = state.planned
    return None if planned is None or planned.addition is None else Waiting(planned.version, state.rows)


class TrainingCopy(ABC):
    """Rows and labels of the records of a version, and empty ones where records were removed.

    Args:
        directory: The model directory.
        features: Columns of a row.
        version: The version.
    """

    def __init__(self, directory: ModelDirectory, features: int, version: int) -> None:
        self._directory, self._features, self._version = directory, features, version

    @property
    @abstractmethod
    def place(self) -> Path:
        """Where it lies, for messages."""

    @abstractmethod
    def rows(self, count: int) -> Rows:
        """Return so many rows from the first on, as objectives take them; dense ones stay in their file.

        Raises:
            DataError: They cannot be read, or are damaged.
        """

    @abstractmethod
    def stored(self, count: int) -> Rows:
        """Return so many rows as they are stored, float32, of which slices are read when they are taken.

        Raises:
            DataError: They cannot be read.
        """

    @abstractmethod
    def stored_at(self, places: NDArray[np.int64], count: int) -> Rows:
        """Return some of these rows, by their places in the copy; errors as of `stored`."""

    @abstractmethod
    def labels(self, count: int) -> NDArray[Any]:
        """Return so many labels: classes as int8, targets of regression as float64.

        Raises:
            DataError: They cannot be read, or there are more or fewer.
        """

    @abstractmethod
    def take(self, rows: Sequence[int]) -> tuple[Rows, NDArray[Any]]:
        """Return copies of rows of the table, and of their labels, as they lie in the copy."""

    @abstractmethod
    def digests(self, asked: Sequence[Asked]) -> list[str]:
        """Return keyed digests (HMAC-SHA-256), for which all is read once.

        Raises:
            DataError: A file cannot be read, or is damaged.
        """

    @abstractmethod
    def holds(self, gone: Sequence[int], waiting: Waiting | None, planned: str, key: bytes) -> bool:
        """Return whether the copy, which `changed` has just made of one that was checked, is what was planned.

        Args:
            gone: Rows of the table that were removed.
            waiting: Rows that were added.
            planned: The digest that it must have.
            key: Key of the digest.
        """

    @abstractmethod
    def changed(self, version: int, gone: Sequence[int], waiting: Waiting | None) -> "TrainingCopy":
        """Return the copy of the next version, durable: with rows that wait at its end, and without some rows.

        Doing it again, after it was interrupted at any moment, has the same result.

        Args:
            version: The next version.
            gone: Rows of the table that are removed.
            waiting: Rows that are added.
        """

    @abstractmethod
    def first_row_left(self, owned: Sequence[int], count: int) -> int | None:
        """Return the first row that belongs to nobody and is not empty, if there is one.

        Args:
            owned: The rows that belong to somebody.
            count: How many rows there are; what stands behind them an `add` has begun to write.
        """

    @abstractmethod
    def terms_with(self, waiting: Waiting) -> Terms | None:
        """Return how many numbers sums over the rows have, with rows that wait; None where counts alone say it."""

    @abstractmethod
    def positions(self, rows: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where rows of the table lie in the copy."""


class Writer(ABC):
    """Rows and labels on their way into files, a block at a time."""

    @abstractmethod
    def add(self, rows: Rows, labels: NDArray[Any]) -> None:
        """Write a block."""
