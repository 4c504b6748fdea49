"""Fresh draws: uniform subsets, addresses, streams that nobody can repeat."""

import secrets
from itertools import combinations, permutations

import pytest
import torch
from scipy import stats

from certified_unlearning.engine.exact.draws import SEED_BITS, Draws
from certified_unlearning.errors import ParameterError


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_subsets_are_uniform(size: int) -> None:
    """A chi-square test of 120 000 subsets of six members; false-alarm rate 1e-7 for each size."""
    members = torch.tensor([3, 1, 4, 15, 9, 2])
    drawn = Draws(7).subsets(members, size, 300, 400).reshape(-1, size).sort(dim=-1).values
    counts = dict.fromkeys(combinations(sorted(members.tolist()), size), 0)
    kinds, numbers = torch.unique(drawn, dim=0, return_counts=True)
    counts |= {tuple(kind.tolist()): int(number) for kind, number in zip(kinds, numbers, strict=True)}
    assert set(counts) == set(combinations(sorted(members.tolist()), size))
    assert stats.chisquare(list(counts.values())).pvalue > 1e-7


def test_orders_are_uniform() -> None:
    """A chi-square test of 120 000 orders of four members; false-alarm rate 1e-9."""
    members = torch.tensor([3, 1, 4, 15])
    kinds, numbers = torch.unique(Draws(7).orders(members, 120_000), dim=0, return_counts=True)
    assert {tuple(kind) for kind in kinds.tolist()} == set(permutations(members.tolist()))
    assert stats.chisquare(numbers.tolist()).pvalue > 1e-9


def test_a_subset_may_be_everything_or_nothing() -> None:
    members = torch.arange(5)
    assert torch.equal(Draws(1).subsets(members, 5, 2).sort().values, members.expand(2, 5))
    assert Draws(1).subsets(members, 0, 2).shape == (2, 0)
    with pytest.raises(ParameterError, match="from 0 to 5, got 6"):
        Draws(1).subsets(members, 6, 2)


def test_an_address_gives_the_same_numbers_and_fresh_ones_differ() -> None:
    assert torch.equal(Draws.at("a", 1).normal(3, 2), Draws.at("a", 1).normal(3, 2))
    assert not torch.equal(Draws.at("a", 1).uniform(9), Draws.at("a", 2).uniform(9))
    assert not torch.equal(Draws.fresh().uniform(9), Draws.fresh().uniform(9))


def test_fresh_draws_take_their_whole_seed_from_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few bits could all be tried: they would tell which records were in which batch."""
    seed = (1 << SEED_BITS) - 5
    monkeypatch.setattr(secrets, "randbits", lambda bits: seed % (1 << bits))
    assert torch.equal(Draws.fresh().uniform(9), Draws(seed).uniform(9))


def test_a_seed_counts_with_all_its_bits() -> None:
    """PyTorch's own generator on the CPU takes 32 of them: few enough to try all."""
    drawn = [tuple(Draws(1 << bit).uniform(3).tolist()) for bit in range(SEED_BITS)]
    assert len(set(drawn)) == SEED_BITS
    alike = [torch.rand(3, generator=torch.Generator().manual_seed(5 + (bit << 32))).tolist() for bit in (0, 1)]
    assert alike[0] == alike[1]
