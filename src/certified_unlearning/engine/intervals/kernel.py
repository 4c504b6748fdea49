"""The compiled kernel that computes bounds (`certified_unlearning.compiled`).

It supports float64 on a CPU. Its results differ from PyTorch's only in the order of sums, and the bounds are valid for
any order.
"""

import ctypes
import functools
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from certified_unlearning import compiled
from certified_unlearning.engine.intervals.interval import Interval

SOURCE = Path(__file__).with_name("kernel.cpp")
TILE = 16
"""Number of columns that `kernel.cpp` processes together."""
MOST_TURNED = 256
"""Largest number of columns that are transposed. With more columns, a few hundred records would not fit in the
cache.
"""
MOST_COLUMNS = 2
"""Largest number of columns for which products use the kernel. PyTorch reads each row only once, however many columns
there are."""


class Summed(NamedTuple):
    """The result of `summed`: the attributes of `abstract_training.extremes.Sums`."""

    lower: Tensor
    upper: Tensor
    size: Tensor
    smallest: Tensor
    largest: Tensor


def multiplies(left: Tensor, right: Tensor) -> bool:
    """Return whether `centre_and_spread` accepts these matrices; they must be of a single run and have few columns."""
    return (
        all(each.dtype == torch.float64 and each.device.type == "cpu" for each in (left, right))
        and left.ndim == right.ndim == 3
        and len(left) == len(right) == 1
        and right.shape[-1] <= MOST_COLUMNS
        and library() is not None
    )


def centre_and_spread(left: Tensor, middle: Tensor, radius: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``left @ middle`` and ``|left| @ radius``, for one run."""
    _, rows, inner = left.shape
    outputs = middle.shape[-1]
    centre, spread = (left.new_empty(1, rows, outputs) for _ in range(2))
    held = (left.contiguous(), middle.mT.contiguous(), radius.mT.contiguous(), centre, spread)
    found = library()
    assert found is not None
    addresses = (ctypes.c_void_p(each.data_ptr()) for each in held)
    found.centre_and_spread(*map(ctypes.c_int64, (rows, inner, outputs)), *addresses)
    return centre, spread


def takes(derivatives: Interval, columns: Interval) -> bool:
    """Return whether `summed` accepts these factors; they must be float64, on a CPU, with one position per record."""
    ends = (*derivatives, *columns)
    return (
        all(end.dtype == torch.float64 and end.device.type == "cpu" for end in ends)
        and derivatives.lower.shape[2] == 1
        and library() is not None
    )


def turns(derivatives: Interval, columns: Interval) -> bool:
    """Return whether the kernel is faster if derivatives and columns are swapped.

    The kernel processes several columns at once.
    """
    outputs, inputs = derivatives.lower.shape[-1], columns.lower.shape[-1]
    if not columns.is_point or inputs > MOST_TURNED:
        return inputs == 1 < outputs
    along, across = -(-inputs // TILE) * outputs, -(-outputs // TILE) * inputs
    return across < along or (across == along and not derivatives.is_point)


def summed(derivatives: Interval, columns: Interval, bound: Tensor, most: int, *, nonnegative: bool) -> Summed | None:
    """Return sums and extremes of all records' clamped products; None if any factor is not finite.

    Args:
        derivatives: Derivatives, shape ``(runs, records, 1, outputs)``.
        columns: Inputs, shape ``(runs or 1, records, 1, inputs)``.
        bound: Bound to which products are clamped, shape ``(runs,)``; may be infinite.
        most: Number of extremes to keep, at most the number of records.
        nonnegative: Whether no number in ``columns`` is below 0.
    """
    runs, records, _, outputs = derivatives.lower.shape
    inputs = columns.lower.shape[-1]
    lower, low = columns.lower.contiguous(), derivatives.lower.contiguous()
    upper = lower if columns.is_point else columns.upper.contiguous()
    high = low if derivatives.is_point else derivatives.upper.contiguous()
    sums = [low.new_empty(runs, outputs, inputs) for _ in range(3)]
    extremes = [low.new_empty(runs, most, outputs, inputs) for _ in range(2)]
    # The result's ends are known beforehand if the derivatives are single numbers, whose signs determine them, or if
    # inputs are non-negative.
    signs = int(nonnegative or derivatives.is_point)
    if columns.is_point:
        signs = 3 if derivatives.is_point else 2
    sizes = (runs, records, outputs, inputs, len(lower), most)
    held = (low, high, lower, upper, bound.double().contiguous(), *sums, *extremes)
    found = library()
    assert found is not None
    addresses = (ctypes.c_void_p(each.data_ptr()) for each in held)
    finite = found.summed(*map(ctypes.c_int64, sizes), ctypes.c_int32(signs), *addresses)
    # This is checked here because the kernel's comparisons ignore NaN, unlike PyTorch's.
    return Summed(*sums, *extremes) if finite else None


@functools.cache
def library() -> ctypes.CDLL | None:
    """Return the compiled kernel, after building it if necessary; None if it cannot be built on this machine."""
    # Products must not be fused with sums, because the bounds count the rounding of each.
    found = compiled.library(SOURCE, "-ffp-contract=off", instead="bounds are computed by PyTorch")
    if found is not None:
        found.summed.restype, found.centre_and_spread.restype = ctypes.c_int32, None
    return found
