"""The share of a row's squared norm that each column carries: where one carries nearly all, the others hardly count.

Rows come block by block, so that they may be more than memory holds. The shares are computed from the records, so they
are for the operator's eyes.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

DROWNING = 0.9
"""A column that carries more than this share drowns the others."""
_SAMPLE = 2_500
_NUMBERS = 1 << 22


class DominantColumn(NamedTuple):
    """The column that drowns the others.

    Attributes:
        column: Its name.
        share: The mean over rows of its share of the row's squared norm.
        others: How many other columns there are.
    """

    column: str
    share: float
    others: int

    def in_words(self) -> str:
        """Return what it does to the other columns, without a full stop."""
        return f"{self.column} carries {percent(self.share)} of a row's squared norm, so {hardly_count(self.others)}"


class Shares:
    """A tally over rows. Rows of zeros do not count.

    Args:
        columns: The column that each feature belongs to: the features of a one-hot column count together.
    """

    def __init__(self, columns: Sequence[str]) -> None:
        self._names = list(dict.fromkeys(columns))
        place = {name: number for number, name in enumerate(self._names)}
        self._column_of = np.array([place[name] for name in columns])
        self._sums = np.zeros(len(columns))
        self._rows = 0

    def add(self, rows: NDArray[np.floating]) -> None:
        """Count some rows, shape ``(rows, features)``, without the constant of an intercept."""
        squares = np.square(rows, dtype=np.float64)
        norms = squares.sum(axis=1)
        counts = norms > np.finfo(np.float64).tiny  # The inverse of a smaller number may be infinite.
        self._sums += np.divide(1, norms, out=np.zeros_like(norms), where=counts) @ squares
        self._rows += int(counts.sum())

    def largest(self) -> DominantColumn | None:
        """Return the column that drowns the others; None if there is none, or if there is one column only."""
        if len(self._names) < 2 or not self._rows:
            return None
        shares = np.bincount(self._column_of, self._sums) / self._rows
        most = int(shares.argmax())
        if shares[most] <= DROWNING:
            return None
        return DominantColumn(self._names[most], float(shares[most]), len(self._names) - 1)


def sampled(records: int, features: int) -> NDArray[np.int64] | slice:
    """Return which records tell of all: at most 2,500, fewer where rows are long, the same ones every time."""
    most = max(100, min(_SAMPLE, _NUMBERS // features))
    if records <= most:
        return slice(None)
    return np.sort(np.random.default_rng(0).integers(records, size=most))


def percent(share: float) -> str:
    """Return a share in words, rounded down: what is below 1 is never 100 %."""
    return f"{math.floor(1000 * share) / 10:.1f} %"


def hardly_count(others: int, verb: str = "hardly count") -> str:
    """Return what the other columns do, in words."""
    if others > 1:
        return f"the other {others:,} columns {verb}"
    return f"the other column {'hardly counts' if verb == 'hardly count' else verb}"
