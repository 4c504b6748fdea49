"""Columns that should not be features because they number the rows or copy the label."""

import numpy as np
from numpy.typing import NDArray

_SURELY = 1e-9
"""A feature is a copy of the target if a linear function of the target leaves at most this share of the feature's
variance unexplained. The share allows for rounding."""


class Suspects:
    """A search, among the rows read so far, for features that number the rows or copy the label.

    Args:
        names: Names of all features; empty if features were chosen explicitly.
        classes: Number of classes; 0 for targets that are numbers.
    """

    def __init__(self, names: list[str], classes: int) -> None:
        self._names = names
        self._rises = np.ones(len(names), np.bool_)
        self._last = np.full((1, len(names)), -np.inf)
        self._copies = _CopiesOfClasses(len(names), classes) if classes else _CopiesOfTargets(len(names))

    def add(self, features: NDArray[np.float64], labels: NDArray[np.int64] | NDArray[np.float64]) -> None:
        """Examine some rows, given their unscaled features, and the class number or the target of each row."""
        if not self._names:
            return
        if self._rises.any():
            above = np.vstack([self._last, features])
            self._rises &= (np.diff(above, axis=0) > 0).all(axis=0) & (features == np.round(features)).all(axis=0)
            self._last = features[-1:]
        self._copies.add(features, labels)

    def reason(self) -> str | None:
        """Return a sentence on the first column that should not be a feature; None if there is none."""
        for names_which, what in (
            (self._rises, "numbers the rows: its whole numbers increase from row to row"),
            (self._copies.found(), self._copies.what),
        ):
            if names_which.any():
                return f"column {self._names[int(names_which.argmax())]!r} {what}"
        return None


class _CopiesOfClasses:
    what = "is a copy of the label: each class has a single value of this column"

    def __init__(self, features: int, classes: int) -> None:
        self._least = np.full((classes, features), np.inf)
        self._most = -self._least

    def add(self, features: NDArray[np.float64], classes: NDArray[np.int64] | NDArray[np.float64]) -> None:
        if self.found().any():
            for label in np.unique(classes):
                some = features[classes == label]
                self._least[label] = np.minimum(self._least[label], some.min(axis=0))
                self._most[label] = np.maximum(self._most[label], some.max(axis=0))

    def found(self) -> NDArray[np.bool_]:
        """Return the features whose values so far are constant in each class, and differ from class to class."""
        values = np.sort(self._least, axis=0)  # The value is infinite if no row of a class has been read yet.
        apart = np.isinf(values[1:]) | (values[1:] > values[:-1])
        return np.asarray((self._least >= self._most).all(axis=0) & apart.all(axis=0))


class _CopiesOfTargets:
    what = "is a copy of the label: it is a linear function of the label"

    def __init__(self, features: int) -> None:
        self._features = features
        self._first: NDArray[np.float64] | None = None
        self._rows = 0
        self._sums: tuple[NDArray[np.float64], ...] = ()

    def add(self, features: NDArray[np.float64], targets: NDArray[np.int64] | NDArray[np.float64]) -> None:
        if self._first is None:
            # Values are taken relative to the first row, so that rounding affects the sums of squares less.
            self._first = np.append(features[0], targets[0])
        x, y = features - self._first[:-1], (targets - self._first[-1])[:, None]
        with np.errstate(over="ignore"):
            sums = tuple(each.sum(axis=0) for each in (x, y, x * x, y * y, x * y))
            self._sums = tuple(map(np.add, self._sums, sums)) if self._sums else sums
        self._rows += len(features)

    def found(self) -> NDArray[np.bool_]:
        """Return the features that so far are linear functions of the target."""
        if not self._sums:
            return np.zeros(self._features, np.bool_)
        x, y, xx, yy, xy = (each / self._rows for each in self._sums)
        with np.errstate(over="ignore", invalid="ignore"):
            variances = (xx - x * x) * (yy - y * y)
            left = variances - (xy - x * y) ** 2
            return np.asarray((variances > 0) & (left <= _SURELY * variances))
