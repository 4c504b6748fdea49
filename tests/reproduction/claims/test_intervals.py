"""Intervals of accuracies: against scipy's own, at their limits, and how often they miss."""

import math

import numpy as np
import pytest
from scipy import stats

from certified_unlearning.reproduction.claims.intervals import (
    FALSE_ALARMS,
    accuracy_gap,
    gap_in_deviations,
    mean_accuracy,
)


def row(values):
    return {"accuracy_mean": np.mean(values), "accuracy_std": np.std(values, ddof=1), "trials": len(values)}


@pytest.fixture
def two():
    generator = np.random.default_rng(3)
    return generator.normal(0.9, 0.02, 100), generator.normal(0.85, 0.05, 40)


@pytest.mark.parametrize("comparisons", [1, 12])
def test_intervals_are_welchs_and_students_at_the_level_shared_by_all_comparisons(two, comparisons):
    level = 1 - FALSE_ALARMS / comparisons
    welch = stats.ttest_ind(*two, equal_var=False).confidence_interval(level)
    gap = accuracy_gap(*map(row, two), name="gap", comparisons=comparisons)
    assert (gap.value - gap.uncertainty, gap.value + gap.uncertainty) == pytest.approx((welch.low, welch.high))
    student = stats.ttest_1samp(two[1], 0).confidence_interval(level)
    mean = mean_accuracy(row(two[1]), name="mean", comparisons=comparisons)
    assert (mean.value - mean.uncertainty, mean.value + mean.uncertainty) == pytest.approx((student.low, student.high))


def test_a_gap_is_in_units_of_the_deviation_or_of_one_percentage_point(two):
    one, other = map(row, two)
    gap = accuracy_gap(one, other, name="gap", comparisons=1)
    deviation = math.sqrt((one["accuracy_std"] ** 2 + other["accuracy_std"] ** 2) / 2)
    scaled = gap_in_deviations(one, other, name="gap", comparisons=1)
    assert scaled == pytest.approx((gap.value / deviation, "gap", gap.uncertainty / deviation))
    small = [each | {"accuracy_std": 0.001} for each in (one, other)]
    assert gap_in_deviations(*small, name="gap", comparisons=1).value == pytest.approx(gap.value / 0.01)


def test_equal_trials_leave_no_uncertainty_and_few_trials_leave_nothing_certain():
    constant = row(np.full(30, 0.9))
    assert accuracy_gap(constant, row(np.full(30, 0.8)), name="", comparisons=1) == pytest.approx((0.1, "", 0.0))
    few = row(np.random.default_rng(0).normal(0.9, 0.01, 29))
    assert mean_accuracy(few, name="", comparisons=1).uncertainty == math.inf
    assert accuracy_gap(constant, few, name="", comparisons=1).uncertainty == math.inf


def test_intervals_miss_about_as_often_as_they_say():
    """20 000 intervals at 1e-3: more than 60 misses have probability 1.3e-13, none 2e-9."""
    draws = np.random.default_rng(11).normal(0.9, 0.02, (20_000, 2, 30))
    misses = 0
    for first, second in draws:
        gap = accuracy_gap(row(first), row(second), name="", comparisons=1)
        misses += abs(gap.value) > gap.uncertainty
    assert 0 < misses <= 60
