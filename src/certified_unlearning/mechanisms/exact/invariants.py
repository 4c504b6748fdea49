"""Checks of record ids, and of a stored state against recomputed values."""

import torch
from torch import Tensor

from certified_unlearning.errors import DataError, ParameterError

TOLERANCE = 1e-9
"""Largest accepted error, as a multiple of the largest number of a stored tensor, or of 1 if that is larger."""


def require_names(records: Tensor) -> None:
    """Raise `ParameterError` unless there are records, and their names are distinct whole numbers of at least 0."""
    different = len(torch.unique(records))
    if records.ndim != 1 or different != records.numel() or not different or int(records.min()) < 0:
        raise ParameterError(
            "records must be names: distinct whole numbers of at least 0, in an array of shape (n,), got shape "
            f"{tuple(records.shape)} with {different} distinct numbers"
        )


def require_close(name: str, stored: Tensor, expected: Tensor, tolerance: float = TOLERANCE) -> None:
    """Raise `DataError` if stored numbers are not finite, or differ too much from expected numbers.

    ``tolerance`` is the largest accepted error; see `TOLERANCE`.
    """
    off, scale = float((stored - expected).abs().max()), max(1.0, float(expected.abs().max()))
    if not off <= tolerance * scale:
        raise DataError(f"{name} are off by {off:g} from recomputed values, more than {tolerance:g} times {scale:g}")
