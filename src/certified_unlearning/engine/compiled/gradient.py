"""Compiled gradients of logistic regression over float32 rows, summed in float64: each row is read once, as it is.

NumPy would make a float64 copy of a block of rows first. A float32 number is a float64 number, so the bounds of
`accounting.residual.rounding` hold: scores are sums in any order, and rows are added in the blocks that they know.
"""

import ctypes
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certified_unlearning import compiled

SOURCE = Path(__file__).with_name("gradient.cpp")
NUMBERS_OF_A_CALL = 1 << 27
"""So many are read in some tenths of a second, for which a signal has to wait."""


def takes(rows: NDArray[Any], labels: NDArray[Any]) -> bool:
    """Return whether `logistic_gradient` is there and takes such rows."""
    return (
        rows.dtype == np.float32
        and rows.flags.c_contiguous
        and labels.dtype == np.float64
        and labels.flags.c_contiguous
        and len(labels) == len(rows)
        and library() is not None
    )


def logistic_gradient(
    rows: NDArray[Any],
    labels: NDArray[Any],
    weights: NDArray[np.float64],
    *,
    block: int,
    class_weights: Sequence[float] | None,
) -> NDArray[np.float64]:
    """Return the sum of the gradients of all rows' losses, shape ``(d,)``.

    Args:
        rows: Shape ``(n, d)``; `takes` them.
        labels: -1 or 1, shape ``(n,)``.
        weights: Shape ``(d,)``.
        block: Rows that are added one after another.
        class_weights: Of -1 and 1; None for 1.
    """
    found = library()
    assert found is not None
    weights, total = np.ascontiguousarray(weights, np.float64), np.zeros(rows.shape[1])
    of_minus, of_plus = class_weights or (1.0, 1.0)
    size = block * max(1, NUMBERS_OF_A_CALL // (block * rows.shape[1]))
    for first in range(0, len(rows), size):
        some, signs = rows[first : first + size], labels[first : first + size]
        where = some.ctypes.data, signs.ctypes.data, of_minus, of_plus, weights.ctypes.data, total.ctypes.data
        found.logistic_gradient(*some.shape, block, *where)
    return total


@functools.cache
def library() -> ctypes.CDLL | None:
    """Return the compiled kernel, built now if it never was on this machine; None where that cannot be."""
    found = compiled.library(SOURCE, instead="gradients over float32 rows are computed by NumPy")
    if found is not None:
        whole, number, address = ctypes.c_int64, ctypes.c_double, ctypes.c_void_p
        found.logistic_gradient.argtypes = [*[whole] * 3, address, address, number, number, address, address]
        found.logistic_gradient.restype = None
    return found
