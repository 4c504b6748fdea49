"""Private labels: printed vectors, exact laws of neighbours, and faults that the exact laws find."""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import mpmath
import pytest

from certified_unlearning.accounting.private.stable_labels import (
    LabelLaw,
    composed_labels,
    delta_of,
    divergence,
    flip_probability,
    label_law,
    noise_scale,
    pass_probability,
    smooth_sensitivity_bound,
    smoothness,
)
from certified_unlearning.errors import ParameterError

ONES, HALF = 200, 100
EPSILON, DELTA = 1.0, 1e-5
RULES = [("cauchy", 0.0), ("laplace", DELTA), ("stable", DELTA)]


@pytest.mark.parametrize(
    ("rule", "delta", "radius", "beta", "sensitivity", "scale", "flip"),
    [
        ("cauchy", 0.0, 10, 0.166667, 0.188876, 1.13325, 0.367736),
        ("laplace", 1e-5, 10, 0.0409632, 0.663894, 1.32779, 0.343107),
        ("cauchy", 0.0, 100, 0.166667, 5.77775e-8, 6 * 5.77775e-8, 2.20694e-7),
        ("laplace", 1e-5, 100, 0.0409632, 0.0166337, 2 * 0.0166337, 1.48477e-7),
    ],
)
def test_vectors_of_noise(rule, delta, radius, beta, sensitivity, scale, flip):
    found = smoothness(rule, epsilon=1, delta=delta)
    bound = smooth_sensitivity_bound(radius, beta=found)
    spread = noise_scale(rule, bound, epsilon=1)
    assert [found, bound, spread, flip_probability(rule, spread)] == pytest.approx(
        [beta, sensitivity, scale, flip], rel=1e-5
    )


def test_vectors_of_the_test_of_stability():
    assert flip_probability("laplace", 1.0) == pytest.approx(0.303265, rel=1e-5)
    assert float(pass_probability(20, epsilon=1, delta=1e-5)) == pytest.approx(0.999897, rel=1e-6)
    assert float(pass_probability(0, epsilon=1, delta=1e-5)) == pytest.approx(5e-6)


@pytest.mark.parametrize("rule", ["cauchy", "laplace", "stable"])
def test_every_law_keeps_its_guarantee_exactly(rule):
    # All radii up to 100 and their neighbours; the growth here is of 60 digits, the law that of the doubles drawn from.
    for epsilon in (0.01, 0.1, 1.0, 5.0, 30.0):
        for delta in (0.0,) if rule == "cauchy" else (0.5, 1e-3, 1e-9):
            law = label_law(rule, epsilon=epsilon, delta=delta, largest=100)
            with mpmath.workdps(60):
                growth = Fraction(str(mpmath.exp(mpmath.mpf(epsilon))))
            for one, two in pairwise(law.kept):
                for p, q in ((one, two), (two, one)):
                    assert max(0, p - growth * q) + max(0, (1 - p) - growth * (1 - q)) <= delta
            first = law.kept[0]
            assert first - growth * (0 if rule == "stable" else 1 - first) <= delta


def test_numbers_are_on_the_safe_side():
    with mpmath.workdps(50):
        beta = smoothness("laplace", epsilon=0.7, delta=1e-7)
        assert beta <= mpmath.mpf(0.7) / (2 * mpmath.log(2 / mpmath.mpf(1e-7)))
        for radius in (1, 17, 400):
            assert smooth_sensitivity_bound(radius, beta=beta) >= mpmath.exp(-mpmath.mpf(beta) * radius)
    assert smooth_sensitivity_bound(0, beta=beta) == 1
    assert composed_labels(0.1, 1e-6, labels=3)[0] >= Fraction(0.1) * 3
    one, two = {0: Fraction(1, 3), 1: Fraction(2, 3)}, {0: Fraction(2, 3), 1: Fraction(1, 3)}
    assert Fraction(1, 3) <= Fraction(divergence(one, two, 0.0)) <= Fraction(1, 3) + Fraction(1, 2**54)
    assert divergence({0: Fraction(1)}, {1: Fraction(1)}, 5.0) == 1


# A data set is its number of ones, of which it has at most 200; neighbours have one more or less, and the label is
# whether ones are more than half. So the laws of all data sets and of all their neighbours can be written down.


def label(ones: int) -> int:
    return int(ones > HALF)


def radius_of(ones: int) -> int:
    """How many ones may come or go, at most, without another label."""
    return ones - HALF - 1 if ones > HALF else HALF - ones


def removals_only(ones: int) -> int:
    """The same where ones only go: what boxes for unlearning cover."""
    return ones - HALF - 1 if ones > HALF else ONES


def coarse(ones: int) -> int:
    """Only k = 80 was trained for."""
    return 80 if radius_of(ones) >= 80 else 0


def worst(law: LabelLaw, radius: Callable[[int], int]) -> float:
    """Return the least delta at epsilon over all data sets and neighbours."""
    laws = [law.outcomes(radius(ones), label(ones)) for ones in range(ONES + 1)]
    return max(divergence(p, q, EPSILON) for one, two in pairwise(laws) for p, q in ((one, two), (two, one)))


def law_by(rule: str, sensitivity: Callable[[int], float]) -> LabelLaw:
    scales = [noise_scale(rule, sensitivity(radius), epsilon=EPSILON) for radius in range(ONES + 1)]
    return LabelLaw(rule, EPSILON, DELTA, tuple(1 - Fraction(flip_probability(rule, scale)) for scale in scales))


@pytest.mark.parametrize(("rule", "delta"), RULES)
def test_all_data_sets_of_a_small_world(rule, delta):
    law = label_law(rule, epsilon=EPSILON, delta=delta, largest=ONES)
    assert worst(law, radius_of) <= delta
    assert worst(law, lambda ones: min(radius_of(ones), 5)) <= delta


@pytest.mark.parametrize(("rule", "delta"), RULES)
def test_a_coarse_grid_of_radii_is_found_out(rule, delta):
    law = label_law(rule, epsilon=EPSILON, delta=delta, largest=ONES)
    assert worst(law, coarse) > 1e-3


@pytest.mark.parametrize(("rule", "delta"), RULES)
def test_radii_of_removals_only_are_found_out(rule, delta):
    law = label_law(rule, epsilon=EPSILON, delta=delta, largest=ONES)
    assert worst(law, removals_only) > 0.1


@pytest.mark.parametrize(("rule", "delta"), RULES[:2])
def test_a_wrong_beta_is_found_out(rule, delta):
    right = smoothness(rule, epsilon=EPSILON, delta=delta)
    assert worst(law_by(rule, lambda radius: smooth_sensitivity_bound(radius, beta=right)), radius_of) <= delta
    wrong = law_by(rule, lambda radius: smooth_sensitivity_bound(radius, beta=2 * EPSILON))
    assert worst(wrong, radius_of) > 10 * DELTA
    assert delta_of(wrong, EPSILON) >= worst(wrong, radius_of)


@pytest.mark.parametrize(("rule", "delta"), RULES[:2])
def test_local_sensitivity_is_found_out(rule, delta):
    law = law_by(rule, lambda radius: float(radius == 0))
    assert worst(law, radius_of) > 0.3
    assert delta_of(law, EPSILON) > 0.3


def test_too_small_a_threshold_is_found_out():
    law = label_law("stable", epsilon=EPSILON, delta=DELTA, largest=ONES)
    assert delta_of(LabelLaw("stable", EPSILON, DELTA, law.kept[3:]), EPSILON) > 5 * DELTA


@pytest.mark.parametrize(("rule", "delta"), RULES)
@pytest.mark.parametrize("epsilon", [1e-100, 1e-9, 700.0])
def test_the_ends_of_epsilon_have_laws(rule, delta, epsilon):
    law = label_law(rule, epsilon=epsilon, delta=delta, largest=40)
    assert delta_of(law, epsilon) <= delta
    assert all(0 <= each <= 1 for each in law.kept)


def test_radii_so_large_that_noise_vanishes_count_as_less():
    law = label_law("cauchy", epsilon=30.0, largest=10_000)
    assert len(law.kept) == math.floor(700 / smoothness("cauchy", epsilon=30.0, delta=0.0)) + 1 < 10_000
    assert law.kept[-1] < 1
    assert law.outcomes(10_000, 1) == law.outcomes(len(law.kept) - 1, 1)


@pytest.mark.parametrize(
    ("rule", "epsilon", "delta", "words"),
    [
        ("cauchy", 1.0, 1e-5, "delta must be 0 for Cauchy noise"),
        ("laplace", 1.0, 0.0, "delta must lie strictly between 0 and 1, got 0.0"),
        ("stable", 1.0, 1.0, "delta must lie strictly between 0 and 1, got 1.0"),
        ("gauss", 1.0, 1e-5, "rule must be one of cauchy, laplace, stable, got 'gauss'"),
        ("stable", 0.0, 1e-5, "epsilon must be a finite number above 0"),
        ("stable", 701.0, 1e-5, "epsilon must be from 1e-100 to 700, got 701.0"),
        ("cauchy", 1e-101, 0.0, "epsilon must be from 1e-100 to 700, got 1e-101"),
        ("stable", 1.0, 1e-17, "in float64, a label with epsilon = 1.0 has delta = .*, which is above 1e-17"),
    ],
)
def test_what_makes_no_sense_is_refused(rule, epsilon, delta, words):
    with pytest.raises(ParameterError, match=words):
        label_law(rule, epsilon=epsilon, delta=delta, largest=50)
    with pytest.raises(ParameterError, match="has no smooth sensitivity"):
        smoothness("stable", epsilon=1.0, delta=1e-5)
