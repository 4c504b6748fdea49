"""Linear bounds on the last update of a network's last weights.

A record's gradient with respect to a last weight is ``(p - y) u``. Here, ``p`` is the logistic function of the
difference ``D`` of the logits, and ``u`` is a unit of the last hidden layer. Up to its sign, the gradient is
``min(gamma, p(E) u)``, with ``E = D`` for label 0 and ``E = -D`` for label 1. Here, ``gamma`` is the bound to which
entries are clamped. For either label, the gradient increases with ``D``. So, for all ``D`` in the box before the
update, the gradient lies between two lines in ``D`` with slopes of at least 0. ``D`` is the product of the last weights
``v`` and the units. It lies between products of ``v`` and fixed numbers (`engine.intervals.last_update.supporting`). So
the sum of the gradients of a batch lies between two linear functions of ``v``. The resulting bound adds up how far the
records' gradients are from their lines. It does not add up the largest effect that each record has in the box.

`direction_bounds` bounds the effects of removals and additions, in the same way as for gradients. It uses the constant
terms of the lines, and the smallest values of the lines over the box. The result is correct if the neighbour with the
largest direction has the same number of removals for every parameter, and also the same number of additions. Therefore,
all neighbours must have the same divisor.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from certified_unlearning.engine.abstract_training.descent import Descent
from certified_unlearning.engine.abstract_training.extremes import Extremes, Sums
from certified_unlearning.engine.abstract_training.neighbourhoods import Neighbourhood, direction_bounds
from certified_unlearning.engine.abstract_training.training import Batch, Box, records_at_once
from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.engine.intervals.last_update import LastUpdate, supporting
from certified_unlearning.engine.intervals.network import Dense, Network, Relu
from certified_unlearning.engine.intervals.products import subtracted
from certified_unlearning.engine.intervals.propagation import Bounding, forward, paired_differences
from certified_unlearning.engine.intervals.rounding import EXPONENTIAL

NUMBERS_KEPT = 1 << 23
"""Largest total number of slopes over all budgets. More slopes would need too much memory."""


def last_update(
    network: Network,
    descent: Descent,
    box: Box,
    batch: Batch,
    k: Sequence[int],
    neighbourhood: Neighbourhood,
    bounding: Bounding,
    *,
    update: int,
    divisor: int | None = None,
) -> LastUpdate | None:
    """Return linear bounds on how the last update changes the last layer's weights; `train` checks the arguments.

    The bounds cover the neighbourhood's changes, but not poisoned records.

    Args:
        network: The network.
        descent: Rule that updates the parameters from gradients.
        box: Parameters before the update, each of shape ``(runs, ...)``.
        batch: The batch of the update.
        k: Budgets, one for each run.
        neighbourhood: The data sets that the boxes cover.
        bounding: How bounds are computed.
        update: Number of the update, counted from 0.
        divisor: Divisor of sums if the neighbourhood's normaliser is ``fixed``.

    Returns:
        The bounds, or None if there are none. Bounds exist only if the last layer is dense, has one or two logits and
        follows a hidden layer of ReLU units, and if the loss has two classes. There must be no momentum. Either
        gradients must be clamped, or there must be neither additions nor clipping. All records must be private, and
        there must be more records than any budget. All neighbours must have the same divisor. Bounds must be
        ``updated`` and rounded outward. There must not be too many slopes, and there must not be too many records for
        the precision of the numbers. All numbers must be finite.
    """
    if not _has_lines(network, descent, box[0].lower.dtype, batch, max(k), neighbourhood, bounding, len(k)):
        return None
    before, sizes = _last_weights(network, box, bounding)
    lower, upper = _lines(network, descent, box, before, sizes, batch, max(k), bounding)
    records, budgets = len(batch.rows), torch.tensor([*k], device=sizes.device)
    limit = descent.bounds(batch.rows, len(k))
    if neighbourhood.normaliser == "fixed":
        assert divisor is not None
        divisors = torch.full_like(budgets, divisor)
    else:
        divisors = records - budgets if neighbourhood.changes == "removals" else torch.full_like(budgets, records)
    size = lower.size + upper.size
    rest = direction_bounds(
        Extremes(
            Sums(Interval(-lower.rest, upper.rest), size, upper.least, -lower.least), None, size, records, 0, records
        ),
        neighbourhood,
        budgets,
        limit,
        divisor=divisor or records,
        rounding=bounding.rounding,
    )
    # The two logits move by equal amounts in opposite directions.
    rate = descent.rate(update)
    step, kept = rate * network.outputs, 1 - rate * descent.weight_decay
    lines = []
    for side, most in ((upper, rest.upper), (lower, -rest.lower)):
        slopes = step * (side.slopes / divisors.to(sizes)[:, None, None])
        size = sizes + (slopes @ sizes[..., None])[..., 0] + step * rest.magnitude
        terms = _terms(records, len(size[0]))
        slack = 8 * bounding.rounding.error_of_sums(terms, size.dtype) * size
        slack = slack + 64 * terms * bounding.rounding.smallest(size.dtype)
        unmoved = kept * torch.eye(len(size[0]), dtype=size.dtype, device=size.device)
        lines.append((unmoved - slopes, bounding.rounding.down(-step * most - slack)))
    (below, least), (above, negative) = lines
    found = LastUpdate(before, below, least, above, -negative)
    return found if all(bool(torch.isfinite(each).all()) for each in found.tensors.values()) else None


def _has_lines(
    network: Network,
    descent: Descent,
    dtype: torch.dtype,
    batch: Batch,
    most: int,
    neighbourhood: Neighbourhood,
    bounding: Bounding,
    runs: int,
) -> bool:
    layers, last = network.layers[-2:], network.affine[-1]
    width = last.inputs + last.bias
    return (
        bounding.differences == "updated"
        and bounding.rounding.is_outward
        and len(layers) == 2
        and isinstance(layers[0], Relu)
        and isinstance(layers[1], Dense)
        and (last.outputs, descent.loss) in ((2, "cross-entropy"), (1, "binary-cross-entropy"))
        and not descent.momentum
        and descent.clipping != "l2"
        and (descent.clipping == "clamp" or not neighbourhood.adds)
        and not neighbourhood.order_free
        and neighbourhood.changes != "additions or removals"
        and (batch.public is None or not bool(batch.public.any()))
        and most < len(batch.rows)
        and 2 * runs * width * width <= NUMBERS_KEPT
        and _terms(len(batch.rows), width) * torch.finfo(dtype).eps < 1 / 16
    )


def _terms(records: int, width: int) -> int:
    """Return the largest number of successive roundings in a sum over records, a sum of slopes, or the update."""
    return 2 * records + width + 64


def _last_weights(network: Network, box: Box, bounding: Bounding) -> tuple[Interval, Tensor]:
    """Return the bounds on the last weights, and the sums of the magnitudes of their terms.

    With two logits, the last weights are the second logit's weights minus the first's; with one logit, they are that
    logit's weights. The bias comes last.
    """
    last = box[-1]
    if network.affine[-1].bias:
        last = Interval(*(torch.cat([w, b[..., None]], dim=-1) for w, b in zip(box[-2], box[-1], strict=True)))
    sizes = last.magnitude.sum(dim=1)
    if network.outputs == 1:
        return Interval(*(end[:, 0] for end in last)), sizes
    first, second = (Interval(*(end[:, place] for end in last)) for place in (0, 1))
    return subtracted(second, first, bounding.rounding), sizes


class _Side:
    """Sum of lines: each line is above the gradient of a record of a batch, or above the negated gradient."""

    def __init__(self, runs: int, width: int, like: Tensor) -> None:
        self.slopes = like.new_zeros(runs, width, width)
        """Slopes of the sum with respect to the last weights."""
        self.rest = like.new_zeros(runs, width)
        self.size = like.new_zeros(runs, width)
        self.least = like.new_zeros(runs, 0, width)
        """The smallest of the lines' minima over the box, ascending along the second axis; each record has one line."""

    def add(
        self, slopes: Tensor, shifts: Tensor, points: Tensor, gaps: Tensor, difference: Interval, most: int
    ) -> None:
        """Add the lines of more records, whose difference of logits is at most ``v points + gaps``."""
        self.slopes += slopes.mT @ points
        self.rest += (shifts + slopes * gaps).sum(dim=1)
        self.size += (shifts.abs() + slopes * (gaps + difference.magnitude)).sum(dim=1)
        values = slopes * difference.lower + shifts
        both = torch.cat([self.least, values], dim=1)
        self.least = both.topk(min(most, both.shape[1]), dim=1, largest=False, sorted=True).values


def _lines(
    network: Network,
    descent: Descent,
    box: Box,
    before: Interval,
    sizes: Tensor,
    batch: Batch,
    most: int,
    bounding: Bounding,
) -> tuple[_Side, _Side]:
    """Return lines below and above the gradients.

    A line below a gradient is stored as a line above the negated gradient. It is then a function of ``-v``.
    """
    runs, width = before.lower.shape
    like, rounding = before.lower, bounding.rounding
    limit = math.inf if descent.bound is None else descent.bound
    below, above = _Side(runs, width, like), _Side(runs, width, like)
    step = records_at_once(network, batch.rows, runs)
    numbers = torch.finfo(like.dtype)
    for start in range(0, len(batch.rows), step):
        seen = forward(network, box, batch.rows[None, start : start + step], bounding)
        apart = paired_differences(network, box, seen, bounding) if network.outputs == 2 else seen.logits
        units = Interval(*(end.squeeze(2).expand(runs, -1, -1) for end in seen.columns[-1]))
        if width > units.lower.shape[-1]:
            units = Interval(*(torch.cat([end, torch.ones_like(end[..., :1])], dim=-1) for end in units))
        second = (batch.labels[start : start + step] == 1)[:, None]
        # The error of training's derivatives for given logits (`losses.softmax_bounds`), plus one rounding for each
        # derivative.
        widest = (seen.logits.upper.amax(dim=-1) - seen.logits.lower.amin(dim=-1))[..., None]
        off = 2 * numbers.eps * (widest + 8 * EXPONENTIAL + 64)
        # The error of training's difference of logits for a given product of weights and units.
        lost = (units.upper @ sizes[..., None]) * (8 * rounding.error_of_sums(width + 16, like.dtype)) + numbers.tiny
        for side, weights, difference, label in (
            (below, before, -apart, ~second),
            (above, -before, apart, second),
        ):
            # A line above the gradient is a line above the function for label 0, and comes from a line below it for
            # label 1.
            argument = Interval(
                torch.where(label, -difference.upper, difference.lower),
                torch.where(label, -difference.lower, difference.upper),
            )
            height = torch.where(label, units.lower, units.upper)
            slopes, shifts = clamped_logistic(argument, height, limit, is_above=~label)
            shifts = torch.where(label, -shifts, shifts) + (units.upper * off + numbers.tiny)
            points, gaps = supporting(weights, units)
            side.add(slopes, shifts, points, gaps[..., None] + lost, difference, most)
    return below, above


def clamped_logistic(argument: Interval, height: Tensor, limit: float, *, is_above: Tensor) -> tuple[Tensor, Tensor]:
    """Return lines above or below the function ``min(limit, height / (1 + exp(-E)))`` for all ``E`` in an interval.

    A line's slope is that of the chord between the interval's ends. It is 0 if the ends are so close that the chord's
    slope would be mostly rounding error.

    Args:
        argument: Interval of ``E``; its shape broadcasts with that of ``height``.
        height: Factor of the logistic function, at least 0.
        limit: Upper limit of the function; may be infinite.
        is_above: Mask of the lines above the function; all other lines are below. Its shape broadcasts with that of
            ``height``.

    Returns:
        Slopes, at least 0, and shifts, both of the shape of ``height``.
    """
    low, high = argument
    numbers = torch.finfo(height.dtype)
    first, last = ((torch.sigmoid(end) * height).clamp_max(limit) for end in argument)
    apart = high - low
    slope = ((last - first) / apart.clamp_min(numbers.tiny)).clamp_min(0)
    slope = torch.where(apart > numbers.eps**0.4 * (1 + argument.magnitude), slope, 0)

    def curve(at: Tensor) -> Tensor:
        return height * torch.sigmoid(at) - slope * at

    def tilt(at: Tensor) -> Tensor:
        return height * (torch.sigmoid(at) * torch.sigmoid(-at)) - slope

    # The curve has the line's slope at two opposite numbers, and is concave at the positive one. The two numbers need
    # not be exact: a tangent is a bound, whatever point it touches.
    root = (1 - 4 * torch.where(height > 0, slope / height, 0)).clamp_min(0).sqrt()
    touch = torch.log1p(root) - torch.log1p(-root)
    # The function reaches the limit at the knee, and is constant from there.
    over = height > limit
    knee = torch.where(
        over, math.log(max(limit, numbers.tiny)) - (height - limit).log() if math.isfinite(limit) else 0.0, high
    )
    knee = knee.clamp(low, high)
    # Lines above: up to 0, the function is convex, so its largest distance from a line is at an end; beyond, it is
    # concave, and then constant.
    left = torch.zeros_like(knee).clamp(low, high).minimum(knee)
    at = touch.clamp(left, knee)
    here = tilt(at)
    bent = curve(at) + torch.maximum(here * (knee - at), -here * (at - left)).clamp_min(0)
    above = torch.where(knee > low, torch.maximum(curve(low), bent), first - slope * low)
    if math.isfinite(limit):
        above = torch.where(over & (knee < high), torch.maximum(above, limit - slope * knee), above)
    # Lines below: the smaller one of two shifts, that of the curve without limit at its minimum, and that of the limit
    # at the last end.
    right = torch.zeros_like(knee).clamp(low, high)
    at = (-touch).clamp(low, right)
    here = tilt(at)
    bent = curve(at) + torch.minimum(here * (right - at), -here * (at - low)).clamp_max(0)
    below = torch.minimum(bent, curve(high))
    if math.isfinite(limit):
        below = torch.minimum(below, limit - slope * high)
    size = (height + slope) * (1 + argument.magnitude) + (limit if math.isfinite(limit) else 0)
    slack = 256 * EXPONENTIAL * numbers.eps * size + numbers.tiny
    return slope, torch.where(is_above, above + slack, below - slack)
