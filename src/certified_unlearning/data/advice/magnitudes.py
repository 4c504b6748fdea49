"""A column's share of the rows' norm, with and without a range, computed from a small histogram of magnitudes."""

from collections import Counter

import numpy as np
from numpy.typing import NDArray

_BINS = 8
"""Number of bins per factor of 2. Squares are accurate to a tenth, and a share of 90 % is accurate to a hundredth."""


class Magnitudes:
    """A tally of a column's finite numbers."""

    def __init__(self) -> None:
        self._count = 0
        self._bins: Counter[int] = Counter()
        self._first = 0.0
        self._sum = 0.0
        self._squares = 0.0

    def add(self, numbers: NDArray[np.float64]) -> None:
        """Count one or more numbers."""
        if not self._count:
            self._first = float(numbers[0])
        self._count += len(numbers)
        bins, counts = np.unique(np.floor(_BINS * np.log2(np.abs(numbers[numbers != 0]))), return_counts=True)
        self._bins.update(dict(zip(bins.astype(int).tolist(), counts.tolist(), strict=True)))
        # Distances from one of the numbers are summed, because the squares of years would hide how little years differ.
        with np.errstate(over="ignore", invalid="ignore"):
            distances = numbers - self._first
            self._sum += float(distances.sum())
            self._squares += float(np.square(distances).sum())

    def mean_square(self, low: float, high: float, rows: int) -> float:
        """Return the numbers' mean square over the rows, after the range from ``low`` to ``high`` is mapped to [-1, 1].

        A row without a number counts as 0, the middle of the range. The result is at most 1, and 1 after an overflow.
        """
        middle, half = low / 2 + high / 2, high / 2 - low / 2
        shift = (self._first - middle) / half
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            squares = np.float64(self._squares) / half / half + 2 * shift * np.float64(self._sum) / half
            mean = float((squares + self._count * shift**2) / rows)
        return min(max(mean, 0.0), 1.0) if np.isfinite(mean) else 1.0

    def share(self, others: float, rows: int, constant: float = 0.0) -> float:
        """Return the share of a row's squared norm that the unscaled numbers carry, as a mean over the rows.

        Args:
            others: The mean contribution of all other columns to the squared norm, above 0.
            rows: Number of rows.
            constant: The column's value in rows in which its number is missing.
        """
        bins = np.array([*self._bins], dtype=np.float64)
        counts = np.array([*self._bins.values()], dtype=np.float64)
        logarithms = np.append(2 * (bins + 0.5) / _BINS, 2 * np.log2(abs(constant)) if constant else -np.inf)
        counts = np.append(counts, rows - self._count)
        # The ratio is squared, because the square of a large number is infinite. If the ratio is infinite, the share is
        # 0.
        with np.errstate(over="ignore"):
            shares = 1 / (1 + np.exp2(np.log2(others) - logarithms))
        return float(shares @ counts) / rows
