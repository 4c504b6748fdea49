"""Retrainings by force: the trainer on many neighbours side by side, and the networks that vectors speak of."""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import torch
from torch import Tensor

from certified_unlearning.engine.abstract_training.descent import Descent, Parameters, State, directions
from certified_unlearning.engine.abstract_training.training import Batch, Trained
from certified_unlearning.engine.intervals.network import Network

SLOTS = 20
SMALL = Network.dense(2, 8, 2)


def small_problem() -> tuple[Parameters, list[Batch]]:
    """Twenty records of two classes in two batches, two epochs, and the start: the network of 42 parameters."""
    each, hidden, two = (torch.arange(n, dtype=torch.float64) for n in (SLOTS, 8, 2))
    rows = torch.stack([torch.sin(1 + 1.7 * each), torch.cos(2 + 2.3 * each)], dim=1)
    labels = (rows.sum(dim=1) > 0).long()
    start = (
        0.8 * torch.sin(1 + 2 * hidden[:, None] + 3 * two),
        0.1 * torch.cos(hidden),
        0.6 * torch.cos(1 + 3 * two[:, None] + 2 * hidden),
        torch.zeros(2, dtype=torch.float64),
    )
    batches = [Batch(rows[:10], labels[:10]), Batch(rows[10:], labels[10:])]
    return tuple(tensor[None] for tensor in start), batches * 2


def retrained(
    network: Network,
    descent: Descent,
    start: Parameters,
    batches: Sequence[Batch],
    present: Sequence[Tensor],
    added: Sequence[tuple[Tensor, Tensor]] | None = None,
    divisor: int | None = None,
    noise: Sequence[Parameters] | None = None,
) -> Parameters:
    """Train every run on the batches as they are for it.

    Args:
        network: The layers.
        descent: How parameters follow gradients.
        start: Each of shape ``(1, ...)``.
        batches: Of every update.
        present: Of every update, shape ``(runs, records [+ added])``.
        added: Of every update, rows ``(runs, added, features)`` and labels ``(runs, added)``.
        divisor: Fixed, or None.
        noise: Of every update, what is added to the directions of all runs.
    """
    runs = len(present[0])
    state = State(tuple(each.expand(runs, *each.shape[1:]).clone() for each in start))
    for place, batch in enumerate(batches):
        rows, labels = batch.rows[None], batch.labels
        if added is not None:
            more, their_labels = added[place]
            rows = torch.cat([rows.expand(runs, -1, -1), more], dim=1)
            labels = torch.cat([labels.expand(runs, -1), their_labels], dim=1)
        found = directions(network, descent, state.parameters, rows, labels, present=present[place], divisor=divisor)
        if noise is not None:
            found = tuple(each + more for each, more in zip(found, noise[place], strict=True))
        state.follow(descent, found)
    return state.parameters


def inside(trained: Trained, parameters: Parameters, run: int = 0) -> Tensor:
    """Return for every retraining whether all its parameters lie in a run's box, bit for bit."""
    return torch.stack(
        [
            ((box.lower[run] <= each) & (each <= box.upper[run])).flatten(1).all(dim=1)
            for box, each in zip(trained.box, parameters, strict=True)
        ]
    ).all(dim=0)


def removals(records: int, k: int, runs: int, generator: torch.Generator) -> Tensor:
    """Draw which records are present: from 0 to k are gone from each run's batch."""
    order = torch.rand(runs, records, generator=generator).argsort(dim=1)
    count = torch.randint(0, k + 1, (runs, 1), generator=generator)
    return order >= count


def subsets(records: int, k: int) -> Tensor:
    """Return who is present for every way to remove up to k records."""
    masks = torch.arange(2**records)[:, None] >> torch.arange(records) & 1
    return (masks[(records - masks.sum(dim=1)) <= k]).bool()


def combined(masks: Tensor, updates: int) -> Iterator[Tensor]:
    """Yield the mask of every update, over all combinations of masks of all updates."""
    runs = len(masks) ** updates
    for update in range(updates):
        yield masks[torch.arange(runs) // len(masks) ** update % len(masks)]


def logistic(value: float) -> float:
    """Return ``1 / (1 + exp(-value))``."""
    return 1 / (1 + math.exp(-value))


def exact_line(
    batches: Sequence[Sequence[tuple[Fraction, Fraction]]],
    *,
    step_size: float,
    momentum: float = 0.0,
    coupled_decay: float = 0.0,
    noise: Sequence[float] | None = None,
    start: float = 0.0,
) -> Fraction:
    """Return the slope that training a line through 0 ends with, in fractions: no rounding anywhere.

    Args:
        batches: Of every update, the records that are present: number and label. The loss is ``(w x - y)^2``.
        step_size: As it is in float64.
        momentum: The same.
        coupled_decay: Weight decay inside the velocity.
        noise: Of every update, what is added to the mean gradient.
        start: The slope before the first update.
    """
    rate, mu, decay = (Fraction(each) for each in (step_size, momentum, coupled_decay))
    slope, velocity = Fraction(start), Fraction(0)
    for place, batch in enumerate(batches):
        mean = sum((2 * (slope * x - y) * x for x, y in batch), Fraction(0)) / max(1, len(batch))
        velocity = mu * velocity + mean + decay * slope + (Fraction(noise[place]) if noise is not None else 0)
        slope -= rate * velocity
    return slope
