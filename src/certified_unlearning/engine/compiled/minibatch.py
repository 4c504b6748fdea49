"""Compiled mini-batch steps for one model of two classes, in float64, with rows in a CPU's memory.

If a step reads only a thousand short rows, most of its time is PyTorch's overhead. The compiled kernel makes many steps
in one call, and reads wide rows only once per step. Its results differ from PyTorch's in the last bits, because sums
have another order, and logarithm, cosine and sine are rounded differently. The bounds of `accounting.core.rounding`
hold for both results.
"""

import ctypes
import functools
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from certified_unlearning import compiled
from certified_unlearning.accounting.core.rounding import ROWS_IN_A_ROW
from certified_unlearning.accounting.core.search import Array
from certified_unlearning.engine import randomness

SOURCE = Path(__file__).with_name("minibatch.cpp")
WORTH_THREADS = 1 << 20
"""Number of entries of a batch above which PyTorch may be faster, if it has more than `FEW_THREADS` threads."""
NUMBERS_OF_A_CALL = 1 << 27
"""Number of entries that one call reads, which takes a few tenths of a second."""
FEW_THREADS = 2
"""Number of threads with which PyTorch took 1.4 to 1.8 times as long as the single-threaded kernel, for any batch."""


def takes(rows: Array, labels: NDArray[Any], *, batch_size: int, weighted: bool) -> bool:
    """Return whether `noisy_steps` is available and accepts these rows.

    Args:
        rows: Rows, shape ``(n, features)``.
        labels: Labels, shape ``(n,)``.
        batch_size: Batch size, ``b``.
        weighted: Whether classes have weights, so that labels are used.
    """
    return (
        rows.dtype == np.float64
        and rows.flags.c_contiguous
        and (not weighted or (labels.dtype == np.int64 and labels.flags.c_contiguous and len(labels) == len(rows)))
        # `core.rounding` counts the rows that are added one after another.
        and batch_size <= ROWS_IN_A_ROW
        and (batch_size * rows.shape[1] < WORTH_THREADS or torch.get_num_threads() <= FEW_THREADS)
        and library() is not None
    )


def normal_numbers(key: int, steps: range, features: int) -> Array:
    """Return the noise of some steps, shape ``(steps, features)``; the numbers are those of `randomness`.

    One number in a million needs more bits. If there is such a number, `randomness` computes the block that contains
    the number.

    Args:
        key: Address of the noise.
        steps: Consecutive step numbers in the stream of noise; at least one.
        features: Number of values per step.
    """
    size = randomness.BLOCK_STEPS
    blocks = range(steps.start // size, -(-steps.stop // size))
    bits = randomness.cipher_bits(key, blocks, size * 2 * -(-features // 2))
    numbers = np.empty((len(steps), features))
    low, high = randomness.FINE_FROM[torch.float64]
    where = bits.ctypes.data, numbers.ctypes.data
    if _library().normal_numbers(features, size, steps.start % size, len(steps), low, high, *where):
        return numbers
    if len(blocks) > 1:
        ends = [steps.start, *(block * size for block in blocks[1:]), steps.stop]
        return np.concatenate([normal_numbers(key, range(*each), features) for each in pairwise(ends)])
    whole = torch.empty(1, size, features, dtype=torch.float64)
    randomness.fill_block(whole, [key], blocks[0])
    return whole[0].numpy()[steps.start % size :][: len(steps)]


def noisy_steps(
    weights: Array,
    rows: Array,
    labels: NDArray[Any],
    *,
    batch: int,
    batch_size: int,
    class_weights: Sequence[float] | None,
    strong_convexity: float,
    step_size: float,
    noise_std: float,
    key: int,
    steps: range,
) -> int:
    """Apply the first few of the given steps to the weights, in place.

    Args:
        weights: One weight per feature, contiguous in memory.
        rows: Rows times their signs, shape ``(n, features)``, as `minibatch.CyclicObjective` uses them.
        labels: Labels -1 or +1, shape ``(n,)``; used only with class weights.
        batch: Number of the first step's batch.
        batch_size: Batch size, ``b``.
        class_weights: Weights of classes -1 and +1; None if both are 1.
        strong_convexity: Strong convexity, ``m``.
        step_size: Step size, ``eta``.
        noise_std: Standard deviation of a step's noise; 0 for none.
        key: Address of the noise.
        steps: Step numbers in the stream of noise.

    Returns:
        Number of steps taken. It is limited so that a signal does not wait long, and the noise does not fill the
        memory.
    """
    n, features = rows.shape
    most = min(NUMBERS_OF_A_CALL // (batch_size * features), randomness.NUMBERS_AT_ONCE // features)
    some = steps[: max(1, most)]
    noise = normal_numbers(key, some, features) if noise_std else None
    of_minus, of_plus = class_weights or (1.0, 1.0)
    _library().noisy_steps(
        n,
        features,
        batch_size,
        batch,
        len(some),
        rows.ctypes.data,
        labels.ctypes.data if class_weights is not None else None,
        of_minus,
        of_plus,
        strong_convexity,
        step_size,
        None if noise is None else noise.ctypes.data,
        noise_std,
        weights.ctypes.data,
    )
    return len(some)


@functools.cache
def library() -> ctypes.CDLL | None:
    """Return the compiled kernel, after building it if necessary; None if it cannot be built on this machine."""
    found = compiled.library(SOURCE, instead="steps on mini-batches are taken by PyTorch")
    if found is not None:
        whole, number, address = ctypes.c_int64, ctypes.c_double, ctypes.c_void_p
        found.normal_numbers.argtypes = [*[whole] * 4, number, number, address, address]
        found.normal_numbers.restype = ctypes.c_int32
        found.noisy_steps.argtypes = [*[whole] * 5, address, address, *[number] * 4, address, number, address]
        found.noisy_steps.restype = None
    return found


def _library() -> ctypes.CDLL:
    found = library()
    assert found is not None
    return found
