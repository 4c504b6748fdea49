"""The numbers of the sheet on differential privacy dynamics: sections 4.3 and 7.1 to 7.4."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certified_unlearning.accounting.core.conversion import epsilon_from_renyi
from certified_unlearning.accounting.core.curves import RenyiCurve
from certified_unlearning.accounting.deletion.rates import lemma_5_rate, sharp_rate
from certified_unlearning.errors import ParameterError
from certified_unlearning.papers.privacy_dynamics.theory.dynamics import (
    best_gamma,
    composition,
    corollary_1,
    corollary_2,
    envelope,
    sharp_envelope,
    sharp_lsi,
    theorem_1,
    theorem_2,
    theorem_2_best,
    theorem_2_from,
    time_optimal,
)
from certified_unlearning.papers.privacy_dynamics.theory.gaussians import (
    exact_hessian,
    exact_quadratic,
    inverse_lsi,
    theorem_3,
)
from tests.papers.privacy_dynamics.dynamics_settings import (
    BY_HAND,
    SIGMA,
    UNIT,
    equal,
    linear,
    paper,
    quoted,
    tracked_inverse_lsi,
    value,
)

# --- Section 7.1, by hand --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "exact", "third", "second", "first", "composed"),
    [
        (1, 0.25, 0.196735, 0.416948, 0.442398, 0.25),
        (2, 0.45, 0.316060, 0.703511, 0.786939, 0.5),
        (3, 0.583333333333, 0.388435, 0.900463, 1.05527, 0.75),
        (10, 0.748537, 0.496631, 1.30198, 1.83583, 2.5),
        (math.inf, 0.75, 0.5, 1.33333, 2, math.inf),
    ],
)
def test_the_case_by_hand_has_the_sheets_values(steps, exact, third, second, first, composed):
    for bound, expected in (
        (exact_quadratic, exact),
        (theorem_3, third),
        (corollary_2, second),
        (corollary_1, first),
        (composition, composed),
    ):
        assert value(bound, BY_HAND, steps, alpha=2.0, sigma=0.5) == quoted(expected)


@pytest.mark.parametrize(("steps", "exact"), [(1, 1 / 4), (2, 9 / 20), (3, 7 / 12)])
def test_the_exact_divergence_by_hand_is_rational(steps, exact):
    assert value(exact_quadratic, BY_HAND, steps, alpha=2.0, sigma=0.5) == pytest.approx(exact, rel=1e-14)


# --- Sections 4.3 and 7.3: baselines, crossover, Theorem 2 -----------------------------------------------------------


def test_composition_is_theorem_1_and_adds_up_the_steps_gaussian_mechanisms():
    # One step shifts the mean by eta S_g / n under noise of variance 2 eta sigma^2.
    one_step = 10.0 * (0.02 * 4 / 5000) ** 2 / (2 * 2 * 0.02 * SIGMA**2)
    assert value(composition, paper(), 1) == equal(one_step)
    assert value(composition, paper(), 37) == equal(37 * one_step)
    diffusion = theorem_1(field_sensitivity=4 / 5000, sigma=SIGMA, time=37 * 0.02)
    assert diffusion(np.array([10.0]))[0] == equal(37 * one_step)
    assert value(composition, paper(), 1) == equal(8e-6 * 10)


def test_composition_asks_for_no_convexity_and_no_small_step():
    convex = dataclasses.replace(paper(), strong_convexity=0.0, step_size=3.0)
    assert value(composition, convex, 2) == equal(10 * 0.0016 / 4 * 6)


@pytest.mark.parametrize(("strong_convexity", "first"), [(1, 160), (2, 80), (4, 40)])
def test_corollary_1_beats_composition_from_the_crossover_on_at_every_order(strong_convexity, first):
    # Item 5 of the suspected errors: the paper says that a larger order crosses over sooner.
    problem = paper(strong_convexity)
    for alpha in (1.5, 10.0, 1000.0):
        assert value(corollary_1, problem, first - 1, alpha=alpha) > value(composition, problem, first - 1, alpha=alpha)
        assert value(corollary_1, problem, first, alpha=alpha) < value(composition, problem, first, alpha=alpha)


def test_corollary_2_beats_composition_from_81_steps_on_at_every_order():
    for alpha in (1.5, 10.0, 1000.0):
        assert value(corollary_2, UNIT, 80, alpha=alpha) > value(composition, UNIT, 80, alpha=alpha)
        assert value(corollary_2, UNIT, 81, alpha=alpha) < value(composition, UNIT, 81, alpha=alpha)


@pytest.mark.parametrize("steps", [0, 1, 100, math.inf])
def test_theorem_2_at_lemma_5s_constant_is_corollary_1(steps):
    printed = 10 * 4**2 / (2 * 1250 * SIGMA**4 * 5000**2) * -math.expm1(-(SIGMA**2) * 1250 * 0.02 * steps)
    assert value(theorem_2, paper(), steps, lsi_constant=1250.0) == equal(printed)
    assert value(corollary_1, paper(), steps) == equal(printed)


@pytest.mark.parametrize(
    ("gamma", "expected"),
    [
        (0.25, (1.12562e-02, 2.02712e-02, 2.13215e-02)),
        (0.5, (6.29551e-03, 1.38346e-02, 1.58922e-02)),
        (0.75, (4.71892e-03, 1.34852e-02, 1.95822e-02)),
        (0.9, (4.22945e-03, 1.46524e-02, 2.80942e-02)),
        (1 - 1e-9, (0.004, 0.016, 0.04)),
        (1.0, (0.004, 0.016, 0.04)),
    ],
)
def test_theorem_2_with_free_gamma_has_the_sheets_values(gamma, expected):
    assert [value(theorem_2, paper(), steps, gamma=gamma) for steps in (50, 200, 500)] == quoted(expected)


def test_theorem_2_grows_without_end_only_undamped():
    assert value(theorem_2, paper(), math.inf, gamma=1.0) == math.inf
    assert value(theorem_2, paper(), math.inf, gamma=0.75) == equal(10 * 0.0016 / (4 * 0.75 * 0.25))


@pytest.mark.parametrize(
    ("steps", "gamma", "expected"),
    [(160, 0.729, 1.17408e-02), (200, 0.647, 1.32465e-02), (300, 0.555, 1.50744e-02), (500, 0.509, 1.58872e-02)],
)
def test_the_best_constant_gamma_has_the_sheets_values(steps, gamma, expected):
    assert best_gamma(paper(), steps=steps) == pytest.approx(gamma, abs=5e-4)
    assert value(theorem_2_best, paper(), steps) == quoted(expected)


@pytest.mark.parametrize("steps", [0, 1, 50, 100])
def test_up_to_100_steps_no_gamma_beats_composition(steps):
    assert best_gamma(paper(), steps=steps) == pytest.approx(1, abs=1e-7)
    assert value(theorem_2_best, paper(), steps) == equal(value(composition, paper(), steps))


def test_the_best_constant_gamma_is_a_half_in_the_end():
    assert best_gamma(paper(), steps=math.inf) == pytest.approx(0.5, abs=1e-7)
    assert value(theorem_2_best, paper(), math.inf) == equal(0.016)


@given(st.integers(1, 3000), st.floats(0.01, 1))
def test_no_gamma_beats_the_best(steps, gamma):
    best = value(theorem_2_best, paper(), steps)
    assert best <= value(theorem_2, paper(), steps, gamma=gamma) * (1 + 1e-12)


def test_a_small_gamma_is_worse_than_a_half_at_every_number_of_steps():
    # Item 4 of the suspected errors: the paper recommends gamma -> 0 near convergence.
    for steps in (1, 50, 200, 500, 5000, math.inf):
        small = [value(theorem_2, paper(), steps, gamma=gamma) for gamma in (0.5, 0.25, 0.01, 1e-4)]
        assert small == sorted(small)
        assert small[-1] > 1000 * small[0]


def test_an_initial_divergence_has_the_sheets_value():
    curve = theorem_2_from(linear(0.002), paper(), sigma=SIGMA, steps=100)
    assert curve(np.array([10.0]))[0] == quoted(1.74715e-02)


@pytest.mark.parametrize("gamma", [0.25, 0.5, 1.0])
@pytest.mark.parametrize("steps", [0, 1, 100])
def test_an_initial_divergence_decays_at_its_own_order(steps, gamma):
    quadratic = RenyiCurve(lambda alpha: np.log(3e-4 * alpha**2))
    decay = math.exp(-(1 - gamma) * 0.02 * steps)
    order = 1 + 9 * decay
    curve = theorem_2_from(quadratic, paper(), sigma=SIGMA, steps=steps, gamma=gamma)
    expected = 10 * 3e-4 * order * decay + value(theorem_2, paper(), steps, gamma=gamma)
    assert curve(np.array([10.0]))[0] == equal(expected)
    if (steps, gamma) == (100, 0.5):
        assert order == quoted(4.31092)


def test_an_initial_divergence_is_asked_at_the_order_of_the_sheet():
    asked = []

    def log_divergence(alpha):
        asked.append(alpha)
        return np.log(0.002 * alpha)

    theorem_2_from(RenyiCurve(log_divergence), paper(), sigma=SIGMA, steps=100)(np.array([10.0]))
    assert asked[0] == quoted(np.array([4.31092]))


def test_an_initial_divergence_passes_records_and_the_constant_on():
    options = {"records": 3, "lsi_constant": 800.0, "gamma": 0.6}
    decay = math.exp(-0.4 * 2 * SIGMA**2 * 800 * 0.02 * 50)
    curve = theorem_2_from(linear(0.002), paper(), sigma=SIGMA, steps=50, **options)
    expected = 0.02 * decay + value(theorem_2, paper(), 50, **options)
    assert curve(np.array([10.0]))[0] == equal(expected)


def test_an_initial_divergence_is_forgotten_in_the_end():
    forgotten = theorem_2_from(linear(0.002), paper(), sigma=SIGMA, steps=math.inf)
    assert forgotten(np.array([10.0]))[0] == equal(0.016)
    kept = theorem_2_from(linear(0.002), paper(), sigma=SIGMA, steps=math.inf, gamma=1.0)
    assert kept(np.array([10.0]))[0] == math.inf


def test_an_initial_divergence_is_never_asked_at_order_1():
    above_one = RenyiCurve(lambda alpha: np.log(np.where(alpha > 1, 0.002 * alpha, np.nan)))
    curve = theorem_2_from(above_one, paper(), sigma=SIGMA, steps=100_000)
    assert curve(np.array([1.5]))[0] == equal(0.0024)


def test_an_initial_divergence_must_be_known_at_all_orders():
    initial = RenyiCurve(np.log, orders=np.array([2.0, 3.0]))
    with pytest.raises(ParameterError, match=r"^`initial` must be known at all orders"):
        theorem_2_from(initial, paper(), sigma=SIGMA, steps=1)


def test_corollary_1_grows_by_less_and_less():
    increments = [value(corollary_1, paper(), k) - value(corollary_1, paper(), k - 1) for k in (1, 100, 500)]
    assert increments == quoted([1.59203e-04, 5.91560e-05, 1.08348e-06])


@pytest.mark.parametrize(
    ("strong_convexity", "steps", "slope", "order", "expected"),
    [
        (1, 100, 1.01139e-03, 107.692, 0.216827),
        (1, 500, 1.58922e-03, 86.1140, 0.272119),
        (2, 500, 7.99964e-04, 120.966, 0.192737),
        (4, 500, 4.00000e-04, 170.654, 0.136123),
    ],
)
def test_corollary_1_converts_to_the_sheets_epsilon(strong_convexity, steps, slope, order, expected):
    curve = corollary_1(paper(strong_convexity), sigma=SIGMA, steps=steps)
    assert curve(np.array([10.0]))[0] / 10 == quoted(slope)
    found = epsilon_from_renyi(curve, 1e-5, conversion="paper")
    assert found.epsilon == quoted(expected)
    assert found.alpha == quoted(order)


def test_composition_converts_to_the_sheets_epsilon():
    curve = composition(paper(), sigma=SIGMA, steps=500)
    assert epsilon_from_renyi(curve, 1e-5, conversion="paper").epsilon == quoted(0.433193)


# --- The log-Sobolev constant ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("steps", "expected"), [(0, 1250), (1, 1274.99), (10, 1496.14), (100, 2433.06)])
def test_the_tracked_constant_has_the_sheets_values(steps, expected):
    tracked = 1 / 1250
    for _ in range(steps):
        tracked = tracked_inverse_lsi(tracked, map_lipschitz=0.98, noise_variance=2 * 0.02 * SIGMA**2)
    assert 1 / tracked == quoted(expected)
    assert inverse_lsi(paper(), sigma=SIGMA, steps=steps, start=1 / 1250) == equal(tracked)


def test_the_tracked_constant_ends_at_that_of_the_sharp_rate():
    assert 1 / inverse_lsi(paper(), sigma=SIGMA, steps=math.inf, start=0.3) == equal(2475)
    assert sharp_rate(paper()) / (2 * SIGMA**2) == equal(2475)
    assert lemma_5_rate(paper()) / (2 * SIGMA**2) == equal(1250)
    assert sharp_rate(paper(4)) == equal(4 * 1.92)


# --- Sections 7.2 and 7.4 --------------------------------------------------------------------------------------------


def recursion(strong_convexity, steps, *, start_variance=0.0, alpha=10.0, sensitivity=4.0, n=5000, eta=0.02):
    """A7: mean gap and variance, followed step by step."""
    mean_gap, variance = 0.0, start_variance
    for _ in range(steps):
        mean_gap = (1 - eta * strong_convexity) * mean_gap + eta * sensitivity / n
        variance = (1 - eta * strong_convexity) ** 2 * variance + 2 * eta * SIGMA**2
    return alpha * mean_gap**2 / (2 * variance)


@pytest.mark.parametrize(
    ("strong_convexity", "expected"),
    [
        (1, (7.97317e-04, 3.69146e-03, 6.06528e-03, 7.88314e-03)),
        (2, (7.89182e-04, 3.01875e-03, 3.78993e-03, 3.91996e-03)),
        (4, (7.57099e-04, 1.86151e-03, 1.91908e-03, 1.92000e-03)),
    ],
)
def test_the_exact_divergence_from_a_point_is_the_recursions(strong_convexity, expected):
    for steps, sheet in zip((10, 50, 100, 300), expected, strict=True):
        found = value(exact_quadratic, paper(strong_convexity), steps)
        assert found == quoted(sheet)
        assert found == equal(recursion(strong_convexity, steps))
        rate = 0.02 * strong_convexity
        tanh = 10 * 0.0016 * (2 - rate) / (4 * strong_convexity) * math.tanh(-steps / 2 * math.log1p(-rate))
        assert found == equal(tanh)


@pytest.mark.parametrize(
    ("strong_convexity", "expected"),
    [
        (1, (1.63199e-06, 1.60206e-04, 2.83362e-03, 5.85764e-03, 7.88305e-03)),
        (2, (3.32779e-06, 3.09173e-04, 2.92053e-03, 3.78782e-03, 3.91996e-03)),
        (4, (6.90846e-06, 5.23382e-04, 1.86066e-03, 1.91908e-03, 1.92000e-03)),
    ],
)
def test_the_exact_divergence_from_a_gaussian_is_the_recursions(strong_convexity, expected):
    variance = 2 * SIGMA**2 / strong_convexity
    for steps, sheet in zip((1, 10, 50, 100, 300), expected, strict=True):
        found = value(exact_quadratic, paper(strong_convexity), steps, start_variance=variance)
        assert found == quoted(sheet)
        assert found == equal(recursion(strong_convexity, steps, start_variance=variance))


@pytest.mark.parametrize(
    ("steps", "expected"), [(0, 0), (1, 8.00000e-05), (10, 7.77208e-04), (50, 2.77649e-03), (300, 4.90157e-03)]
)
def test_an_anisotropic_quadratic_diverges_by_less_than_its_smallest_curvature_alone(steps, expected):
    gap = 4 / math.sqrt(2) / 5000
    found = exact_hessian([1, 4], [gap, gap], step_size=0.02, sigma=SIGMA, steps=steps)(np.array([10.0]))[0]
    assert found == quoted(expected)
    assert found <= value(exact_quadratic, paper(), steps) * (1 + 1e-12)


def test_a_curvature_whose_gradients_agree_adds_nothing():
    curves = [
        exact_hessian(curvatures, gap, step_size=0.02, sigma=SIGMA, steps=5)(np.array([10.0]))[0]
        for curvatures, gap in (([3], [2e-4]), ([1, 3], [0, 2e-4]))
    ]
    assert curves[0] == equal(curves[1])
    assert exact_hessian([1.0], [0.0], step_size=0.02, sigma=SIGMA, steps=5)(np.array([10.0]))[0] == 0


def test_small_steps_tend_to_the_continuous_limit():
    for step_size, expected in ((0.02, 6.06528e-03), (0.002, 6.09002e-03), (0.0002, 6.09248e-03)):
        problem = dataclasses.replace(UNIT, step_size=step_size)
        assert value(exact_quadratic, problem, round(2 / step_size)) == quoted(expected)
    fine = dataclasses.replace(UNIT, step_size=2e-8)
    assert value(exact_quadratic, fine, 10**8) == pytest.approx(0.008 * math.tanh(1), rel=1e-7)
    assert value(exact_quadratic, fine, 10**8) == quoted(6.09275e-03)
    assert value(corollary_2, fine, 10**8) == quoted(6.91732e-03)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (10, (1.52260e-03, 8.00000e-04, 1.45156e-03, 8.00000e-04, 7.97317e-04, 1.60206e-04)),
        (50, (6.29551e-03, 4.00000e-03, 5.07817e-03, 3.88850e-03, 3.69146e-03, 2.83362e-03)),
        (100, (1.01139e-02, 7.76703e-03, 6.96510e-03, 6.34600e-03, 6.06528e-03, 5.85764e-03)),
        (200, (1.38346e-02, 1.26291e-02, 7.92676e-03, 7.82883e-03, 7.64622e-03, 7.64154e-03)),
        (500, (1.58922e-02, 1.58227e-02, 8.08040e-03, 8.08014e-03, 7.91935e-03, 7.91935e-03)),
    ],
)
def test_the_sharper_bounds_have_the_sheets_values_and_order(steps, expected):
    bounds = (corollary_1, envelope, sharp_lsi, sharp_envelope, time_optimal)
    found = [value(bound, paper(), steps) for bound in bounds]
    from_gaussian = value(exact_quadratic, paper(), steps, start_variance=2 * SIGMA**2)
    assert [*found, from_gaussian] == quoted(expected)
    first, enveloped, sharp, sharply_enveloped, optimal = found
    assert first >= enveloped >= sharply_enveloped >= optimal >= from_gaussian
    assert first >= sharp >= optimal
    assert optimal == value(exact_quadratic, paper(), steps)


def test_the_sharp_constant_is_corollary_2_for_every_loss():
    for steps in (1, 50, math.inf):
        assert value(sharp_lsi, UNIT, steps) == equal(value(corollary_2, UNIT, steps))
        rate = 4 * (2 - 0.08)
        printed = 10 * 0.0016 / rate * -math.expm1(-rate * 0.02 * steps / 2)
        assert value(sharp_lsi, paper(4), steps) == equal(printed)


def test_the_envelope_is_composition_for_as_long_as_damping_does_not_pay():
    assert value(envelope, paper(), 50) == equal(value(composition, paper(), 50))
    assert value(envelope, paper(), 51) < value(composition, paper(), 51)
    assert value(envelope, paper(4), 100) == equal(10 * 0.0004 / 4 * (2 - math.exp(-3.5)) ** 2)
    assert value(sharp_envelope, paper(4), 100) == equal(10 * 0.0004 / 7.68 * (2 - math.exp((1 - 15.36) / 2)) ** 2)
