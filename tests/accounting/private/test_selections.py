"""Selections: vectors, ratios on neighbours by enumeration, and the printed forms that are not private or useless."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certified_unlearning.accounting.private.selections import (
    boosting_chunks,
    generalised_probabilities,
    generalised_scores,
    laplace_scale,
    mean_score_sensitivity,
    noisy_minimum_scale,
)
from certified_unlearning.errors import ParameterError
from certified_unlearning.papers.private_learning.audit_statistics import least_of_noisy
from certified_unlearning.papers.private_learning.theory.privacy import (
    exponential_probabilities,
    generalised_guarantee,
    printed_boosting_scale,
)

LOSSES = (1, 0.62, 0.40, 0.35, 0.38, 0.52)
WIDTHS = tuple(each / 5000 for each in (0, 9, 13, 25, 73, 265))


def test_gem_1():
    scores = generalised_scores(LOSSES, WIDTHS, epsilon=0.5, beta=0.05)
    assert scores == pytest.approx([211.619, 46.5182, 0.531589, 0, 12.1977, 19.5172], rel=5e-6)
    found = generalised_probabilities(LOSSES, WIDTHS, epsilon=0.5, beta=0.05)
    expected = [5.47077e-24, 4.60967e-06, 0.453526, 0.517986, 0.0245457, 0.00393787]
    assert found == pytest.approx(expected, rel=1e-4)
    bound = generalised_guarantee(LOSSES, WIDTHS, epsilon=0.5, beta=0.05)
    assert bound == pytest.approx(0.499580, abs=1e-6)
    assert found[np.array(LOSSES) > bound].sum() == pytest.approx(0.00394248, rel=1e-4)
    assert 2 * math.log(6 / 0.05) / 0.5 == pytest.approx(19.1500, abs=1e-4)


def test_gem_2_bounds_on_losses_as_sensitivities_destroy_the_search():
    found = generalised_probabilities(LOSSES, [5000 * each for each in WIDTHS], epsilon=0.5, beta=0.05)
    expected = [0.959760, 0.00808287, 0.00809082, 0.00805015, 0.008015, 0.00800162]
    assert found == pytest.approx(expected, rel=1e-4)


NUMBERS = st.floats(0, 3)
CANDIDATES = st.lists(st.tuples(NUMBERS, st.floats(0, 0.3), st.floats(-1, 1)), min_size=1, max_size=7)


@given(candidates=CANDIDATES, epsilon=st.floats(0.05, 4), beta=st.floats(0.01, 0.5))
def test_scores_move_by_one_and_probabilities_by_e_to_the_epsilon(candidates, epsilon, beta):
    losses, widths, moves = map(np.array, zip(*candidates, strict=True))
    others = losses + widths * moves
    before = generalised_scores(losses, widths, epsilon=epsilon, beta=beta)
    after = generalised_scores(others, widths, epsilon=epsilon, beta=beta)
    finite = np.isfinite(before)
    assert (finite == np.isfinite(after)).all()
    assert np.abs(before[finite] - after[finite]).max(initial=0) <= 1 + 1e-9
    p = generalised_probabilities(losses, widths, epsilon=epsilon, beta=beta)
    q = generalised_probabilities(others, widths, epsilon=epsilon, beta=beta)
    seen = (p > 1e-300) & (q > 1e-300)
    assert np.abs(np.log(p[seen] / q[seen])).max(initial=0) <= epsilon


@given(st.lists(st.tuples(NUMBERS, st.floats(-1, 1)), min_size=2, max_size=7), st.floats(0.05, 4))
def test_the_exponential_mechanism_is_private(candidates, epsilon):
    scores, moves = map(np.array, zip(*candidates, strict=True))
    p = exponential_probabilities(scores, epsilon=epsilon, sensitivity=0.2)
    q = exponential_probabilities(scores + 0.2 * moves, epsilon=epsilon, sensitivity=0.2)
    assert np.abs(np.log(p / q)).max() <= epsilon
    assert scores[p.argmax()] == pytest.approx(scores.max(), abs=1e-12)


def test_theorem_5_as_printed_is_neither_private_nor_a_maximum():
    scores, sensitivity = np.array([0.0, 1.0]), 1.0
    printed = np.exp(-2 * 1.0 * scores / sensitivity)
    moved = np.exp(-2 * 1.0 * (scores + np.array([1, -1])) / sensitivity)
    ratios = (printed / printed.sum()) / (moved / moved.sum())
    assert np.abs(np.log(ratios)).max() > 1
    assert printed.argmax() != scores.argmax()


def test_a_noisy_minimum_is_private_and_a_scale_without_the_chunks_is_not():
    """Algorithm 15, enumerated: losses of one record move all scores at once, in either direction."""
    epsilon, largest, chunk = 1.0, 4.0, 10
    sensitivity = mean_score_sensitivity(largest, n=chunk, relation="replace-one")
    before, after = np.array([1.0, 1.0, 1.0]), np.array([1.0, 1.0, 1.0]) + sensitivity * np.array([-1, 1, 1])

    def worst(scale: float) -> float:
        return float(np.abs(np.log(least_of_noisy(before, scale) / least_of_noisy(after, scale))).max())

    assert worst(noisy_minimum_scale(sensitivity, epsilon)) <= epsilon
    planted = noisy_minimum_scale(mean_score_sensitivity(largest, n=5 * chunk, relation="replace-one"), epsilon)
    assert worst(planted) > epsilon  # n of all chunks for that of one.


def test_scales_of_boosting():
    assert boosting_chunks(0.05) == 4
    assert math.log(4 / 0.05, 4) == pytest.approx(3.16096, abs=1e-5)
    sensitivity = mean_score_sensitivity(9, n=10_000 // 5, relation="replace-one")
    assert noisy_minimum_scale(sensitivity, 1.0) == pytest.approx(0.009, rel=2e-6)
    assert noisy_minimum_scale(sensitivity, 0.5) == pytest.approx(0.018, rel=2e-6)
    printed = printed_boosting_scale(at_zero=1, smoothness=2, row_norm=1, radius=1, n=10_000, epsilon=1)
    assert printed == pytest.approx(0.0346410, abs=1e-7)


def test_laplace_noise_has_the_scale_of_theorem_3():
    assert laplace_scale(3.0, 0.5) == pytest.approx(6, rel=2e-6)
    assert laplace_scale(3.0, 0.5) >= 6


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: generalised_scores([1], [1, 2], epsilon=1, beta=0.1), "sensitivity for each loss"),
        (lambda: generalised_scores([math.inf], [1], epsilon=1, beta=0.1), "finite"),
        (lambda: exponential_probabilities([], epsilon=1, sensitivity=1), "candidate"),
        (lambda: boosting_chunks(1.0), "beta"),
    ],
)
def test_what_makes_no_sense_is_named(call, named):
    with pytest.raises(ParameterError, match=named):
        call()
