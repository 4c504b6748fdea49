"""Compiled gradients of softmax regression: float32 rows are summed in float64 without being copied.

This is the counterpart of `gradient` for more than two classes. Scores and sums are computed for as many classes at
once as registers can hold, so any number of classes is possible. Every float32 number is also a float64 number, so the
bounds of `accounting.residual.rounding` hold. These bounds allow any order of sums in a score, and assume that rows are
added in the blocks used here. For a probability, they count the rounding errors of an exponential, a sum and a
quotient, after the largest score was subtracted.
"""

import ctypes
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certified_unlearning import compiled
from certified_unlearning.engine.compiled.gradient import NUMBERS_OF_A_CALL, readable

SOURCE = Path(__file__).with_name("softmax.cpp")


def takes(rows: Any, labels: NDArray[Any]) -> bool:
    """Return whether `softmax_gradient` is available and accepts these rows."""
    return readable(rows, labels, np.int64) and library() is not None


def softmax_gradient(
    rows: NDArray[Any],
    labels: NDArray[Any],
    weights: NDArray[np.float64],
    *,
    block: int,
    class_weights: Sequence[float] | None,
) -> NDArray[np.float64]:
    """Return the sum of the gradients of all rows' losses, shape ``(classes, d)``.

    Args:
        rows: Rows, shape ``(n, d)``; `takes` must accept them.
        labels: Labels from 0 to ``classes - 1``, also for rows of zeros; shape ``(n,)``.
        weights: Weights, shape ``(classes, d)``.
        block: Number of rows in a block; the rows of a block are added one after another.
        class_weights: One class weight per class; None if all are 1.

    Raises:
        IndexError: A label is out of range.
    """
    found = library()
    assert found is not None
    classes, features = weights.shape
    if len(labels) and not 0 <= labels.min() <= labels.max() < classes:
        raise IndexError(f"labels must lie between 0 and {classes - 1}, got {labels.min()} to {labels.max()}")
    weights, total = np.ascontiguousarray(weights, np.float64), np.zeros((classes, features))
    shares = None if class_weights is None else np.array(class_weights, np.float64)
    of_classes = None if shares is None else shares.ctypes.data
    size = block * max(1, NUMBERS_OF_A_CALL // (block * features * classes))
    for first in range(0, len(rows), size):
        some, own = rows[first : first + size], labels[first : first + size]
        where = some.ctypes.data, own.ctypes.data, of_classes, weights.ctypes.data, total.ctypes.data
        found.softmax_gradient(len(some), features, classes, block, *where)
    return total


@functools.cache
def library() -> ctypes.CDLL | None:
    """Return the compiled kernel, after building it if necessary; None if it cannot be built on this machine."""
    found = compiled.library(SOURCE, instead="gradients over float32 rows are computed by NumPy")
    if found is not None:
        whole, address = ctypes.c_int64, ctypes.c_void_p
        found.softmax_gradient.argtypes = [*[whole] * 4, *[address] * 5]
        found.softmax_gradient.restype = None
    return found
