"""Entry-wise sums and extremes of single records' gradients over a batch, without storing all gradients.

The sum of the ``m - s`` largest of ``m`` numbers is the sum of all ``m`` numbers minus the sum of the ``s`` smallest.
So a batch can be read in pieces: only sums, and the few smallest upper bounds and largest lower bounds of each entry,
are kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import torch
from torch import Tensor

from certified_unlearning.engine.intervals import kernel
from certified_unlearning.engine.intervals.clipping import clamped, largest_clipped, norm_scales
from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.engine.intervals.network import Network
from certified_unlearning.engine.intervals.products import norm_above, outer_products, rump_product, signed_product
from certified_unlearning.engine.intervals.propagation import Bounding, Factors
from certified_unlearning.vocabulary import Clipping

NUMBERS_AT_ONCE = 1 << 18
"""Number of gradient entries that are computed together, so that they fit in a processor's cache."""


class Sums(NamedTuple):
    """The sums and extremes that a pass over records keeps for the gradients of one parameter.

    Attributes:
        total: Sums of the lower and of the upper bounds, each of shape ``(runs, *parameter)``. If rounding is outward,
            float32 bounds are summed in float64.
        size: Upper bound on the sum of absolute gradients, shape ``(runs, *parameter)``. Rounding in the bound itself
            is not included.
        smallest: Smallest upper bounds, ascending along the second axis; shape ``(runs, most, *parameter)``.
        largest: Largest lower bounds, descending along the second axis; shape ``(runs, most, *parameter)``.
    """

    total: Interval
    size: Tensor
    smallest: Tensor
    largest: Tensor

    def joined(self, other: Self, most: int) -> "Sums":
        """Return the sums and extremes over the records of both objects, with a limited number of extremes."""
        return Sums(
            Interval(*(one + two for one, two in zip(self.total, other.total, strict=True))),
            self.size + other.size,
            _least_of(self.smallest, other.smallest, most),
            -_least_of(-self.largest, -other.largest, most),
        )


@dataclass(frozen=True)
class Extremes:
    """Sums and extremes of a batch, from which the bounds on one parameter's descent direction are computed.

    Attributes:
        private: Sums and extremes over the records that may be removed.
        public: Sums of the bounds of records that cannot be removed; None if there are no such records.
        size: Upper bound on the sum of absolute gradients, used to bound rounding errors.
        records: Number of records that may be removed.
        public_records: Number of records that cannot be removed.
        terms: Largest number of terms in a sum.
    """

    private: Sums
    public: Interval | None
    size: Tensor
    records: int
    public_records: int
    terms: int

    def joined(self, other: Self, most: int) -> "Extremes":
        """Return the sums and extremes over the records of both objects, with a limited number of extremes."""
        public = other.public if self.public is None else self.public
        if self.public is not None and other.public is not None:
            public = Interval(*(one + two for one, two in zip(self.public, other.public, strict=True)))
        return Extremes(
            self.private.joined(other.private, most),
            public,
            self.size + other.size,
            self.records + other.records,
            self.public_records + other.public_records,
            self.terms + other.terms,
        )


def extremes(
    network: Network,
    factors: Sequence[Factors],
    *,
    most: int,
    clipping: Clipping,
    bound: Tensor,
    bounding: Bounding,
    public: Tensor | None = None,
) -> tuple[Extremes, ...]:
    """Return sums and extremes of each parameter's gradients, in the order of parameters.

    Args:
        network: The network.
        factors: Factors that `propagation.backward` returned.
        most: Number of extremes to keep.
        clipping: How each record's gradient is clipped.
        bound: Clipping bound, shape ``(runs,)``; infinite without clipping.
        bounding: Method that bounds products.
        public: Mask of the records that cannot be removed, shape ``(records,)``; None if all can be removed.
    """
    limit = largest_entry(network, clipping, bound, bounding)
    if clipping == "l2":
        biases = [layer.bias for layer in network.affine]
        scales = norm_scales(factors, biases, bound, bounding.rounding)
        factors = [each.scaled(scales) for each in factors]
    found = []
    for layer, weight in zip(network.affine, factors, strict=True):
        parts = [(weight, layer.weight_shape)]
        if layer.bias:
            parts.append((bias_factors(weight), (layer.outputs,)))
        found += [_extremes(part, shape, most, limit, bounding, public) for part, shape in parts]
    return tuple(found)


def largest_entry(network: Network, clipping: Clipping, bound: Tensor, bounding: Bounding) -> Tensor:
    """Return a bound on entries of a clipped gradient, shape ``(runs,)``, including the rounding of a norm."""
    if clipping != "l2":
        return bound
    return largest_clipped(bound, network.size, bounding.rounding)


def bias_factors(weight: Factors) -> Factors:
    """Return the factors of a bias, which is treated as a weight whose inputs are all 1."""
    ones = torch.ones_like(weight.columns.lower[:1, :, :, :1])
    return Factors(weight.derivatives, Interval.point(ones), True)


def summed(factors: Factors, most: int, bound: Tensor, bounding: Bounding) -> Sums:
    """Return sums and extremes of one weight's gradients over all records, shape ``(runs, ..., outputs, inputs)``.

    Args:
        factors: Factors of the weight.
        most: Number of extremes to keep, at most the number of records.
        bound: Bound to which gradients are clamped, shape ``(runs,)``; may be infinite.
        bounding: Method that bounds products.
    """
    outer, inner = factors.derivatives, factors.columns
    if _outer_is_exact(factors, bounding) and kernel.takes(outer, inner):
        # The kernel processes several inputs at once. Inputs and outputs are swapped if the kernel is faster that way.
        turns = kernel.turns(outer, inner)
        if turns:
            compiled = kernel.summed(_expanded(inner, len(outer.lower)), outer, bound, most, nonnegative=False)
        else:
            compiled = kernel.summed(outer, inner, bound, most, nonnegative=factors.nonnegative)
        if compiled is not None:
            lower, upper, *rest = (each.mT if turns else each for each in compiled)
            return Sums(Interval(lower, upper), *rest)
    runs, records, positions, outputs = outer.lower.shape
    shape = (runs, outputs, inner.lower.shape[-1])
    # In float32, the error of a sum of thousands of terms would exceed the effect of one record.
    wide = torch.float64 if bounding.rounding.is_outward else outer.lower.dtype
    lower, upper = (outer.lower.new_zeros(shape, dtype=wide) for _ in range(2))
    smallest = outer.lower.new_full((*shape, most), torch.inf)
    largest = -smallest
    limit, limited = bound[:, None, None, None], bool(torch.isfinite(bound).any())
    step = max(1, NUMBERS_AT_ONCE // lower.numel())
    for start in range(0, records, step):
        piece = gradients(factors, slice(start, start + step), bounding)
        if limited:
            piece = clamped(piece, limit)
        lower += piece.lower.sum(dim=-1, dtype=wide)
        upper += piece.upper.sum(dim=-1, dtype=wide)
        if most:
            smallest = _least(smallest, piece.upper)
            largest = -_least(-largest, -piece.lower)
    size = outer.lower.new_zeros(shape)
    if bounding.rounding.is_outward:
        # This is the Cauchy-Schwarz inequality over records and positions.
        left, right = (norm_above(in_a_row(each), 1, bounding.rounding) for each in (outer, inner))
        size = left.mT * right
        if positions == 1:
            # With several positions, training clips only their sum, so the terms that it adds up may be larger than the
            # bound.
            size = torch.minimum(size, max(1, records) * bound[:, None, None].to(size))
    return Sums(Interval(lower, upper), size, smallest.movedim(-1, 1), largest.movedim(-1, 1))


def _extremes(
    factors: Factors, shape: Sequence[int], most: int, bound: Tensor, bounding: Bounding, public: Tensor | None
) -> Extremes:
    runs, records, positions = factors.derivatives.lower.shape[:3]
    there = None if public is None or not bool(public.any()) else public
    private = factors if there is None else _selected(factors, ~there)
    left = private.derivatives.lower.shape[1]
    sums = summed(private, min(most, left), bound, bounding)
    size = sums.size
    known = None
    if there is not None:
        found = summed(_selected(factors, there), 0, bound, bounding)
        known, size = Interval(*(end.reshape(runs, *shape) for end in found.total)), size + found.size
    size = size.reshape(runs, *shape)
    sums = Sums(
        Interval(*(end.reshape(runs, *shape) for end in sums.total)),
        size,
        *(each.reshape(runs, -1, *shape) for each in (sums.smallest, sums.largest)),
    )
    return Extremes(sums, known, size, left, records - left, records * positions)


def gradients(factors: Factors, piece: slice, bounding: Bounding) -> Interval:
    """Return the gradients of some records, shape ``(runs, outputs, inputs, records)``."""
    outer = Interval.point(factors.derivatives.lower[:, piece])
    if not factors.derivatives.is_point:
        outer = Interval(outer.lower, factors.derivatives.upper[:, piece])
    inner = Interval.point(factors.columns.lower[:, piece])
    if not factors.columns.is_point:
        inner = Interval(inner.lower, factors.columns.upper[:, piece])
    if outer.lower.shape[2] > 1 or not _outer_is_exact(factors, bounding):
        multiplied = rump_product if bounding.outer == "rump" else signed_product
        left = Interval(*(end.transpose(2, 3) for end in outer))
        found = multiplied(left, inner, bounding.rounding)
        return Interval(*(end.movedim(1, -1) for end in found))
    left = _last(outer, 2)
    return outer_products(left, _last(inner, 1), nonnegative=factors.nonnegative)


def _expanded(values: Interval, runs: int) -> Interval:
    """Return the values with one copy (a view) for each run."""
    lower = values.lower.expand(runs, -1, -1, -1)
    return Interval.point(lower) if values.is_point else Interval(lower, values.upper.expand(runs, -1, -1, -1))


def in_a_row(values: Interval) -> Interval:
    """Return the values with all records and positions along one axis."""
    lower = values.lower.flatten(1, 2)
    return Interval.point(lower) if values.is_point else Interval(lower, values.upper.flatten(1, 2))


def _outer_is_exact(factors: Factors, bounding: Bounding) -> bool:
    """Return whether products of single numbers are bounded exactly; products of points always are."""
    return bounding.outer == "exact" or (factors.derivatives.is_point and factors.columns.is_point)


def _last(values: Interval, axis: int) -> Interval:
    """Return the values of one position, with records along the last axis and a new axis before it."""
    lower = values.lower[:, :, 0].transpose(1, 2).contiguous().unsqueeze(axis)
    if values.is_point:
        return Interval.point(lower)
    return Interval(lower, values.upper[:, :, 0].transpose(1, 2).contiguous().unsqueeze(axis))


def _least(kept: Tensor, more: Tensor) -> Tensor:
    """Return the smallest values of both tensors, ascending along the last axis; the result is as large as ``kept``."""
    most = kept.shape[-1]
    if most == 1:
        return torch.minimum(kept, more.amin(dim=-1, keepdim=True))
    return torch.cat([kept, more], dim=-1).topk(most, dim=-1, largest=False, sorted=True).values


def _least_of(one: Tensor, two: Tensor, most: int) -> Tensor:
    """Return the ``most`` smallest values of both tensors (or all, if fewer), ascending along the second axis."""
    if one.shape[1] == two.shape[1] == most == 1:
        return torch.minimum(one, two)
    both = torch.cat([one, two], dim=1)
    return both.topk(min(most, both.shape[1]), dim=1, largest=False, sorted=True).values


def _selected(factors: Factors, which: Tensor) -> Factors:
    """Return the factors of some records."""

    def some(values: Interval) -> Interval:
        lower = values.lower[:, which]
        return Interval.point(lower) if values.is_point else Interval(lower, values.upper[:, which])

    return Factors(some(factors.derivatives), some(factors.columns), factors.nonnegative)
