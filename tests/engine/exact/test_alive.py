"""The set of ids against a Python set."""

import pytest
import torch

from certified_unlearning.engine.exact.alive import Alive
from certified_unlearning.errors import ParameterError

NOBODY: list[int] = []


def ids(*numbers: int) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.int64)


def test_any_stream_of_edits_leaves_what_a_set_would_hold() -> None:
    generator = torch.Generator().manual_seed(2)
    alive, expected = Alive(torch.arange(20)), set(range(20))
    for _ in range(300):
        leave, come = torch.randint(5, (2,), generator=generator).tolist()
        present = torch.tensor(sorted(expected))
        removed = present[torch.randperm(len(present), generator=generator)[: min(leave, len(present) - 1)]]
        inserted = torch.arange(come) * 2 + alive.next_id + 1
        alive.edit(removed, inserted)
        expected = expected - {*removed.tolist()} | {*inserted.tolist()}
        assert sorted(alive.ids.tolist()) == sorted(expected)
        assert len(alive) == len(expected)
        assert torch.equal(alive.positions(alive.ids), torch.arange(len(alive)))
        assert alive.positions(removed).tolist() == [-1] * len(removed)
    assert alive.positions(ids(-1, alive.next_id)).tolist() == [-1, -1]


@pytest.mark.parametrize(
    ("removed", "inserted", "message"),
    [
        ([4], [], "record 4 cannot be deleted: there is no such record"),
        ([9], [], "record 9 cannot be deleted: there is no such record"),
        ([-1], [], "record -1 cannot be deleted: there is no such record"),
        ([1, 1], [], r"must be distinct, got \[1, 1\]"),
        ([1], [4], r"ascend and be at least 6, because smaller ids are never used again.*got \[4\]"),
        ([1], [7, 7], r"got \[7, 7\]"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused_and_changes_nothing(
    removed: list[int], inserted: list[int], message: str
) -> None:
    alive = Alive(ids(0, 1, 2, 5))
    with pytest.raises(ParameterError, match=message):
        alive.edit(ids(*removed), ids(*inserted))
    assert alive.ids.tolist() == [0, 1, 2, 5]
    assert alive.next_id == 6


def test_ids_must_be_different_and_a_deleted_one_stays_used_after_it_was_stored() -> None:
    with pytest.raises(ParameterError, match="must be distinct whole numbers"):
        Alive(ids(1, 1))
    with pytest.raises(ParameterError, match="must be distinct whole numbers"):
        Alive(ids(-1, 1))
    again = Alive(ids(0, 1), next_id=9)
    with pytest.raises(ParameterError, match="at least 9"):
        again.edit(ids(), ids(8))
