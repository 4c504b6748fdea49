"""The weights of a network's last layer before the last update, and linear bounds on how that update moved them.

A box bounds how far changed records can move each weight, but it ignores that the same records move all weights. A step
of descent mostly corrects the errors of earlier steps. A box cannot represent such corrections, so the bounds of all
steps add up. Therefore, the last layer's weights after the last update are bounded by linear functions of the same
weights before this update (`engine.abstract_training.last_update`). A difference of logits is linear in the last
layer's weights, so it is bounded by composing it with these linear functions.

This applies to networks with two classes, for which the difference of logits is a function of one vector. With two
logits, the vector is the difference of the two rows of the last weight, followed by the difference of the biases. With
one logit, the vector is the only row of the last weight, followed by the bias. This bound is our own, not from a paper.

Such bounds depend on the box, and a larger box may happen to give narrower bounds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.engine.intervals.rounding import Rounding
from certified_unlearning.errors import DataError


@dataclass(frozen=True)
class LastUpdate:
    """Linear bounds on the last update.

    They are ``below_slopes v + below_shifts <= v' <= above_slopes v + above_shifts``, entry by entry.

    The bounds hold for the weights of neighbours as training computes them, with exact differences ``v`` and ``v'``.
    They do not hold for all parameters of a box. ``w`` is the number of units in the last hidden layer, plus 1 if there
    is a bias.

    Attributes:
        before: Bounds on the last weights before the update, ``v``, shape ``(runs, w)``.
        below_slopes: Slopes of the lower bounds, shape ``(runs, w, w)``.
        below_shifts: Shifts of the lower bounds, shape ``(runs, w)``.
        above_slopes: Slopes of the upper bounds, shape ``(runs, w, w)``.
        above_shifts: Shifts of the upper bounds, shape ``(runs, w)``.
    """

    before: Interval
    below_slopes: Tensor
    below_shifts: Tensor
    above_slopes: Tensor
    above_shifts: Tensor

    def of_runs(self, runs: slice) -> Self:
        """Return the bounds of some runs."""
        before = Interval(*(end[runs] for end in self.before))
        return replace(self, **{name: each[runs] for name, each in self.lines.items()}, before=before)

    @property
    def lines(self) -> dict[str, Tensor]:
        """Slopes and shifts of the bounds, by name."""
        return {name: getattr(self, name) for name in NAMES[2:]}

    @property
    def tensors(self) -> dict[str, Tensor]:
        """All tensors, by the names in `NAMES`."""
        return {"before_lower": self.before.lower, "before_upper": self.before.upper, **self.lines}

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor], parameters: Sequence[Tensor], budgets: int) -> Self:
        """Return the bounds from `tensors`, after checking that they fit a network with these parameters.

        Args:
            tensors: Tensors by name, as read from a file.
            parameters: Parameters after the update, each of shape ``(1, ...)``; the last two are a weight and a bias.
            budgets: Number of runs.

        Raises:
            DataError: A tensor is missing or has another shape, numbers are not finite, bounds are in the wrong order,
                or the parameters are not between the bounds.
        """
        rows = torch.cat([parameters[-2][0], parameters[-1][0][:, None]], dim=1)
        width = rows.shape[1]
        for name, axes in zip(NAMES, (1, 1, 2, 1, 2, 1), strict=True):
            each = tensors.get(name)
            if each is None or each.dtype != rows.dtype or each.shape != (budgets, *(width,) * axes) or len(rows) > 2:
                raise DataError(
                    f"{name} of the linear bounds on the last update is missing, or has the wrong shape or type"
                )
            if not bool(torch.isfinite(each).all()):
                raise DataError(f"{name} of the linear bounds on the last update is not finite")
        if not bool((tensors["before_lower"] <= tensors["before_upper"]).all()):
            raise DataError("the lower bound of the last weights is above their upper bound")
        found = cls(Interval(tensors[NAMES[0]], tensors[NAMES[1]]), *(tensors[name] for name in NAMES[2:]))
        if not bool(found.holds(rows[-1] - (rows[0] if len(rows) == 2 else 0)).all()):
            raise DataError("the parameters are not between the linear bounds on the last update")
        return found

    def holds(self, values: Tensor) -> Tensor:
        """Return, for each run, whether ``v'`` satisfies all bounds for some ``v``.

        ``v'`` has the given values, shape ``(w,)``.
        """
        lower, upper = self.before
        least = _product(self.below_slopes, lower, upper) + self.below_shifts
        most = -_product(self.above_slopes, -upper, -lower) + self.above_shifts
        return ((least <= values) & (values <= most)).all(dim=-1)

    def bounds(
        self, units: Interval, rows: Interval, sizes: tuple[Tensor, Tensor | None], rounding: Rounding
    ) -> Interval:
        """Return bounds on the difference of logits after the update; they also hold for logits in floating point.

        Args:
            units: Activations of the last hidden layer, none below 0, shape ``(runs, records, units)``.
            rows: Weights that multiply ``units``, after the update, shape ``(runs, units)``.
            sizes: Sums of magnitudes of the weights and of the biases from which the logits are computed, shapes
                ``(runs, units)`` and ``(runs,)``.
            rounding: Rounding of the bounds.

        Returns:
            The bounds, shape ``(runs, records)``; infinite if there is no bound.
        """
        size, bias_size = sizes
        width, dtype = self.before.lower.shape[-1], rows.lower.dtype
        # The errors of each logit and of their difference; see `propagation.paired_differences`.
        lost = (units.upper @ size[..., None])[..., 0] + (0 if bias_size is None else bias_size[:, None])
        lost = lost * (8 * rounding.error_of_sums(width + 16, dtype)) + 4 * width * rounding.smallest(dtype)
        least = _least(units, rows, self.before, self.below_slopes, self.below_shifts, lost, rounding)
        most = -_least(units, -rows, -self.before, self.above_slopes, -self.above_shifts, lost, rounding)
        return Interval(least, most)


def _product(slopes: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """Return the smallest product of each row of slopes with any vector between two bounds of shape ``(runs, w)``."""
    return (slopes.clamp_min(0) @ lower[..., None] + slopes.clamp_max(0) @ upper[..., None])[..., 0]


def _least(
    units: Interval,
    rows: Interval,
    before: Interval,
    slopes: Tensor,
    shifts: Tensor,
    lost: Tensor,
    rounding: Rounding,
) -> Tensor:
    """Return lower bounds on products of units and weights, for all weights above ``slopes v + shifts``."""
    point, gap = supporting(rows, units)
    if slopes.shape[-1] > point.shape[-1]:
        point = torch.cat([point, torch.ones_like(point[..., :1])], dim=-1)
    found = _product(point @ slopes, *before) + (point @ shifts[..., None])[..., 0]
    size = slopes.abs() @ before.magnitude[..., None] + shifts.abs()[..., None]
    dtype, width = size.dtype, size.shape[-2]
    slack = 8 * rounding.error_of_sums(4 * width + 64, dtype) * (point @ size)[..., 0]
    # A bound on underflow, of a product or of a slope before it is multiplied.
    reach = 1 + point.sum(dim=-1) + before.magnitude.sum(dim=-1, keepdim=True)
    slack = slack + reach * (64 * width * width * rounding.smallest(dtype))
    found = rounding.down(found - (gap + slack + lost) * (1 + 8 * torch.finfo(dtype).eps))
    return torch.where(torch.isfinite(found), found, -torch.inf)


NAMES = ("before_lower", "before_upper", "below_slopes", "below_shifts", "above_slopes", "above_shifts")
"""Names of the tensors of a `LastUpdate` in files."""


def supporting(weights: Interval, units: Interval) -> tuple[Tensor, Tensor]:
    """Return numbers ``p`` and gaps such that ``sum v u >= sum v p - gap`` for all ``v`` and ``u``.

    Each ``p`` is between the lower and the upper bound of its unit's activation. A weight of known sign adds nothing to
    a gap, except for upward rounding.

    Args:
        weights: Weights of the units, shape ``(runs, units)``.
        units: Activations of the units, none below 0, shape ``(runs, records, units)``.

    Returns:
        Numbers ``p``, shape ``(runs, records, units)``, and gaps, shape ``(runs, records)``.
    """
    down, up = (-weights.lower).clamp_min(0)[:, None], weights.upper.clamp_min(0)[:, None]
    share = torch.where(up > 0, torch.where(down > 0, down / (down + up), 0.0), torch.where(down > 0, 1.0, 0.0))
    lower, upper = units
    point = torch.where(share == 1, upper, lower + share * (upper - lower)).clamp(lower, upper)
    numbers = torch.finfo(lower.dtype)
    # `tiny` is added because processors may flush a small difference to 0.
    gaps = torch.maximum(down * (upper - point + numbers.tiny), up * (point - lower + numbers.tiny))
    return point, gaps.sum(dim=-1) * (1 + (gaps.shape[-1] + 8) * numbers.eps) + gaps.shape[-1] * numbers.tiny
