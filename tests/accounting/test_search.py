import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certified_unlearning.accounting.core.search import least_whole, minimise


@pytest.mark.parametrize("bottom", [-30.0, -29.99, -3.7, 0.0, 12.345678, 59.5, 60.0])
def test_the_bottom_of_a_valley_is_found_wherever_it_lies(bottom):
    # Near its bottom a parabola is flat in doubles over about 1e-7.
    where, value = minimise(lambda points: 1 + (points - bottom) ** 2, -30.0, 60.0)
    assert where == pytest.approx(bottom, abs=1e-7)
    assert value == pytest.approx(1, abs=1e-14)


def counted(function):
    def asked(points):
        asked.times += 1
        asked.points += len(points)
        assert (np.diff(points) > 0).all()
        return function(points)

    asked.times = asked.points = 0
    return asked


@given(
    bottom=st.floats(-30, 60),
    left=st.floats(-2, 3).map(lambda exponent: 10**exponent),
    right=st.floats(-2, 3).map(lambda exponent: 10**exponent),
)
def test_a_kink_is_found_to_the_tolerance_wherever_it_lies(bottom, left, right):
    kinked = counted(lambda points: np.maximum(left * (bottom - points), right * (points - bottom)))
    where, value = minimise(kinked, -30.0, 60.0)
    assert where == pytest.approx(bottom, abs=1e-8)
    assert 0 <= value <= 1e-8 * max(left, right)
    assert kinked.times <= 20


@given(bottom=st.floats(-25, 55), steepness=st.floats(-3, 3).map(lambda exponent: 10**exponent))
def test_a_parabola_is_at_its_bottom_after_the_grid_and_three_rounds(bottom, steepness):
    parabola = counted(lambda points: steepness * (points - bottom) ** 2)
    where, value = minimise(parabola, -30.0, 60.0)
    assert where == pytest.approx(bottom, abs=1e-8)
    assert 0 <= value <= steepness * 1e-16
    assert parabola.times <= 4


@given(scale=st.floats(-20, 20), rise=st.floats(0.3, 3), fall=st.floats(0.3, 3))
def test_a_smooth_valley_with_steep_sides_takes_a_few_rounds(scale, rise, fall):
    # What a linear Rényi curve and its overhead look like: least where the derivative vanishes.
    valley = counted(lambda points: np.exp(rise * (points - scale)) + np.exp(-fall * (points - scale)))
    where, value = minimise(valley, -36.0, 80.0)
    bottom = scale + math.log(fall / rise) / (rise + fall)
    assert where == pytest.approx(bottom, abs=1e-6)  # Flat in doubles over so much.
    expected = math.exp(rise * (bottom - scale)) + math.exp(-fall * (bottom - scale))
    assert value == pytest.approx(expected, rel=1e-14)
    assert valley.times <= 10
    assert valley.points <= 118 + 34 * 9


@pytest.mark.parametrize("edge", [-20.0, 2.25, 2.5, 17.123])
def test_a_minimum_beside_a_wall_is_found_from_either_side(edge):
    right_of = counted(lambda points: np.where(points > edge, 1 + (points - edge), np.inf))
    where, value = minimise(right_of, -36.0, 80.0)
    assert edge < where <= edge + 1e-8
    assert value == pytest.approx(1, abs=1e-8)
    left_of = counted(lambda points: np.where(points < edge, 1 + (edge - points), np.inf))
    where, value = minimise(left_of, -36.0, 80.0)
    assert edge - 1e-8 <= where < edge
    assert value == pytest.approx(1, abs=1e-8)


def test_a_valley_beside_a_wall_is_found_where_the_parabola_is_of_no_use():
    # The first three points are infinite, low and high: their middle one is then a point of the next grid too.
    # Rényi curves have that shape where only high orders leave room for a divergence.
    def valley(points):
        with np.errstate(over="ignore"):
            return np.where(points > 4.3, (points - 4.4812) ** 2 - 5.5938, np.inf)

    low, high = math.log(np.finfo(float).eps), 80.0
    where, value = minimise(valley, low, high)
    assert where == pytest.approx(4.4812, abs=1e-7)
    assert value == pytest.approx(-5.5938, abs=1e-13)


@pytest.mark.parametrize("deepest", [-20.3, 0.2, 20.4])
def test_of_several_valleys_as_wide_as_the_grid_the_deepest_is_found(deepest):
    def valleys(points):
        return -sum(
            (1.5 if centre == deepest else 1) * np.exp(-((points - centre) ** 2)) for centre in (-20.3, 0.2, 20.4)
        )

    assert minimise(valleys, -30.0, 30.0)[0] == pytest.approx(deepest, abs=1e-6)


def test_a_plain_is_at_its_bottom_everywhere():
    plain = counted(np.ones_like)
    where, value = minimise(plain, -30.0, 60.0)
    assert -30 <= where <= 60
    assert value == 1
    assert plain.times == 1


@pytest.mark.parametrize("nothing", [math.inf, math.nan])
def test_a_function_that_is_nowhere_a_number_says_so_in_the_end(nothing):
    hopeless = counted(lambda points: np.full_like(points, nothing))
    assert str(minimise(hopeless, -30.0, 60.0)[1]) == str(nothing)
    assert hopeless.times <= 20


def test_a_very_narrow_interval_is_searched_too():
    assert minimise(lambda points: (points - 2) ** 2, 1.9999, 2.0003)[0] == pytest.approx(2, abs=1e-7)


# --- Whole numbers. -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimate", [41.0, 41.3, 42.0, 42.000001, 47.9, 0.0, 1e6, -5.0])
def test_an_estimate_that_is_off_gives_the_least_whole_number_all_the_same(estimate):
    assert least_whole(estimate, lambda number: number >= 42, minimum=0) == 42


@given(least=st.integers(0, 10**12), error=st.integers(-(10**6), 10**6), minimum=st.integers(0, 10))
def test_the_least_whole_number_is_found_without_asking_below_the_minimum(least, error, minimum):
    asked = []

    def is_enough(number):
        asked.append(number)
        return number >= least

    assert least_whole(least + error, is_enough, minimum=minimum) == max(least, minimum)
    assert min(asked) >= minimum
    assert len(asked) <= 3 + 2 * math.log2(abs(error) + 1)


@pytest.mark.parametrize(("estimate", "tries"), [(41.2, [42, 41]), (42.0, [42, 41]), (41.0, [41, 42])])
def test_an_estimate_that_is_right_up_to_rounding_costs_two_tries(estimate, tries):
    asked = []

    def is_enough(number):
        asked.append(number)
        return number >= 42

    assert least_whole(estimate, is_enough, minimum=0) == 42
    assert asked == tries


def test_the_least_whole_number_is_not_below_the_minimum():
    assert least_whole(-1e30, lambda number: True, minimum=3) == 3
    assert least_whole(5.0, lambda number: True, minimum=3) == 3
    assert least_whole(1.0, lambda number: number >= 3, minimum=3) == 3
