"""Compiled gradients of logistic regression: float32 rows are summed in float64 without being copied.

NumPy would first make a float64 copy of each block of rows. Every float32 number is also a float64 number, so the
bounds of `accounting.residual.rounding` hold. These bounds allow any order of sums in a score, and assume that rows are
added in the blocks used here.
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
"""Number of entries that one call reads. This takes a few tenths of a second, and a signal may have to wait that
long."""


def takes(rows: NDArray[Any], labels: NDArray[Any], of_labels: type[np.generic] = np.float64) -> bool:
    """Return whether the kernel is available and accepts these rows.

    Args:
        rows: Rows, or an object that supplies them.
        labels: Labels.
        of_labels: Type of labels: float64 for `logistic_gradient`, int64 for `class_gradients`.
    """
    return readable(rows, labels, of_labels) and library() is not None


def readable(rows: NDArray[Any], labels: NDArray[Any], of_labels: type[np.generic]) -> bool:
    """Return whether compiled kernels can read rows and labels in place: float32 rows, with a label for each row."""
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
        rows: Rows, shape ``(n, d)``; `takes` must accept them.
        labels: Labels -1 or 1, shape ``(n,)``.
        weights: Weights, shape ``(d,)``.
        block: Number of rows in a block; the rows of a block are added one after another.
        class_weights: Weights of classes -1 and 1; None if all are 1.
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
    """Return `logistic_gradient`, and the largest absolute product of a row and ``way``, which has shape ``(d,)``."""
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
    """Return the sum of the gradients over all rows, for each given class against all others; each row is read once.

    Args:
        rows: Rows, shape ``(n, d)``; `takes` must accept them.
        numbers: Class of each row, as a number, int64, shape ``(n,)``.
        weights: Weights for each given class, shape ``(len(positives), d)``.
        positives: The given classes, as numbers.
        block: Number of rows in a block; the rows of a block are added one after another.
        class_weights: Class weights of all classes; None if all are 1.
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
    """Return the compiled kernel, after building it if necessary; None if it cannot be built on this machine."""
    found = compiled.library(SOURCE, instead="gradients over float32 rows are computed by NumPy")
    if found is not None:
        whole, number, address = ctypes.c_int64, ctypes.c_double, ctypes.c_void_p
        found.logistic_gradient.argtypes = [*[whole] * 3, address, address, number, number, *[address] * 3]
        found.logistic_gradient.restype = None
        found.class_gradients.argtypes = [*[whole] * 4, *[address] * 6]
        found.class_gradients.restype = None
    return found
