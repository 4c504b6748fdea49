"""The ids of the records that are currently present.

The time that an edit or a look-up takes does not grow with the number of records.
"""

import torch
from torch import Tensor

from certified_unlearning.errors import ParameterError

_ABSENT = -1


class Alive:
    """A set of ids. An id is the position of a record's row, and is never used again.

    Attributes:
        next_id: Smallest id that may be added; it is larger than every id used so far.
    """

    def __init__(self, ids: Tensor, *, next_id: int = 0) -> None:
        """Store the ids.

        Args:
            ids: Ids, shape ``(n,)``, whole numbers of at least 0, all different. They are copied.
            next_id: Number below which all ids count as used, even if no record has them.

        Raises:
            ParameterError: An id is negative or a duplicate.
        """
        self._ids = ids.to(torch.int64, copy=True)
        self._count = len(ids)
        if self._count and (int(ids.min()) < 0 or len(torch.unique(ids)) < self._count):
            raise ParameterError("ids of records must be distinct whole numbers, each at least 0")
        self.next_id = max(next_id, int(ids.max()) + 1 if self._count else 0)
        self._positions = torch.full((self.next_id,), _ABSENT, dtype=torch.int64, device=ids.device)
        self._positions[self._ids] = torch.arange(self._count, device=ids.device)

    def __len__(self) -> int:
        """Return the number of records."""
        return self._count

    @property
    def ids(self) -> Tensor:
        """The ids, shape ``(n,)``, unordered; valid until the next edit."""
        return self._ids[: self._count]

    def positions(self, ids: Tensor) -> Tensor:
        """Return the positions of these ids in `ids`; -1 for an absent id."""
        known = (ids >= 0) & (ids < self.next_id)
        return torch.where(known, self._positions[ids.where(known, 0)], _ABSENT)

    def edit(self, removed: Tensor, inserted: Tensor) -> None:
        """Remove some ids and insert others; if one of them is invalid, nothing changes.

        Args:
            removed: Ids to remove, shape ``(k1,)``, all different and all present.
            inserted: Ids to insert, shape ``(k2,)``, ascending, all at least `next_id`.

        Raises:
            ParameterError: An id is invalid.
        """
        holes = self.positions(removed)
        if bool((holes == _ABSENT).any()):
            raise ParameterError(
                f"record {int(removed[holes == _ABSENT][0])} cannot be deleted: there is no such record"
            )
        if len(torch.unique(removed)) < len(removed):
            raise ParameterError(f"the records of one request must be distinct, got {removed.tolist()}")
        if bool((inserted.diff(prepend=inserted.new_tensor([self.next_id - 1])) <= 0).any()):
            raise ParameterError(
                f"ids of inserted records must ascend and be at least {self.next_id}, because smaller ids are never "
                f"used again; got {inserted.tolist()}"
            )
        self._remove(removed, holes)
        self._add(inserted)

    def _remove(self, ids: Tensor, holes: Tensor) -> None:
        """Fill the holes with the remaining ids from the last places."""
        left = self._count - len(ids)
        tail = self._ids[left : self._count]
        moving, to = tail[~torch.isin(tail, ids)], holes[holes < left]
        self._ids[to] = moving
        tail.fill_(_ABSENT)
        self._positions[moving] = to
        self._positions[ids] = _ABSENT
        self._count = left

    def _add(self, ids: Tensor) -> None:
        count, self.next_id = self._count + len(ids), max([self.next_id, *(ids[-1:] + 1).tolist()])
        self._ids = _at_least(self._ids, count)
        self._positions = _at_least(self._positions, self.next_id)
        self._ids[self._count : count] = ids
        self._positions[ids] = torch.arange(self._count, count, device=ids.device)
        self._count = count


def _at_least(numbers: Tensor, size: int) -> Tensor:
    """Return ``numbers``, or a longer copy if there are fewer than ``size`` of them.

    A copy is at least twice as long as ``numbers``, so that copying takes little time per insertion.
    """
    if size <= len(numbers):
        return numbers
    longer = torch.full((max(size, 2 * len(numbers)),), _ABSENT, dtype=numbers.dtype, device=numbers.device)
    longer[: len(numbers)] = numbers
    return longer
