"""Boxes for momentum with weight decay inside the velocity, as in PyTorch's SGD.

Training is ``v <- mu v + d + lambda theta``, ``theta <- theta - alpha v``. If the direction ``d`` of one update
increases by 1, the parameters change by ``-alpha (r^n - s^n) / (r - s)`` after ``n`` more updates. Here, ``r`` and
``s`` are the roots of ``z^2 - (1 + mu - alpha lambda) z + mu = 0``. If ``alpha lambda <= (1 - sqrt(mu))^2``, both roots
are real and positive, so all these changes have the same sign. In this case, if the parameters themselves change, the
resulting changes of all later parameters also have the same sign. So the smallest directions lead to the largest
parameters, and training with the extreme directions gives the ends of the box. If ``alpha lambda`` is larger, the
changes oscillate, and such boxes would not be sound. The velocity at an end of the box does not bound other velocities,
because it depends on the parameters at that end.

This analysis is our own; the paper has neither momentum nor weight decay.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from certified_unlearning.engine.abstract_training.descent import Descent
from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.engine.intervals.rounding import Rounding

Box = tuple[Interval, ...]


class Velocities(NamedTuple):
    """Velocities of one parameter, and a bound on them.

    Attributes:
        of_upper: Velocity of the parameters at the upper end of the box.
        of_lower: Velocity of the parameters at the lower end of the box.
        largest: Upper bound on the absolute value of any neighbour's velocity, and of the two velocities above.
    """

    of_upper: Tensor
    of_lower: Tensor
    largest: Tensor


def followed(
    descent: Descent, box: Box, velocities: tuple[Velocities, ...] | None, bounds: Box, rounding: Rounding
) -> tuple[Box, tuple[Velocities, ...]]:
    """Return the box and the velocities after an update.

    Rounding errors occur in every update, both in training on a neighbour and in the computation of the ends of the
    box. Each of these errors is a few units in the last place of the terms. Such an error acts like a change of the
    direction or of a parameter, so bounds are moved outward by a bound on these errors.

    Args:
        descent: Rule that updates the parameters from gradients, with weight decay inside the velocity.
        box: Box before the update.
        velocities: Velocities after the previous update; None before the first update.
        bounds: Bounds on the directions.
        rounding: Rounding of the bounds.
    """
    found = [
        _one(descent, each, None if velocities is None else velocities[place], bound, rounding)
        for place, (each, bound) in enumerate(zip(box, bounds, strict=True))
    ]
    return tuple(each for each, _ in found), tuple(each for _, each in found)


def _one(
    descent: Descent, box: Interval, before: Velocities | None, bound: Interval, rounding: Rounding
) -> tuple[Interval, Velocities]:
    rate, mu, decay = descent.step_size, descent.momentum, descent.weight_decay
    numbers = torch.finfo(box.lower.dtype)
    off = 16 * numbers.eps if rounding.is_outward else 0.0
    lost = 16 * rounding.smallest(box.lower.dtype)
    if before is None:
        before = Velocities(*(torch.zeros_like(box.lower) for _ in range(3)))
    size = bound.magnitude + decay * box.magnitude + mu * before.largest
    slack = off * size + lost
    largest = size + slack
    of_upper = mu * before.of_upper + bound.lower + decay * box.upper - slack
    of_lower = mu * before.of_lower + bound.upper + decay * box.lower + slack
    step = off * (box.magnitude + rate * largest) + lost
    moved = Interval(box.lower - rate * of_lower - step, box.upper - rate * of_upper + step)
    return moved.checked("parameters"), Velocities(of_upper, of_lower, largest)
