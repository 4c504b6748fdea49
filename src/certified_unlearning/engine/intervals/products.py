"""Products of matrices of intervals, computed by one of three methods.

`rump_product` uses midpoints and radii. `exact_product` gives the tightest bounds. `signed_product` gives the tightest
bounds if every term has a factor of known sign.

Sources: Rump, *Fast and parallel interval arithmetic* (BIT 1999), for midpoints and radii. Higham, *Accuracy and
Stability of Numerical Algorithms*, section 3.5, for the error of a floating-point product.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from certified_unlearning.engine.intervals import kernel
from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.engine.intervals.rounding import NAIVE, OUTWARD, Rounding
from certified_unlearning.vocabulary import IntervalProduct

NUMBERS_AT_ONCE = 1 << 20
"""Number of entries that are formed at once if a product is computed term by term."""
NUMBERS_IN_CACHE = 1 << 16
"""Number of row entries whose magnitudes are formed at once in a product."""


def middle_and_radius(values: Interval, rounding: Rounding = OUTWARD) -> tuple[Tensor, Tensor]:
    """Return midpoints and radii; the radii are rounded up so that both ends are covered."""
    if values.is_point:
        return values.lower, torch.zeros_like(values.lower)
    middle = (values.lower + values.upper) / 2
    return middle, rounding.up(torch.maximum(values.upper - middle, middle - values.lower))


def rump_product(
    left: Interval,
    right: Interval,
    rounding: Rounding = OUTWARD,
    *,
    shift: Interval | None = None,
    more: Tensor | None = None,
) -> Interval:
    """Return bounds on all products, computed from midpoints and radii.

    These bounds are at most 1.5 times as wide as exact bounds.

    Args:
        left: Left factors, shape ``(..., rows, inner)``.
        right: Right factors, shape ``(..., inner, columns)``.
        rounding: Rounding of the bounds.
        shift: Interval that is added to the product; its shape broadcasts with the product's.
        more: Numbers of at least 0, of the shape of ``right``; ``|left| @ more`` widens the bounds.
    """
    left_middle, left_radius = middle_and_radius(left, rounding)
    right_middle, right_radius = middle_and_radius(right, rounding)
    slack = _slack(right, rounding, more)
    radii = right_radius if slack is None else right_radius + slack
    if left.is_point:
        return _shifted(*_centre_and_spread(left_middle, right_middle, radii), right, rounding, shift)
    # The radii of `left` are multiplied by the magnitudes of both ends of `right`.
    spread = torch.cat([left_middle.abs(), left_radius], -1) @ torch.cat([radii, right_middle.abs() + radii], -2)
    return _shifted(left_middle @ right_middle, spread, right, rounding, shift)


def exact_product(left: Interval, right: Interval, rounding: Rounding = OUTWARD) -> Interval:
    """Return the tightest bounds on all products, for any signs.

    Every term is computed, for one block of rows at a time.

    Args:
        left: Left factors, shape ``(..., rows, inner)``.
        right: Right factors, shape ``(..., inner, columns)``.
        rounding: Rounding of the bounds.
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
    more: Tensor | None = None,
) -> Interval:
    """Return bounds on all products; these bounds are never wider than Rump's bounds.

    The bounds are the tightest ones if every term has a factor of known sign.

    No array of size rows x inner x columns is formed: ends are split by sign. If both factors of a term may have either
    sign, the term is bounded by midpoints and radii.

    Args:
        left: Left factors, shape ``(..., rows, inner)``.
        right: Right factors, shape ``(..., inner, columns)``.
        rounding: Rounding of the bounds.
        nonnegative: Whether no entry of ``left`` is below 0.
        shift: Interval that is added to the product; its shape broadcasts with the product's.
        more: Numbers of at least 0, of the shape of ``right``; ``|left| @ more`` widens the bounds.
    """
    slack = _slack(right, rounding, more)
    if left.is_point and not nonnegative:
        middle, radius = middle_and_radius(right, rounding)
        radius = radius if slack is None else radius + slack
        return _shifted(*_centre_and_spread(left.lower, middle, radius), right, rounding, shift)
    low, high = right if slack is None else (right.lower - slack, right.upper + slack)
    if left.is_point:
        return _both(left.lower, [(low, high)], right, rounding, shift)
    # The slack is added at the end that `left` multiplies with the larger magnitude.
    low_above, high_below = right.lower.clamp_min(0), right.upper.clamp_max(0)
    low_below, high_above = right.lower.clamp_max(0), right.upper.clamp_min(0)
    if slack is not None:
        low_below, high_above = low_below - slack, high_above + slack
    if nonnegative:
        parts = [(low_above, high_below), (low_below, high_above)]
        return _both(torch.cat([left.lower, left.upper], -1), parts, right, rounding, shift)
    either = (left.lower < 0) & (left.upper > 0)
    above, below = left.lower >= 0, (left.upper <= 0) & (left.lower < 0)
    ends = [torch.where(signs, end, 0) for signs in (above, below) for end in left]
    parts = [(low_above, high_below), (low_below, high_above), (high_above, low_below), (high_below, low_above)]
    if not bool(either.any()):
        return _both(torch.cat(ends, -1), parts, right, rounding, shift)
    across = Interval(*(torch.where(either, end, 0) for end in left))
    right_either = (right.lower < 0) & (right.upper > 0)
    kept = torch.zeros_like(right.lower) if slack is None else slack
    most, least = torch.where(right_either, kept, high_above), torch.where(right_either, -kept, low_below)
    ends, parts = [*ends, *across], [*parts, (most, least), (least, most)]
    found = _both(torch.cat(ends, -1), parts, right, rounding, shift)
    if bool(right_either.any()):
        unsure = Interval(*(torch.where(right_either, end, 0) for end in right))
        both = rump_product(across, unsure, NAIVE)
        found = Interval(found.lower + both.lower, found.upper + both.upper)
    return found


def product(
    left: Interval,
    right: Interval,
    kind: IntervalProduct,
    rounding: Rounding,
    *,
    nonnegative: bool,
    shift: Interval | None = None,
    more: Tensor | None = None,
) -> Interval:
    """Return bounds on all products by the method ``kind``; see `signed_product` for the other arguments."""
    if kind == "rump":
        return rump_product(left, right, rounding, shift=shift, more=more)
    return signed_product(left, right, rounding, nonnegative=nonnegative, shift=shift, more=more)


def outer_products(left: Interval, right: Interval, *, nonnegative: bool = False) -> Interval:
    """Return bounds on entry-wise products, with broadcasting; the bounds are not rounded outward.

    Rounding is monotone, so a product in floating point lies between the floating-point products of the ends.

    Args:
        left: Left factors, any shape.
        right: Right factors, of a shape that broadcasts with ``left``.
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
    """Return bounds on all sums."""
    return Interval(rounding.down(left.lower + right.lower), rounding.up(left.upper + right.upper))


def subtracted(left: Interval, right: Interval, rounding: Rounding = OUTWARD) -> Interval:
    """Return bounds on all differences."""
    return added(left, -right, rounding)


def norm_above(values: Interval, dim: int, rounding: Rounding = OUTWARD) -> Tensor:
    """Return the largest Euclidean norms along a dimension; the result keeps this dimension, with size 1.

    The norms are never too small, even if squares underflow.
    """
    largest = values.lower if values.is_point else values.magnitude
    lost = math.sqrt(2 * largest.shape[dim] * rounding.smallest(largest.dtype))
    norms: Tensor = torch.linalg.vector_norm(largest, dim=dim, keepdim=True)
    return norms + lost


def _slack(right: Interval, rounding: Rounding, more: Tensor | None) -> Tensor | None:
    """Return slack such that ``|left|`` times the slack exceeds all rounding errors of a product with ``left``.

    A bound is a sum of at most ``5 inner + 2`` products. The magnitudes of these products add up to at most ``S`` plus
    slack, where ``S`` is the matrix product of the factors' magnitudes. In any order of summation, the error of a bound
    without slack is at most ``g_(5 inner + 2) S``. The error of the product of two matrices in the intervals is at most
    ``g_inner S``. The slack is 4 times ``g_(4 inner + 16) S``, so it also covers its own roundings. A small number is
    added, because the slack itself may underflow and ``left`` may be large. If rounding is ignored, the result is
    ``more``.
    """
    if not rounding.is_outward:
        return more
    dtype = right.lower.dtype
    found = right.magnitude * (4 * rounding.error_of_sums(4 * right.lower.shape[-2] + 16, dtype))
    found += rounding.smallest(dtype)
    return found if more is None else found + more


def _widened_shift(right: Interval, rounding: Rounding, shift: Interval | None) -> Interval | None:
    """Return the shift, widened by the rounding error of adding it to every sum, and by all underflow."""
    if not rounding.is_outward:
        return shift
    inner, dtype = right.lower.shape[-2], right.lower.dtype
    lost = 16 * inner * rounding.smallest(dtype)
    if shift is None:
        return Interval(*(right.lower.new_full((), sign * lost) for sign in (-1, 1)))
    size = shift.magnitude * (4 * rounding.error_of_sums(4 * inner + 16, dtype)) + lost
    return Interval(shift.lower - size, shift.upper + size)


def _centre_and_spread(left: Tensor, middle: Tensor, radius: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``left @ middle`` and ``|left| @ radius``; many rows are processed a few at a time, to fit in a cache."""
    if kernel.multiplies(left, middle):
        return kernel.centre_and_spread(left, middle, radius)
    rows, inner = left.shape[-2:]
    step = max(1, NUMBERS_IN_CACHE // inner)
    if left.is_cuda or left.ndim != 3 or len(left) > 1 or rows <= step:
        return left @ middle, left.abs() @ radius
    centre, spread = (left.new_empty(len(middle), rows, middle.shape[-1]) for _ in range(2))
    absolute = left.new_empty(1, step, inner)
    for start in range(0, rows, step):
        piece = left[:, start : start + step]
        here = slice(start, start + piece.shape[1])
        centre[:, here] = piece @ middle
        spread[:, here] = torch.abs(piece, out=absolute[:, : piece.shape[1]]) @ radius
    return centre, spread


def _shifted(centre: Tensor, spread: Tensor, right: Interval, rounding: Rounding, shift: Interval | None) -> Interval:
    """Return bounds from a centre and a radius that already includes slack; add the shift if there is one."""
    widened = _widened_shift(right, rounding, shift)
    if widened is None:
        return Interval(centre - spread, centre + spread)
    return Interval((centre - spread).add_(widened.lower), (centre + spread).add_(widened.upper))


def _both(
    left: Tensor,
    parts: Sequence[tuple[Tensor, Tensor]],
    right: Interval,
    rounding: Rounding,
    shift: Interval | None,
) -> Interval:
    """Return lower and upper bounds from one product of matrices: ``left`` times the stacked parts."""
    stacked = torch.cat([torch.cat(part, -1) for part in parts], -2)
    found, columns = left @ stacked, right.lower.shape[-1]
    widened = _widened_shift(right, rounding, shift)
    if widened is not None:
        found += torch.cat(
            [end.expand(*end.shape[:-1], columns) if end.ndim else end.expand(columns) for end in widened], -1
        )
    ends = Interval(found[..., :columns], found[..., columns:])
    return ends if rounding.is_outward else ends.ordered()


def _widened(lower: Tensor, upper: Tensor, left: Interval, right: Interval, rounding: Rounding) -> Interval:
    """Return bounds that contain the real products, and the floating-point products in any order of summation.

    Each bound was computed as a sum of products, one for each of the ``inner`` columns of ``left``. The error of the
    product of two matrices in the intervals is at most ``g_inner S``, where ``S`` is the product of magnitudes, bounded
    by the Cauchy-Schwarz inequality. The bounds are widened by a slack that is larger than these errors, so that it
    also covers the rounding errors of the widening itself.
    """
    if not rounding.is_outward:
        return Interval(lower, upper)
    inner, dtype = left.lower.shape[-1], lower.dtype
    size = norm_above(left, -1, rounding) * norm_above(right, -2, rounding)
    size *= 4 * rounding.error_of_sums(4 * inner + 16, dtype)
    size += 16 * inner * rounding.smallest(dtype)
    return Interval(lower - size, upper + size)
