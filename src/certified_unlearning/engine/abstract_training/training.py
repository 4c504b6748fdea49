"""Abstract gradient training: after every update, a box contains the parameters learned from any neighbour.

Source: Wicker et al., *Certificates of Differential Privacy and Unlearning for Gradient-Based Training*, Algorithm 1
and Theorem 4.2, without noise. The box contains the results of the trainer of `descent` on every neighbouring data set,
whatever the order of its sums. This holds for real numbers and for floats of the same type.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from certified_unlearning.accounting.core.checks import require_count, require_counts
from certified_unlearning.engine.abstract_training import coupled
from certified_unlearning.engine.abstract_training.descent import Descent, Parameters, State, directions
from certified_unlearning.engine.abstract_training.extremes import Extremes, extremes, largest_entry
from certified_unlearning.engine.abstract_training.neighbourhoods import Neighbourhood, direction_bounds
from certified_unlearning.engine.abstract_training.poisoning import Poisoning, poisoned_directions
from certified_unlearning.engine.intervals.interval import Interval, IntervalError
from certified_unlearning.engine.intervals.losses import require_labels, require_loss
from certified_unlearning.engine.intervals.network import Network
from certified_unlearning.engine.intervals.propagation import TIGHTEST, Bounding, backward, forward
from certified_unlearning.errors import DataError, ParameterError

Box = tuple[Interval, ...]
NUMBERS_AT_ONCE = 1 << 17
"""Number of bounds that one layer computes together, so that they fit in a processor's cache."""
NUMBERS_AT_ONCE_ON_GPU = 1 << 25
"""Number of bounds that one layer computes together on a GPU, where small pieces take as long as large ones."""
NAIVE_SLACK = 1e4
"""Largest distance by which parameters may be outside their box under naive rounding, in units in the last place, for
each update so far. At a larger distance, an error is raised.
"""


@dataclass(frozen=True)
class Batch:
    """The records of one update.

    Attributes:
        rows: Inputs, shape ``(records, ...)``, in the form that the first layer accepts.
        labels: Labels, shape ``(records,)``.
        public: Mask of the records that can be neither removed nor added, shape ``(records,)``; None if there is no
            such record.
    """

    rows: Tensor
    labels: Tensor
    public: Tensor | None = None


@dataclass(frozen=True)
class Trained:
    """The result of abstract training.

    Attributes:
        parameters: Parameters learned from the data set itself, each of shape ``(runs or 1, ...)``.
        box: One box of parameters for each budget, each of shape ``(runs, ...)``.
        updates: Number of updates made.
        before: The box before the last update; None if there was none.
    """

    parameters: Parameters
    box: Box
    updates: int
    before: Box | None = None


def train(
    network: Network,
    descent: Descent,
    start: Sequence[Tensor],
    batches: Iterable[Batch],
    *,
    k: Sequence[int],
    neighbourhood: Neighbourhood | None = None,
    bounding: Bounding = TIGHTEST,
    divisor: int | None = None,
    everyone: Batch | None = None,
    poisoning: Poisoning | None = None,
    box: Box | None = None,
    noise: Iterable[Parameters] | None = None,
) -> Trained:
    """Train on the data, and update a box for each budget in every step.

    Args:
        network: The network.
        descent: Rule that updates the parameters from gradients.
        start: Initial parameters, which do not depend on the data; each of shape ``(1, ...)``, or ``(runs, ...)``.
        batches: The batch of every update, in order.
        k: Budgets, one for each run.
        neighbourhood: The data sets that the boxes cover; by default at most k removals in every batch.
        bounding: Method that computes bounds.
        divisor: Divisor of sums if the neighbourhood's normaliser is ``fixed``.
        everyone: All records, if the neighbourhood allows any order.
        poisoning: Possible changes of poisoned records, if the neighbours are data sets with poisoned records. The
            number of poisoned records is the same in all runs, so ``k`` must be ``[0]``.
        box: Box of the neighbours' initial parameters, if something was learned before: for each parameter, an interval
            of shape ``(runs, ...)``. The box must contain ``start``. None if all neighbours start at ``start``.
        noise: Noise to add to the direction of each update, in order; each of shape ``(1, ...)``. The noise is the same
            for the data set and for all neighbours, so it must have been drawn independently of the records. The box
            then contains the result of training on a neighbour *with this very noise*. Line 16 of Algorithm 1 adds
            noise only to the parameters of the data set, and this implies nothing for the parameters of a neighbour.
            None for no noise.

    Raises:
        ParameterError: An argument is invalid, or clipping is required but missing.
        AssumptionError: A batch may lose all its records.
        DataError: Records are not finite.
        IntervalError: Bounds overflow, or parameters leave their box.
    """
    neighbourhood = neighbourhood or Neighbourhood()
    require_loss(descent.loss, network.outputs)
    start = network.checked(start)
    bounding.rounding.require_precision(start[0].dtype)
    require_counts("k", k, least=0)
    if start[0].shape[0] not in (1, len(k)):
        raise ParameterError(
            f"`start` must have one run, or as many runs as there are budgets ({len(k)}); got {start[0].shape[0]}"
        )
    if (divisor is None) == (neighbourhood.normaliser == "fixed"):
        raise ParameterError(
            f"`divisor` must be given if normaliser='fixed', and otherwise must not; got divisor={divisor!r} and "
            f"normaliser={neighbourhood.normaliser!r}"
        )
    if (everyone is None) == neighbourhood.order_free:
        raise ParameterError(
            "`everyone` must be given if order_free=True, and otherwise must not; got "
            f"order_free={neighbourhood.order_free}"
        )
    if poisoning is not None and (any(k) or divisor is not None or everyone is not None):
        raise ParameterError(
            "k must be 0 with `poisoning`, which has its own budgets, and `divisor` and `everyone` must not be given"
        )
    if divisor is not None:
        require_count(least=1, divisor=divisor)
    budgets = torch.tensor(list(k), device=start[0].device)
    trained = Trained(start, _starting_box(start, len(k), box, bounding), 0)
    state, velocities = State(start), None
    drawn = None if noise is None else iter(noise)
    for batch in batches:
        _require_batch(batch, neighbourhood, k, descent)
        require_labels((everyone or batch).labels, descent.loss, network.outputs)
        rows, labels = batch.rows.unsqueeze(0), batch.labels
        bounds = (
            poisoned_directions(network, descent, trained.box, batch.rows, batch.labels, poisoning, bounding)
            if poisoning is not None
            else _directions(
                network,
                descent,
                trained.box,
                everyone or batch,
                budgets,
                neighbourhood,
                bounding,
                divisor,
                len(batch.rows),
            )
        )
        step = records_at_once(network, batch.rows, len(start[0]))
        found = directions(network, descent, state.parameters, rows, labels, divisor=divisor, at_once=step)
        if drawn is not None:
            shared = _noise_of(drawn, network, state.updates)
            found = tuple(each + more for each, more in zip(found, shared, strict=True))
            bounds = tuple(
                Interval(bounding.rounding.down(each.lower + more), bounding.rounding.up(each.upper + more))
                for each, more in zip(bounds, shared, strict=True)
            )
        rate = descent.rate(state.updates)
        moved, velocities = _followed(descent, trained.box, velocities, bounds, rate, bounding)
        state.follow(descent, found)
        trained = Trained(state.parameters, moved, state.updates, trained.box)
        _require_inside(trained, bounding)
    return trained


def _directions(
    network: Network,
    descent: Descent,
    box: Box,
    batch: Batch,
    budgets: Tensor,
    neighbourhood: Neighbourhood,
    bounding: Bounding,
    divisor: int | None,
    size: int,
) -> Box:
    """Return bounds on the directions of a batch, or of all batches of ``size`` records if any order is possible."""
    bound, records = descent.bounds(batch.rows, len(budgets)), len(batch.rows)
    limit = largest_entry(network, descent.clipping, bound, bounding)
    most = neighbourhood.kept(int(budgets.max()), records, size)
    found: tuple[Extremes, ...] | None = None
    step = records_at_once(network, batch.rows, len(budgets))
    for piece in (slice(start, start + step) for start in range(0, records, step)):
        seen = forward(network, box, batch.rows[None, piece], bounding)
        # Infinite logits would still give bounds on derivatives, although training may be unable to compute these
        # derivatives.
        seen.logits.checked("the logits")
        each = extremes(
            network,
            backward(network, box, seen, batch.labels[piece], descent.loss, bounding),
            most=most,
            clipping=descent.clipping,
            bound=bound,
            bounding=bounding,
            public=None if batch.public is None else batch.public[piece],
        )
        found = each if found is None else tuple(one.joined(two, most) for one, two in zip(found, each, strict=True))
    assert found is not None
    return tuple(
        direction_bounds(
            each, neighbourhood, budgets, limit, divisor=divisor or records, batch=size, rounding=bounding.rounding
        ).checked("a descent direction")
        for each in found
    )


def records_at_once(network: Network, rows: Tensor, runs: int) -> int:
    """Return the number of records to bound together so that a layer's values fit in a processor's cache."""
    if rows.is_cuda:
        return max(1, NUMBERS_AT_ONCE_ON_GPU // (runs * network.widest(rows.shape[1:])))
    return max(1, NUMBERS_AT_ONCE // (runs * network.widest(rows.shape[1:])))


def _noise_of(drawn: Iterator[Parameters], network: Network, update: int) -> Parameters:
    """Return the noise of an update.

    Raises:
        ParameterError: There is no noise for this update, or the noise does not have the parameters' shapes, or runs
            have separate noise.
        DataError: The noise is not finite.
    """
    found = next(drawn, None)
    if found is None:
        raise ParameterError(f"`noise` must have one entry for each update, got only {update}")
    checked = network.checked(found)
    if len(checked[0]) != 1:
        raise ParameterError(f"`noise` must be the same for all runs, got separate noise for {len(checked[0])} runs")
    if not all(bool(torch.isfinite(each).all()) for each in checked):
        raise DataError(f"the noise of update {update} is not finite")
    return checked


def _followed(
    descent: Descent,
    box: Box,
    velocities: "Box | tuple[coupled.Velocities, ...] | None",
    bounds: Box,
    rate: float,
    bounding: Bounding,
) -> "tuple[Box, Box | tuple[coupled.Velocities, ...] | None]":
    """Return the box and the velocities after an update.

    All past directions enter the parameters with coefficients of the same sign.
    """
    if descent.couples_decay:
        return coupled.followed(descent, box, cast("Any", velocities), bounds, bounding.rounding)
    up, down = bounding.rounding.up, bounding.rounding.down
    steps = bounds
    if descent.momentum:
        mu, velocities = descent.momentum, cast("Box | None", velocities)
        velocities = (
            bounds
            if velocities is None
            else tuple(
                Interval(down(down(mu * v.lower) + d.lower), up(up(mu * v.upper) + d.upper))
                for v, d in zip(velocities, bounds, strict=True)
            )
        )
        steps = velocities
        if descent.nesterov:
            steps = tuple(
                Interval(down(d.lower + down(mu * v.lower)), up(d.upper + up(mu * v.upper)))
                for v, d in zip(velocities, bounds, strict=True)
            )
    kept = 1 - rate * descent.weight_decay
    shrunk = (
        tuple(Interval(down(each.lower * kept), up(each.upper * kept)) for each in box) if descent.weight_decay else box
    )
    moved = tuple(
        Interval(down(each.lower - up(rate * step.upper)), up(each.upper - down(rate * step.lower))).checked(
            "parameters"
        )
        for each, step in zip(shrunk, steps, strict=True)
    )
    return moved, velocities


def _require_batch(batch: Batch, neighbourhood: Neighbourhood, k: Sequence[int], descent: Descent) -> None:
    records = len(batch.rows)
    if not records or batch.labels.shape != (records,):
        raise ParameterError(
            f"a batch must have at least one record, and one label for each record; got inputs of shape "
            f"{tuple(batch.rows.shape)} and labels of shape {tuple(batch.labels.shape)}"
        )
    if batch.public is not None and (batch.public.shape != (records,) or batch.public.dtype != torch.bool):
        raise ParameterError(f"`public` must have one boolean value for each of the {records} records of a batch")
    # A sum is a quick check: it is finite if all terms are finite and not huge.
    if not math.isfinite(float(batch.rows.sum())) and not bool(torch.isfinite(batch.rows).all()):
        raise DataError("a batch contains numbers that are not finite")
    removable = records if batch.public is None else int((~batch.public).sum())
    for each in k:
        neighbourhood.require(each, batch=records, removable=removable, clips=descent.clipping != "none")


def _require_inside(trained: Trained, bounding: Bounding) -> None:
    """Check that parameters are in their box, without tolerance if bounds are rounded outward.

    Raises:
        IntervalError: The parameters are outside their box.
    """
    for place, (values, box) in enumerate(zip(trained.parameters, trained.box, strict=True)):
        if not bounding.rounding.is_outward:
            slack = NAIVE_SLACK * torch.finfo(values.dtype).eps * (1 + values.abs()) * trained.updates
            box = Interval(box.lower - slack, box.upper + slack)
        if not bool(box.holds(values).all()):
            raise IntervalError(f"parameter {place} left its box in update {trained.updates}: nothing can be certified")


def _starting_box(start: Parameters, runs: int, box: Box | None, bounding: Bounding) -> Box:
    """Return the box of the neighbours' initial parameters for every run: the given box, or a point."""
    if box is None:
        return tuple(Interval.point(each.expand(runs, *each.shape[1:]).contiguous()) for each in start)
    shapes = [(runs, *each.shape[1:]) for each in start]
    if [tuple(each.lower.shape) for each in box] != shapes:
        raise ParameterError(f"`box` must have the shapes {shapes}, got {[tuple(each.lower.shape) for each in box]}")
    found = tuple(each.checked("parameters") for each in box)
    _require_inside(Trained(start, found, 0), bounding)
    return found
