"""When data are read again: by counts, safely, and more often where there is less room."""

import math

import pytest

from certified_unlearning.accounting.residual.schedule import strict_records, usual_records, worst_residual
from certified_unlearning.errors import ParameterError

PROBLEM = {"n": 300_000, "strong_convexity": 1 / 160, "budget": 1.48e-6}


@pytest.mark.parametrize("downdate", [True, False])
def test_strict_records_are_the_most_that_the_bound_allows(downdate: bool):
    most = strict_records(**PROBLEM, downdate=downdate)
    assert most >= 1
    assert worst_residual(most, **PROBLEM, downdate=downdate) <= PROBLEM["budget"]
    assert worst_residual(most + 1, **PROBLEM, downdate=downdate) > PROBLEM["budget"]


def test_the_bound_is_near_its_closed_form():
    """Without exponential, start and remainder: S^2 / (8 m n^2) and the shares, so S = n sqrt(8 m 0.8 budget)."""
    most = strict_records(**PROBLEM)
    room = PROBLEM["n"] * math.sqrt(8 * PROBLEM["strong_convexity"] * 0.8 * PROBLEM["budget"])
    assert 0.85 * room < most < room


def test_more_room_means_more_records():
    assert strict_records(**PROBLEM | {"n": 3_000_000}) > 9 * strict_records(**PROBLEM)
    assert strict_records(**PROBLEM | {"budget": 4 * 1.48e-6}) > 1.9 * strict_records(**PROBLEM)
    assert strict_records(**PROBLEM, downdate=False) < strict_records(**PROBLEM)
    assert usual_records(**PROBLEM, features=21) > 3 * strict_records(**PROBLEM)


def test_wide_data_are_flat_in_most_directions():
    few = PROBLEM | {"n": 12_000}
    assert usual_records(**few, features=785) > 1.5 * usual_records(**few, features=21)
    assert usual_records(**few, features=785, downdate=False) < usual_records(**few, features=785)


def test_where_there_is_no_room_every_request_reads():
    assert strict_records(n=100, strong_convexity=1e-3, budget=1e-9) == 0
    assert usual_records(n=100, features=5, strong_convexity=1e-3, budget=1e-9) == 0


def test_never_more_records_than_there_are():
    assert strict_records(n=10, strong_convexity=1.0, budget=1e3) == 10
    assert usual_records(n=10, features=5, strong_convexity=1.0, budget=1e3) == 10


def test_a_negative_count_is_refused():
    with pytest.raises(ParameterError, match="records must be a whole number"):
        worst_residual(-1, **PROBLEM, downdate=True)


def test_public_rows_shorten_steps_and_nothing_else():
    """Without curvature of theirs the bound is the same; with much, it is that of an objective so strongly convex."""
    given = {"n": 2_000_000, "budget": 1e-9, "downdate": True}
    plain = worst_residual(50, strong_convexity=1e-3, **given)
    assert worst_residual(50, strong_convexity=1e-3, public_curvature=0.0, **given) == plain
    assert worst_residual(50, strong_convexity=1e-3, public_curvature=5e-4, **given) < plain
    more = worst_residual(50, strong_convexity=1e-3, public_curvature=0.05, **given)
    start = 0.2 * given["budget"]
    # sqrt(h) / (h + m) at h = 0.05, beside 1 / (2 sqrt m); squared.
    assert (more - start) / (plain - start) == pytest.approx(0.05 / 0.051**2 * 4e-3, rel=0.05)
