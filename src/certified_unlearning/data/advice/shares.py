"""The share of a row's squared norm that each column carries.

If one column carries nearly all of the squared norm, the others hardly count.

Rows come block by block, so they may exceed memory. The shares are computed from the records, so they are for the
operator only.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

DROWNING = 0.9
"""A column that carries more than this share of the squared norm dominates the others."""
_SAMPLE = 2_500
_NUMBERS = 1 << 22


class DominantColumn(NamedTuple):
    """The column that dominates the others.

    Attributes:
        column: The column's name.
        share: The column's share of a row's squared norm, as a mean over the rows.
        others: The number of other columns.
    """

    column: str
    share: float
    others: int

    def in_words(self) -> str:
        """Return the column's effect on the other columns, without a full stop."""
        return f"{self.column} carries {percent(self.share)} of a row's squared norm, so {hardly_count(self.others)}"


class Shares:
    """A tally of shares over rows. Rows of zeros do not count.

    Args:
        columns: The column of each feature; the features of a one-hot column count together. If a number of features is
            given instead, each feature is a separate unnamed column; there may be a million of these.
    """

    def __init__(self, columns: Sequence[str] | int) -> None:
        self._names: Sequence[str] | None = None
        features = columns if isinstance(columns, int) else len(columns)
        self._column_of: NDArray[np.int64] = np.arange(features)
        if not isinstance(columns, int):
            self._names = list(dict.fromkeys(columns))
            place = {name: number for number, name in enumerate(self._names)}
            self._column_of = np.array([place[name] for name in columns])
        self._sums = np.zeros(features)
        self._rows = 0

    def add(self, rows: Any) -> None:
        """Count the rows of a dense or sparse matrix, shape ``(rows, features)``. It has no column for an intercept."""
        squares = rows.astype(np.float64).power(2) if issparse(rows) else np.square(rows, dtype=np.float64)
        norms = np.asarray(squares.sum(axis=1))
        counts = norms > np.finfo(np.float64).tiny  # The inverse of a smaller number may be infinite.
        self._sums += np.divide(1, norms, out=np.zeros_like(norms), where=counts) @ squares
        self._rows += int(counts.sum())

    def largest(self) -> DominantColumn | None:
        """Return the column that dominates the others; None if no column does, or if there is only one column."""
        shares = np.bincount(self._column_of, self._sums) / max(1, self._rows)
        if len(shares) < 2 or not self._rows:
            return None
        most = int(shares.argmax())
        if shares[most] <= DROWNING:
            return None
        name = f"column {most} of X" if self._names is None else self._names[most]
        return DominantColumn(name, float(shares[most]), len(shares) - 1)


def sampled(records: int, features: int) -> NDArray[np.int64] | slice:
    """Return the indices of the sampled records: at most 2,500 (fewer if rows are long), the same ones every time."""
    most = max(100, min(_SAMPLE, _NUMBERS // features))
    if records <= most:
        return slice(None)
    return np.sort(np.random.default_rng(0).integers(records, size=most))


def percent(share: float) -> str:
    """Return a share as a percentage, rounded down, so that a share below 1 is never shown as 100 %."""
    return f"{math.floor(1000 * share) / 10:.1f} %"


def hardly_count(others: int, verb: str = "hardly count") -> str:
    """Return the effect on the other columns, in words."""
    if others > 1:
        return f"the other {others:,} columns {verb}"
    return f"the other column {'hardly counts' if verb == 'hardly count' else verb}"
