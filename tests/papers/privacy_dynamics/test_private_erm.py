"""Theorem 4's recipe, calibration, and what Lemma 6 promises (sections 4.5, 4.7, 7.3 and 7.7 of the sheet)."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certified_unlearning.accounting.core.conversion import epsilon_from_renyi
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.deletion.rates import least_sigma
from certified_unlearning.errors import AssumptionError, ParameterError
from certified_unlearning.papers.privacy_dynamics.theory.dynamics import composition, corollary_1
from certified_unlearning.papers.privacy_dynamics.theory.private_erm import (
    lemma_6,
    recipe_for_dp,
    recipe_for_renyi,
    risk_from_start,
    table_1,
)

PAPER = Problem(5000, 1, 4, 2, 0.02)
# Lemma 6 wants a step of at most 1 / 2.
UNIT = Problem(5000, 1, 1, 2, 0.02)
SETTING = {"n": 5000, "dimension": 10, "lipschitz": 1.0, "strong_convexity": 1.0, "smoothness": 4.0}


def quoted(expected):
    return pytest.approx(expected, rel=1e-5)


def equal(expected):
    return pytest.approx(expected, rel=1e-10)


def at(curve, alpha):
    return float(curve(np.array([alpha]))[0])


# --- The recipe ------------------------------------------------------------------------------------------------------


def test_the_recipe_for_a_renyi_target_has_the_sheets_values():
    recipe = recipe_for_renyi(**SETTING, alpha=10.0, epsilon=1.0)
    assert recipe.problem == Problem(5000, 1.0, 4.0, 1.0, 0.03125)
    assert recipe.sigma**2 == quoted(1.60000e-06)
    assert recipe.sigma == quoted(1.26491e-03)
    assert recipe.real_steps == quoted(397.735)
    assert (recipe.steps, recipe.alpha, recipe.epsilon) == (398, 10.0, 1.0)
    assert recipe.risk_bound == equal(1.6e-4)
    risks = [
        lemma_6(recipe.problem, sigma=recipe.sigma, steps=steps, dimension=10, lipschitz=1.0)
        for steps in (recipe.real_steps, recipe.steps)
    ]
    assert risks[0] == equal(recipe.risk_bound)
    assert risks[1] == quoted(1.59736e-04)
    run = {"sigma": recipe.sigma, "steps": recipe.steps}
    assert at(corollary_1(recipe.problem, **run), 10.0) == quoted(0.998008)
    assert at(composition(recipe.problem, **run), 10.0) == quoted(3.10938)


def test_the_recipe_for_a_dp_target_has_the_sheets_values():
    recipe = recipe_for_dp(**SETTING, epsilon=1.0, delta=1e-5)
    assert recipe.problem.step_size == 0.03125
    assert recipe.alpha == quoted(24.0259)
    assert recipe.epsilon == 0.5
    assert recipe.sigma**2 == quoted(7.68827e-06)
    assert recipe.sigma**2 == equal(8 * (1 + 2 * math.log(1e5)) / 5000**2)
    assert recipe.real_steps == quoted(348.865)
    assert 32 * math.log(5000**2 * 0.5 / (recipe.alpha * 10)) == quoted(347.505)
    assert recipe.steps == 349
    curve = corollary_1(recipe.problem, sigma=recipe.sigma, steps=recipe.steps)
    divergence = at(curve, recipe.alpha)
    assert divergence == quoted(0.497859)
    assert divergence + math.log(1e5) / (recipe.alpha - 1) == quoted(0.997859)
    best = epsilon_from_renyi(curve, 1e-5, conversion="paper")
    assert (best.epsilon, best.alpha) == quoted((0.997591, 24.5711))
    assert recipe.risk_bound == quoted(1.47365e-03)
    risk = lemma_6(recipe.problem, sigma=recipe.sigma, steps=recipe.steps, dimension=10, lipschitz=1.0)
    assert risk == quoted(7.61808e-04)


def test_composition_asks_a_quarter_of_the_logarithm_more_noise():
    recipe = recipe_for_renyi(**SETTING, alpha=10.0, epsilon=1.0)
    composed = at(composition(recipe.problem, sigma=1.0, steps=1), 10.0) * recipe.real_steps
    logarithm = math.log(5000**2 / 100)
    assert composed / recipe.sigma**2 == equal(logarithm / 4)


@given(
    st.integers(1, 10**5),
    st.integers(1, 100),
    st.floats(0.1, 10),
    st.floats(0.01, 2),
    st.floats(1, 5),
    st.floats(1.1, 100),
    st.floats(0.01, 10),
)
def test_a_recipe_meets_its_target_and_its_risk_bound(n, dimension, lipschitz, convexity, condition, alpha, epsilon):
    smoothness = convexity * condition
    recipe = recipe_for_renyi(
        n=n,
        dimension=dimension,
        lipschitz=lipschitz,
        strong_convexity=convexity,
        smoothness=smoothness,
        alpha=alpha,
        epsilon=epsilon,
    )
    assert at(corollary_1(recipe.problem, sigma=recipe.sigma, steps=math.inf), alpha) <= epsilon
    assert recipe.sigma**2 == equal(4 * alpha * lipschitz**2 / (convexity * epsilon * n**2))
    assert recipe.risk_bound == equal(
        10 * alpha * smoothness * dimension * lipschitz**2 / (convexity**2 * epsilon * n**2)
    )
    assert recipe.steps == max(1, math.ceil(recipe.real_steps))
    risk = lemma_6(recipe.problem, sigma=recipe.sigma, steps=recipe.steps, dimension=dimension, lipschitz=lipschitz)
    assert risk <= recipe.risk_bound * (1 + 1e-12)


@given(st.integers(1, 10**5), st.floats(0.1, 10), st.floats(0.01, 2), st.floats(1e-9, 0.5), st.floats(0.001, 1))
def test_a_dp_recipe_meets_its_target_and_its_risk_bound(n, lipschitz, convexity, delta, share):
    smoothness, epsilon = 3 * convexity, -2 * math.log(delta) * share
    recipe = recipe_for_dp(
        n=n,
        dimension=7,
        lipschitz=lipschitz,
        strong_convexity=convexity,
        smoothness=smoothness,
        epsilon=epsilon,
        delta=delta,
    )
    curve = corollary_1(recipe.problem, sigma=recipe.sigma, steps=recipe.steps)
    assert epsilon_from_renyi(curve, delta, conversion="paper").epsilon <= epsilon * (1 + 1e-12)
    assert recipe.risk_bound == equal(
        -80 * smoothness * 7 * lipschitz**2 * math.log(delta) / (convexity * n * epsilon) ** 2
    )
    risk = lemma_6(recipe.problem, sigma=recipe.sigma, steps=recipe.steps, dimension=7, lipschitz=lipschitz)
    assert risk <= recipe.risk_bound * (1 + 1e-12)


def test_a_target_so_strict_that_nothing_is_learned_takes_one_step():
    recipe = recipe_for_renyi(**SETTING | {"n": 3}, alpha=10.0, epsilon=0.1)
    assert recipe.real_steps < 0
    assert recipe.steps == 1


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"alpha": 1.0}, ParameterError, "^alpha must be finite and above 1, got 1.0$"),
        ({"alpha": math.inf}, ParameterError, "^alpha must be finite and above 1, got inf$"),
        ({"alpha": -1.0}, ParameterError, "^alpha must be finite and above 1, got -1.0$"),
        ({"epsilon": 0.0}, ParameterError, "^epsilon must be a finite number above 0, got 0"),
        ({"dimension": 0}, ParameterError, "^dimension must be a whole number, at least 1, got 0"),
        ({"n": 0}, ParameterError, "^n must be a whole number, at least 1, got 0"),
        ({"lipschitz": 0.0}, ParameterError, "^lipschitz must be a finite number above 0, got 0"),
        ({"smoothness": 0.0}, ParameterError, "^smoothness must be a finite number above 0, got 0"),
        ({"strong_convexity": 0.0}, ParameterError, "^strong_convexity must be a finite number above 0, got 0"),
        ({"strong_convexity": 5.0}, AssumptionError, "^strong_convexity must be at most smoothness"),
    ],
)
def test_the_renyi_recipe_refuses_senseless_values(changes, error, message):
    with pytest.raises(error, match=message):
        recipe_for_renyi(**SETTING | {"alpha": 10.0, "epsilon": 1.0} | changes)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"epsilon": 0.0}, ParameterError, "^epsilon must be a finite number above 0, got 0"),
        ({"epsilon": 24.0}, AssumptionError, r"^Theorem 4 needs epsilon <= 2 log\(1 / delta\) = 23\.02\d+, got .* 24"),
        ({"delta": 1.0}, ParameterError, "^delta must lie strictly between 0 and 1, got 1"),
        ({"dimension": 0}, ParameterError, "^dimension must be a whole number, at least 1, got 0"),
        ({"n": 0}, ParameterError, "^n must be a whole number, at least 1, got 0"),
        ({"strong_convexity": 0.0}, ParameterError, "^strong_convexity must be a finite number above 0, got 0"),
    ],
)
def test_the_dp_recipe_refuses_senseless_values(changes, error, message):
    with pytest.raises(error, match=message):
        recipe_for_dp(**SETTING | {"epsilon": 1.0, "delta": 1e-5} | changes)


def test_the_dp_recipe_allows_its_largest_epsilon():
    recipe = recipe_for_dp(**SETTING, epsilon=-2 * math.log(1e-5), delta=1e-5)
    assert recipe.alpha == equal(2)


# --- Calibration -----------------------------------------------------------------------------------------------------


def test_calibration_has_the_sheets_values():
    assert least_sigma(PAPER, alpha=10.0, epsilon=0.01) ** 2 == equal(10 * 16 / (0.01 * 5000**2))


@given(st.floats(1.01, 1000), st.floats(1e-6, 100))
def test_a_calibrated_sigma_meets_its_target_for_every_number_of_steps_and_no_smaller_one_does(alpha, epsilon):
    sigma = least_sigma(UNIT, alpha=alpha, epsilon=epsilon)
    for steps in (1, 500, 10**5, math.inf):
        assert at(corollary_1(UNIT, sigma=sigma, steps=steps), alpha) <= epsilon
    assert at(corollary_1(UNIT, sigma=sigma * (1 - 1e-13), steps=math.inf), alpha) > epsilon


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"alpha": 1.0}, ParameterError, "^alpha must be finite and above 1, got 1.0$"),
        ({"epsilon": 0.0}, ParameterError, "^epsilon must be a finite number above 0, got 0"),
    ],
)
def test_calibration_refuses_what_it_cannot_do(changes, error, message):
    with pytest.raises(error, match=message):
        least_sigma(PAPER, **{"alpha": 10.0, "epsilon": 0.01} | changes)


# --- Utility ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (10, (0.334476, 0.409268, 0.417365)),
        (100, (0.0107786, 0.0697793, 0.0756676)),
        (500, (0.00202020, 0.00402035, 0.00802270)),
    ],
)
def test_the_risk_bounds_lie_above_the_exact_risk_of_the_quadratic(steps, expected):
    kept = 0.98 ** (2 * steps)
    exact = (kept + 2 * 0.02**2 * 10 * (1 - kept) / (2 - 0.02)) / 2
    sharper = risk_from_start(UNIT, sigma=0.02, steps=steps, dimension=10, squared_distance=1.0)
    # 2 beta L^2 / lambda^2 is one half.
    stated = lemma_6(UNIT, sigma=0.02, steps=steps, dimension=10, lipschitz=0.5)
    assert [exact, sharper, stated] == quoted(expected)
    assert exact < sharper < stated


def test_risk_bounds_multiply_out():
    problem = Problem(100, 0.5, 0.75, 1, 0.5 / (2 * 0.75**2))
    options = {"sigma": 0.2, "steps": 3, "dimension": 5}
    start = 2 * 0.75 * 1.5**2 / 0.25 * math.exp(-0.5 * problem.step_size * 3)
    assert lemma_6(problem, **options, lipschitz=1.5) == equal(start + 2 * 0.75 * 5 * 0.04 / 0.5)
    kept = (1 - 0.5 * problem.step_size) ** 3
    sharper = 0.75 / 2 * kept * 1.7 + 0.75 * 5 * 0.04 / 0.5 * (1 - kept)
    assert risk_from_start(problem, **options, squared_distance=1.7) == equal(sharper)
    assert risk_from_start(problem, **options | {"steps": 0}, squared_distance=1.7) == equal(0.75 / 2 * 1.7)
    limit = risk_from_start(problem, **options | {"steps": math.inf}, squared_distance=1.7)
    assert limit == equal(0.75 * 5 * 0.04 / 0.5)


def test_lemma_6s_printed_unrolling_exceeds_its_own_statement():
    # Item 10 of the suspected errors: 2 beta d sigma^2 times the sum, where beta eta d sigma^2 is right.
    beta, dimension, sigma, step_size = 1.0, 10, 0.02, 0.02
    total = sum((1 - step_size) ** k for k in range(500))
    stated = 2 * beta * dimension * sigma**2
    assert 2 * beta * dimension * sigma**2 * total > 40 * stated
    right = beta * step_size * dimension * sigma**2 * total
    assert right <= stated / 2
    unrolled = risk_from_start(UNIT, sigma=sigma, steps=500, dimension=dimension, squared_distance=0.0)
    assert unrolled == equal(right)


@pytest.mark.parametrize(
    ("function", "option"), [(lemma_6, {"lipschitz": 1.0}), (risk_from_start, {"squared_distance": 1.0})]
)
def test_risk_bounds_refuse_what_lemma_6_excludes(function, option):
    good = {"sigma": 0.02, "steps": 3, "dimension": 10} | option
    with pytest.raises(
        AssumptionError, match=r"^Lemma 6 needs step_size <= strong_convexity / \(2 smoothness\^2\) = 0"
    ):
        function(dataclasses.replace(UNIT, step_size=0.5000001), **good)
    function(dataclasses.replace(UNIT, step_size=0.5), **good)
    with pytest.raises(AssumptionError, match=r"got step_size = 0\.02$"):
        function(Problem(5000, 1, 8, 2, 0.02), **good)
    with pytest.raises(AssumptionError, match="strong_convexity must be above 0"):
        function(dataclasses.replace(UNIT, strong_convexity=0.0), **good)
    for name, senseless in (("sigma", 0.0), ("dimension", 0), ("steps", -1), (next(iter(option)), -1.0)):
        with pytest.raises(ParameterError, match=f"^{name} must be a "):
            function(UNIT, **good | {name: senseless})


def logistic_risk(theta, rows, strong_convexity):
    """The mean loss of every column of ``theta``; the rows have their labels folded in."""
    return np.logaddexp(0, -rows @ theta).mean(axis=0) + strong_convexity / 2 * (theta**2).sum(axis=0)


def projected(theta):
    return theta / np.maximum(1, np.linalg.norm(theta, axis=0))


# Every chain's excess risk lies between 0 and 1.5 and the mean is about 0.1 where 0.3 is allowed: by Hoeffding's
# inequality fewer than one seed in e^300 fails.
@pytest.mark.parametrize("steps", [3, 30])
def test_the_risk_of_simulated_chains_on_a_logistic_loss_is_below_both_bounds(steps):
    rng = np.random.default_rng(5)
    n, dimension, strong_convexity, sigma, chains = 100, 5, 0.5, 0.2, 10_000
    rows = rng.standard_normal((n, dimension))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows *= np.sign(rows @ rng.standard_normal(dimension) + 0.3 * rng.standard_normal(n))[:, np.newaxis]
    step_size = strong_convexity / (2 * 0.75**2)
    problem = Problem(n, strong_convexity, 0.75, 1, step_size)

    def descended(theta, count, noise):
        for _ in range(count):
            gradient = -rows.T @ (1 / (1 + np.exp(rows @ theta))) / n + strong_convexity * theta
            theta = projected(theta - step_size * gradient + noise * rng.standard_normal(theta.shape))
        return theta

    minimiser = descended(np.zeros((dimension, 1)), 300, 0.0)
    assert np.linalg.norm(minimiser) < 0.99
    start = projected(math.sqrt(2 * sigma**2 / strong_convexity) * rng.standard_normal((dimension, chains)))
    theta = descended(start, steps, math.sqrt(2 * step_size) * sigma)
    excess = logistic_risk(theta, rows, strong_convexity) - logistic_risk(minimiser, rows, strong_convexity)
    largest = (1 + float(np.linalg.norm(minimiser))) ** 2
    options = {"sigma": sigma, "steps": steps}
    sharper = risk_from_start(problem, **options, dimension=dimension, squared_distance=largest)
    assert excess.min() > -1e-12
    assert excess.mean() < sharper < lemma_6(problem, **options, dimension=dimension, lipschitz=1.5)
    if steps == 30:
        assert sharper == pytest.approx(0.300, abs=2e-3)
        assert lemma_6(problem, **options, dimension=dimension, lipschitz=1.5) == pytest.approx(0.617, abs=1e-3)
        # The planted fault: the dimension forgotten.
        assert excess.mean() > risk_from_start(problem, **options, dimension=1, squared_distance=largest)


# --- Table 1 ---------------------------------------------------------------------------------------------------------


def test_table_1_has_the_sheets_values():
    rows = table_1(n=5000, dimension=10, strong_convexity=1.0, smoothness=4.0, epsilon=1.0)
    assert [(row.method, row.condition) for row in rows] == [
        ("noisy SGD", ""),
        ("DP-SVRG", ""),
        ("output perturbation", ""),
        ("objective perturbation", "epsilon >= beta / (2 lambda)"),
        ("noisy GD", "epsilon <= 2 log(1 / delta)"),
    ]
    assert [row.utility for row in rows] == quoted([2.90170e-05, 3.40688e-06, 1.6e-06, 4e-07, 1.6e-06])
    assert [row.gradients for row in rows if row.gradients] == quoted([2.5e7, 73717.9, 294636, 1178544])
    assert rows[3].gradients is None


def test_table_1_multiplies_out():
    n, d, convexity, smoothness, epsilon = 300, 7, 0.5, 3.0, 0.8
    rows = table_1(n=n, dimension=d, strong_convexity=convexity, smoothness=smoothness, epsilon=epsilon)
    signal = n**2 * epsilon**2
    assert [(row.utility, row.gradients or 0) for row in rows] == [
        equal((d * math.log(n) ** 2 / (convexity * signal), n**2)),
        equal(
            (d * math.log(n) / (convexity * signal), (n + smoothness / convexity) * math.log(convexity * signal / d))
        ),
        equal((smoothness * d / (convexity**2 * signal), smoothness / convexity * n * math.log(signal / d))),
        equal((d / (convexity * signal), 0)),
        equal((smoothness * d / (convexity**2 * signal), (smoothness / convexity) ** 2 * n * math.log(signal / d))),
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n": 1}, "^n must be a whole number, at least 2, got 1"),
        ({"dimension": 0}, "^dimension must be a whole number, at least 1, got 0"),
        ({"epsilon": 0.0}, "^epsilon must be a finite number above 0, got 0"),
        ({"smoothness": 0.0}, "^smoothness must be a finite number above 0, got 0"),
        ({"strong_convexity": 0.0}, "^strong_convexity must be a finite number above 0, got 0"),
        (
            {"n": 10, "dimension": 100},
            r"^Table 1 needs n\^2 epsilon\^2 min\(1, strong_convexity\) > dimension, got n = 10, epsilon = 1.0, ",
        ),
        ({"n": 10, "strong_convexity": 0.1}, "strong_convexity = 0.1, dimension = 10$"),
    ],
)
def test_table_1_refuses_what_has_no_logarithm(changes, message):
    good = {"n": 5000, "dimension": 10, "strong_convexity": 1.0, "smoothness": 4.0, "epsilon": 1.0}
    with pytest.raises(ParameterError, match=message):
        table_1(**good | changes)
