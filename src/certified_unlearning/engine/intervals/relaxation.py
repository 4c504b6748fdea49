"""Linear bounds on differences of logits; the units of a hidden layer, which share their inputs, are bounded together.

A layer-by-layer bound assumes the worst value of every unit in a layer. But the units share their inputs, and an input
cannot be small for one unit and large for another. Here, a difference of logits is written as a linear function of the
units of the last hidden layer, then of the layer before it, and so on until the first hidden layer. Source: Zhang,
Weng, Chen, Hsieh, Daniel, *Efficient neural network robustness certification with general activation functions*,
NeurIPS 2018. Activations are not negative, so only one end of each interval of weights matters. Therefore, coefficients
are single numbers, and a layer needs one product of matrices.

Let ``c`` be the coefficient of a unit whose input ``z`` is in ``[l, u]``, with ``l < 0 < u``. If ``c >= 0``, the bound
uses that ``relu(z)`` is at least ``0`` and at least ``z``. If ``c < 0``, it uses that ``relu(z)`` is below the line
from ``(l, 0)`` to ``(u, u)``.

These bounds depend on the box, and the bounds of a larger box may happen to be narrower. So certification for ``k``
changes does not imply certification for fewer changes, and neighbours' radii may differ by more than one. Therefore,
linear bounds are not used in training. They are also not used if radii determine the noise of a label
(`mechanisms.certified_sgd.releases`).

All bounds hold for a network that is computed in floating point. Coefficients may be chosen freely, so their own
rounding does no harm. But rounding changes the values with which they are multiplied. For a unit, let ``V`` be the sum
of the magnitudes of its terms, and ``g`` the result of `Rounding.error_of_sums`. The error of the unit's computed input
is at most ``g V``. The errors of the next layer's coefficients, multiplied by their variables, add up to at most ``g
|c| V``. Slopes, offsets and constants add at most as much again, and every layer adds a few roundings of the sum. The
bounds assume an error of ``8 g`` instead of ``g``. Here, ``g`` is computed for sums with four terms for each unit of
the widest layer, eight more terms for each layer, and 64 more terms.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.engine.intervals.network import Affine, Dense, Flatten, Network, Relu
from certified_unlearning.engine.intervals.rounding import Rounding

NUMBERS_AT_ONCE = 1 << 21
"""Number of coefficients that are stored at once."""


def is_chain(network: Network) -> bool:
    """Return whether a network has only dense layers, with ReLU between them and at least two hidden layers."""
    layers = [layer for layer in network.layers if not isinstance(layer, Flatten)]
    dense, others = layers[::2], layers[1::2]
    return (
        len(dense) >= 3
        and len(dense) == len(others) + 1
        and all(isinstance(layer, Dense) for layer in dense)
        and all(isinstance(layer, Relu) for layer in others)
    )


def relaxed(
    layers: Sequence[tuple[Affine, Interval, Interval | None]],
    before: Sequence[Interval],
    rows: Interval,
    shifts: Interval | None,
    sizes: tuple[Tensor, Tensor | None],
    rounding: Rounding,
) -> Interval:
    """Return bounds on linear functions of the last hidden layer; they also hold for values computed in floating point.

    Args:
        layers: Each affine layer with its weight and its bias, as `Network.by_layer` returns them; the last layer is
            not used.
        before: Inputs of each ReLU layer, shape ``(runs, records, units)``.
        rows: Weights of the functions, shape ``(runs, functions, units)``.
        shifts: Constants that are added to the functions, shape ``(runs, functions)``.
        sizes: Magnitudes of weights, and magnitudes of constants. The values of the functions are computed from these
            weights and constants. Bounds on the rounding errors of these values are computed from the magnitudes.
        rounding: Rounding of the bounds.

    Returns:
        The bounds, shape ``(runs, records, functions)``; infinite if there is no bound.
    """
    functions, runs = rows.lower.shape[1], len(rows.lower)
    widest = max(each.lower.shape[-1] for each in before)
    step = max(1, NUMBERS_AT_ONCE // (runs * 2 * functions * widest))
    coefficients = torch.cat([rows.lower, -rows.upper], dim=1)
    if shifts is None:
        constants = coefficients.new_zeros(coefficients.shape[:2])
    else:
        constants = torch.cat([shifts.lower, -shifts.upper], dim=1)
    weight_sizes, shift_sizes = (None if each is None else torch.cat([each, each], dim=1) for each in sizes)
    assert weight_sizes is not None
    found = []
    for start in range(0, max(1, before[0].lower.shape[1]), step):
        some = [Interval(*(end[:, start : start + step] for end in each)) for each in before]
        found.append(_least(layers, some, coefficients, constants, weight_sizes, shift_sizes, rounding))
    least = torch.cat(found, dim=1)
    return Interval(least[..., :functions], -least[..., functions:])


def _least(
    layers: Sequence[tuple[Affine, Interval, Interval | None]],
    before: Sequence[Interval],
    coefficients: Tensor,
    constants: Tensor,
    weight_sizes: Tensor,
    shift_sizes: Tensor | None,
    rounding: Rounding,
) -> Tensor:
    """Return lower bounds on linear functions of the last hidden layer's activations."""
    magnitudes = _magnitudes(layers, before, rounding)
    factors, total = coefficients[:, None], constants[:, None]
    size = before[-1].upper.clamp_min(0) @ weight_sizes.transpose(1, 2)
    if shift_sizes is not None:
        size = size + shift_sizes[:, None]
    best, lost = None, size
    for place in range(len(before) - 1, -1, -1):
        lower, upper = (end[:, :, None] for end in before[place])
        slope, offset = _line(lower, upper, rounding)
        below, above = factors.clamp_max(0), factors.clamp_min(0)
        total = total + (below * offset).sum(dim=-1)
        lost = lost + (factors.abs() * magnitudes[place][:, :, None]).sum(dim=-1)
        factors = above * (upper > -lower) + below * slope
        below, above = factors.clamp_max(0), factors.clamp_min(0)
        # Stopping at any layer and using the bounds on its single units also gives a valid bound.
        known = total + (above * lower + below * upper).sum(dim=-1) - _slack(lost, magnitudes[place:], rounding)
        best = known if best is None else torch.maximum(best, known)
        if place:
            _, weight, bias = layers[place]
            if bias is not None:
                total = total + (above * bias.lower[:, None, None] + below * bias.upper[:, None, None]).sum(dim=-1)
            factors = above @ weight.lower[:, None] + below @ weight.upper[:, None]
    assert best is not None
    return torch.where(torch.isfinite(best), best, -torch.inf)


def _line(lower: Tensor, upper: Tensor, rounding: Rounding) -> tuple[Tensor, Tensor]:
    """Return the slope and the offset of a line that is above ReLU between two numbers."""
    either = (lower < 0) & (upper > 0)
    slope = torch.where(either, upper / (upper - lower), (lower >= 0).to(lower.dtype))
    offset = torch.maximum(-slope * lower, (1 - slope) * upper)
    if rounding.is_outward:
        offset = offset * (1 + 16 * torch.finfo(lower.dtype).eps) + rounding.smallest(lower.dtype)
    return slope, torch.where(either, offset, 0)


def _magnitudes(
    layers: Sequence[tuple[Affine, Interval, Interval | None]], before: Sequence[Interval], rounding: Rounding
) -> list[Tensor]:
    """Return a magnitude for each hidden unit: the sum of the magnitudes of the terms of the unit's input.

    In the first hidden layer, the magnitude of a unit is that of the unit's input itself.

    Both the rounding error and the underflow of a unit's input are multiplied by the unit's coefficient. Therefore, a
    constant is added to each magnitude. The rounding error that is assumed for this constant is larger than all
    underflow.
    """
    found = [before[0].magnitude]
    for (_, weight, bias), below, here in zip(layers[1:-1], before, before[1:], strict=False):
        terms = below.upper.clamp_min(0) @ weight.magnitude.transpose(1, 2)
        if bias is not None:
            terms = terms + bias.magnitude[:, None]
        found.append(torch.maximum(terms, here.magnitude))
    dtype = found[0].dtype
    return [each + rounding.smallest(dtype) / torch.finfo(dtype).eps for each in found]


def _slack(lost: Tensor, magnitudes: Sequence[Tensor], rounding: Rounding) -> Tensor:
    """Return a bound on all rounding errors of terms of this magnitude, and on all underflow."""
    if not rounding.is_outward:
        return torch.zeros_like(lost)
    widest, dtype = max(each.shape[-1] for each in magnitudes), lost.dtype
    reach = 1 + sum(each.sum(dim=-1, keepdim=True) for each in magnitudes)
    relative = 8 * rounding.error_of_sums(4 * widest + 8 * len(magnitudes) + 64, dtype)
    return lost * relative + reach * (64 * (widest + len(magnitudes)) * rounding.smallest(dtype))
