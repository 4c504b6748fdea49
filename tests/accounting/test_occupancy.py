"""Requests until shards are out: the values of closed forms, of enumeration, and of simulated streams."""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from certified_unlearning.accounting.core.occupancy import requests_until_all, requests_until_first
from certified_unlearning.errors import ParameterError


@pytest.mark.parametrize(
    ("shards", "hits", "expected"),
    [
        (10, 1, 29.2897),
        (10, 2, 46.2296),
        (10, 6, 102.717),
        (20, 1, 71.9548),
        (20, 6, 228.561),
        (50, 1, 224.960),
        (50, 11, 992.430),
    ],
)
def test_requests_until_every_shard_is_out(shards: int, hits: int, expected: float) -> None:
    assert requests_until_all(shards, hits) == pytest.approx(expected, rel=1e-5)


def test_the_papers_order_of_growth_is_an_upper_bound_only() -> None:
    """``k d log(k d)`` with a budget of k, where a shard is hit k + 1 times."""
    for shards, budget, order in ((10, 5, 195.601), (50, 10, 3107.30)):
        assert shards * budget * math.log(shards * budget) == pytest.approx(order, rel=1e-5)
        assert requests_until_all(shards, budget + 1) < order


def by_enumeration(shards: int, hits: int, *, everyone: bool) -> float:
    """The expected time of the chain whose state is how many hits each shard has, up to their order."""

    @cache
    def expected(state: tuple[int, ...]) -> Fraction:
        done = [each == hits for each in state]
        if all(done) if everyone else any(done):
            return Fraction(0)
        stays, total = Fraction(done.count(True), shards), Fraction(1)
        for place, each in enumerate(state):
            if each < hits:
                after = tuple(sorted((*state[:place], each + 1, *state[place + 1 :])))
                total += expected(after) / shards
        return total / (1 - stays)

    return float(expected((0,) * shards))


@pytest.mark.parametrize(("shards", "hits"), [(1, 1), (1, 4), (2, 3), (3, 2), (4, 3), (5, 2)])
def test_both_times_are_those_of_the_chain(shards: int, hits: int) -> None:
    assert requests_until_all(shards, hits) == pytest.approx(by_enumeration(shards, hits, everyone=True), rel=1e-9)
    assert requests_until_first(shards, hits) == pytest.approx(by_enumeration(shards, hits, everyone=False), rel=1e-9)


def test_closed_forms() -> None:
    assert requests_until_all(30, 1) == pytest.approx(30 * sum(1 / each for each in range(1, 31)), rel=1e-9)
    # Birthdays: people until two share one.
    assert requests_until_first(365, 2) == pytest.approx(24.616585894598863, rel=1e-9)
    assert requests_until_first(9, 1) == pytest.approx(1, rel=1e-9)


def test_streams_take_as_long() -> None:
    """2000 streams; each mean lies within 6 standard errors, which fails by chance in fewer than one of 1e8 runs."""
    shards, hits = 8, 4
    draw = np.random.default_rng(0)
    last, first = [], []
    for _ in range(2000):
        counts = np.cumsum(np.eye(shards, dtype=int)[draw.integers(shards, size=300)], axis=0)
        last.append(int((counts.min(axis=1) < hits).sum()) + 1)
        first.append(int((counts.max(axis=1) < hits).sum()) + 1)
    for found, due in ((last, requests_until_all(shards, hits)), (first, requests_until_first(shards, hits))):
        assert abs(np.mean(found) - due) < 6 * np.std(found) / math.sqrt(len(found))


@pytest.mark.parametrize("wrong", [0, 1.5, -2, True])
def test_what_makes_no_sense_is_refused(wrong: int) -> None:
    with pytest.raises(ParameterError, match="shards must be a whole number"):
        requests_until_all(wrong, 1)
    with pytest.raises(ParameterError, match="hits must be a whole number"):
        requests_until_first(1, wrong)
