import numpy as np
import pytest

from certified_unlearning.accounting.search import least_whole, minimise


@pytest.mark.parametrize("bottom", [-30.0, -29.99, -3.7, 0.0, 12.345678, 59.5, 60.0])
def test_the_bottom_of_a_valley_is_found_wherever_it_lies(bottom):
    # Near its bottom a parabola is flat in doubles over about 1e-8.
    where, value = minimise(lambda points: 1 + (points - bottom) ** 2, -30.0, 60.0)
    assert where == pytest.approx(bottom, abs=2e-8)
    assert value == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("deepest", [-20.3, 0.2, 20.4])
def test_of_several_valleys_as_wide_as_the_grid_the_deepest_is_found(deepest):
    def valleys(points):
        return -sum(
            (1.5 if centre == deepest else 1) * np.exp(-((points - centre) ** 2)) for centre in (-20.3, 0.2, 20.4)
        )

    assert minimise(valleys, -30.0, 30.0)[0] == pytest.approx(deepest, abs=1e-7)


@pytest.mark.parametrize("estimate", [41.0, 41.3, 42.0, 42.000001, 47.9])
def test_an_estimate_that_is_slightly_off_gives_the_least_whole_number_all_the_same(estimate):
    assert least_whole(estimate, lambda number: number >= 42, minimum=0) == 42


def test_the_least_whole_number_is_not_below_the_minimum():
    assert least_whole(-1e30, lambda number: True, minimum=3) == 3
    assert least_whole(5.0, lambda number: True, minimum=3) == 3
