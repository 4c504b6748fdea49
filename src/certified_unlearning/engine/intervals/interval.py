"""Tensors whose entries are known only up to an interval."""

from typing import NamedTuple, Self

import torch
from torch import Tensor

from certified_unlearning.errors import UnlearningError


class IntervalError(UnlearningError, ArithmeticError):
    """Bounds are invalid: not finite, or the lower one is above the upper one."""


class Interval(NamedTuple):
    """All tensors between two tensors, entry by entry.

    Attributes:
        lower: Lower ends.
        upper: Upper ends, of the same shape.
    """

    lower: Tensor
    upper: Tensor

    @classmethod
    def point(cls, values: Tensor) -> Self:
        """Return the interval that contains one tensor."""
        return cls(values, values)

    @property
    def is_point(self) -> bool:
        """Whether both ends are the same tensor object; this is False for two tensors with equal numbers."""
        return self.lower is self.upper

    @property
    def magnitude(self) -> Tensor:
        """Largest absolute value of each entry."""
        return self.lower.abs() if self.is_point else torch.maximum(self.lower.abs(), self.upper.abs())

    @property
    def mignitude(self) -> Tensor:
        """Smallest absolute value of each entry."""
        return torch.maximum(self.lower, -self.upper).clamp_min(0)

    def __neg__(self) -> "Interval":
        """Return the interval of the negated tensors."""
        return Interval(-self.upper, -self.lower)

    def holds(self, values: Tensor) -> Tensor:
        """Return, for each entry, whether the interval contains the value, without tolerance; False for NaN."""
        return (self.lower <= values) & (values <= self.upper)

    def intersected(self, other: "Interval") -> "Interval":
        """Return the intersection of both intervals."""
        return Interval(torch.maximum(self.lower, other.lower), torch.minimum(self.upper, other.upper))

    def ordered(self) -> "Interval":
        """Return the interval with its ends in order; rounding may have swapped the ends of an interval of width 0."""
        return Interval(torch.minimum(*self), torch.maximum(*self))

    def checked(self, what: str) -> Self:
        """Return the interval itself if its ends are finite and in order.

        Raises:
            IntervalError: The ends are not finite or not in order; the message names ``what``.
        """
        if self._is_surely_sound():
            return self
        if not bool(torch.isfinite(self.lower).all() & torch.isfinite(self.upper).all()):
            raise IntervalError(
                f"the bounds of {what} are not finite, so nothing can be certified: clip gradients, or use a smaller "
                "step size, fewer updates or a smaller k"
            )
        if not bool((self.lower <= self.upper).all()):
            raise IntervalError(f"a lower bound of {what} is above the upper bound: nothing can be certified")
        return self

    def _is_surely_sound(self) -> bool:
        """Return whether the ends are finite and in order, by a quick check.

        For huge ends, it may wrongly return False.
        """
        if self.is_point or not self.lower.numel():
            return False
        least, most = (self.upper - self.lower).aminmax()
        return float(least) >= 0 and float(most) < torch.inf
