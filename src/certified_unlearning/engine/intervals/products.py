"""Products of matrices of intervals: midpoint and radius, exact, and exact by signs.

Sources: Rump, *Fast and parallel interval arithmetic* (BIT 1999), for midpoints and radii; Higham, *Accuracy and
Stability of Numerical Algorithms*, section 3.5, for the error of a floating-point product.
"""

import math

import torch
from torch import Tensor

from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.engine.intervals.rounding import OUTWARD, Rounding
from certified_unlearning.vocabulary import IntervalProduct

NUMBERS_AT_ONCE = 1 << 20
"""Of a product that is formed term by term."""


def middle_and_radius(values: Interval, rounding: Rounding = OUTWARD) -> tuple[Tensor, Tensor]:
    """Return midpoints, and radii that reach both ends."""
    if values.is_point:
        return values.lower, torch.zeros_like(values.lower)
    middle = (values.lower + values.upper) / 2
    return middle, rounding.up(torch.maximum(values.upper - middle, middle - values.lower))


def rump_product(
    left: Interval, right: Interval, rounding: Rounding = OUTWARD, *, shift: Interval | None = None
) -> Interval:
    """Return bounds of all products by midpoints and radii: at most 1.5 times as wide as exact ones.

    Args:
        left: Shape ``(..., rows, inner)``.
        right: Shape ``(..., inner, columns)``.
        rounding: How to round.
        shift: Added to the product; a shape that broadcasts with it.
    """
    left_middle, left_radius = middle_and_radius(left, rounding)
    right_middle, right_radius = middle_and_radius(right, rounding)
    centre = left_middle @ right_middle
    radius = left_middle.abs() @ right_radius
    if not left.is_point:
        radius = radius + left_radius @ (right_middle.abs() + right_radius)
    return _widened(centre - radius, centre + radius, left, right, rounding, shift)


def exact_product(left: Interval, right: Interval, rounding: Rounding = OUTWARD) -> Interval:
    """Return the tightest bounds of all products, whatever the signs; every term is formed, a block of rows at a time.

    Args:
        left: Shape ``(..., rows, inner)``.
        right: Shape ``(..., inner, columns)``.
        rounding: How to round.
    """
    batch = left.lower[..., 0, 0] + right.lower[..., 0, 0]
    rows, inner, columns = left.lower.shape[-2], *right.lower.shape[-2:]
    step = max(1, NUMBERS_AT_ONCE // max(1, batch.numel() * inner * columns))
    lower, upper = [], []
    for start in range(0, rows, step):
        terms = outer_products(
            Interval(*(end[..., start : start + step, :, None] for end in left)),
            Interval(*(end[..., None, :, :] for end in right)),
        )
        lower.append(terms.lower.sum(dim=-2))
        upper.append(terms.upper.sum(dim=-2))
    return _widened(torch.cat(lower, dim=-2), torch.cat(upper, dim=-2), left, right, rounding)


def signed_product(
    left: Interval,
    right: Interval,
    rounding: Rounding = OUTWARD,
    *,
    nonnegative: bool = False,
    shift: Interval | None = None,
) -> Interval:
    """Return the tightest bounds of all products whose terms have a factor of known sign; else no wider than Rump's.

    Nothing of size rows x inner x columns is formed: ends are split by their signs. A term both of whose factors may
    have either sign is bounded by midpoints and radii.

    Args:
        left: Shape ``(..., rows, inner)``.
        right: Shape ``(..., inner, columns)``.
        rounding: How to round.
        nonnegative: Whether no entry of ``left`` is below 0.
        shift: Added to the product; a shape that broadcasts with it.
    """
    if left.is_point:
        if nonnegative:
            lower, upper = left.lower @ right.lower, left.lower @ right.upper
        else:
            middle, radius = middle_and_radius(right, rounding)
            centre, spread = left.lower @ middle, left.lower.abs() @ radius
            lower, upper = centre - spread, centre + spread
        return _widened(lower, upper, left, right, rounding, shift)
    if nonnegative:
        lower = left.lower @ right.lower.clamp_min(0) + left.upper @ right.lower.clamp_max(0)
        upper = left.upper @ right.upper.clamp_min(0) + left.lower @ right.upper.clamp_max(0)
        return _widened(lower, upper, left, right, rounding, shift)
    either = (left.lower < 0) & (left.upper > 0)
    above = Interval(*(torch.where((left.lower >= 0), end, 0) for end in left))
    below = Interval(*(torch.where((left.upper <= 0) & (left.lower < 0), end, 0) for end in left))
    right_either = (right.lower < 0) & (right.upper > 0)
    sure = Interval(*(torch.where(right_either, 0, end) for end in right))
    unsure = Interval(*(torch.where(right_either, end, 0) for end in right))
    across = Interval(*(torch.where(either, end, 0) for end in left))
    lower = (
        above.lower @ right.lower.clamp_min(0)
        + above.upper @ right.lower.clamp_max(0)
        + below.lower @ right.upper.clamp_min(0)
        + below.upper @ right.upper.clamp_max(0)
    )
    upper = (
        above.upper @ right.upper.clamp_min(0)
        + above.lower @ right.upper.clamp_max(0)
        + below.upper @ right.lower.clamp_min(0)
        + below.lower @ right.lower.clamp_max(0)
    )
    if bool(either.any()):
        lower = lower + across.lower @ sure.upper.clamp_min(0) + across.upper @ sure.lower.clamp_max(0)
        upper = upper + across.upper @ sure.upper.clamp_min(0) + across.lower @ sure.lower.clamp_max(0)
        if bool(right_either.any()):
            both = rump_product(across, unsure, rounding)
            lower, upper = lower + both.lower, upper + both.upper
    return _widened(lower, upper, left, right, rounding, shift)


def product(
    left: Interval,
    right: Interval,
    kind: IntervalProduct,
    rounding: Rounding,
    *,
    nonnegative: bool,
    shift: Interval | None = None,
) -> Interval:
    """Return bounds of all products by the method that ``kind`` names; see `signed_product` for the rest."""
    if kind == "rump":
        return rump_product(left, right, rounding, shift=shift)
    return signed_product(left, right, rounding, nonnegative=nonnegative, shift=shift)


def outer_products(left: Interval, right: Interval, *, nonnegative: bool = False) -> Interval:
    """Return the range of products of single numbers, entry by entry with broadcasting; nothing is rounded outward.

    Rounding is monotone, so what floats make of a product lies between what they make of the ends.

    Args:
        left: Any shape.
        right: A shape that broadcasts with it.
        nonnegative: Whether no entry of ``right`` is below 0.
    """
    if left.is_point and right.is_point:
        return Interval.point(left.lower * right.lower)
    if right.is_point:
        one, two = left.lower * right.lower, left.upper * right.lower
        return Interval(torch.minimum(one, two), torch.maximum(one, two))
    if nonnegative:
        return Interval(
            torch.minimum(left.lower * right.lower, left.lower * right.upper),
            torch.maximum(left.upper * right.lower, left.upper * right.upper),
        )
    first = outer_products(left, Interval.point(right.lower))
    second = outer_products(left, Interval.point(right.upper))
    return Interval(torch.minimum(first.lower, second.lower), torch.maximum(first.upper, second.upper))


def added(left: Interval, right: Interval, rounding: Rounding = OUTWARD) -> Interval:
    """Return bounds of all sums."""
    return Interval(rounding.down(left.lower + right.lower), rounding.up(left.upper + right.upper))


def subtracted(left: Interval, right: Interval, rounding: Rounding = OUTWARD) -> Interval:
    """Return bounds of all differences."""
    return added(left, -right, rounding)


def norm_above(values: Interval, dim: int, rounding: Rounding = OUTWARD) -> Tensor:
    """Return the largest Euclidean norms along a dimension, which is kept, not too small although squares underflow."""
    largest = values.lower if values.is_point else values.magnitude
    lost = math.sqrt(2 * largest.shape[dim] * rounding.smallest(largest.dtype))
    norms: Tensor = torch.linalg.vector_norm(largest, dim=dim, keepdim=True)
    return norms + lost


def _widened(
    lower: Tensor, upper: Tensor, left: Interval, right: Interval, rounding: Rounding, shift: Interval | None = None
) -> Interval:
    """Return bounds that hold real products and those that floats compute, in any order, with a shift if there is one.

    Each of the bounds was computed as sums of at most ``4 inner + 4`` products that add up to at most twice ``S``, the
    product of magnitudes, and a member's own product is off by at most ``g_inner S``; Cauchy and Schwarz bound ``S``.
    The slack is so much more than these need that the roundings of its own subtraction are in it, and those of a shift,
    which may be a term of the sum like any other.
    """
    if shift is not None:
        lower, upper = lower + shift.lower, upper + shift.upper
    if not rounding.is_outward:
        return Interval(lower, upper)
    inner, dtype = left.lower.shape[-1], lower.dtype
    size = norm_above(left, -1, rounding) * norm_above(right, -2, rounding)
    if shift is not None:
        size += shift.magnitude
    size *= 4 * rounding.error_of_sums(4 * inner + 16, dtype)
    size += 16 * inner * rounding.smallest(dtype)
    return Interval(lower - size, upper + size)
