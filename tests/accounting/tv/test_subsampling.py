"""Probabilities of batches, against enumeration and the dissertation's numbers."""

from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certified_unlearning.accounting.tv import subsampling
from certified_unlearning.errors import ParameterError
from certified_unlearning.papers.tv_stability.theory import batch_edits

SIZES = st.tuples(st.integers(2, 10**6), st.floats(0, 1), st.integers(1, 10**4)).map(
    lambda each: {"n": each[0], "batch_size": max(1, int(each[0] * each[1] ** 3)), "steps": each[2]}
)


@pytest.mark.parametrize(
    ("n", "batch_size", "steps", "exact", "bound"),
    [(100, 5, 4, 0.185494, 0.2), (1000, 10, 20, 0.182093, 0.2), (60000, 50, 200, 0.153577, 0.166667)],
)
def test_a_record_is_in_some_batch(n: int, batch_size: int, steps: int, exact: float, bound: float) -> None:
    case = {"n": n, "batch_size": batch_size, "steps": steps}
    assert subsampling.subsampling_tv(**case) == pytest.approx(exact, rel=5e-6)
    assert subsampling.subsampling_tv_bound(**case) == pytest.approx(bound, rel=5e-6)


def test_an_insertion_counts_the_new_record() -> None:
    assert batch_edits.insertion_tv(n=100, batch_size=5, steps=4) == pytest.approx(0.183795, rel=5e-6)
    # The recompute probabilities of the rational example: delete from four, insert into four.
    assert subsampling.subsampling_tv(n=4, batch_size=2, steps=2) == pytest.approx(3 / 4)
    assert batch_edits.insertion_tv(n=4, batch_size=2, steps=2) == pytest.approx(16 / 25)


def test_six_hundred_edits_of_the_experiment() -> None:
    assert 600 * subsampling.subsampling_tv(n=60000, batch_size=50, steps=200) == pytest.approx(92.1463, rel=5e-6)
    assert 600 * subsampling.subsampling_tv(n=60000, batch_size=600, steps=200) == pytest.approx(519.612, rel=5e-6)


@given(SIZES)
def test_the_bound_is_above_and_more_steps_hit_more_often(case: dict[str, int]) -> None:
    exact = subsampling.subsampling_tv(**case)
    assert 0 < exact <= subsampling.subsampling_tv_bound(**case) * (1 + 1e-12)
    assert exact <= subsampling.subsampling_tv(**case | {"steps": case["steps"] + 1})
    assert batch_edits.insertion_tv(**case) <= exact


def test_small_probabilities_keep_their_digits() -> None:
    small = subsampling.subsampling_tv(n=10**15, batch_size=1, steps=3)
    assert small == pytest.approx(3e-15, rel=1e-12)
    assert subsampling.probability_each(small, 3) == pytest.approx(1e-15, rel=1e-12)


def test_full_batches_have_every_record() -> None:
    assert subsampling.subsampling_tv(n=7, batch_size=7, steps=1) == 1
    assert subsampling.subsampling_tv(n=7, batch_size=7, steps=0) == 0


@pytest.mark.parametrize(
    ("case", "law"),
    [
        ({"n": 4, "batch_size": 2, "replaced": 1, "added": 2}, [1 / 5, 3 / 5, 1 / 5]),
        ({"n": 6, "batch_size": 2, "replaced": 1, "removed": 2}, [1 / 5, 3 / 5, 1 / 5]),
        ({"n": 5, "batch_size": 3, "replaced": 2, "added": 1}, [1 / 20, 9 / 20, 9 / 20, 1 / 20]),
    ],
)
def test_how_many_members_one_edit_of_many_records_replaces(case: dict[str, int], law: list[float]) -> None:
    np.testing.assert_allclose(batch_edits.replaced_members(**case), law, rtol=1e-12)


@given(st.integers(1, 8), st.integers(0, 4), st.integers(0, 3), st.integers(1, 6), st.booleans())
def test_replaced_members_by_enumerating_batches(n: int, replaced: int, others: int, size: int, more: bool) -> None:
    kept = n - replaced - (0 if more else others)
    if kept < 0 or size > n - (0 if more else others):
        return
    members = n + (others if more else 0)
    counts = np.zeros(size + 1)
    for batch in combinations(range(members), size):
        counts[sum(member >= kept for member in batch)] += 1
    law = batch_edits.replaced_members(
        n=n, batch_size=size, replaced=replaced, **{"added" if more else "removed": others}
    )
    np.testing.assert_allclose(law, counts / comb(members, size), rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize(("removed", "apart", "together"), [(10, 0.819672, 0.574811), (100, 8.22638, 0.999813)])
def test_one_edit_of_many_records_gains_more_than_a_factor_two(removed: int, apart: float, together: float) -> None:
    case = {"n": 11982, "batch_size": 8, "steps": 128}
    assert batch_edits.one_by_one_recomputations(**case, removed=removed) == pytest.approx(apart, rel=5e-6)
    assert batch_edits.batch_edit_probability(**case, removed=removed) == pytest.approx(together, rel=5e-6)


@given(st.integers(1, 60), st.integers(0, 20), st.integers(0, 20), st.integers(1, 20), st.integers(0, 5), st.booleans())
def test_one_edit_changes_a_batch_unless_it_replaces_no_member(
    n: int, replaced: int, others: int, size: int, steps: int, more: bool
) -> None:
    if replaced > n - (0 if more else others) or size > n - (0 if more else others):
        return
    case = {"n": n, "batch_size": size, "replaced": replaced, "added" if more else "removed": others}
    none = batch_edits.replaced_members(**case)[0]
    found = batch_edits.batch_edit_probability(**case, steps=steps)
    assert found == pytest.approx(1 - none**steps, rel=1e-9, abs=1e-12)


def test_one_edit_of_many_records_in_rationals() -> None:
    exact = 1 - Fraction(comb(30 - 4, 5), comb(30, 5)) ** 6
    assert batch_edits.batch_edit_probability(n=30, batch_size=5, steps=6, removed=4) == pytest.approx(float(exact))
    alone = batch_edits.batch_edit_probability(n=30, batch_size=5, steps=6, removed=1)
    assert alone == pytest.approx(subsampling.subsampling_tv(n=30, batch_size=5, steps=6))


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ({"n": 4, "batch_size": 5}, "batch_size must be at most n = 4, got 5"),
        ({"n": 4, "batch_size": 3, "removed": 2}, "at least batch_size = 3 records must remain, got"),
        ({"n": 4, "batch_size": 1, "added": 1, "removed": 1}, "added or removed must be 0"),
    ],
)
def test_what_makes_no_sense_is_refused(case: dict[str, int], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        batch_edits.replaced_members(**case)
    with pytest.raises(ParameterError, match="removed must be at most n - batch_size"):
        batch_edits.one_by_one_recomputations(n=4, batch_size=3, steps=1, removed=2)
