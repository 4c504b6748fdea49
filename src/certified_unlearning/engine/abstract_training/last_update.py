"""Bounds on the last update's effect on the last weights, by lines.

A record's gradient of a last weight is ``(p - y) u``: ``p`` is the logistic function of the difference ``D`` of logits
and ``u`` a unit of the last hidden layer. With ``E = D`` for label 0 and ``E = -D`` for label 1 it is, except for its
sign, ``min(gamma, p(E) u)`` where entries are clamped to ``gamma``; The gradient increases with ``D`` for either label.
So over the values of ``D`` in the box before the update, it is between two lines in ``D`` with slopes of at least 0.
``D`` is the last weights ``v`` times the units, and lies between such products with numbers instead of units
(`engine.intervals.last_update.supporting`). The sum over the batch is then between two linear functions of ``v``. This
adds up the distances of single records from their lines, not their effects at the worst points of the box.

Removals and additions are bounded for the lines' remainders as for gradients (`direction_bounds`). That is correct if
the largest direction of any neighbour has the same numbers of removals and additions at all parameters, which requires
one divisor for all neighbours.
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
"""Largest total number of slopes over all budgets; more are not worth their memory."""


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
    """Return how the last update moved the last weights; the arguments are those of `train`, which checks them.

    Lines cover the neighbourhood's changes, but not poisoned records.

    Args:
        network: The layers.
        descent: How parameters follow gradients.
        box: Parameters before the update, each of shape ``(runs, ...)``.
        batch: The batch of the update.
        k: Budgets, one for each run.
        neighbourhood: The data sets that the boxes cover.
        bounding: How bounds are computed.
        update: Its number, counted from 0.
        divisor: Divisor of sums if the neighbourhood's normaliser is ``fixed``.

    Returns:
        None if there are no such lines. They need hidden units of a ReLU before a dense layer with one or two logits,
        and a loss of two classes; no momentum; gradients that are clamped, or, if no records are added, not clipped;
        records that are all private, and more than any budget; one divisor for all neighbours; bounds that are
        ``updated`` and rounded outward; not too many slopes, and not too many records for the type of numbers; and
        finite numbers.
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
    # Two logits move equally in opposite directions.
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
    """Return the largest numbers of successive roundings: in sums over records, of slopes, and of the update."""
    return 2 * records + width + 64


def _last_weights(network: Network, box: Box, bounding: Bounding) -> tuple[Interval, Tensor]:
    """Return the last weights, and sums of the magnitudes of what they are computed from.

    They are those of the second logit minus those of the first, or those of the only one, followed by the bias.
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
    """Lines above all gradients of a batch, or below the negative gradients, summed over records."""

    def __init__(self, runs: int, width: int, like: Tensor) -> None:
        self.slopes = like.new_zeros(runs, width, width)
        """Slopes of the sum, with respect to the last weights."""
        self.rest = like.new_zeros(runs, width)
        self.size = like.new_zeros(runs, width)
        self.least = like.new_zeros(runs, 0, width)
        """The smallest values of single records' lines over the box, ascending along the second axis."""

    def add(
        self, slopes: Tensor, shifts: Tensor, points: Tensor, gaps: Tensor, difference: Interval, most: int
    ) -> None:
        """Add lines of more records, whose difference of logits is at most ``v points + gaps``."""
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
    """Return the lines below and above the gradients; those below as lines above negative ones, of ``-v``."""
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
        # The error of training's derivatives, given its logits (`losses.softmax_bounds`), plus one rounding each.
        widest = (seen.logits.upper.amax(dim=-1) - seen.logits.lower.amin(dim=-1))[..., None]
        off = 2 * numbers.eps * (widest + 8 * EXPONENTIAL + 64)
        # The error of training's difference of logits, given the product of weights and units.
        lost = (units.upper @ sizes[..., None]) * (8 * rounding.error_of_sums(width + 16, like.dtype)) + numbers.tiny
        for side, weights, difference, label in (
            (below, before, -apart, ~second),
            (above, -before, apart, second),
        ):
            # Above a gradient of label 0: above the function; of label 1: below the function of the negative.
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
    """Return lines above, or below, ``min(limit, height / (1 + exp(-E)))`` for all ``E`` of an interval.

    Each has the slope of the function between the interval's ends; slope 0 if they are so near that it would be
    rounding.

    Args:
        argument: The interval; its shape broadcasts with that of ``height``.
        height: At least 0.
        limit: May be infinite.
        is_above: Which lines are above; the others are below. Its shape broadcasts with that of ``height``.

    Returns:
        Slopes of at least 0, and shifts, of the shape of ``height``.
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

    # Where the curve has the line's slope: at two opposite numbers; the curve is concave at the positive one. They need
    # not be exact: tangents are bounds wherever they touch.
    root = (1 - 4 * torch.where(height > 0, slope / height, 0)).clamp_min(0).sqrt()
    touch = torch.log1p(root) - torch.log1p(-root)
    # The function reaches the limit at the knee, and stays there.
    over = height > limit
    knee = torch.where(
        over, math.log(max(limit, numbers.tiny)) - (height - limit).log() if math.isfinite(limit) else 0.0, high
    )
    knee = knee.clamp(low, high)
    # Above: convex up to 0, where the ends are the largest; concave after it; constant after the knee.
    left = torch.zeros_like(knee).clamp(low, high).minimum(knee)
    at = touch.clamp(left, knee)
    here = tilt(at)
    bent = curve(at) + torch.maximum(here * (knee - at), -here * (at - left)).clamp_min(0)
    above = torch.where(knee > low, torch.maximum(curve(low), bent), first - slope * low)
    if math.isfinite(limit):
        above = torch.where(over & (knee < high), torch.maximum(above, limit - slope * knee), above)
    # Below: the smaller one of the curve without limit, at its least, and of the limit at the last end.
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
