"""Neighbours by poisoning: in every batch, some records have moved inputs or changed labels; all records stay.

Each record has two boxes of gradients: a clean box, and a poisoned box. The largest direction uses the clean bounds of
all records except the few whose bounds poisoning increases most. One record may have both a moved input and a changed
label. So it would be wrong to compute the effects of the two changes from separate boxes and to add them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from certified_unlearning.accounting.core.checks import require_count, require_non_negative
from certified_unlearning.engine.abstract_training.descent import Descent
from certified_unlearning.engine.abstract_training.extremes import (
    NUMBERS_AT_ONCE,
    bias_factors,
    gradients,
    in_a_row,
    largest_entry,
)
from certified_unlearning.engine.intervals.clipping import clamped, norm_scales
from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.engine.intervals.losses import any_label_bounds
from certified_unlearning.engine.intervals.network import Network
from certified_unlearning.engine.intervals.products import norm_above
from certified_unlearning.engine.intervals.propagation import Bounding, Factors, backward, backward_from, forward
from certified_unlearning.engine.intervals.rounding import Rounding
from certified_unlearning.errors import ParameterError


@dataclass(frozen=True)
class Poisoning:
    """The changes that are possible in the records of every batch.

    Attributes:
        moved: Number of records whose inputs are moved.
        by: Largest change of a coordinate of moved inputs.
        relabelled: Number of records whose labels change. A label can become any class; with the squared loss, it
            changes by at most ``shift``.
        together: Whether the records with moved inputs and those with changed labels are the same; otherwise they may
            differ.
        to: The only class that a label can change to; None for any class.
        shift: Largest change of a label, if the loss is the squared loss. It must be above 0 with the squared loss, and
            0 with all other losses.
    """

    moved: int = 0
    by: float = 0.0
    relabelled: int = 0
    together: bool = False
    to: int | None = None
    shift: float = 0.0

    def __post_init__(self) -> None:
        require_count(least=0, moved=self.moved, relabelled=self.relabelled)
        require_non_negative(by=self.by, shift=self.shift)
        if self.to is not None:
            require_count(least=0, to=self.to)
        if not self.relabelled and (self.to is not None or self.shift):
            raise ParameterError(
                f"`relabelled` must be at least 1 if `to` or `shift` is given, because these limit how labels change; "
                f"got {self.relabelled}"
            )

    @property
    def records(self) -> int:
        """Largest number of changed records."""
        return max(self.moved, self.relabelled) if self.together else self.moved + self.relabelled


def poisoned_directions(
    network: Network,
    descent: Descent,
    box: Sequence[Interval],
    rows: Tensor,
    labels: Tensor,
    poisoning: Poisoning,
    bounding: Bounding,
) -> tuple[Interval, ...]:
    """Return bounds on the directions of all poisoned batches; directions are means over the present records.

    Args:
        network: The network.
        descent: Clipping of the gradients.
        box: Parameters, each of shape ``(runs, ...)``.
        rows: Inputs of the records, shape ``(records, ...)``.
        labels: Labels, shape ``(records,)``.
        poisoning: Changes that are possible in a batch.
        bounding: Method that computes bounds.
    """
    rounding, loss, runs = bounding.rounding, descent.loss, len(box[0].lower)
    clean_pass = forward(network, box, rows[None], bounding)
    clean_pass.logits.checked("the logits")
    clean = backward(network, box, clean_pass, labels, loss, bounding)
    inputs = Interval.point(rows[None])
    if poisoning.moved and poisoning.by:
        inputs = Interval(rounding.down(rows - poisoning.by)[None], rounding.up(rows + poisoning.by)[None])
    poisoned_pass = forward(network, box, inputs, bounding)
    poisoned_pass.logits.checked("the logits of poisoned inputs")
    if poisoning.relabelled:
        anything = any_label_bounds(
            poisoned_pass.logits, loss, rounding, labels=labels, to=poisoning.to, shift=poisoning.shift
        )
        poisoned = backward_from(network, box, poisoned_pass, anything, bounding)
    else:
        poisoned = backward(network, box, poisoned_pass, labels, loss, bounding)
    bound = descent.bounds(rows, runs)
    limit = largest_entry(network, descent.clipping, bound, bounding)
    if descent.clipping == "l2":
        biases = [layer.bias for layer in network.affine]
        clean, poisoned = (
            tuple(each.scaled(scale) for each in factors)
            for factors, scale in ((some, norm_scales(some, biases, bound, rounding)) for some in (clean, poisoned))
        )
    found = []
    for layer, one, other in zip(network.affine, clean, poisoned, strict=True):
        parts = [(one, other, layer.weight_shape)]
        if layer.bias:
            parts.append((bias_factors(one), bias_factors(other), (layer.outputs,)))
        for part, wrong, shape in parts:
            ends = _bounds(part, wrong, min(poisoning.records, len(rows)), limit, bounding)
            found.append(Interval(*(end.reshape(runs, *shape) for end in ends)).checked("a descent direction"))
    return tuple(found)


def _bounds(clean: Factors, poisoned: Factors, most: int, limit: Tensor, bounding: Bounding) -> Interval:
    """Return bounds on one weight's mean gradient if up to ``most`` records are poisoned."""
    outer, inner = clean.derivatives, clean.columns
    runs, records, positions, outputs = outer.lower.shape
    shape = (runs, outputs, inner.lower.shape[-1])
    lower, upper = outer.lower.new_zeros(shape), outer.lower.new_zeros(shape)
    gains = outer.lower.new_zeros(2, *shape, most)
    step = max(1, NUMBERS_AT_ONCE // lower.numel())
    for start in range(0, records, step):
        piece = slice(start, start + step)
        right, wrong = (
            clamped(gradients(each, piece, bounding), limit[:, None, None, None]) for each in (clean, poisoned)
        )
        lower += right.lower.sum(dim=-1)
        upper += right.upper.sum(dim=-1)
        if most:
            new = torch.stack([right.lower - wrong.lower, wrong.upper - right.upper])
            gains = torch.cat([gains, new], dim=-1).topk(most, dim=-1, sorted=False).values
    lower, upper = lower - gains[0].sum(dim=-1), upper + gains[1].sum(dim=-1)
    rounding = bounding.rounding
    if rounding.is_outward:
        # A sum of all records, and a sum of the poisoned ones: the error of each is at most its number of terms times
        # its size. This counts the errors here and in training; training's own sum has clean records and at most that
        # many poisoned ones.
        terms = 2 * (records * positions + most) + 16
        size = _size(clean, records, limit, rounding) + 2 * _size(poisoned, most, limit, rounding)
        slack = 4 * rounding.error_of_sums(terms, lower.dtype) * size
        slack += 4 * terms * rounding.smallest(lower.dtype)
        lower, upper = lower - slack, upper + slack
    return Interval(rounding.down(lower / records), rounding.up(upper / records))


def _size(factors: Factors, count: int, limit: Tensor, rounding: Rounding) -> Tensor:
    """Return a bound on the sum of the absolute gradients of ``count`` records.

    The rounding errors of computing this bound are not included.
    """
    outer, inner = in_a_row(factors.derivatives), in_a_row(factors.columns)
    positions = factors.derivatives.lower.shape[2]
    # The Cauchy-Schwarz inequality over all records, or the largest gradient of any record times `count`.
    of_all = norm_above(outer, 1, rounding).mT * norm_above(inner, 1, rounding)
    if not count:
        return torch.zeros_like(of_all)
    largest = [each.magnitude.amax(dim=1, keepdim=True) for each in (outer, inner)]
    of_some = count * positions * (largest[0].mT * largest[1])
    found = torch.minimum(of_all, of_some)
    # With several positions, training clips only their sum, so the terms that it adds up may be larger.
    return torch.minimum(found, count * limit[:, None, None].to(found)) if positions == 1 else found
