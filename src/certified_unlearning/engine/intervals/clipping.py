"""Clipping of single records' gradients: entry by entry, or by their Euclidean norm.

It would be unsound to clip both ends of an interval by their own norms: that may even reverse the interval. Instead,
the factor that multiplies a gradient in the interval is bounded.
"""

import functools
from collections.abc import Sequence

import torch
from torch import Tensor

from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.engine.intervals.propagation import Factors
from certified_unlearning.engine.intervals.rounding import OUTWARD, Rounding


def clamped(values: Interval, bound: float | Tensor) -> Interval:
    """Return the interval of clamped tensors. Clamping is monotone, so ends map to ends."""
    # The bound is passed unchanged, because converting a number to a tensor would round it to float32, perhaps
    # downward.
    lower, upper = (torch.clamp(end, -bound, bound) for end in values)  # type: ignore[arg-type]
    return Interval(lower, upper)


def clipped_by_norm(values: Interval, bound: float, rounding: Rounding = OUTWARD) -> Interval:
    """Return bounds on ``g min(1, bound / |g|)`` for all ``g`` in an interval; norms are taken along the last axis."""
    terms = values.lower.shape[-1]
    scale = scale_bounds(norms(values.magnitude), norms(values.mignitude), bound, terms, rounding)
    below, above = scale.lower[..., None], scale.upper[..., None]
    found = Interval(
        torch.where(values.lower >= 0, below, above) * values.lower,
        torch.where(values.upper >= 0, above, below) * values.upper,
    )
    return clamped(Interval(rounding.down(found.lower), rounding.up(found.upper)), bound)


def scale_bounds(
    longest: Tensor, shortest: Tensor, bound: float | Tensor, terms: int, rounding: Rounding = OUTWARD
) -> Interval:
    """Return bounds on ``min(1, bound / |g|)``; the lower bound is 0 if training may use the factor 0 (`norm_factor`).

    Args:
        longest: Upper bounds on the norms of ``g``; the rounding errors of computing these bounds are not included.
        shortest: Lower bounds on these norms; again, rounding errors are not included.
        bound: Bound on the norm after clipping.
        terms: Number of squares that are added, here and in training.
        rounding: Rounding of the bounds.
    """
    off, numbers = 4 * rounding.error_of_sums(terms + 16, longest.dtype), torch.finfo(longest.dtype)
    lost = 2 * terms * rounding.smallest(longest.dtype)
    below = (bound / (longest * (1 + off) + lost) * (1 - off)).clamp_max(1)
    # Real norms are finite, so a norm that is too large for a float still leaves a factor above 0.
    above = (bound / (shortest * (1 - off) - lost).clamp(0, numbers.max) * (1 + off)).clamp_max(1)
    return Interval(torch.where(below < numbers.tiny, 0, below), above)


def norm_scales(factors: Sequence[Factors], biases: Sequence[bool], bound: Tensor, rounding: Rounding) -> Interval:
    """Return bounds on the factor by which each record's gradient is multiplied to clip its norm.

    The norm is that of the gradient with respect to all parameters together. A weight's gradient is an outer product,
    and its norm is the product of two norms. So no array of size records x parameters is formed. With several
    positions, as in convolutions, the triangle inequality bounds the largest norm, and the smallest norm is bounded by
    0.

    Args:
        factors: Factors of all affine layers.
        biases: Whether each layer has a bias.
        bound: Bound on the norm, shape ``(runs,)``.
        rounding: Rounding of the bounds.

    Returns:
        The bounds, shape ``(runs, records)``.
    """
    longest, shortest, terms = [], [], 0
    for each, bias in zip(factors, biases, strict=True):
        outer, inner = each.derivatives, each.columns
        positions, outputs = outer.lower.shape[2:]
        longest.append((norms(outer.magnitude) * norms(inner.magnitude)).sum(dim=-1))
        least = (norms(outer.mignitude) * norms(inner.mignitude))[..., 0]
        shortest.append(least if positions == 1 else torch.zeros_like(least))
        terms += positions * (outputs * inner.lower.shape[-1] + outputs)
        if bias:
            longest.append(norms(outer.magnitude).sum(dim=-1))
            if positions == 1:
                shortest.append(norms(outer.mignitude)[..., 0])
    longest_of_all = norms(torch.stack(longest, dim=-1))
    found = scale_bounds(
        longest_of_all, norms(torch.stack(shortest, dim=-1)), bound[:, None].to(longest_of_all), terms, rounding
    )
    return Interval(torch.where(_is_short([each.columns.magnitude for each in factors]), found.lower, 0), found.upper)


def norm_factor(columns: Sequence[Tensor], length: Tensor, bound: Tensor) -> Tensor:
    """Return the factor by which training clips gradients to a bound.

    The factor is 0 if it would be too small for a float of full precision. It is also 0 for records whose inputs or
    activations are so large that products with them would lose precision. So the contribution of an unknown record is
    bounded in floating point, too.

    Args:
        columns: Inputs of each affine layer, shape ``(runs or 1, records, positions, inputs)``.
        length: Norms of the gradients, shape ``(runs, records)``.
        bound: Bound on the norm; it broadcasts with ``length``.
    """
    factor = (bound / length).clamp_max(1)  # If a norm is 0, the factor is 1.
    return torch.where(_is_short(columns) & (factor >= torch.finfo(factor.dtype).tiny), factor, 0)


def largest_clipped(bound: Tensor, terms: int, rounding: Rounding) -> Tensor:
    """Return a bound on the entries of a gradient that was clipped to a norm, including rounding and underflow."""
    numbers = torch.finfo(bound.dtype)
    lost = 4 * numbers.tiny**0.5 if rounding.is_outward else 0.0
    return bound * (1 + 4 * rounding.error_of_sums(terms + 16, bound.dtype)) + lost


def norms(values: Tensor) -> Tensor:
    """Return Euclidean norms along the last dimension.

    No square overflows, and small values are not lost next to large ones.
    """
    largest = values.abs().amax(dim=-1, keepdim=True)
    unit = largest.clamp_min(torch.finfo(values.dtype).tiny)
    found = unit * (values / unit).square().sum(dim=-1, keepdim=True).sqrt()
    return torch.where(torch.isinf(largest), largest, found)[..., 0]


def _is_short(columns: Sequence[Tensor]) -> Tensor:
    """Return whether each record's layer inputs are small enough for `norm_factor`, shape ``(runs or 1, records)``."""
    largest = functools.reduce(torch.maximum, [each.abs().flatten(2).amax(dim=-1) for each in columns])
    return largest.square() <= 1 / torch.finfo(largest.dtype).tiny
