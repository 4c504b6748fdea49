"""Data for the timings: synthetic rows, built-in data sets, and the records that remain after requests."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.data.sets import built_in, load
from certified_unlearning.errors import ParameterError

Array = NDArray[np.float64]
TEST_RECORDS = 10_000
LABEL_NOISE = 0.3
"""The standard deviation of the noise that is added to a score before the sign of the score becomes the label.

The unit is the standard deviation of the scores.
"""
_ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True, eq=False)
class Table:
    """Records of two classes.

    Attributes:
        name: The name of a built-in data set, or the kind of synthetic rows.
        rows: The rows, shape ``(n, d + 1)``. The last column is all ones, for the intercept. Without this column, rows
            have a norm of at most 1.
        labels: The labels, -1.0 or 1.0, shape ``(n,)``.
        test_rows: The test rows, shape ``(n_test, d)``.
        test_labels: The test labels, -1.0 or 1.0.
    """

    name: str
    rows: Array
    labels: Array
    test_rows: Array
    test_labels: Array

    @property
    def n(self) -> int:
        """The number of records."""
        return len(self.rows)

    @property
    def features(self) -> int:
        """The number of columns of a row, without the intercept."""
        return int(self.rows.shape[1]) - 1


def synthetic(spectrum: str, *, n: int, features: int, seed: int) -> Table:
    """Return rows of norm 1, with noisy labels that a hyperplane determines; the same arguments give the same rows.

    Gaussian rows, ``isotropic`` or ``correlated`` (the variance of column ``j`` is ``1 / j^2``), are scaled to norm 1.
    Test records come last in the stream of random numbers, so a different ``n`` gives different test records of the
    same distribution.

    Args:
        spectrum: The kind of rows, ``isotropic`` or ``correlated``.
        n: The number of training records.
        features: The number of columns of a row.
        seed: The seed of the rows.
    """
    deviations = 1.0 / np.arange(1, features + 1) if spectrum == "correlated" else np.ones(features)
    generator = np.random.default_rng([seed, features, n])
    direction = np.random.default_rng([seed, features]).standard_normal(features) / deviations
    rows, labels = np.empty((n, features + 1)), np.empty(n)
    test_rows, test_labels = np.empty((TEST_RECORDS, features)), np.empty(TEST_RECORDS)
    for into, told in ((rows[:, :features], labels), (test_rows, test_labels)):
        for first, last in _pieces(len(told)):
            drawn = generator.standard_normal((last - first, features)) * deviations
            drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
            scores = drawn @ direction
            noise = LABEL_NOISE * np.std(scores) * generator.standard_normal(last - first)
            into[first:last], told[first:last] = drawn, np.where(scores + noise > 0, 1.0, -1.0)
    rows[:, features] = 1.0
    return Table(spectrum, rows, labels, test_rows, test_labels)


def prepared(name: str, *, seed: int) -> Table:
    """Return a built-in data set of two classes.

    Args:
        name: The name of the data set.
        seed: The seed of the split, if the source has none.

    Raises:
        ParameterError: No data set has this name, or it has more than two classes.
        DataError: The raw files are missing.
        StorageError: The raw files cannot be stored.
    """
    known = built_in(name)
    if known is None or known.classes != 2:
        raise ParameterError(f"data must name built-in data sets of two classes, got {name!r}")
    data = load(name, seed=seed)
    rows = np.ones((data.n, data.d + 1))
    for first, last in _pieces(data.n):
        rows[first:last, : data.d] = data.train_features[first:last]
    return Table(
        name, rows, data.train_labels.astype(float), data.test_features.astype(float), data.test_labels.astype(float)
    )


class Remaining:
    """The remaining records, always contiguous in memory: the last records overwrite the removed ones.

    Attributes:
        rows: The remaining rows, shape ``(left, d + 1)``; they must not be changed.
        labels: The remaining labels, shape ``(left,)``.

    Args:
        rows: All rows; this object changes them.
        labels: All labels; this object changes them.
    """

    def __init__(self, rows: Array, labels: Array) -> None:
        self.rows, self.labels = rows, labels
        self._record_at = np.arange(len(rows))
        self._place_of = np.arange(len(rows))

    def remove(self, records: NDArray[np.int64]) -> None:
        """Remove records, by their numbers among all rows."""
        left = len(self.rows)
        for record in records.tolist():
            left -= 1
            place, moved = self._place_of[record], self._record_at[left]
            self.rows[place], self.labels[place] = self.rows[left], self.labels[left]
            self._record_at[place], self._place_of[moved] = moved, place
        self.rows, self.labels = self.rows[:left], self.labels[:left]


def _pieces(records: int) -> Iterator[tuple[int, int]]:
    for first in range(0, records, _ROWS_AT_ONCE):
        yield first, min(first + _ROWS_AT_ONCE, records)
