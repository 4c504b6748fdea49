"""Rounding of bounds: outward, so that the bounds hold for floating-point numbers, or naive, without this guarantee.

For every member of the intervals, outward bounds contain both the result in real numbers and the result in
floating-point arithmetic of the same type. In floating-point arithmetic, additions may be in any order, with or without
fused multiply-adds. Training computes the floating-point result.

There are three assumptions. Single operations are rounded to nearest (IEEE 754; on a GPU without TF32). Errors of
exponentials are at most `EXPONENTIAL` units in the last place. Nothing overflows in training on unknown records.
"""

import functools
from dataclasses import dataclass

import torch
from torch import Tensor

from certified_unlearning.errors import ParameterError

EXPONENTIAL = 4
"""Largest error of an exponential, in units in the last place; libraries state at most 2."""


@dataclass(frozen=True)
class Rounding:
    """A rule that says how bounds are rounded.

    Attributes:
        name: ``outward``, or ``naive``, which leaves bounds as they are computed in floating point. Naive bounds are
            not a proof: true values can be outside by a few units in the last place.
    """

    name: str

    def __post_init__(self) -> None:
        if self.name not in ("outward", "naive"):
            raise ParameterError(f"rounding must be outward or naive, got {self.name!r}")

    @property
    def is_outward(self) -> bool:
        """Whether bounds are rounded outward."""
        return self.name == "outward"

    def require_precision(self, dtype: torch.dtype) -> None:
        """Raise `ParameterError` if bounds are rounded outward but products are less precise than their type."""
        if not self.is_outward:
            return
        if dtype not in (torch.float32, torch.float64):
            raise ParameterError(f"bounds need float64 or float32, got {dtype}")
        if dtype == torch.float32 and torch.get_float32_matmul_precision() != "highest":
            raise ParameterError(
                "torch.get_float32_matmul_precision() must be 'highest', because bounds assume precise products of "
                f"float32, got {torch.get_float32_matmul_precision()!r}; set it to 'highest', or use float64"
            )
        if any(torch.is_autocast_enabled(kind) for kind in ("cpu", "cuda")):
            raise ParameterError("bounds must be computed outside of torch.autocast, which lowers the precision")

    def error_of_sums(self, terms: int, dtype: torch.dtype) -> float:
        """Return ``g_n = n u / (1 - n u)``, the largest error of a sum of ``n`` products, relative to their magnitudes.

        The result is somewhat larger than this error. For the rule ``naive``, the result is 0. See Higham, *Accuracy
        and Stability of Numerical Algorithms*, section 3.1.

        Raises:
            ParameterError: The type is not precise enough for this number of terms.
        """
        if not self.is_outward:
            return 0.0
        relative = terms * torch.finfo(dtype).eps / 2
        if relative > 1 / 16:
            raise ParameterError(f"{dtype} is not precise enough for sums of {terms} terms: use float64")
        return relative / (1 - relative) * 1.001

    def up(self, values: Tensor) -> Tensor:
        """Return numbers that are larger than all real numbers that round to ``values``."""
        return torch.nextafter(values, _infinity(values.dtype, values.device)) if self.is_outward else values

    def down(self, values: Tensor) -> Tensor:
        """Return numbers that are smaller than all real numbers that round to ``values``."""
        return torch.nextafter(values, -_infinity(values.dtype, values.device)) if self.is_outward else values

    def smallest(self, dtype: torch.dtype) -> float:
        """Return a number larger than the underflow error of one operation."""
        return torch.finfo(dtype).tiny if self.is_outward else 0.0


OUTWARD = Rounding("outward")
NAIVE = Rounding("naive")


@functools.cache
def _infinity(dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor(torch.inf, dtype=dtype, device=device)
