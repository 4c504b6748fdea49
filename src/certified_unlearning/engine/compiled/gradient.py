"""Compiled gradients of logistic regression: float32 rows are summed in float64, each read once without a copy.

NumPy would make a float64 copy of a block of rows first. A float32 number is a float64 number, so the bounds of
`accounting.residual.rounding` hold: scores are sums in any order, and rows are added in the blocks that the bounds
assume.
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
"""Number of entries read in a few tenths of a second, the time that a signal may have to wait."""


def takes(rows: NDArray[Any], labels: NDArray[Any], of_labels: type[np.generic] = np.float64) -> bool:
    """Return whether the kernel is available and takes these rows.

    Args:
        rows: Rows, or their source.
        labels: Labels.
        of_labels: Type of labels: float64 for `logistic_gradient`, int64 for `class_gradients`.
    """
    return readable(rows, labels, of_labels) and library() is not None


def readable(rows: NDArray[Any], labels: NDArray[Any], of_labels: type[np.generic]) -> bool:
    """Return whether compiled kernels can read rows and labels in place: float32 rows, and a label for each."""
    return (
        rows.dtype == np.float32
        and rows.flags.c_contiguous
        and labels.dtype == of_labels
        and labels.flags.c_contiguous
        and len(labels) == len(rows)
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
        rows: Shape ``(n, d)``; `takes` must accept them.
        labels: -1 or 1, shape ``(n,)``.
        weights: Shape ``(d,)``.
        block: Number of rows that are added one after another.
        class_weights: Weights of -1 and 1; None for 1.
    """
    return _logistic_gradient(rows, labels, weights, None, block, class_weights)


def gradient_and_farthest(
    rows: NDArray[Any],
    labels: NDArray[Any],
    weights: NDArray[np.float64],
    way: NDArray[np.float64],
    *,
    block: int,
    class_weights: Sequence[float] | None,
) -> tuple[NDArray[np.float64], float]:
    """Return `logistic_gradient`, and the size of the largest product of a row with ``way``, of shape ``(d,)``."""
    farthest = np.zeros(1)
    total = _logistic_gradient(rows, labels, np.stack([weights, way]), farthest, block, class_weights)
    return total, float(farthest[0])


def _logistic_gradient(
    rows: NDArray[Any],
    labels: NDArray[Any],
    weights: NDArray[np.float64],
    farthest: NDArray[np.float64] | None,
    block: int,
    class_weights: Sequence[float] | None,
) -> NDArray[np.float64]:
    found = library()
    assert found is not None
    weights, total = np.ascontiguousarray(weights, np.float64), np.zeros(rows.shape[1])
    of_minus, of_plus = class_weights or (1.0, 1.0)
    ends = weights.ctypes.data, total.ctypes.data, None if farthest is None else farthest.ctypes.data
    size = block * max(1, NUMBERS_OF_A_CALL // (block * rows.shape[1]))
    for first in range(0, len(rows), size):
        some, signs = rows[first : first + size], labels[first : first + size]
        where = some.ctypes.data, signs.ctypes.data, of_minus, of_plus, *ends
        found.logistic_gradient(*some.shape, block, *where)
    return total


def class_gradients(
    rows: NDArray[Any],
    numbers: NDArray[Any],
    weights: NDArray[np.float64],
    positives: Sequence[int],
    *,
    block: int,
    class_weights: Sequence[float] | None,
) -> NDArray[np.float64]:
    """Return the sums of all rows' gradients for some classes against the rest, reading each row once.

    Args:
        rows: Shape ``(n, d)``; `takes` must accept them.
        numbers: Numbers of their classes, int64, shape ``(n,)``.
        weights: Weights of some classes, shape ``(len(positives), d)``.
        positives: The numbers of these classes.
        block: Number of rows that are added one after another.
        class_weights: Weights of all classes; None for 1.
    """
    found = library()
    assert found is not None
    weights, total = np.ascontiguousarray(weights, np.float64), np.zeros((len(positives), rows.shape[1]))
    those = np.array(positives, np.int64)
    of_class = None if class_weights is None else np.array(class_weights, np.float64)
    size = block * max(1, NUMBERS_OF_A_CALL // (block * rows.shape[1] * len(positives)))
    for first in range(0, len(rows), size):
        some, of_some = rows[first : first + size], numbers[first : first + size]
        given = (some, of_some, those, of_class, weights, total)
        where = [None if each is None else each.ctypes.data for each in given]
        found.class_gradients(*some.shape, block, len(those), *where)
    return total


@functools.cache
def library() -> ctypes.CDLL | None:
    """Return the compiled kernel, built now if it was not yet built on this machine; None if that is not possible."""
    found = compiled.library(SOURCE, instead="gradients over float32 rows are computed by NumPy")
    if found is not None:
        whole, number, address = ctypes.c_int64, ctypes.c_double, ctypes.c_void_p
        found.logistic_gradient.argtypes = [*[whole] * 3, address, address, number, number, *[address] * 3]
        found.logistic_gradient.restype = None
        found.class_gradients.argtypes = [*[whole] * 4, *[address] * 6]
        found.class_gradients.restype = None
    return found
