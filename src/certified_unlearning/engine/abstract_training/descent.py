"""Descent on a network's parameters, for many runs at once. The boxes of `training` contain this trainer's results.

Runs may differ in their starting parameters, in the records that are missing from a batch, and in added records. A
missing record leaves its place in the batch empty.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import get_args

import torch
from torch import Tensor

from certified_unlearning.accounting.core.checks import require_non_negative, require_positive
from certified_unlearning.engine.abstract_training.extremes import bias_factors, summed
from certified_unlearning.engine.intervals.clipping import norm_factor, norms
from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.engine.intervals.losses import derivatives
from certified_unlearning.engine.intervals.network import Flatten, Network, Relu
from certified_unlearning.engine.intervals.propagation import Bounding, Factors
from certified_unlearning.engine.intervals.rounding import NAIVE
from certified_unlearning.errors import ParameterError
from certified_unlearning.vocabulary import Clipping, NetworkLoss

Parameters = tuple[Tensor, ...]


@dataclass(frozen=True)
class Descent:
    """The rule by which parameters follow gradients.

    The direction of a batch is the mean of its records' clipped gradients; an empty batch has direction 0.

    Attributes:
        loss: Loss of a record.
        step_size: ``alpha``; the step size of update ``n``, counted from 0, is ``alpha / (1 + decay n)``.
        decay: ``eta``, the decay of the step size.
        clipping: Clipping of each record's gradient. ``clamp`` clips each entry, ``l2`` clips the norm of all entries
            together, and ``none`` clips nothing. With ``l2``, a record whose inputs are too large contributes 0
            (`clipping.norm_factor`).
        bound: ``gamma``, the largest absolute value of an entry, or the largest norm; None without clipping.
        weight_decay: ``lambda``, the weight decay. By default, weight decay is decoupled: every update multiplies the
            parameters by ``1 - alpha_n lambda``. With ``couples_decay``, it is part of the velocity.
        momentum: ``mu``, the momentum.
        nesterov: Whether the step uses Nesterov momentum, as in PyTorch.
        couples_decay: Whether weight decay is part of the velocity, as in PyTorch's SGD with momentum. Boxes are then
            sound only if ``alpha lambda <= (1 - sqrt(mu))^2``, step sizes are constant, and there is no Nesterov
            momentum (`coupled`).

    Raises:
        ParameterError: No box would be sound.
    """

    loss: NetworkLoss = "cross-entropy"
    step_size: float = 0.1
    decay: float = 0.0
    clipping: Clipping = "none"
    bound: float | None = None
    weight_decay: float = 0.0
    momentum: float = 0.0
    nesterov: bool = False
    couples_decay: bool = False

    def __post_init__(self) -> None:
        if self.clipping not in get_args(Clipping):
            raise ParameterError(f"clipping must be one of {', '.join(get_args(Clipping))}, got {self.clipping!r}")
        require_positive(step_size=self.step_size)
        require_non_negative(decay=self.decay, weight_decay=self.weight_decay, momentum=self.momentum)
        if (self.clipping == "none") != (self.bound is None):
            raise ParameterError(
                f"bound must be {'left out without clipping' if self.clipping == 'none' else 'given with clipping'}, "
                f"got {self.bound!r}"
            )
        if self.bound is not None:
            require_positive(bound=self.bound)
        if self.momentum >= 1:
            raise ParameterError(f"momentum must be below 1, got {self.momentum!r}")
        if self.couples_decay:
            self._require_one_sign()
        if self.step_size * self.weight_decay > 1:
            raise ParameterError(
                "step_size x weight_decay must be at most 1, because otherwise lower and upper bounds would swap, got "
                f"{self.step_size!r} x {self.weight_decay!r}"
            )

    def _require_one_sign(self) -> None:
        """Raise `ParameterError` if coupled decay may give the changes of later parameters different signs."""
        if not self.momentum or not self.weight_decay:
            raise ParameterError(
                "couples_decay needs both momentum and weight_decay above 0; if one of them is 0, it changes nothing"
            )
        if self.nesterov or self.decay:
            raise ParameterError(
                "couples_decay has sound boxes only for constant step sizes (decay=0) and without Nesterov momentum, "
                f"got decay={self.decay!r} and nesterov={self.nesterov!r}"
            )
        # Fractions avoid rounding: 1 + mu - alpha lambda >= 2 sqrt(mu) is tested after squaring both sides.
        alpha, mu, decay = (Fraction(each) for each in (self.step_size, self.momentum, self.weight_decay))
        half = 1 + mu - alpha * decay
        if half < 0 or half**2 < 4 * mu:
            most = (1 - math.sqrt(self.momentum)) ** 2
            raise ParameterError(
                f"couples_decay has no sound box unless step_size x weight_decay is at most (1 - sqrt(momentum))^2 = "
                f"{most:.6g}, got {self.step_size!r} x {self.weight_decay!r}: above this limit, a gradient can "
                "increase some later parameters and decrease others; use couples_decay=False"
            )

    def rate(self, update: int) -> float:
        """Return the step size of an update, counted from 0."""
        return self.step_size / (1 + self.decay * update)

    def bounds(self, like: Tensor, runs: int) -> Tensor:
        """Return the clipping bound of each run; it is infinite without clipping."""
        return like.new_full((runs,), torch.inf if self.bound is None else self.bound)


def logits(network: Network, parameters: Sequence[Tensor], rows: Tensor) -> Tensor:
    """Return the logits of records as training computes them.

    Args:
        network: The network.
        parameters: Parameters, each of shape ``(runs, ...)``.
        rows: Inputs of the records, shape ``(runs or 1, records, ...)``.

    Returns:
        The logits, shape ``(runs, records, outputs)``.
    """
    return _forward(network, parameters, rows)[0]


def directions(
    network: Network,
    descent: Descent,
    parameters: Sequence[Tensor],
    rows: Tensor,
    labels: Tensor,
    *,
    present: Tensor | None = None,
    divisor: int | None = None,
    at_once: int | None = None,
) -> Parameters:
    """Return each run's descent direction on a batch, for every parameter.

    Args:
        network: The network.
        descent: Loss, and clipping of the gradients.
        parameters: Parameters, each of shape ``(runs, ...)``.
        rows: Inputs of the records, shape ``(runs or 1, records, ...)``.
        labels: Labels, shape ``(records,)`` or ``(runs, records)``.
        present: Mask of the filled places of the batch, shape ``(runs or 1, records)``; None if all places are filled.
        divisor: Divisor of the sums; None for the number of present records.
        at_once: Number of records to process together; None for all.
    """
    records = rows.shape[1]
    counts = rows.new_full((1,), records) if present is None else present.sum(dim=-1).clamp_min(1).to(rows)
    if divisor is not None:
        counts = rows.new_full((1,), divisor)
    step, sums = at_once or max(1, records), None
    for piece in (slice(start, start + step) for start in range(0, max(1, records), step)):
        some = None if present is None else present[..., piece]
        found = _sums(network, descent, parameters, rows[:, piece], labels[..., piece], some)
        sums = found if sums is None else tuple(one + two for one, two in zip(sums, found, strict=True))
    assert sums is not None
    return tuple(each / counts.reshape(-1, *(1,) * (each.ndim - 1)) for each in sums)


def _sums(
    network: Network,
    descent: Descent,
    parameters: Sequence[Tensor],
    rows: Tensor,
    labels: Tensor,
    present: Tensor | None,
) -> Parameters:
    """Return the sums of the present records' clipped gradients."""
    factors = _gradients(network, descent, parameters, rows, labels)
    outer = factors[0].derivatives.lower
    runs = outer.shape[0]
    if descent.clipping == "l2":
        scale = _norm_factor(network, factors, descent)
        factors = tuple(each.scaled(Interval.point(scale)) for each in factors)
    bound = descent.bounds(outer, runs)
    found: list[Tensor] = []
    for layer, weight in zip(network.affine, factors, strict=True):
        if present is not None:
            kept = torch.where(present[..., None, None], weight.derivatives.lower, 0)
            weight = Factors(Interval.point(kept), weight.columns, weight.nonnegative)
        found.append(_total(weight, descent, bound).reshape(runs, *layer.weight_shape))
        if layer.bias:
            found.append(_total(bias_factors(weight), descent, bound)[..., 0])
    return tuple(found)


@dataclass
class State:
    """The parameters and velocities during training.

    Attributes:
        parameters: Parameters, each of shape ``(runs, ...)``.
        velocities: Velocities; empty without momentum, or before the first update.
        updates: Number of updates made.
    """

    parameters: Parameters
    velocities: Parameters | None = None
    updates: int = 0

    def follow(self, descent: Descent, found: Parameters) -> None:
        """Make one update along the given directions."""
        rate = descent.rate(self.updates)
        if descent.couples_decay:
            found = tuple(
                each + descent.weight_decay * values for each, values in zip(found, self.parameters, strict=True)
            )
        steps = found
        if descent.momentum:
            before = self.velocities
            self.velocities = (
                found if before is None else tuple(descent.momentum * v + d for v, d in zip(before, found, strict=True))
            )
            steps = self.velocities
            if descent.nesterov:
                steps = tuple(d + descent.momentum * v for v, d in zip(self.velocities, found, strict=True))
        kept, shrinks = 1 - rate * descent.weight_decay, descent.weight_decay and not descent.couples_decay
        self.parameters = tuple(
            (each * kept if shrinks else each) - rate * step for each, step in zip(self.parameters, steps, strict=True)
        )
        self.updates += 1


def _forward(network: Network, parameters: Sequence[Tensor], rows: Tensor) -> tuple[Tensor, list, list, list]:  # type: ignore[type-arg]
    values, layers = rows, network.by_layer(parameters)
    columns: list[Tensor] = []
    before: list[Tensor] = []
    shapes: list[torch.Size] = []
    for layer in network.layers:
        if isinstance(layer, Relu):
            before.append(values)
            values = values.clamp_min(0)
        elif isinstance(layer, Flatten):
            shapes.append(values.shape[2:])
            values = values.flatten(2)
        else:
            _, weight, bias = next(layers)
            seen = layer.columns(values)
            columns.append(seen)
            shapes.append(values.shape)
            found = seen.flatten(1, 2) @ weight.flatten(2).transpose(1, 2)
            if bias is not None:
                found = found + bias[:, None]
            values = layer.placed(found.unflatten(1, seen.shape[1:3]), values.shape)
    return values, columns, before, shapes


def _gradients(
    network: Network, descent: Descent, parameters: Sequence[Tensor], rows: Tensor, labels: Tensor
) -> tuple[Factors, ...]:
    """Return each record's gradients as factors; every factor is a single number, not an interval."""
    values, columns, before, shapes = _forward(network, parameters, rows)
    values = derivatives(values, labels, descent.loss)
    found: list[Factors] = []
    weights = list(network.by_layer(parameters))
    for layer in reversed(network.layers):
        if isinstance(layer, Relu):
            values = values * (before.pop() > 0)
        elif isinstance(layer, Flatten):
            values = values.reshape(*values.shape[:2], *shapes.pop())
        else:
            outer, (_, weight, _) = layer.rows(values), weights.pop()
            found.append(Factors(Interval.point(outer), Interval.point(columns.pop()), False))
            if not weights:
                break
            back = (outer.flatten(1, 2) @ weight.flatten(2)).unflatten(1, outer.shape[1:3])
            values = layer.gathered(back, shapes.pop())
    return tuple(reversed(found))


def _total(factors: Factors, descent: Descent, bound: Tensor) -> Tensor:
    """Return the sums of the records' gradients, shape ``(runs, outputs, inputs)``."""
    if descent.clipping != "clamp":
        left = factors.derivatives.lower.flatten(1, 2).transpose(1, 2)
        return left @ factors.columns.lower.flatten(1, 2)
    return summed(factors, 0, bound, Bounding(rounding=NAIVE)).total.lower


def _norm_factor(network: Network, factors: Sequence[Factors], descent: Descent) -> Tensor:
    """Return the factor that clips each record's gradient to the bound, shape ``(runs, records)``."""
    lengths = []
    for layer, each in zip(network.affine, factors, strict=True):
        outer, inner = each.derivatives.lower, each.columns.lower
        if outer.shape[2] == 1:
            lengths.append((norms(outer) * norms(inner))[..., 0])
        else:
            lengths.append(norms((outer.transpose(2, 3) @ inner).flatten(2)))
        if layer.bias:
            lengths.append(norms(outer.sum(dim=2)))
    length = norms(torch.stack(lengths, dim=-1))
    return norm_factor([each.columns.lower for each in factors], length, descent.bounds(length, 1)[:, None])
