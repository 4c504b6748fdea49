"""Clipping of single records' gradients: entry by entry, or by their Euclidean norm.

Clipping both ends of an interval by their own norms is unsound: it may even turn an interval over. What is sound is to
bound the factor by which a gradient in the interval is multiplied.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.engine.intervals.propagation import Factors
from certified_unlearning.engine.intervals.rounding import OUTWARD, Rounding


def clamped(values: Interval, bound: float | Tensor) -> Interval:
    """Return the interval of clamped tensors: the function is monotone, so that ends go to ends."""
    return Interval(
        torch.minimum(torch.maximum(values.lower, -torch.as_tensor(bound)), torch.as_tensor(bound)),
        torch.minimum(torch.maximum(values.upper, -torch.as_tensor(bound)), torch.as_tensor(bound)),
    )


def clipped_by_norm(values: Interval, bound: float, rounding: Rounding = OUTWARD) -> Interval:
    """Return bounds of ``g min(1, bound / |g|)`` for all vectors ``g`` of an interval along its last axis."""
    terms = values.lower.shape[-1]
    scale = scale_bounds(
        values.magnitude.square().sum(dim=-1), values.mignitude.square().sum(dim=-1), bound, terms, rounding
    )
    below, above = scale.lower[..., None], scale.upper[..., None]
    found = Interval(
        torch.where(values.lower >= 0, below, above) * values.lower,
        torch.where(values.upper >= 0, above, below) * values.upper,
    )
    return clamped(Interval(rounding.down(found.lower), rounding.up(found.upper)), bound)


def scale_bounds(
    largest: Tensor, smallest: Tensor, bound: float | Tensor, terms: int, rounding: Rounding = OUTWARD
) -> Interval:
    """Return bounds of ``min(1, bound / |g|)``.

    Args:
        largest: Upper bounds of the squared norms of ``g``, up to rounding.
        smallest: Lower bounds of them.
        bound: The norm to clip to.
        terms: How many squares were added up, here and in training.
        rounding: How to round.
    """
    off = 4 * rounding.error_of_sums(terms + 16, largest.dtype)
    lost = 2 * terms * rounding.smallest(largest.dtype)
    longest = (largest * (1 + off) + lost).sqrt()
    shortest = (smallest * (1 - off) - lost).clamp_min(0).sqrt()
    return Interval((bound / longest * (1 - off)).clamp_max(1), (bound / shortest * (1 + off)).clamp_max(1))


def norm_scales(factors: Sequence[Factors], biases: Sequence[bool], bound: Tensor, rounding: Rounding) -> Interval:
    """Return bounds of the factor by which each record's gradient is clipped to a norm, over all parameters together.

    A weight's gradient is an outer product, whose norm is the product of norms: nothing of size records x parameters is
    formed. With positions, as convolutions have them, the triangle inequality bounds the largest norm, and the smallest
    is taken to be 0.

    Args:
        factors: Of all affine layers.
        biases: Whether each has a bias.
        bound: Shape ``(runs,)``.
        rounding: How to round.

    Returns:
        Shape ``(runs, records)``.
    """
    largest, smallest = torch.zeros(()), torch.zeros(())
    terms = 0
    for each, bias in zip(factors, biases, strict=True):
        outer, inner = each.derivatives, each.columns
        positions, outputs = outer.lower.shape[2:]
        most = (_norms(outer.magnitude) * _norms(inner.magnitude)).sum(dim=-1).square()
        least = (_norms(outer.mignitude) * _norms(inner.mignitude)).square()
        least = least[..., 0] if positions == 1 else torch.zeros_like(most)
        terms += positions * (outputs * inner.lower.shape[-1] + outputs)
        largest, smallest = largest.to(most) + most, smallest.to(most) + least
        if bias:
            largest = largest + _norms(outer.magnitude).sum(dim=-1).square()
            if positions == 1:
                smallest = smallest + _norms(outer.mignitude)[..., 0].square()
    return scale_bounds(largest, smallest, bound[:, None].to(largest), terms, rounding)


def _norms(values: Tensor) -> Tensor:
    return values.square().sum(dim=-1).sqrt()
