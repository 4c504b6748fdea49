"""The data sets that a box covers, and bounds on the descent directions of their batches.

The full budget ``k`` applies to every batch. A batch is a fixed set of places, chosen independently of the data. A
removed record leaves its place empty, and no other record moves to that place. An added record joins an existing batch.
A direction is the mean over the present records, or their sum divided by a fixed number.

Source: Wicker et al., *Certificates of Differential Privacy and Unlearning for Gradient-Based Training*, Algorithm 1.
The algorithm covers means over the present records, and two kinds of neighbours: those that differ by removals, and
those that differ by both additions and removals. (The paper's proof uses a fixed divisor, for which the paper's
formulas are unsound.) The bounds for all other kinds of neighbours are our own. Each bound is the largest value that
any neighbour attains.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from certified_unlearning.engine.abstract_training.extremes import Extremes
from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.engine.intervals.rounding import OUTWARD, Rounding
from certified_unlearning.errors import AssumptionError, ParameterError
from certified_unlearning.vocabulary import Changes

Normaliser = Literal["present", "fixed"]


@dataclass(frozen=True)
class Neighbourhood:
    """The data sets that count as neighbours, and the number by which training divides sums of gradients.

    Attributes:
        changes: Kind of change. ``removals``, for unlearning: at most k records are removed from each batch.
            ``additions and removals``, for privacy: at most k records are added to each batch, and at most k records
            are removed from it. ``substitutions``: at most k records of each batch are each replaced by another record.
            ``additions or removals``: at most k records of each batch are added or removed in total.
        normaliser: Kind of divisor. ``present``: the number of present records, so directions are means; ``fixed``: a
            fixed number.
        order_free: Whether a batch may contain any of the records, in any order and without repetition. At least
            ``batch - k`` records of a neighbour's batch are then original records, and the number of updates is
            unchanged. The bounds are very loose in this case.
    """

    changes: Changes = "removals"
    normaliser: Normaliser = "present"
    order_free: bool = False

    def __post_init__(self) -> None:
        for name, known in (("changes", Changes), ("normaliser", Normaliser)):
            if getattr(self, name) not in get_args(known):
                raise ParameterError(f"{name} must be one of {', '.join(get_args(known))}, got {getattr(self, name)!r}")
        if self.order_free and (
            self.normaliser != "present" or self.changes not in ("removals", "additions and removals")
        ):
            raise ParameterError(
                "order_free=True needs normaliser='present', and changes='removals' or 'additions and removals', got "
                f"normaliser={self.normaliser!r} and changes={self.changes!r}"
            )

    @property
    def adds(self) -> bool:
        """Whether unknown records are added. The gradients of unknown records are bounded only by clipping."""
        return self.changes != "removals"

    def kept(self, k: int, records: int, batch: int) -> int:
        """Return how many extremes of ``records`` gradients are kept for bounds on batches of ``batch`` records."""
        return min(records, records - batch + k if self.order_free else k)

    def require(self, k: int, *, batch: int, removable: int, clips: bool) -> None:
        """Check that bounds exist for a batch.

        Raises:
            ParameterError: There are additions without clipping.
            AssumptionError: Removals can empty the batch.
        """
        if k < 0:
            raise ParameterError(f"k must be at least 0, got {k}")
        if self.adds and k and not clips:
            raise ParameterError(
                f"{self.changes} need clipping, because nothing else bounds the gradient of an unknown record"
            )
        if self.changes == "removals" and k >= batch and k and removable == batch:
            raise AssumptionError(
                f"k = {k} removals would empty a batch of {batch}, and an empty batch has no mean: k must be below the "
                "number of records of every batch"
            )


class _Choice(NamedTuple):
    """Candidate numbers of removals and additions, one pair of numbers for each run.

    Attributes:
        removed: Numbers of removals.
        added: Numbers of additions.
        divisor: Divisors of the sums after these removals and additions.
        possible: Whether these removals and additions are possible.
    """

    removed: Tensor
    added: Tensor
    divisor: Tensor
    possible: Tensor


def direction_bounds(
    found: Extremes,
    neighbourhood: Neighbourhood,
    k: Tensor,
    bound: Tensor,
    *,
    divisor: int,
    batch: int | None = None,
    rounding: Rounding = OUTWARD,
) -> Interval:
    """Return bounds on one parameter's directions, over the batches of all neighbours.

    Args:
        found: Extremes of the gradients of the batch. If the neighbourhood is ``order_free``, extremes of the gradients
            of all records.
        neighbourhood: The neighbourhood.
        k: Budgets, shape ``(runs,)``, integers.
        bound: Largest entry of a clipped gradient, shape ``(runs,)``; infinite without clipping.
        divisor: Divisor of the sums, if it is fixed.
        batch: Number of records in a batch, if the neighbourhood is ``order_free``.
        rounding: Rounding of the bounds.
    """
    private, public = found.private, found.public
    upper, lower = private.total.upper, private.total.lower
    if public is not None:
        upper, lower = upper + public.upper, lower + public.lower
    limit = torch.where(torch.isfinite(bound), bound, 0).to(upper)
    choices = [] if _is_fixed(neighbourhood) else _choices(neighbourhood, k, found, divisor, batch)
    ends = [
        _upper(found, total, smallest, neighbourhood, k, limit, divisor, choices, rounding)
        for total, smallest in ((upper, private.smallest), (-lower, -private.largest))
    ]
    if rounding.is_outward:
        slack = _slack(found, neighbourhood, k, limit, divisor, batch, rounding)
        # The sums of float32 numbers are in float64, and become float32 here.
        ends = [rounding.up(each.add_(slack).to(found.size)) for each in ends]
    return Interval(-ends[1], ends[0])


def _upper(
    found: Extremes,
    total: Tensor,
    smallest: Tensor,
    neighbourhood: Neighbourhood,
    k: Tensor,
    limit: Tensor,
    divisor: int,
    choices: Sequence[_Choice],
    rounding: Rounding,
) -> Tensor:
    """Return upper bounds on directions, before a bound on rounding errors is added (see `_slack`)."""
    if _is_fixed(neighbourhood):
        return _over_fixed(total, smallest, neighbourhood, k, limit, divisor, rounding)
    shape, result = (-1, *(1,) * (total.ndim - 1)), None
    for choice in choices:
        each = total - _sum_of_first(smallest, choice.removed, total.dtype)
        if neighbourhood.adds:
            each += (choice.added * limit).reshape(shape)
        each = rounding.up(each.div_(choice.divisor.to(total).reshape(shape)))
        if not bool(choice.possible.all()):
            each = torch.where(choice.possible.reshape(shape), each, -torch.inf)
        result = each if result is None else torch.maximum(result, each)
    assert result is not None
    # If a batch can lose every record, its direction can be 0.
    emptied = k >= found.records + found.public_records
    return torch.where(emptied.reshape(shape), result.clamp_min(0), result) if bool(emptied.any()) else result


def _is_fixed(neighbourhood: Neighbourhood) -> bool:
    """Return whether the divisor of sums is fixed, so that it does not depend on which records are present."""
    return neighbourhood.normaliser == "fixed" and neighbourhood.changes != "substitutions"


def _sum_of_first(smallest: Tensor, count: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the sum of each run's first values along the second axis; ``count`` says how many values for each run."""
    counts = set(count.tolist())
    if len(counts) == 1:
        (only,) = counts
        return smallest[:, 0] if only == 1 else smallest[:, :only].sum(dim=1, dtype=dtype)
    prefix = torch.cat([torch.zeros_like(smallest[:, :1]), smallest.cumsum(dim=1, dtype=dtype)], dim=1)
    return prefix[torch.arange(len(count), device=count.device), count]


def _slack(
    found: Extremes,
    neighbourhood: Neighbourhood,
    k: Tensor,
    limit: Tensor,
    divisor: int,
    batch: int | None,
    rounding: Rounding,
) -> Tensor:
    """Return a bound on rounding errors.

    Rounding errors occur in three computations: a sum is computed, extremes are subtracted from this sum, and training
    on a neighbour computes its own sum, whose terms may be in any order.
    """
    shape, size, wide = (-1, *(1,) * (found.size.ndim - 1)), found.size, found.private.total.lower.dtype
    if _is_fixed(neighbourhood):
        least = torch.full_like(k, divisor)
    else:
        least = ((batch or found.records + found.public_records) - k).clamp_min(1)
        if neighbourhood.changes == "substitutions" or found.public_records:
            least = torch.maximum(least, torch.full_like(k, found.public_records)).clamp_min(1)
    terms = 2 * (found.terms + int(k.max()) + found.private.smallest.shape[1]) + 16
    error = 4 * rounding.error_of_sums(terms, wide)
    if wide != size.dtype:
        # In float32, the error of a neighbour's own sum is added, and that of a few roundings of every gradient and of
        # its bounds.
        error += 1.5 * rounding.error_of_sums(found.terms + int(k.max()) + 64, size.dtype)
    relative = error / least.to(size)
    if neighbourhood.adds:
        size = size + (k * limit).reshape(shape)
    return (size * relative.reshape(shape)).add_(4 * terms * rounding.smallest(size.dtype))


def _choices(
    neighbourhood: Neighbourhood, k: Tensor, found: Extremes, divisor: int, batch: int | None
) -> list[_Choice]:
    """Return candidate numbers of removals and additions; one of these candidates gives the largest mean."""
    private, records = found.records, found.records + found.public_records
    always = torch.ones_like(k, dtype=torch.bool)
    adds = neighbourhood.adds
    if neighbourhood.order_free:
        held = records if batch is None else batch
        kept = (held - k).clamp_min(0)
        added = torch.minimum(k, torch.full_like(k, held)) if adds else torch.zeros_like(k)
        return [_Choice(records - kept, added, torch.full_like(k, held) if adds else kept, always)]
    removable = k.clamp_max(private)
    if neighbourhood.changes == "substitutions":
        count = divisor if neighbourhood.normaliser == "fixed" else records
        return [_Choice(removable, removable, torch.full_like(k, count), always)]
    if neighbourhood.changes != "additions or removals" and not found.public_records:
        # The mean of the largest values falls as their number grows, and rises with every added gradient of the largest
        # possible value.
        added = removable if adds else torch.zeros_like(k)
        return [_Choice(removable, added, records - removable + added, always)]
    found_choices = []
    for count in range(int(removable.max()) + 1):
        removed = torch.full_like(k, count)
        joined = torch.zeros_like(k)
        if adds:
            joined = k - removed if neighbourhood.changes == "additions or removals" else k
        left = records - removed + joined
        found_choices.append(_Choice(removed, joined, left.clamp_min(1), (removed <= removable) & (left > 0)))
    return found_choices


def _over_fixed(
    total: Tensor,
    smallest: Tensor,
    neighbourhood: Neighbourhood,
    k: Tensor,
    limit: Tensor,
    divisor: int,
    rounding: Rounding,
) -> Tensor:
    """Return upper bounds on sums with a fixed divisor. Only removals of negative gradients increase the sum."""
    shape = (-1, *(1,) * (total.ndim - 1))
    result = total
    if neighbourhood.changes != "additions or removals":
        ranks = torch.arange(smallest.shape[1], device=k.device).reshape(1, -1, *(1,) * (total.ndim - 1))
        gains = torch.where(ranks < k.reshape(-1, *(1,) * total.ndim), (-smallest).clamp_min(0), 0)
        result = result + gains.sum(dim=1, dtype=total.dtype)
    if neighbourhood.adds:
        result = result + (k * limit).reshape(shape)
    return rounding.up(result / divisor)
