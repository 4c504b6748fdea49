"""Exact intervals of advantages."""

import numpy as np
import pytest
from scipy import stats

from certified_unlearning.errors import ParameterError
from certified_unlearning.papers.forget_unlearning.services.advantage import Measured, clopper_pearson


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (10, 10), (3, 10), (700, 2000), (1, 1)])
@pytest.mark.parametrize("miss", [0.05, 1e-6])
def test_intervals_are_those_of_scipy(successes, trials, miss):
    expected = stats.binomtest(successes, trials).proportion_ci(confidence_level=1 - miss, method="exact")
    found = clopper_pearson(successes, trials, miss=miss)
    assert found == pytest.approx((expected.low, expected.high), abs=1e-9)


@pytest.mark.parametrize(("right", "wrong", "count"), [(0.5, 0.5, 20), (0.9, 0.1, 20), (1.0, 0.97, 30)])
def test_intervals_of_an_advantage_miss_it_no_more_often_than_they_say(right, wrong, count):
    """Exactly: over all outcomes of both binomial laws."""
    laws = [stats.binom(count, probability).pmf(np.arange(count + 1)) for probability in (right, wrong)]
    missed = 0.0
    for yes in range(count + 1):
        for no in range(count + 1):
            low, high = Measured(count, yes, no).interval(0.05)
            missed += laws[0][yes] * laws[1][no] * (not low <= right - wrong <= high)
    assert missed <= 0.05


def test_the_advantage_is_the_difference_of_frequencies():
    assert Measured(200, right=150, wrong=30).advantage == pytest.approx(0.6)


@pytest.mark.parametrize(("successes", "trials"), [(-1, 10), (11, 10), (0, 0)])
def test_counts_that_make_no_sense_are_refused(successes, trials):
    with pytest.raises(ParameterError, match="successes"):
        clopper_pearson(successes, trials, miss=0.05)
