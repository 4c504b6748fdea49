import dataclasses
import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import log_ndtr, ndtr
from scipy.stats import chi2

from certified_unlearning.accounting import (
    Problem,
    extra_delta,
    learned_steps,
    residual_mu,
    starting_distance,
)
from certified_unlearning.accounting.langevin import stationarity
from certified_unlearning.errors import AssumptionError, InfeasibleError, ParameterError
from tests.accounting.paper_settings import MNIST

MNIST_START = {"sigma": 0.03, "dimension": 784, "start_norm": 28_000.0, "start_std": 0.0, "beta": 1e-12}

# --- Test vectors (shifted-interpolation, section 7). -------------------------------------------------------


def test_starting_distance_is_the_published_one():
    assert starting_distance(MNIST, **MNIST_START) == pytest.approx(28093.2827449472, rel=2e-15)
    radius = starting_distance(MNIST, **MNIST_START | {"start_norm": 0.0}) - 1 / 0.011982
    assert radius == pytest.approx(9.82422383218991, rel=1e-13)


@pytest.mark.parametrize(("mu_tolerance", "steps"), [(1e-2, 345), (1e-3, 394), (1e-6, 542)])
def test_learned_steps_are_the_published_ones(mu_tolerance, steps):
    assert learned_steps(MNIST, **MNIST_START, mu_tolerance=mu_tolerance) == steps


def test_residual_mu_is_the_published_one():
    distance = starting_distance(MNIST, **MNIST_START)
    assert residual_mu(MNIST, sigma=0.03, distance=distance, steps=394) == pytest.approx(0.000988856661564, rel=3e-12)


# --- The exact oracle: quadratics of curvature m, where every law is Gaussian. ------------------------------


@st.composite
def problems(draw):
    strong_convexity = 10 ** draw(st.floats(-2, 1))
    smoothness = strong_convexity * 10 ** draw(st.floats(0, 2))
    step_size = draw(st.floats(0.05, 1)) / smoothness
    return Problem(draw(st.integers(1, 100)), strong_convexity, smoothness, 10 ** draw(st.floats(-2, 1)), step_size)


SIGMAS = st.floats(-2, 1).map(lambda exponent: 10**exponent)


def followed(problem, sigma, steps, *, mean, minimiser, variance=0.0):
    """Mean and variance after so many steps on the quadratic with that minimiser, followed step by step."""
    contraction = 1 - problem.step_size * problem.strong_convexity
    for _ in range(steps):
        mean = minimiser + contraction * (mean - minimiser)
        variance = contraction**2 * variance + 2 * problem.step_size * sigma**2
    return mean, variance


def stationary_variance(problem, sigma):
    contraction = 1 - problem.step_size * problem.strong_convexity
    return 2 * problem.step_size * sigma**2 / (1 - contraction**2)


@given(problem=problems(), sigma=SIGMAS, distance=st.floats(0, 1000), steps=st.integers(1, 500))
def test_residual_mu_is_exact_on_quadratics(problem, sigma, distance, steps):
    gap, variance = followed(problem, sigma, steps, mean=distance, minimiser=0.0)
    exact = gap / math.sqrt(variance)
    assert residual_mu(problem, sigma=sigma, distance=distance, steps=steps) == pytest.approx(exact, rel=1e-9)


@given(
    problem=problems(),
    sigma=SIGMAS,
    dimension=st.integers(1, 2000),
    beta=st.floats(-14, -0.1).map(lambda exponent: 10**exponent),
    start_norm=st.floats(0, 100),
    start_std=st.sampled_from([0.0, 0.1, 3.0]),
)
def test_the_start_is_farther_from_a_stationary_draw_with_probability_below_its_beta(
    problem, sigma, dimension, beta, start_norm, start_std
):
    # On quadratics the worst minimiser has norm M / m and lies opposite to the start; each radius then has chi law.
    distance = starting_distance(
        problem, sigma=sigma, dimension=dimension, start_norm=start_norm, start_std=start_std, beta=beta
    )
    fixed = start_norm + problem.lipschitz / problem.strong_convexity
    std = math.sqrt(stationary_variance(problem, sigma))
    # Triangle inequality: the excess over `fixed` is shared in proportion to the two standard deviations.
    radius = (distance - fixed) / (std + start_std)
    assume(distance - fixed > 1e-6 * fixed)
    assert chi2.sf(radius**2, dimension) <= beta * (1 + 1e-6)


@given(
    problem=problems(),
    sigma=SIGMAS,
    start_norm=st.floats(0, 1e6),
    mu_tolerance=st.floats(-9, 1).map(lambda exponent: 10**exponent),
)
def test_learned_steps_meet_the_tolerance_and_one_less_does_not(problem, sigma, start_norm, mu_tolerance):
    start = {"sigma": sigma, "dimension": 10, "start_norm": start_norm, "start_std": 0.5, "beta": 1e-9}
    steps = learned_steps(problem, **start, mu_tolerance=mu_tolerance)
    distance = starting_distance(problem, **start)
    assert steps >= 1
    assert residual_mu(problem, sigma=sigma, distance=distance, steps=steps) <= mu_tolerance
    if steps > 1:
        assert residual_mu(problem, sigma=sigma, distance=distance, steps=steps - 1) > mu_tolerance


def test_a_step_that_forgets_everything_is_enough():
    one_step = Problem(10, 2.0, 2.0, 1.0, 0.5)
    assert residual_mu(one_step, sigma=1, distance=100, steps=1) == 0
    assert learned_steps(one_step, sigma=1, dimension=3, start_norm=9, start_std=0, mu_tolerance=1e-9, beta=1e-9) == 1


def test_no_steps_forget_nothing():
    assert residual_mu(MNIST, sigma=0.03, distance=1, steps=0) == math.inf
    assert residual_mu(MNIST, sigma=0.03, distance=1e-9, steps=0) == math.inf
    assert residual_mu(MNIST, sigma=0.03, distance=0, steps=0) == 0


def test_residual_mu_keeps_its_digits_where_the_contraction_is_next_to_one():
    slow = dataclasses.replace(MNIST, step_size=1e-12)
    # c = 1 - 1.2e-14: after T steps with c^T ~ 1 the variance is T tau^2, tau^2 = 2 eta sigma^2.
    exact = 1 / math.sqrt(1000 * 2 * 1e-12 * 0.03**2)
    assert residual_mu(slow, sigma=0.03, distance=1, steps=1000) == pytest.approx(exact, rel=1e-10)


# --- extra_delta: on one-dimensional quadratics the true delta is known. ------------------------------------


def hockey_stick(first, second, epsilon):
    """The least delta with P(E) <= e^epsilon Q(E) + delta for every E, for Gaussians P and Q given as (mean, variance).

    P's log-likelihood ratio is quadratic, so {p > e^epsilon q} is between or outside its two roots.
    """
    (mean, variance), (other_mean, other_variance) = first, second
    a = (1 / other_variance - 1 / variance) / 2
    b = mean / variance - other_mean / other_variance
    c = (other_mean**2 / other_variance - mean**2 / variance + math.log(other_variance / variance)) / 2 - epsilon

    def cut(left, right):
        def mass(centre, square, log_factor=0.0):
            std = math.sqrt(square)
            low, high = (left - centre) / std, (right - centre) / std
            if low > 0:
                low, high = -high, -low
            upper = math.exp(log_factor + log_ndtr(high))
            return upper - (math.exp(log_factor + log_ndtr(low)) if low > -math.inf else 0.0)

        return mass(mean, variance) - mass(other_mean, other_variance, epsilon)

    discriminant = b**2 - 4 * a * c
    if discriminant <= 0:  # The ratio never reaches e^epsilon: if it were above it everywhere, P would exceed mass 1.
        return 0.0
    half = -(b + math.copysign(math.sqrt(discriminant), b)) / 2
    if a == 0:
        return cut(c / half, math.inf) if b > 0 else cut(-math.inf, c / half)
    low, high = sorted([half / a, c / half])
    inside = cut(low, high)
    return max(0.0, inside if a < 0 else 1 - math.exp(epsilon) - inside)


def gaussian_delta(epsilon, mu):
    if mu == 0:
        return 0.0
    return ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))


def true_and_stationary_delta(problem, *, sigma, start, shift, learning, unlearning, epsilon):
    """The true delta after finite learning (the larger of both directions) and that of stationary laws.

    Learning has its minimiser at 0, the data without the records at ``shift``; retraining runs ``learning`` steps.
    """
    mean, variance = followed(problem, sigma, learning, mean=start, minimiser=0.0)
    unlearned = followed(problem, sigma, unlearning, mean=mean, variance=variance, minimiser=shift)
    retrained = followed(problem, sigma, learning, mean=start, minimiser=shift)
    contraction = 1 - problem.step_size * problem.strong_convexity
    mu = contraction**unlearning * abs(shift) / math.sqrt(stationary_variance(problem, sigma))
    truth = max(hockey_stick(unlearned, retrained, epsilon), hockey_stick(retrained, unlearned, epsilon))
    return truth, gaussian_delta(epsilon, mu)


def residual(problem, *, sigma, start, beta, learning):
    distance = starting_distance(problem, sigma=sigma, dimension=1, start_norm=abs(start), start_std=0.0, beta=beta)
    return residual_mu(problem, sigma=sigma, distance=distance, steps=learning)


@given(
    problem=problems(),
    sigma=SIGMAS,
    start=st.floats(-1000, 1000),
    shift_share=st.floats(0.01, 1),
    side=st.sampled_from([-1, 1]),
    learning=st.integers(1, 400),
    unlearning=st.integers(0, 100),
    epsilon=st.floats(0.01, 10),
    beta=st.floats(-12, -2).map(lambda exponent: 10**exponent),
)
def test_with_the_extra_delta_the_stationary_guarantee_holds_after_finite_learning(
    problem, sigma, start, shift_share, side, learning, unlearning, epsilon, beta
):
    # Minimisers lie within M / m of 0.
    shift = side * shift_share * problem.lipschitz / problem.strong_convexity
    case = {"sigma": sigma, "start": start, "learning": learning}
    truth, stationary = true_and_stationary_delta(problem, **case, shift=shift, unlearning=unlearning, epsilon=epsilon)
    extra = extra_delta(mu=residual(problem, **case, beta=beta), betas_total=beta, epsilon=epsilon)
    # 1e-11: the oracle's own rounding, up to e^epsilon times that of a normal distribution function.
    assert truth <= stationary + extra + 1e-11


def test_without_the_extra_delta_or_with_half_of_it_the_guarantee_would_not_hold():
    small, case = Problem(10, 0.1, 1.0, 0.1, 1.0), {"sigma": 1.0, "start": 100.0, "learning": 40}
    truth, stationary = true_and_stationary_delta(small, **case, shift=0.5, unlearning=100, epsilon=0.01)
    extra = extra_delta(mu=residual(small, **case, beta=1e-6), betas_total=1e-6, epsilon=0.01)
    total_variation = extra / (1 + math.exp(0.01))
    assert stationary + total_variation / 2 < truth < stationary + extra


def test_the_hockey_stick_of_the_oracle_agrees_with_numerical_integration():
    def density(point, mean, variance):
        return math.exp(-((point - mean) ** 2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)

    for first, second, epsilon in [
        ((0.3, 1.0), (-0.2, 1.5), 0.1),
        ((0.3, 1.5), (-0.2, 1.0), 0.1),
        ((0.5, 1.0), (0.0, 1.0), 0.2),
        ((0.0, 1.0), (0.5, 1.0), 0.2),
        ((3.0, 2.0), (0.0, 1.0), 1.0),
    ]:
        width = 1e-3
        grid = [width * step for step in range(-20_000, 20_001)]
        integral = sum(
            max(0.0, density(point, *first) - math.exp(epsilon) * density(point, *second)) * width for point in grid
        )
        assert hockey_stick(first, second, epsilon) == pytest.approx(integral, rel=1e-5)


@pytest.mark.parametrize(
    ("mu", "betas_total", "epsilon", "expected"),
    [
        (0.0, 0.0, 3.0, 0.0),
        (0.0, 1e-6, 1.0, 1e-6 * (1 + math.e)),
        (0.1, 0.0, 1.0, (2 * ndtr(0.05) - 1) * (1 + math.e)),
        (0.1, 1e-3, 0.5, (2 * ndtr(0.05) - 1 + 1e-3) * (1 + math.exp(0.5))),
        (1e-6, 1e-12, 5.0, (1e-6 / math.sqrt(2 * math.pi) + 1e-12) * (1 + math.exp(5))),
        (math.inf, 0.0, 1.0, 1.0),
        (1e-3, 0.0, 1e6, 1.0),
    ],
)
def test_extra_delta_is_tv_times_one_plus_exp_epsilon_at_most_one(mu, betas_total, epsilon, expected):
    assert extra_delta(mu=mu, betas_total=betas_total, epsilon=epsilon) == pytest.approx(expected, rel=1e-9)


# --- Planted faults. ----------------------------------------------------------------------------------------


def test_counting_the_noise_without_its_factor_two_is_caught(monkeypatch):
    right = stationarity._stationary_std
    monkeypatch.setattr(stationarity, "_stationary_std", lambda *arguments: right(*arguments) / math.sqrt(2))
    small = Problem(10, 0.1, 1.0, 0.1, 1.0)
    gap, variance = followed(small, 1.0, 30, mean=5.0, minimiser=0.0)
    assert residual_mu(small, sigma=1.0, distance=5.0, steps=30) != pytest.approx(gap / math.sqrt(variance), rel=0.1)
    assert learned_steps(MNIST, **MNIST_START, mu_tolerance=1e-3) != 394


# --- Bad input. ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"sigma": 0.0}, "sigma must be a finite number above 0, got 0.0"),
        ({"dimension": 0}, "dimension must be a whole number, at least 1, got 0"),
        ({"start_norm": -1.0}, "start_norm must be a finite number, at least 0, got -1.0"),
        ({"start_std": math.nan}, "start_std must be a finite number, at least 0, got nan"),
        ({"beta": 0.0}, "beta must lie strictly between 0 and 1, got 0.0"),
        ({"mu_tolerance": 0.0}, "mu_tolerance must be a finite number above 0, got 0.0"),
    ],
)
def test_learned_steps_refuse_what_makes_no_sense(wrong, message):
    with pytest.raises(ParameterError, match=message):
        learned_steps(MNIST, **MNIST_START | {"mu_tolerance": 1e-3} | wrong)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"mu": -1.0}, "mu must be at least 0, got -1.0"),
        ({"mu": math.nan}, "mu must be at least 0, got nan"),
        ({"betas_total": -1e-9}, "betas_total must be a finite number, at least 0, got -1e-09"),
        ({"epsilon": math.inf}, "epsilon must be a finite number, at least 0, got inf"),
    ],
)
def test_extra_delta_refuses_what_makes_no_sense(wrong, message):
    with pytest.raises(ParameterError, match=message):
        extra_delta(**{"mu": 0.1, "betas_total": 1e-6, "epsilon": 1.0} | wrong)


@pytest.mark.parametrize("wrong", [{"distance": -1.0}, {"distance": math.nan}, {"steps": -1}, {"steps": 1.5}])
def test_residual_mu_refuses_what_makes_no_sense(wrong):
    with pytest.raises(ParameterError):
        residual_mu(MNIST, **{"sigma": 0.03, "distance": 1.0, "steps": 10} | wrong)


def test_a_step_size_without_contraction_by_one_minus_eta_m_is_refused():
    longest = 2 / (MNIST.smoothness + MNIST.strong_convexity)
    residual_mu(dataclasses.replace(MNIST, step_size=longest), sigma=0.03, distance=1, steps=5)
    with pytest.raises(AssumptionError, match="contracts by 1 - step_size"):
        residual_mu(dataclasses.replace(MNIST, step_size=1.01 * longest), sigma=0.03, distance=1, steps=5)


def test_learning_that_never_arrives_is_infeasible():
    with pytest.raises(InfeasibleError, match=r"mu_tolerance = 0.001 takes more than 1e\+12 learning steps"):
        learned_steps(dataclasses.replace(MNIST, step_size=1e-12), **MNIST_START, mu_tolerance=1e-3)


@pytest.mark.parametrize(
    "bound",
    [
        lambda problem: residual_mu(problem, sigma=0.1, distance=1.0, steps=5),
        lambda problem: starting_distance(problem, sigma=0.1, dimension=2, start_norm=0, start_std=0, beta=1e-6),
    ],
)
def test_a_merely_convex_problem_has_no_stationary_law_to_approach(bound):
    with pytest.raises(AssumptionError, match="strong_convexity must be above 0, got 0"):
        bound(Problem(n=10, strong_convexity=0, smoothness=1, lipschitz=1, step_size=1))
