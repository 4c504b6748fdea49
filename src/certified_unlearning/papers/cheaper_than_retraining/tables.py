"""Data to measure on: synthetic rows, built-in data sets, and the records that are left as requests come."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.data.sets import built_in, load
from certified_unlearning.errors import ParameterError

Array = NDArray[np.float64]
TEST_RECORDS = 10_000
LABEL_NOISE = 0.3
"""Noise of a score before its sign becomes the label, in units of the scores' standard deviation."""
_ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True, eq=False)
class Table:
    """Records of two classes.

    Attributes:
        name: Name of a built-in data set, or the kind of synthetic rows.
        rows: Shape ``(n, d + 1)``, of norm at most 1 but for the last column, which is all ones: the intercept.
        labels: -1.0 or 1.0, shape ``(n,)``.
        test_rows: Shape ``(n_test, d)``.
        test_labels: -1.0 or 1.0.
    """

    name: str
    rows: Array
    labels: Array
    test_rows: Array
    test_labels: Array

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.rows)

    @property
    def features(self) -> int:
        """Columns of a row, without the intercept."""
        return int(self.rows.shape[1]) - 1


def synthetic(spectrum: str, *, n: int, features: int, seed: int) -> Table:
    """Return rows of norm 1 whose label a hyperplane tells, but for noise; the same for the same arguments.

    Gaussian rows, ``isotropic`` or ``correlated`` (the variance of column ``j`` is ``1 / j^2``), are scaled to norm 1.
    Test records come last of the same stream, so another ``n`` has others of the same law.

    Args:
        spectrum: ``isotropic`` or ``correlated``.
        n: Number of training records.
        features: Columns of a row.
        seed: Seed of the rows.
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
        name: Its name.
        seed: Seed of its split, where the source has none.

    Raises:
        ParameterError: There is none of that name, or it has more than two classes.
        DataError: Its raw files are found nowhere.
        StorageError: They cannot be put in place.
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
    """The records that are left, always one piece of memory: what leaves is overwritten by what lies last.

    Attributes:
        rows: Shape ``(left, d + 1)``; not to be changed.
        labels: Shape ``(left,)``.

    Args:
        rows: All rows; they are changed.
        labels: All labels; they are changed.
    """

    def __init__(self, rows: Array, labels: Array) -> None:
        self.rows, self.labels = rows, labels
        self._record_at = np.arange(len(rows))
        self._place_of = np.arange(len(rows))

    def remove(self, records: NDArray[np.int64]) -> None:
        """Remove records, by their numbers in all rows."""
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
