"""Targets of a regression. They are mapped to [-1, 1] by a public range alone. They are also counted."""

import sys
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certified_unlearning.errors import ParameterError

Array = NDArray[np.float64]


class TargetScale(NamedTuple):
    """The map from targets to numbers from -1 to 1, and from scores to predictions.

    Attributes:
        low: The lower end of the public range; lower targets are clipped to it.
        high: The upper end; higher targets are clipped to it.
        middle: The value that is mapped to 0.
        half: The value that is mapped to 1, minus the middle.
    """

    low: float
    high: float
    middle: float
    half: float

    @classmethod
    def of(cls, ends: Sequence[float] | None, name: str, *, intercept: bool) -> Self:
        """Return the scale of a range.

        Args:
            ends: The two ends of the range, known without the records.
            name: Name of the range in error messages.
            intercept: Whether the model has an intercept. Without one, 0 must be mapped to 0.

        Raises:
            ParameterError: The ends are not two numbers with the lower one first, or are too far apart or too near for
                floats.
        """
        try:
            low, high = (float(end) for end in ends)  # type: ignore[union-attr]
        except (TypeError, ValueError) as error:
            raise _no_range(name, ends) from error
        # Checked because half the width is the divisor.
        if not sys.float_info.min <= high / 2 - low / 2 < np.inf or high - low == np.inf:
            raise _no_range(name, ends)
        return cls(low, high, *((low / 2 + high / 2, high / 2 - low / 2) if intercept else (0.0, max(-low, high))))

    def scaled(self, targets: ArrayLike) -> Array:
        """Return targets, clipped to the range, as numbers from -1 to 1."""
        clipped = np.clip(np.asarray(targets, np.float64), self.low, self.high)
        # Clipped a second time, because the division rounds.
        return np.asarray(np.clip((clipped - self.middle) / self.half, -1, 1))

    def in_units(self, scores: ArrayLike) -> Array:
        """Return a model's scores as predictions, in the unit of the range."""
        return np.asarray(np.asarray(scores, np.float64) * self.half + self.middle)


def _no_range(name: str, ends: object) -> ParameterError:
    return ParameterError(
        f"{name} must be a pair (low, high) that encloses the targets and is known without these records, got {ends!r}"
    )


class TargetCounts:
    """A scaler that takes targets block by block, and keeps counts that are for the operator only.

    Attributes:
        scale: The map to numbers from -1 to 1.
        below: Number of targets below the range.
        above: Number of targets above the range.
        least: The smallest target.
        most: The largest target.
    """

    def __init__(self, scale: TargetScale) -> None:
        self.scale = scale
        self._values: set[float] = set()
        self.below = self.above = 0
        self.least, self.most = np.inf, -np.inf

    @classmethod
    def of(cls, ends: Sequence[float] | None, *, intercept: bool) -> Self | None:
        """Return empty counts if a range is declared; None if not, because the labels are then classes."""
        return None if ends is None else cls(TargetScale.of(ends, "target_range", intercept=intercept))

    def scaled(self, targets: Array) -> Array:
        """Count some targets, and return them as numbers from -1 to 1."""
        self.below += int((targets < self.scale.low).sum())
        self.above += int((targets > self.scale.high).sum())
        self.least, self.most = min(self.least, float(targets.min())), max(self.most, float(targets.max()))
        if len(self._values) <= 2:
            self._values.update(np.unique(targets)[:3].tolist())
        return self.scale.scaled(targets)

    @property
    def outside(self) -> int:
        """Number of targets outside the range, which were clipped to its nearer end."""
        return self.below + self.above

    @property
    def only_values(self) -> list[float]:
        """The distinct targets, if there are only one or two; otherwise empty."""
        return sorted(self._values) if len(self._values) <= 2 else []
