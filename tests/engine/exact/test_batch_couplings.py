"""Batches after an edit are uniform subsets of the records after it: by full enumeration, in fractions."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from math import comb

import pytest
import torch

from certified_unlearning.engine.exact import couplings
from certified_unlearning.engine.exact.alive import Alive
from certified_unlearning.engine.exact.couplings import edited_batches, first_uses
from certified_unlearning.engine.exact.draws import Draws
from tests.engine.exact.enumeration import ScriptedDraws, law, uniform_law

Batch = tuple[int, ...]


def cuts(n_after: int, newcomers: int, m: int) -> list[Fraction]:
    """Every bias that a batch could be joined with, those of wrong formulas included."""
    return [Fraction(j, n) for n in range(max(1, n_after - newcomers), n_after + 1) for j in range(1, min(m, n) + 1)]


def edited_law(
    n: int, m: int, removed: Sequence[int], inserted: Sequence[int]
) -> tuple[dict[Batch, Fraction], dict[int, Fraction]]:
    """The law of a batch after an edit, and of how many of its members changed."""
    after = sorted({*range(n), *inserted} - {*removed})

    def run(draws: ScriptedDraws) -> tuple[Batch, int]:
        before = draws.subsets(torch.arange(n), m, 1, 1)
        lists = (torch.tensor(ids, dtype=torch.int64) for ids in (removed, inserted))
        changes = edited_batches(before, Alive(torch.tensor(after)), *lists, draws)
        if not len(changes.trials):
            return tuple(before.flatten().tolist()), 0
        members, changed = changes.members[0].tolist(), int(changes.changed[0])
        assert {*before.flatten().tolist()} - {*changes.leaving[0].tolist()} | {*changes.entering[0].tolist()} == {
            *members
        }
        return tuple(members), changed

    both = law(run, *cuts(len(after), len(inserted), m))
    batches: dict[Batch, Fraction] = {}
    counts: dict[int, Fraction] = {}
    for (batch, changed), probability in both.items():
        batches[batch] = batches.get(batch, Fraction(0)) + probability
        counts[changed] = counts.get(changed, Fraction(0)) + probability
    return batches, counts


CASES = [
    # n, m, removed, inserted, subsets, the law of the number of changed members (published)
    (5, 2, [4], [], 6, None),
    (6, 3, [2], [], 10, None),
    (5, 2, [], [5], 15, None),
    (6, 3, [], [9], 35, None),
    (4, 2, [1], [4, 5, 6], 15, ["1/5", "3/5", "1/5"]),
    (5, 3, [0, 3], [5, 6, 7], 20, ["1/20", "9/20", "9/20", "1/20"]),
    (6, 2, [0, 2, 5], [6], 6, ["1/5", "3/5", "1/5"]),
    (5, 3, [1, 4], [5, 6], 10, None),
    (6, 2, [3, 1], [], 6, None),
]


@pytest.mark.parametrize(("n", "m", "removed", "inserted", "subsets", "published"), CASES)
def test_a_batch_is_a_uniform_subset_after_the_edit(
    n: int, m: int, removed: list[int], inserted: list[int], subsets: int, published: list[str] | None
) -> None:
    batches, counts = edited_law(n, m, removed, inserted)
    after = sorted({*range(n), *inserted} - {*removed})
    assert batches == uniform_law(list(combinations(after, m)))
    assert len(batches) == subsets
    # The number of changed members is hypergeometric (Lemma 32), as few as a coupling can change.
    touched, size = max(len(removed), len(inserted)), max(n, len(after))
    expected = {j: Fraction(comb(size - touched, m - j) * comb(touched, j), comb(size, m)) for j in range(m + 1)}
    assert counts == {j: probability for j, probability in expected.items() if probability}
    if published:
        assert list(dict(sorted(counts.items())).values()) == [Fraction(each) for each in published]


def is_wrong(n: int, m: int, removed: list[int], inserted: list[int]) -> bool:
    batches, _ = edited_law(n, m, removed, inserted)
    return batches != uniform_law(list(combinations(sorted({*range(n), *inserted} - {*removed}), m)))


def test_a_bias_of_the_size_before_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(couplings, "join_probability", lambda free, n: free / (n - 1))
    batches, _ = edited_law(5, 2, [], [5])
    assert {batches[batch] for batch in batches if 5 in batch} == {Fraction(2, 25)}
    assert {batches[batch] for batch in batches if 5 not in batch} == {Fraction(3, 50)}
    assert is_wrong(4, 2, [1], [4, 5, 6])


def test_members_that_always_leave_from_the_same_slot_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        couplings, "_shuffled_slots", lambda batches, *_: torch.arange(batches.shape[1]).expand(batches.shape)
    )
    assert is_wrong(5, 2, [], [5])
    assert is_wrong(5, 3, [0, 3], [5, 6, 7])


def test_replacements_that_may_be_kept_members_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def anybody(batches: torch.Tensor, places: torch.Tensor, alive: Alive, draws: Draws) -> None:
        batches[:, 0] = alive.ids[draws.integers(len(alive), len(batches))]

    monkeypatch.setattr(couplings, "_replace_first", anybody)
    assert is_wrong(5, 2, [4], [])


def test_partners_that_are_forgotten_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(couplings, "_paired", lambda batches, removed, inserted: batches)
    assert is_wrong(5, 3, [1, 4], [5, 6])


def test_batches_before_the_first_use_are_those_that_never_knew_the_record() -> None:
    """Given that two batches of five records lack one, they are uniform subsets of the other four."""
    pairs = [(a, b) for a in combinations(range(5), 2) for b in combinations(range(5), 2)]
    batches = torch.tensor(pairs)
    uses = first_uses(batches, 3)
    assert uses.tolist() == [next((t for t, batch in enumerate(pair) if 3 in batch), 2) for pair in pairs]
    absent = [tuple(map(tuple, pair)) for pair in batches[uses == 2].tolist()]
    assert sorted(absent) == sorted(
        (a, b) for a in combinations((0, 1, 2, 4), 2) for b in combinations((0, 1, 2, 4), 2)
    )


def test_only_batches_that_change_are_named_and_in_their_order() -> None:
    batches = Draws(3).subsets(torch.arange(9), 4, 50, 7).sort(dim=-1).values
    alive = Alive(torch.arange(9))
    alive.edit(torch.tensor([5]), torch.tensor([], dtype=torch.int64))
    changes = edited_batches(batches, alive, torch.tensor([5]), torch.tensor([], dtype=torch.int64), Draws(4))
    trials, steps = (batches == 5).any(dim=-1).nonzero(as_tuple=True)
    assert torch.equal(changes.trials, trials)
    assert torch.equal(changes.steps, steps)
    assert changes.leaving.flatten().tolist() == [5] * len(trials)
    assert bool((changes.members.diff(dim=-1) > 0).all())
    assert not bool((changes.members == 5).any())
