"""Couplings: turn values from an old distribution into values from a new one, changing as few values as possible.

A noisy gradient is kept or reflected. A rounded gradient is kept if its cell stays the same. A batch changes as few
members as its new distribution allows. Source: Ullah, "Statistical learning via stochastic optimization under data
privacy considerations" (PhD dissertation, Johns Hopkins University, 2024), chapter 4 and appendix C.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from certified_unlearning.engine.exact.alive import Alive
from certified_unlearning.engine.exact.draws import Draws


def cells(values: Tensor, quantum: float, offsets: Tensor) -> Tensor:
    """Return the cells of a shifted grid that contain the values, as whole numbers that are exact enough to compare.

    Args:
        values: Numbers, any shape.
        quantum: Width of a cell, above 0.
        offsets: Shift of the grid, in cells, uniform on [-1/2, 1/2); the shape of ``values``.
    """
    return torch.round(values / quantum - offsets)


def quantized(values: Tensor, quantum: float, offsets: Tensor) -> Tensor:
    """Return the centres of the cells that contain the values (Algorithm 23).

    The centres are unbiased, with variance ``quantum^2 / 12``.

    The arguments and shapes are those of `cells`.
    """
    return quantum * (offsets + cells(values, quantum, offsets))


def first_uses(batches: Tensor, record: int) -> Tensor:
    """Return the first iteration whose batch contains a record, or the number of iterations if none does.

    A uniform subset of ``n`` records that does not contain one given record is a uniform subset of the other records.
    So batches before the first use have the distribution of batches without the record (Claims 1 and 2).

    Args:
        batches: Members of every batch, shape ``(trials, T, m)``.
        record: Id of the record.

    Returns:
        The iterations, shape ``(trials,)``.
    """
    used = (batches == record).any(dim=-1)
    return torch.where(used.any(dim=-1), used.int().argmax(dim=-1), used.shape[-1])


@dataclass(frozen=True)
class BatchChanges:
    """The ``k`` batches that an edit changes, ascending by trial and then by iteration.

    Attributes:
        trials: Trials of these batches, shape ``(k,)``.
        steps: Iterations of these batches, counted from 0, shape ``(k,)``.
        members: New members of these batches, ascending, shape ``(k, m)``.
        leaving: Members that leave, shape ``(k, c)``, where ``c`` is the largest number of changes in one batch. If a
            batch has fewer than ``c`` changes, members that do not change fill the remaining places, and they are the
            same in `leaving` and `entering`.
        entering: Members that replace the leaving ones, shape ``(k, c)``.
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

    Removed and inserted records are paired: an inserted record replaces its partner in every batch. An unpaired removed
    record is replaced by a uniform record outside the batch. An unpaired inserted record joins a batch with the
    probability that a uniform subset contains it, and replaces a uniform member. For one deletion, this is a uniform
    replacement (Algorithm 10); for one insertion into ``n`` records, the probability is ``m / (n + 1)``. Larger edits
    follow Algorithm 24 (Claims 5, 6, 9 and 10), with two conditions: the replaced members must be members of the batch
    after pairing, and a replacement must not be a member that stays in the batch.

    Args:
        batches: Batches before the edit, shape ``(trials, T, m)``; the members of a batch are all different.
        alive: Records *after* the edit; more than ``m``.
        removed: Ids of removed records, shape ``(k1,)``.
        inserted: Ids of inserted records, shape ``(k2,)``; all are in ``alive``.
        draws: Source of fresh random numbers.
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
    # The members that leave without a partner come first: those chosen to leave for newcomers, or those removed.
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
    """Return the batches after each removed record was replaced by its partner."""
    if not len(removed):
        return batches
    ascending, order = removed.sort()
    where = torch.searchsorted(ascending, batches).clamp_(max=len(removed) - 1)
    return torch.where(ascending[where] == batches, inserted[order][where], batches)


def _among(batches: Tensor, ids: Tensor) -> Tensor:
    """Return whether each member is among the given ids."""
    return batches == ids if len(ids) == 1 else torch.isin(batches, ids)


def _joins(shape: torch.Size, n: int, newcomers: int, draws: Draws) -> Tensor:
    """Return whether each newcomer is in a uniform subset of ``m`` of ``n`` records, shape ``(trials, T, newcomers)``.

    Newcomers are drawn in order: if ``j`` of the first ``i`` newcomers are in the subset, the next newcomer joins with
    probability ``(m - j)/(n - i)``.
    """
    *of_batches, m = shape
    joins = torch.zeros(*of_batches, newcomers, dtype=torch.bool, device=draws.device)
    joined = torch.zeros(of_batches, dtype=torch.int64, device=draws.device)
    for number in range(newcomers):
        joins[..., number] = draws.uniform(*of_batches) < join_probability(m - joined, n - number)
        joined += joins[..., number]
    return joins


def join_probability(free: Tensor, n: int) -> Tensor:
    """Return the probability that a given one of ``n`` records gets one of the ``free`` places of a batch."""
    return free / n


def _shuffled_slots(batches: Tensor, places: Tensor, draws: Draws) -> Tensor:
    """Return an order of each batch's slots, whose first ``places`` slots are drawn uniformly without replacement."""
    k, m = batches.shape
    slots = torch.arange(m, device=batches.device).repeat(k, 1)
    for number in range(int(places.max()) if k else 0):
        chosen = number + draws.integers(m - number, k)[:, None]
        taken = slots.gather(1, chosen)
        slots.scatter_(1, chosen, slots[:, number : number + 1].clone())
        slots[:, number : number + 1] = taken
    return slots


def _seat(batches: Tensor, newcomers: Tensor, joins: Tensor) -> None:
    """Write the newcomers that join a batch into this batch's first slots."""
    order = joins.int().argsort(dim=-1, descending=True, stable=True)[:, : batches.shape[1]]
    joining = joins.gather(1, order)
    first = batches[:, : order.shape[1]]
    first[joining] = newcomers[order][joining]


def _replace_first(batches: Tensor, places: Tensor, alive: Alive, draws: Draws) -> None:
    """Fill the first ``places`` slots of each batch with records drawn uniformly from those outside the batch.

    Of these ``places`` slots, the last is filled first. So if a batch still needs ``u`` members, the members that it
    already has are in slot ``u`` and all later slots.

    If some of ``n`` positions are taken, the free position of rank ``r`` is ``r`` plus the number of taken positions
    below it.
    """
    m = batches.shape[1]
    for lacking in range(int(places.max()) if len(places) else 0, 0, -1):
        rows = (places >= lacking).nonzero()[:, 0]
        taken = alive.positions(batches[rows, lacking:]).sort(dim=-1).values
        ranks = draws.integers(len(alive) - (m - lacking), len(rows))
        below = taken - torch.arange(m - lacking, device=taken.device) <= ranks[:, None]
        batches[rows, lacking - 1] = alive.ids[ranks + below.sum(dim=-1)]
