"""Bounds computed through a network: forward to the logits, and backward to each record's gradients.

Source: Wicker et al., *Certificates of Differential Privacy and Unlearning for Gradient-Based Training*, Theorem 4.3
and Appendix A. Here, a weight's gradient is the derivative with respect to the outputs of the weight's layer, times the
*activations* of the previous layer. (The printed formula has pre-activations, whose shapes do not fit.)

A record's gradient with respect to a weight is a product of two small intervals. `backward` returns these two factors.
The products, of size records x parameters, are never all formed at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.engine.intervals.last_update import LastUpdate
from certified_unlearning.engine.intervals.losses import loss_bounds, pairs_of, separate_pairs
from certified_unlearning.engine.intervals.network import Affine, Dense, Flatten, Network, Relu
from certified_unlearning.engine.intervals.products import product, subtracted
from certified_unlearning.engine.intervals.relaxation import is_chain, relaxed
from certified_unlearning.engine.intervals.rounding import OUTWARD, Rounding
from certified_unlearning.vocabulary import Differences, IntervalProduct, NetworkLoss


@dataclass(frozen=True)
class Bounding:
    """The method that computes bounds.

    All methods are sound with outward rounding, and the first one in each list is the tightest.

    Attributes:
        products: Method for products of matrices. ``exact`` gives the tightest bounds if a factor has a known sign;
            ``rump`` uses midpoints and radii.
        outer: Method for products of a derivative and an activation, ``exact`` or ``rump``.
        softmax: Method for softmax. ``pairwise`` also uses bounds on differences of logits; ``tight`` uses only bounds
            on single logits.
        differences: Method by which differences of logits are bounded when predictions are certified. ``updated`` also
            uses linear bounds on the last update of training, and linear bounds through all hidden layers. ``relaxed``
            uses only the linear bounds through all hidden layers. ``joint`` uses only differences of the last weights;
            with ``joint``, a larger box never has narrower bounds. Training always uses ``joint``.
        rounding: Outward rounding, or naive rounding, which is not a proof.
    """

    products: IntervalProduct = "exact"
    outer: IntervalProduct = "exact"
    softmax: Literal["pairwise", "tight"] = "pairwise"
    differences: Differences = "updated"
    rounding: Rounding = OUTWARD

    def draws_lines(self, network: Network) -> bool:
        """Return whether predictions are certified with linear bounds, which may be narrower for a larger box."""
        return self.differences != "joint" and is_chain(network)


TIGHTEST = Bounding()
RUMP = Bounding(products="rump", outer="rump", softmax="tight", differences="joint")


@dataclass(frozen=True)
class Activations:
    """The values that a forward pass keeps.

    Attributes:
        logits: Bounds on the logits, shape ``(runs, records, outputs)``.
        columns: Inputs of each affine layer, shape ``(runs or 1, records, positions, inputs)``.
        nonnegative: Whether the inputs of each affine layer come from a ReLU.
        before: Inputs of each ReLU layer.
        shapes: Shape of the inputs of each affine layer before they were unfolded.
    """

    logits: Interval
    columns: tuple[Interval, ...]
    nonnegative: tuple[bool, ...]
    before: tuple[Interval, ...]
    shapes: tuple[torch.Size, ...]


@dataclass(frozen=True)
class Factors:
    """Each record's gradient with respect to one weight, as two factors; their products are summed over positions.

    Attributes:
        derivatives: Derivatives with respect to the outputs, shape ``(runs, records, positions, outputs)``.
        columns: Inputs, shape ``(runs or 1, records, positions, inputs)``.
        nonnegative: Whether inputs come from a ReLU.
    """

    derivatives: Interval
    columns: Interval
    nonnegative: bool

    def scaled(self, scale: Interval) -> "Factors":
        """Return the factors multiplied by numbers of at least 0, one for each run and record."""
        above, below = scale.upper[..., None, None], scale.lower[..., None, None]
        lower, upper = self.derivatives
        return replace(
            self,
            derivatives=Interval(
                torch.where(lower >= 0, below, above) * lower,
                torch.where(upper >= 0, above, below) * upper,
            ),
        )


def forward(
    network: Network, box: Sequence[Interval], rows: Tensor | Interval, bounding: Bounding = TIGHTEST
) -> Activations:
    """Bound all activations.

    Args:
        network: The network.
        box: Parameters, each of shape ``(runs, ...)``.
        rows: Inputs of the records, or an interval of inputs; shape ``(runs or 1, records, ...)``, where ``...`` is the
            shape that the first layer accepts.
        bounding: Method that computes bounds.
    """
    values = rows if isinstance(rows, Interval) else Interval.point(rows)
    nonnegative = False
    columns, signs, before, shapes = [], [], [], []
    layers = network.by_layer(box)
    for layer in network.layers:
        if isinstance(layer, Relu):
            before.append(values)
            values, nonnegative = _each(values, lambda end: end.clamp_min(0)), True
        elif isinstance(layer, Flatten):
            values = _each(values, lambda end: end.flatten(2))
        else:
            _, weight, bias = next(layers)
            seen, shape = _each(values, layer.columns), values.lower.shape
            columns.append(seen)
            signs.append(nonnegative)
            shapes.append(shape)
            outputs = _affine(seen, weight, bias, bounding, nonnegative=nonnegative)
            values, nonnegative = _each(outputs, layer.placed, shape), False
    return Activations(values, tuple(columns), tuple(signs), tuple(before), tuple(shapes))


def paired_differences(
    network: Network,
    box: Sequence[Interval],
    activations: Activations,
    bounding: Bounding = TIGHTEST,
    *,
    relaxes: bool = False,
    last: LastUpdate | None = None,
) -> Interval:
    """Return bounds on the differences of logits, for all pairs of `losses.pairs_of`.

    Both logits of a pair have the same activations. The bounds are never wider than the differences of the bounds of
    single logits, and they also hold for logits in floating point, each rounded separately.

    Args:
        network: The network.
        box: Parameters, each of shape ``(runs, ...)``.
        activations: Activations that `forward` returned for these parameters.
        bounding: Method that computes bounds.
        relaxes: Whether linear bounds through hidden layers may be used, if ``bounding`` allows them. Linear bounds
            depend on the box, and those of a larger box may happen to be narrower. Training needs nested boxes, so it
            does not use linear bounds.
        last: Linear bounds on the last update of training, for a network with two logits; None if there are no such
            bounds.

    Returns:
        The bounds, shape ``(runs, records, pairs)``.
    """
    parameters = list(network.by_layer(box))
    _, weight, bias = parameters[-1]
    rounding, columns = bounding.rounding, activations.columns[-1]
    first, second = pairs_of(network.outputs, weight.lower.device)
    rows = subtracted(_each(weight, lambda end: end[:, second]), _each(weight, lambda end: end[:, first]), rounding)
    size = weight.magnitude[:, first] + weight.magnitude[:, second]
    shifts, bias_size, more = None, None, None
    if bias is not None:
        bias_size = bias.magnitude[:, first] + bias.magnitude[:, second]
        shifts = subtracted(_each(bias, lambda end: end[:, second]), _each(bias, lambda end: end[:, first]), rounding)
    if rounding.is_outward:
        # This is twice the error of each logit, which also covers the roundings of their subtraction.
        off = 4 * rounding.error_of_sums(columns.lower.shape[-1] + 8, weight.lower.dtype)
        more = off * size
        apart = more.new_full((1, more.shape[1]), 4 * rounding.smallest(more.dtype))
        if bias_size is not None:
            apart = apart + off * bias_size
        shifts = Interval(-apart, apart) if shifts is None else Interval(shifts.lower - apart, shifts.upper + apart)
    found = _affine(columns, rows, shifts, bounding, nonnegative=activations.nonnegative[-1], more=more)
    found = _each(found, lambda end: end.squeeze(2))
    if relaxes and bounding.draws_lines(network):
        found = found.intersected(relaxed(parameters, activations.before, rows, shifts, (size, bias_size), rounding))
    if last is not None:
        sizes = size[:, 0], None if bias_size is None else bias_size[:, 0]
        found = found.intersected(_by_last_update(last, columns, _each(rows, lambda end: end[:, 0]), sizes, rounding))
    if bounding.products == "exact" and (columns.is_point or activations.nonnegative[-1]):
        return found  # With exact products of the same activations, bounds from single logits are never tighter.
    return found.intersected(separate_pairs(activations.logits, rounding))


def differences(
    network: Network,
    box: Sequence[Interval],
    activations: Activations,
    bounding: Bounding = TIGHTEST,
    last: LastUpdate | None = None,
) -> Interval:
    """Return bounds on all differences of logits; see `paired_differences`.

    Returns:
        The bounds, shape ``(runs, records, outputs, outputs)``; ``[..., i, j]`` is logit ``j`` minus logit ``i``.
    """
    # The bounds on j minus i are those of i minus j with opposite signs.
    half, classes = paired_differences(network, box, activations, bounding, relaxes=True, last=last), network.outputs
    first, second = pairs_of(classes, half.lower.device)
    shape = (*half.lower.shape[:2], classes, classes)
    found = Interval(half.lower.new_zeros(shape), half.lower.new_zeros(shape))
    found.lower[..., first, second], found.lower[..., second, first] = half.lower, -half.upper
    found.upper[..., first, second], found.upper[..., second, first] = half.upper, -half.lower
    return found


def single_logit(
    network: Network,
    box: Sequence[Interval],
    activations: Activations,
    bounding: Bounding = TIGHTEST,
    last: LastUpdate | None = None,
) -> Interval:
    """Return bounds on a network's only logit; linear bounds are used, too, if they are allowed and exist.

    Returns:
        The bounds, shape ``(runs, records, 1)``.
    """
    parameters, found = list(network.by_layer(box)), activations.logits
    _, weight, bias = parameters[-1]
    sizes = weight.magnitude, None if bias is None else bias.magnitude
    if bounding.draws_lines(network):
        found = found.intersected(relaxed(parameters, activations.before, weight, bias, sizes, bounding.rounding))
    if last is not None:
        row, own = (
            _each(weight, lambda end: end[:, 0]),
            (sizes[0][:, 0], None if bias is None else bias.magnitude[:, 0]),
        )
        found = found.intersected(_by_last_update(last, activations.columns[-1], row, own, bounding.rounding))
    return found


def _by_last_update(
    last: LastUpdate, columns: Interval, row: Interval, sizes: tuple[Tensor, Tensor | None], rounding: Rounding
) -> Interval:
    """Return bounds on a difference of logits, based on bounds on the last update, shape ``(runs, records, 1)``."""
    units = _each(columns, lambda end: end.squeeze(2))
    return _each(last.bounds(units, row, sizes, rounding), lambda end: end[..., None])


def backward(
    network: Network,
    box: Sequence[Interval],
    activations: Activations,
    labels: Tensor,
    loss: NetworkLoss,
    bounding: Bounding = TIGHTEST,
) -> tuple[Factors, ...]:
    """Return bounds on each record's gradient, as factors for each affine layer, in the order of layers.

    Args:
        network: The network.
        box: Parameters, each of shape ``(runs, ...)``.
        activations: Activations that `forward` returned for these parameters.
        labels: Labels, shape ``(records,)`` or ``(runs, records)``.
        loss: The loss.
        bounding: Method that computes bounds.
    """
    pairs = None
    if loss == "cross-entropy" and bounding.softmax == "pairwise":
        pairs = paired_differences(network, box, activations, bounding)
    values = loss_bounds(activations.logits, labels, loss, pairs=pairs, rounding=bounding.rounding)
    return backward_from(network, box, activations, values, bounding, labels=None if pairs is None else labels)


def backward_from(
    network: Network,
    box: Sequence[Interval],
    activations: Activations,
    values: Interval,
    bounding: Bounding = TIGHTEST,
    *,
    labels: Tensor | None = None,
) -> tuple[Factors, ...]:
    """Return bounds on gradients, computed from bounds on the derivatives with respect to the logits.

    Args:
        network: The network.
        box: Parameters, each of shape ``(runs, ...)``.
        activations: Activations that `forward` returned for these parameters.
        values: Bounds on the derivatives with respect to the logits, shape ``(runs, records, outputs)``.
        bounding: Method that computes bounds.
        labels: Labels, as for `backward`, if the derivatives are those of cross-entropy. Such derivatives add up to 0,
            which makes the bounds tighter.
    """
    found: list[Factors] = []
    parameters = list(network.by_layer(box))
    place, rectified = len(parameters) - 1, len(activations.before) - 1
    for position in range(len(network.layers) - 1, -1, -1):
        layer = network.layers[position]
        if isinstance(layer, Relu):
            values = _through_relu(values, activations.before[rectified])
            rectified -= 1
        elif isinstance(layer, Flatten):
            # The input of a Flatten has the shape of the previous affine layer's output, or of the records.
            shape = _shape_before_flatten(network, position, activations)
            values = _each(values, _as_records, shape)
        else:
            derivatives = _each(values, layer.rows)
            found.append(Factors(derivatives, activations.columns[place], activations.nonnegative[place]))
            if place == 0:
                break
            weight = _each(parameters[place][1], lambda end: end.flatten(2))
            values = _gathered(layer, derivatives, weight, activations.shapes[place], bounding)
            if labels is not None and place == len(parameters) - 1 and isinstance(layer, Dense):
                values = values.intersected(_gathered_together(derivatives, weight, labels, bounding))
                values = values if bounding.rounding.is_outward else values.ordered()
            place -= 1
    return tuple(reversed(found))


def _affine(
    columns: Interval,
    weight: Interval,
    bias: Interval | None,
    bounding: Bounding,
    *,
    nonnegative: bool,
    more: Tensor | None = None,
) -> Interval:
    """Return bounds on an affine map of columns, shape ``(runs, records, positions, outputs)``.

    The bounds are widened by the columns' magnitudes times ``more``, which has the shape of ``weight``.
    """
    shape = columns.lower.shape
    found = product(
        _each(columns, lambda end: end.flatten(1, 2)),
        _each(weight, lambda end: end.flatten(2).transpose(1, 2)),
        bounding.products,
        bounding.rounding,
        nonnegative=nonnegative,
        shift=None if bias is None else _each(bias, lambda end: end[:, None]),
        more=None if more is None else more.transpose(1, 2),
    )
    return _each(found, lambda end: end.unflatten(1, shape[1:3]))


def _gathered(
    layer: Affine, derivatives: Interval, weight: Interval, inputs: torch.Size, bounding: Bounding
) -> Interval:
    """Return bounds on the derivatives with respect to a layer's inputs."""
    rounding, shape = bounding.rounding, derivatives.lower.shape
    found = product(
        _each(derivatives, lambda end: end.flatten(1, 2)), weight, bounding.products, rounding, nonnegative=False
    )
    found = _each(found, lambda end: end.unflatten(1, shape[1:3]))
    total = _each(found, layer.gathered, inputs)
    if layer.overlap == 1 or not rounding.is_outward:
        return total
    size = layer.gathered(found.magnitude, inputs)
    slack = 4 * rounding.error_of_sums(layer.overlap + 2, size.dtype) * size + rounding.smallest(size.dtype)
    return Interval(rounding.down(total.lower - slack), rounding.up(total.upper + slack))


def _gathered_together(derivatives: Interval, weight: Interval, labels: Tensor, bounding: Bounding) -> Interval:
    """Return bounds on the derivatives with respect to the last layer's inputs.

    The derivatives with respect to the logits must add up to 0. So the derivative of one class can be left out, if this
    class's weights are subtracted from those of all other classes. The class of the label is left out, because the
    derivative of any other class is its softmax probability, which is not negative. In floating-point arithmetic, the
    derivatives add up to a number near 0.
    """
    values = _each(derivatives, lambda end: end.squeeze(2))
    classes = weight.lower.shape[1]
    if classes == 2:
        return _by_other_classes(values, weight, 0, bounding, nonnegative=False)
    if labels.ndim > 1:
        unknown = weight.lower.new_full((*values.lower.shape[:2], weight.lower.shape[2]), torch.inf)
        return Interval(-unknown, unknown)
    shape = *values.lower.shape[:2], weight.lower.shape[2]
    found = Interval(weight.lower.new_empty(shape), weight.lower.new_empty(shape))
    for label in range(classes):
        here = (labels == label).nonzero().view(-1)
        some = Interval(values.lower[:, here], values.upper[:, here])
        ends = _by_other_classes(some, weight, label, bounding, nonnegative=True)
        found.lower[:, here], found.upper[:, here] = ends
    return found


def _by_other_classes(
    values: Interval, weight: Interval, left_out: int, bounding: Bounding, *, nonnegative: bool
) -> Interval:
    """Return bounds on the derivatives with respect to the last layer's inputs.

    The bounds are computed without the derivative of one class, ``left_out``; see `_gathered_together`.
    """
    rounding, classes = bounding.rounding, weight.lower.shape[1]
    others = [each for each in range(classes) if each != left_out]
    own, rest = _each(weight, lambda end: end[:, [left_out]]), _each(weight, lambda end: end[:, others])
    more, shift = None, None
    if rounding.is_outward:
        # The error of training's product, and of the sum of derivatives, which is not exactly 0 in floats.
        dtype = own.lower.dtype
        off, lost = 4 * rounding.error_of_sums(classes + 8, dtype), rounding.smallest(dtype)
        more = off * (own.magnitude + rest.magnitude)
        apart = own.magnitude * (off + classes * lost) + lost
        shift = Interval(-apart, apart)
    return product(
        _each(values, lambda end: end[..., others]),
        subtracted(rest, own, rounding),
        bounding.products,
        rounding,
        nonnegative=nonnegative,
        shift=shift,
        more=more,
    )


def _through_relu(values: Interval, before: Interval) -> Interval:
    """Return bounds on the derivatives with respect to a ReLU's inputs.

    The derivative of ReLU at 0 may be any number from 0 to 1.
    """
    surely, never = before.lower > 0, before.upper < 0
    return Interval(
        torch.where(surely, values.lower, values.lower.clamp_max(0)).masked_fill_(never, 0),
        torch.where(surely, values.upper, values.upper.clamp_min(0)).masked_fill_(never, 0),
    )


def _shape_before_flatten(network: Network, position: int, activations: Activations) -> torch.Size:
    """Return the shape that a record has before a Flatten layer."""
    before = [place for place in range(position) if isinstance(network.layers[place], Affine)]
    if not before:
        return torch.Size()
    layer = network.affine[len(before) - 1]
    shape = activations.shapes[len(before) - 1]
    positions = activations.columns[len(before) - 1].lower.shape[2]
    return layer.placed(torch.empty(1, 1, positions, layer.outputs), shape).shape[2:]


def _as_records(values: Tensor, shape: Sequence[int]) -> Tensor:
    return values.reshape(*values.shape[:2], *shape)


def _each(values: Interval, change: Callable[..., Tensor], *given: Any) -> Interval:
    """Return the interval with both ends transformed in the same way; a point stays a point."""
    lower = change(values.lower, *given)
    return Interval.point(lower) if values.is_point else Interval(lower, change(values.upper, *given))
