"""Measures of abstract training on problems that are small enough to train every neighbour."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Literal

import torch
from torch import Tensor

from certified_unlearning.engine.abstract_training.descent import Descent, State, directions
from certified_unlearning.engine.abstract_training.neighbourhoods import Neighbourhood, Normaliser
from certified_unlearning.engine.abstract_training.training import Batch, Box, train
from certified_unlearning.engine.intervals.margins import certify
from certified_unlearning.engine.intervals.network import Dense, Network
from certified_unlearning.papers.gradient_certificates.learning import CHANGES
from certified_unlearning.reproduction.claims.registry import last_over_first, measure, sweep
from certified_unlearning.vocabulary import Changes

_SLOPE = Network((Dense(1, 1, bias=False),))
_LINE = Network((Dense(1, 1),))
_POINTS, _LABELS = (-1.0, 0.5, 2.0), (0, 1, 1)
"""Three records, each of one number, in two classes."""
_LINE_DESCENT = Descent(loss="binary-cross-entropy", step_size=0.5)
_GRADIENTS = (0.9, -0.2, 0.5, -0.7, 0.1)
_UPDATES = 2


@sweep("k = {k}")
def attained_over_bound(*, mode: Literal["unlearning", "privacy"], k: int) -> float:
    """Return the largest mean of a batch's gradients after allowed changes, divided by the bound of lines 12 to 15.

    The check makes one update from a known start; the gradients' sum is divided by the number of present records. It
    tries every removal of up to k records and, for privacy, every addition of up to k gradients at the clipping level.
    """
    return _largest_mean(_GRADIENTS, k, mode) / _upper(_GRADIENTS, k, CHANGES[mode])


@measure
def fixed_over_bound(*, normaliser: Normaliser) -> float:
    """Return the update after one gradient is added to a batch of two, divided by this update's bound for k = 1.

    All gradients are at the clipping level.

    All sums are divided by two, the number of records before the addition. ``present`` uses the bound that lines 14 and
    15 print, which is for means over present records. ``fixed`` uses the bound for a fixed divisor.
    """
    level = 1.0
    bound = _upper((level, level), 1, CHANGES["privacy"], normaliser)
    return 3 * level / 2 / bound


@measure
def retrained_outside(*, recut: bool = False) -> float:
    """Return how often logistic regression leaves the box when it is retrained without one record.

    The data are three records in one batch or, with ``recut``, four records in batches of two that are drawn again when
    a record leaves.
    """
    if recut:
        rows, labels = torch.tensor([1.0, 1.0, -1.0, -1.0]).double()[:, None], torch.ones(4, dtype=torch.int64)
        descent, start = Descent(loss="binary-cross-entropy", step_size=1.0), (torch.zeros(1, 1, 1).double(),)
        batches = [Batch(rows[:2], labels[:2]), Batch(rows[2:], labels[2:])]
        box = train(_SLOPE, descent, start, batches, k=[1]).box
        # Without the first record: the second and the third in one batch, the last one alone.
        again = _trained(_SLOPE, descent, start, [(rows[1:3], labels[1:3]), (rows[3:], labels[3:])])
        return int(not _inside(again, box))
    rows, labels = _line()
    box = train(_LINE, _LINE_DESCENT, _origin(), [Batch(rows, labels)] * _UPDATES, k=[1]).box
    outside = 0
    for left in _without_one(len(rows)):
        again = _trained(_LINE, _LINE_DESCENT, _origin(), [(rows[left], labels[left])] * _UPDATES)
        outside += not _inside(again, box)
    return outside


@measure
def status_changes() -> float:
    """Return the number of records whose removal changes whether a test point is certified (k = 1).

    There are three test points.
    """
    rows, labels = _line()
    tests = torch.tensor([2.0, 0.5, -2.0], dtype=torch.float64)[:, None]

    def status(kept: Tensor) -> Tensor:
        batch = Batch(rows[kept], labels[kept])
        box = train(_LINE, _LINE_DESCENT, _origin(), [batch] * _UPDATES, k=[1]).box
        return certify(_LINE, box, tests[None]).certified[0]

    whole = status(torch.arange(len(rows)))
    return sum(not torch.equal(whole, status(left)) for left in _without_one(len(rows)))


@sweep("b = {batch_size}", then=last_over_first)
def width_factor(*, batch_size: int, inputs: Literal["gaussian", "zero"]) -> float:
    """Return the width of the box's widest side at the last batch size, divided by its width at the first batch size.

    The check trains a 2-4-2 network for three updates, with k = 1 and the mode ``privacy``. With ``zero``, all inputs
    and the first biases are 0, so every unit stays at the kink of ReLU.
    """
    network = Network.dense(2, 4, 2)
    descent = Descent(step_size=0.2, clipping="clamp", bound=1.0)
    generator = torch.Generator().manual_seed(1)
    start = []
    for shape in network.shapes:
        drawn = torch.randn(1, *shape, generator=generator, dtype=torch.float64)
        start.append(torch.zeros_like(drawn) if len(shape) == 1 else drawn)
    rows = torch.randn(batch_size, 2, generator=generator, dtype=torch.float64)
    labels = (rows[:, 0] > 0).long()
    batch = Batch(rows if inputs == "gaussian" else torch.zeros_like(rows), labels)
    box = train(network, descent, start, [batch] * 3, k=[1], neighbourhood=Neighbourhood(CHANGES["privacy"])).box
    return max(float((each.upper - each.lower).max()) for each in box)


def _upper(gradients: Sequence[float], k: int, changes: Changes, normaliser: Normaliser = "present") -> float:
    """Return the bound on the mean of the given gradients.

    One update with step size 1 moves a weight from 0 by at most this bound.

    A record ``x`` of class 0 has gradient ``x / 2`` at weight 0.
    """
    rows = 2 * torch.tensor(gradients, dtype=torch.float64)[:, None]
    descent = Descent(loss="binary-cross-entropy", step_size=1.0, clipping="clamp", bound=1.0)
    (box,) = train(
        _SLOPE,
        descent,
        (torch.zeros(1, 1, 1, dtype=torch.float64),),
        [Batch(rows, torch.zeros(len(rows), dtype=torch.int64))],
        k=[k],
        neighbourhood=Neighbourhood(changes, normaliser),
        divisor=len(rows) if normaliser == "fixed" else None,
    ).box
    return -float(box.lower)


def _largest_mean(gradients: Sequence[float], k: int, mode: str, level: float = 1.0) -> float:
    added = range(k + 1) if mode == "privacy" else (0,)
    return max(
        (sum(kept) + more * level) / (len(kept) + more)
        for removed in range(k + 1)
        for kept in combinations(gradients, len(gradients) - removed)
        for more in added
    )


def _line() -> tuple[Tensor, Tensor]:
    return torch.tensor(_POINTS, dtype=torch.float64)[:, None], torch.tensor(_LABELS)


def _origin() -> tuple[Tensor, ...]:
    return tuple(torch.zeros(1, *shape, dtype=torch.float64) for shape in _LINE.shapes)


def _without_one(records: int) -> Iterator[Tensor]:
    for record in range(records):
        yield torch.tensor([each for each in range(records) if each != record])


def _trained(
    network: Network, descent: Descent, start: tuple[Tensor, ...], batches: Sequence[tuple[Tensor, Tensor]]
) -> tuple[Tensor, ...]:
    state = State(start)
    for rows, labels in batches:
        state.follow(descent, directions(network, descent, state.parameters, rows[None], labels))
    return state.parameters


def _inside(parameters: Sequence[Tensor], box: Box) -> bool:
    return all(
        bool(((side.lower <= each) & (each <= side.upper)).all()) for each, side in zip(parameters, box, strict=True)
    )
