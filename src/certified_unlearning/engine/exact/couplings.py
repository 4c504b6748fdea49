"""Couplings: turn values from an old distribution into values from a new one, changing as few as possible.

A noisy gradient is kept or reflected. A rounded gradient is kept if its cell stays the same. A batch loses and gains as
few members as its new distribution allows. Source: Ullah, "Statistical learning via stochastic optimization under data
privacy considerations" (PhD dissertation, Johns Hopkins University, 2024), chapter 4 and appendix C.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from certified_unlearning.engine.exact.alive import Alive
from certified_unlearning.engine.exact.draws import Draws


def cells(values: Tensor, quantum: float, offsets: Tensor) -> Tensor:
    """Return the cells of a shifted grid that contain the values: whole numbers, exact enough for comparison.

    Args:
        values: Any shape.
        quantum: Width of a cell, above 0.
        offsets: The shift, in cells, uniform on [-1/2, 1/2); the shape of ``values``.
    """
    return torch.round(values / quantum - offsets)


def quantized(values: Tensor, quantum: float, offsets: Tensor) -> Tensor:
    """Return the middles of the cells that values lie in (Algorithm 23): unbiased, with variance ``quantum^2 / 12``.

    Args and shapes are those of `cells`.
    """
    return quantum * (offsets + cells(values, quantum, offsets))


def first_uses(batches: Tensor, record: int) -> Tensor:
    """Return the first iteration whose batch has a record, or the number of iterations if none has.

    A uniform subset of ``n`` records that lacks one of them is a uniform subset of the others. So batches before the
    first use are distributed like batches without the record (Claims 1 and 2).

    Args:
        batches: Shape ``(trials, T, m)``.
        record: Its id.

    Returns:
        Shape ``(trials,)``.
    """
    used = (batches == record).any(dim=-1)
    return torch.where(used.any(dim=-1), used.int().argmax(dim=-1), used.shape[-1])


@dataclass(frozen=True)
class BatchChanges:
    """The batches that an edit changes, ``k`` of them, ascending by trial and then by iteration.

    Attributes:
        trials: Shape ``(k,)``.
        steps: Their iterations, from 0, shape ``(k,)``.
        members: Their new members, ascending, shape ``(k, m)``.
        leaving: Members that leave, shape ``(k, c)``, where ``c`` is the largest number of changes in one batch. If
            fewer change, unchanged members fill up both this and `entering`.
        entering: Members that enter instead, shape ``(k, c)``.
        changed: Number of changes, shape ``(k,)``.
    """

    trials: Tensor
    steps: Tensor
    members: Tensor
    leaving: Tensor
    entering: Tensor
    changed: Tensor


def edited_batches(batches: Tensor, alive: Alive, removed: Tensor, inserted: Tensor, draws: Draws) -> BatchChanges:
    """Turn uniform subsets of the records before an edit into uniform subsets of those after it.

    Removed and inserted records are paired: one takes the other's place. Of the rest, removed records are replaced by
    uniform records outside the batch; inserted ones join as often as a uniform subset contains them, and members chosen
    uniformly leave for them. One deletion is uniform replacement (Algorithm 10), one insertion has probability
    ``m / (n + 1)``; more of them are Algorithm 24 (Claims 5, 6, 9 and 10), whose replaced members must come from the
    batch after pairing, and whose replacements must not be kept members.

    Args:
        batches: Shape ``(trials, T, m)``, members all different.
        alive: The records *after* the edit; more than ``m``.
        removed: Ids, shape ``(k1,)``.
        inserted: Ids, shape ``(k2,)``; all in ``alive``.
        draws: Fresh randomness.
    """
    pairs = min(len(removed), len(inserted))
    mapped = _paired(batches, removed[:pairs], inserted[:pairs])
    vacant = _among(batches, removed[pairs:])
    newcomers = inserted[pairs:]
    joins = _joins(batches.shape, len(alive), len(newcomers), draws)
    places = vacant.sum(dim=-1) + joins.sum(dim=-1)
    hit = places > 0
    if pairs:
        hit |= (mapped != batches).any(dim=-1)
    trials, steps = hit.nonzero(as_tuple=True)
    before, after, places = batches[hit], mapped[hit], places[hit]
    # The first slots get the members that leave without a partner: chosen for newcomers to join, or removed.
    vacant_first = vacant[hit].int().argsort(dim=-1, descending=True, stable=True)
    slots = _shuffled_slots(after, places, draws) if len(newcomers) else vacant_first
    before, after = before.gather(1, slots), after.gather(1, slots)
    if len(newcomers):
        _seat(after, newcomers, joins[hit])
    else:
        _replace_first(after, places, alive, draws)
    differs = before != after
    changed = differs.sum(dim=-1)
    most = int(changed.max()) if len(changed) else 0
    first = differs.int().argsort(dim=-1, descending=True, stable=True)[:, :most]
    return BatchChanges(
        trials, steps, after.sort(dim=-1).values, before.gather(1, first), after.gather(1, first), changed
    )


def _paired(batches: Tensor, removed: Tensor, inserted: Tensor) -> Tensor:
    """Return the batches in which each removed record has become its partner."""
    if not len(removed):
        return batches
    ascending, order = removed.sort()
    where = torch.searchsorted(ascending, batches).clamp_(max=len(removed) - 1)
    return torch.where(ascending[where] == batches, inserted[order][where], batches)


def _among(batches: Tensor, ids: Tensor) -> Tensor:
    """Return which members are among some ids."""
    return batches == ids if len(ids) == 1 else torch.isin(batches, ids)


def _joins(shape: torch.Size, n: int, newcomers: int, draws: Draws) -> Tensor:
    """Return which newcomers are in a uniform subset of ``m`` of ``n`` records, shape ``(trials, T, newcomers)``.

    They are drawn in order: if ``j`` of the first ``i`` are in, the next is with probability ``(m - j)/(n - i)``.
    """
    *of_batches, m = shape
    joins = torch.zeros(*of_batches, newcomers, dtype=torch.bool, device=draws.device)
    joined = torch.zeros(of_batches, dtype=torch.int64, device=draws.device)
    for number in range(newcomers):
        joins[..., number] = draws.uniform(*of_batches) < join_probability(m - joined, n - number)
        joined += joins[..., number]
    return joins


def join_probability(free: Tensor, n: int) -> Tensor:
    """Return the probability that one of ``n`` records fills one of the free places of a batch."""
    return free / n


def _shuffled_slots(batches: Tensor, places: Tensor, draws: Draws) -> Tensor:
    """Return an order of each batch's slots whose first ``places`` are uniform without replacement."""
    k, m = batches.shape
    slots = torch.arange(m, device=batches.device).repeat(k, 1)
    for number in range(int(places.max()) if k else 0):
        chosen = number + draws.integers(m - number, k)[:, None]
        taken = slots.gather(1, chosen)
        slots.scatter_(1, chosen, slots[:, number : number + 1].clone())
        slots[:, number : number + 1] = taken
    return slots


def _seat(batches: Tensor, newcomers: Tensor, joins: Tensor) -> None:
    """Write the newcomers that join into the first slots."""
    order = joins.int().argsort(dim=-1, descending=True, stable=True)[:, : batches.shape[1]]
    joining = joins.gather(1, order)
    first = batches[:, : order.shape[1]]
    first[joining] = newcomers[order][joining]


def _replace_first(batches: Tensor, places: Tensor, alive: Alive, draws: Draws) -> None:
    """Fill each batch's first ``places`` slots with uniform records outside it, the last of these slots first.

    So every batch that still lacks ``u`` members has the others in its slots from ``u`` on. Among ``n`` positions of
    which some are taken, the one of rank ``r`` among the free ones is ``r`` plus the number of those taken below it.
    """
    m = batches.shape[1]
    for lacking in range(int(places.max()) if len(places) else 0, 0, -1):
        rows = (places >= lacking).nonzero()[:, 0]
        taken = alive.positions(batches[rows, lacking:]).sort(dim=-1).values
        ranks = draws.integers(len(alive) - (m - lacking), len(rows))
        below = taken - torch.arange(m - lacking, device=taken.device) <= ranks[:, None]
        batches[rows, lacking - 1] = alive.ids[ranks + below.sum(dim=-1)]
