"""Descent-to-Delete with a published state against retraining that is noised once."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import binom, chi2, ncx2

from certified_unlearning.accounting.core.conversion import delta_from_mu, epsilon_from_mu, mu_from_epsilon
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.descent import conditional as descent_conditional
from certified_unlearning.accounting.descent.conditional import (
    conditional_epsilon,
    conditional_mu,
    least_conditional_sigma,
    least_conditional_steps,
)
from certified_unlearning.accounting.descent.shifted import published_state_curve
from certified_unlearning.errors import AssumptionError, InfeasibleError, ParameterError
from tests.accounting.paper_settings import MNIST, for_descent
from tests.accounting.quadratic_streams import mean_gradient_gaps

DESCENT = for_descent(MNIST)
# gamma = (L - m) / (L + m) = 3/5.
SMALL = for_descent(Problem(100, 0.5, 2.0, 3.0, 1.0))
GAMMA = 0.6
ADJACENCIES = ("replace", "zero-out", "remove")
DELTA = 1e-5


# --- The exact laws on losses (m/2) |x|^2 - g x: Gaussians whose covariances differ by a factor. -------------------


def laws(problem, *, sigma, records, steps, learning_steps, start):
    """By how much the means differ, and the ratio of the standard deviations, of unlearned and retrained model.

    Every gradient points along one axis, and learning starts as far along it from the last optimum.
    """
    contraction = 1 - problem.step_size * problem.strong_convexity
    gap, variance = start, 0.0
    for difference, count in zip(mean_gradient_gaps(problem, records), [learning_steps, *steps], strict=True):
        for _ in range(count):
            gap = contraction * gap + problem.step_size * difference
        variance = contraction ** (2 * count) * variance + 1
    return abs(gap - contraction**learning_steps * start) / sigma, math.sqrt(variance)


def exact_deltas(epsilon, *, dimension, gap, ratio):
    """The hockey-stick divergences of N(0, ratio^2 I) from N(gap e, I), and the other way.

    The log ratio of the densities is a multiple of the squared distance from a centre, plus a constant.
    """
    curvature = 1 - ratio**-2
    centre = gap / curvature
    constant = gap**2 * (1 / curvature - 1) + 2 * dimension * math.log(ratio)

    def chi_square(shift):
        return ncx2(dimension, shift**2) if shift else chi2(dimension)

    unlearned, retrained = chi_square(centre / ratio), chi_square(centre - gap)
    outer, inner = ((constant + 2 * sign * epsilon) / curvature for sign in (1, -1))
    forward = unlearned.sf(max(outer, 0) / ratio**2) - math.exp(epsilon) * retrained.sf(max(outer, 0))
    backward = retrained.cdf(inner) - math.exp(epsilon) * unlearned.cdf(inner / ratio**2) if inner > 0 else 0.0
    return forward, backward


def exact_epsilon(delta, **law):
    if max(exact_deltas(0.0, **law)) <= delta:
        return 0.0
    return brentq(lambda epsilon: max(exact_deltas(epsilon, **law)) - delta, 0, 500, xtol=1e-9)


def test_the_exact_divergences_are_those_of_the_densities():
    rng = np.random.default_rng(5)
    dimension, gap, ratio, epsilon = 3, 0.7, 1.3, 0.4
    # 10^6 draws: a deviation of 5 standard errors has a probability of 6e-7.
    points = rng.standard_normal((10**6, dimension))
    shift = gap * np.eye(dimension)[0]

    def log_ratio(x):
        return -(x**2).sum(1) / (2 * ratio**2) - dimension * math.log(ratio) + ((x - shift) ** 2).sum(1) / 2

    forward = np.maximum(0, 1 - np.exp(epsilon - log_ratio(ratio * points)))
    backward = np.maximum(0, 1 - np.exp(epsilon + log_ratio(points + shift)))
    found = exact_deltas(epsilon, dimension=dimension, gap=gap, ratio=ratio)
    for exact, sample in zip(found, (forward, backward), strict=True):
        assert abs(exact - sample.mean()) < 5 * sample.std() / 1e3


def test_the_exact_divergences_become_those_of_equal_covariances():
    for exact in exact_deltas(0.4, dimension=1, gap=0.7, ratio=1 + 1e-5):
        assert exact == pytest.approx(delta_from_mu(0.7, 0.4), rel=1e-3)


REQUESTS = st.lists(st.tuples(st.integers(1, 15), st.integers(1, 6)), min_size=1, max_size=4)
STREAMS = {
    "requests": REQUESTS,
    "adjacency": st.sampled_from(ADJACENCIES),
    "learning_steps": st.sampled_from([0, 1, 7, 300]),
    "start": st.floats(-3, 3),
    "sigma": st.floats(-1.5, 1.5).map(lambda exponent: 10**exponent),
    "dimension": st.sampled_from([1, 2, 10, 100, 785]),
    "delta": st.floats(-8, -1).map(lambda exponent: 10**exponent),
}


def case_of(requests, adjacency, learning_steps, start, sigma, dimension):
    records, steps = zip(*requests, strict=True)
    problem = dataclasses.replace(SMALL, adjacency=adjacency)
    gap, ratio = laws(problem, sigma=sigma, records=records, steps=steps, learning_steps=learning_steps, start=start)
    # In units of M / m: the optima on any data are within it of 0, hence the start within so much of any of them.
    distance = abs(start) + 2 * problem.lipschitz / problem.strong_convexity
    asked = {
        "sigma": sigma,
        "dimension": dimension,
        "records_per_request": records,
        "steps_per_request": steps,
        "learning_steps": learning_steps,
        "starting_distance": distance,
    }
    return problem, asked, {"dimension": dimension, "gap": gap, "ratio": ratio}


@given(**STREAMS)
def test_on_quadratics_no_epsilon_is_below_the_truth(
    requests, adjacency, learning_steps, start, sigma, dimension, delta
):
    problem, asked, law = case_of(requests, adjacency, learning_steps, start, sigma, dimension)
    epsilon = conditional_epsilon(problem, **asked, delta=delta)
    if epsilon < 500:
        assert max(exact_deltas(epsilon, **law)) <= delta


@given(**STREAMS)
def test_a_mu_and_its_beta_bound_every_delta(requests, adjacency, learning_steps, start, sigma, dimension, delta):
    problem, asked, law = case_of(requests, adjacency, learning_steps, start, sigma, dimension)
    mu = conditional_mu(problem, **asked, beta=delta)
    for epsilon in (0.0, 0.1, 1.0, 5.0, 20.0):
        bound = (1 - delta) * delta_from_mu(mu, epsilon) + delta
        assert max(exact_deltas(epsilon, **law)) <= bound * (1 + 1e-9)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_distance_holds_for_all_pasts_but_a_share_beta(adjacency):
    problem = dataclasses.replace(SMALL, adjacency=adjacency)
    rng = np.random.default_rng(11)
    runs, dimension, sigma, beta, learning_steps = 100_000, 4, 0.4, 1e-2, 3
    records, steps = (9, 2, 5), (1, 2, 1)
    # Half of the coordinates have curvature m, the others L: both contract by gamma.
    contraction = 1 - problem.step_size * np.array([0.5, 0.5, 2.0, 2.0])
    difference = mean_gradient_gaps(problem, records)
    axis = np.eye(dimension)[0]
    distances = np.full((runs, dimension), 0.0) + 6.0 * axis * contraction**learning_steps
    distances += (1 - GAMMA**learning_steps) / problem.strong_convexity * difference[0] * axis
    for moved, count in zip(difference[1:], steps, strict=True):
        distances += sigma * rng.standard_normal((runs, dimension))
        optimum = moved / problem.strong_convexity * axis
        distances = (distances - optimum) * contraction**count + optimum
    asked = {"sigma": sigma, "dimension": dimension, "records_per_request": records, "steps_per_request": steps}
    asked |= {"learning_steps": learning_steps, "starting_distance": 6.0}
    mu = conditional_mu(problem, **asked, beta=beta)
    # At the last, the optimum is 0, and mu has room for retraining's own distance.
    norms = np.linalg.norm(distances, axis=1)
    broken = int((norms > mu * sigma - 6.0 * GAMMA**learning_steps).sum())
    # A share of beta would be exceeded by so much with a probability of 1e-6.
    assert broken <= binom.isf(1e-6, runs, beta)
    assert (norms > 0.4 * (mu * sigma - 6.0 * GAMMA**learning_steps)).mean() > beta


# --- What the bound is for: retraining is noised once. -------------------------------------------------------------


@pytest.mark.parametrize(("steps", "true_epsilon"), [(5, 60.34), (12, 11.83), (20, 2.486), (50, 1.0009)])
def test_the_curve_of_a_published_state_is_below_the_truth_against_retraining_that_is_noised_once(steps, true_epsilon):
    # One record of MNIST, d = 784: sigma is such that `published_state_curve` gives epsilon = 1.
    mu = mu_from_epsilon(1.0, DELTA)
    sigma = published_state_curve(DESCENT, sigma=1.0, steps_per_request=[steps]).mu / mu
    assert epsilon_from_mu(published_state_curve(DESCENT, sigma=sigma, steps_per_request=[steps]).mu, DELTA) < 1.0001
    decay = (1 - DESCENT.step_size * DESCENT.strong_convexity) ** steps
    gap = decay * DESCENT.sensitivity(1) / DESCENT.strong_convexity / sigma
    law = {"dimension": 784, "gap": gap, "ratio": math.sqrt(1 + decay**2)}
    exact = exact_epsilon(DELTA, **law)
    assert exact == pytest.approx(true_epsilon, rel=1e-3)
    conditional = conditional_epsilon(
        DESCENT,
        sigma=sigma,
        dimension=784,
        records_per_request=1,
        steps_per_request=[steps],
        learning_steps=math.inf,
        starting_distance=1.0,
        delta=DELTA,
    )
    assert conditional > exact


def test_with_many_steps_the_fed_back_noise_is_forgotten():
    asked = {"dimension": 784, "records_per_request": 1, "steps_per_request": [200], "learning_steps": math.inf}
    gap = 1e-6
    decay = (1 - DESCENT.step_size * DESCENT.strong_convexity) ** 200
    sigma = decay * DESCENT.sensitivity(1) / DESCENT.strong_convexity / gap
    mu = conditional_mu(DESCENT, sigma=sigma, **asked, starting_distance=1.0, beta=1e-7)
    assert mu == pytest.approx(gap + decay * (math.sqrt(784) + math.sqrt(-2 * math.log(1e-7))), rel=1e-9)


# --- Planted faults. -----------------------------------------------------------------------------------------------


def without(name):
    answered = descent_conditional._answered

    def faulty(before, decay, moved, sigma, dimension, rounding_distance):
        if name == "fed-back noise":
            sigma = 0.0
        if name == "the dimension":
            dimension = 1
        if name == "the removed records":
            moved = 0.0
        return answered(before, decay, moved, sigma, dimension, rounding_distance)

    return faulty


@pytest.mark.parametrize(
    ("fault", "sigma", "dimension"),
    [("fed-back noise", 0.5, 785), ("the dimension", 0.5, 785), ("the removed records", 0.01, 1)],
)
def test_leaving_something_out_falls_below_the_truth(monkeypatch, fault, sigma, dimension):
    problem, asked, law = case_of([(3, 1), (2, 2)], "replace", 40, 0.5, sigma, dimension)
    true = exact_epsilon(1e-5, **law)
    assert conditional_epsilon(problem, **asked, delta=1e-5) > true
    monkeypatch.setattr(descent_conditional, "_answered", without(fault))
    assert conditional_epsilon(problem, **asked, delta=1e-5) < 0.9 * true


# --- The formula, and in which direction it moves. -----------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_two_requests_by_hand(adjacency):
    problem = dataclasses.replace(SMALL, adjacency=adjacency)
    mu = conditional_mu(
        problem,
        sigma=0.7,
        dimension=9,
        records_per_request=(4, 2),
        steps_per_request=(2, 3),
        learning_steps=5,
        starting_distance=6.0,
        beta=math.exp(-2),
        rounding_distance=0.01,
    )
    moved = {"replace": (0.48, 0.24), "zero-out": (0.24, 0.12), "remove": (0.48, 0.24 / 0.96)}[adjacency]
    learned = 6 * 0.6**5
    first = 0.36 * (math.sqrt(learned**2 + 0.49 * 9) + moved[0])
    second = 0.216 * (math.sqrt(first**2 + 0.49 * 9) + moved[1])
    lipschitz = 0.216 * math.sqrt((0.36 * 0.7) ** 2 + 0.7**2)
    rounding = 0.216 * (0.36 * 0.01 + 0.01) + 0.01
    assert mu == pytest.approx((second + 2 * lipschitz + rounding + learned + 0.01) / 0.7, rel=1e-13)


HISTORY = {
    "sigma": 0.7,
    "dimension": 9,
    "records_per_request": (4, 2),
    "steps_per_request": (2, 3),
    "learning_steps": 5,
    "starting_distance": 6.0,
}


@pytest.mark.parametrize(
    ("name", "larger"),
    [
        ("dimension", 10),
        ("records_per_request", (5, 2)),
        ("records_per_request", (4, 3)),
        ("steps_per_request", (1, 3)),
        ("steps_per_request", (2, 2)),
        ("learning_steps", 4),
        ("starting_distance", 6.1),
        ("sigma", 0.69),
    ],
)
def test_epsilon_grows_with_what_is_left_to_forget(name, larger):
    assert conditional_epsilon(SMALL, **HISTORY | {name: larger}, delta=DELTA) > conditional_epsilon(
        SMALL, **HISTORY, delta=DELTA
    )


def test_epsilon_grows_with_rounding_and_falls_with_delta_and_mu_falls_with_beta():
    exact = conditional_epsilon(SMALL, **HISTORY, delta=DELTA)
    assert conditional_epsilon(SMALL, **HISTORY, delta=DELTA, rounding_distance=1e-6) > exact
    assert conditional_epsilon(SMALL, **HISTORY, delta=2 * DELTA) < exact
    assert conditional_mu(SMALL, **HISTORY, beta=1e-3) < conditional_mu(SMALL, **HISTORY, beta=1e-4)
    assert conditional_epsilon(SMALL, **HISTORY, delta=DELTA) == epsilon_from_mu(
        conditional_mu(SMALL, **HISTORY, beta=0.01 * DELTA), DELTA - 0.01 * DELTA
    )


def test_rows_that_are_longer_than_1_move_the_optimum_further():
    longer = dataclasses.replace(SMALL.rounding, norm_excess=1e-3)
    asked = HISTORY | {"learning_steps": math.inf, "dimension": 1, "sigma": 1e-9}
    ratio = conditional_mu(dataclasses.replace(SMALL, rounding=longer), **asked, beta=0.1) / conditional_mu(
        SMALL, **asked, beta=0.1
    )
    assert ratio > 1.001


def test_before_the_first_request_both_models_are_only_as_near_as_learning_brings_them():
    asked = HISTORY | {"records_per_request": (), "steps_per_request": ()}
    assert conditional_mu(SMALL, **asked, beta=0.1) == pytest.approx(2 * 6 * GAMMA**5 / 0.7, rel=1e-14)


def test_one_size_for_all_requests_is_that_size_for_each():
    assert conditional_mu(SMALL, **HISTORY | {"records_per_request": 3}, beta=0.1) == conditional_mu(
        SMALL, **HISTORY | {"records_per_request": [3, 3], "steps_per_request": [2, 3]}, beta=0.1
    )


def test_where_m_is_l_one_step_forgets_everything():
    bowl = for_descent(Problem(100, 2.0, 2.0, 3.0, 1.0))
    asked = HISTORY | {"steps_per_request": (1, 1)}
    assert conditional_epsilon(bowl, **asked, delta=DELTA) == 0
    before = {"records_per_request": (), "steps_per_request": ()}
    assert least_conditional_steps(bowl, **HISTORY | before, next_records=1, epsilon=1.0, delta=DELTA) == 1


# --- Planning. -----------------------------------------------------------------------------------------------------


@given(
    requests=st.lists(st.tuples(st.integers(1, 15), st.integers(0, 5)), max_size=4),
    adjacency=st.sampled_from(ADJACENCIES),
    next_records=st.integers(1, 20),
    epsilon=st.floats(-4, 2).map(lambda exponent: 10**exponent),
    sigma=st.floats(-3, 2).map(lambda exponent: 10**exponent),
    rounding_distance=st.sampled_from([0.0, 1e-9]),
)
def test_one_step_less_than_planned_misses_the_target(
    requests, adjacency, next_records, epsilon, sigma, rounding_distance
):
    problem = dataclasses.replace(SMALL, adjacency=adjacency)
    records, steps = [size for size, _ in requests], [count for _, count in requests]
    rest = {"sigma": sigma, "dimension": 785, "learning_steps": 60, "starting_distance": 6.0, "delta": DELTA}
    rest["rounding_distance"] = rounding_distance

    def epsilon_after(count):
        return conditional_epsilon(
            problem, records_per_request=[*records, next_records], steps_per_request=[*steps, count], **rest
        )

    planned = least_conditional_steps(
        problem,
        records_per_request=records,
        steps_per_request=steps,
        next_records=next_records,
        epsilon=epsilon,
        **rest,
    )
    assert epsilon_after(planned) <= epsilon
    assert planned == 0 or epsilon_after(planned - 1) > epsilon


@given(
    adjacency=st.sampled_from(ADJACENCIES),
    records=st.integers(1, 20),
    steps=st.integers(10, 40),
    epsilon=st.floats(-0.3, 2).map(lambda exponent: 10**exponent),
    learning_steps=st.sampled_from([5, 60, math.inf]),
    rounding_distance=st.sampled_from([0.0, 1e-9, 1e-3]),
)
def test_a_little_less_noise_than_planned_misses_the_target(
    adjacency, records, steps, epsilon, learning_steps, rounding_distance
):
    problem = dataclasses.replace(SMALL, adjacency=adjacency)
    rest = {"dimension": 50, "learning_steps": learning_steps, "starting_distance": 6.0, "delta": DELTA}
    rest["rounding_distance"] = rounding_distance
    sigma = least_conditional_sigma(problem, records=records, steps=steps, epsilon=epsilon, **rest)

    def epsilon_with(noise):
        return conditional_epsilon(problem, sigma=noise, records_per_request=records, steps_per_request=[steps], **rest)

    assert epsilon_with(sigma) <= epsilon
    assert epsilon_with(sigma * (1 - 1e-9)) > epsilon


def test_too_few_steps_are_hidden_by_no_noise():
    asked = {"dimension": 785, "records": 1, "learning_steps": math.inf, "starting_distance": 6.0, "delta": DELTA}
    # gamma^I (sqrt(785) + sqrt(2 log(1e7))) is 0.23 after 10 steps, 0.14 after 11; epsilon = 0.5 allows mu = 0.16.
    with pytest.raises(InfeasibleError, match="with steps = 10, the fed-back noise of the learned model alone exceeds"):
        least_conditional_sigma(SMALL, steps=10, epsilon=0.5, **asked)
    assert least_conditional_sigma(SMALL, steps=11, epsilon=0.5, **asked) > 0
    with pytest.raises(InfeasibleError, match="with steps = 0, the fed-back noise"):
        least_conditional_sigma(SMALL, steps=0, epsilon=0.5, **asked)


NEXT = HISTORY | {"next_records": 2, "epsilon": 1.0, "delta": DELTA}


def test_targets_out_of_reach_are_refused():
    # 5 learning steps leave 0.47, too much for sigma = 0.7.
    with pytest.raises(InfeasibleError, match=r"no number of steps removes 2 records .* learning and rounding alone"):
        least_conditional_steps(SMALL, **NEXT)
    with pytest.raises(InfeasibleError, match="no number of steps"):
        least_conditional_steps(SMALL, **NEXT | {"learning_steps": math.inf}, rounding_distance=0.2)
    assert least_conditional_steps(SMALL, **NEXT | {"learning_steps": math.inf}, rounding_distance=1e-3) > 0
    flat = for_descent(Problem(100, 1e-13, 2.0, 3.0, 1.0))
    with pytest.raises(InfeasibleError, match=r"takes more than 1e\+12 steps"):
        least_conditional_steps(flat, **NEXT | {"learning_steps": math.inf})


# --- What makes no sense. ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"sigma": 0.0}, "sigma must be a finite number above 0, got 0"),
        ({"dimension": 0}, "dimension must be a whole number, at least 1, got 0"),
        ({"learning_steps": -1}, "learning_steps must be a whole number, at least 0, got -1"),
        ({"starting_distance": -1.0}, "starting_distance must be a finite number, at least 0, got -1"),
        ({"rounding_distance": math.inf}, "rounding_distance must be a finite number, at least 0, got inf"),
        ({"records_per_request": (60, 41)}, "records must be at most n = 100, got 41"),
        ({"records_per_request": (4,)}, "or one number for each request"),
        ({"steps_per_request": (2, -3)}, r"steps\[1\] must be a whole number, at least 0, got -3"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong, message):
    with pytest.raises(ParameterError, match=message):
        conditional_epsilon(SMALL, **HISTORY | {"delta": DELTA} | wrong)
    with pytest.raises(ParameterError, match=message):
        least_conditional_steps(SMALL, **NEXT | wrong)


@pytest.mark.parametrize("probability", [0.0, 1.0, -1.0, math.nan])
def test_senseless_probabilities_are_refused(probability):
    with pytest.raises(ParameterError, match="beta must lie strictly between 0 and 1"):
        conditional_mu(SMALL, **HISTORY, beta=probability)
    with pytest.raises(ParameterError, match="delta must lie strictly between 0 and 1"):
        conditional_epsilon(SMALL, **HISTORY, delta=probability)


def test_senseless_plans_are_refused():
    with pytest.raises(ParameterError, match="epsilon must be a finite number above 0, got 0"):
        least_conditional_steps(SMALL, **NEXT | {"epsilon": 0.0})
    with pytest.raises(ParameterError, match="records must be at most n = 100, got 95"):
        least_conditional_steps(SMALL, **NEXT | {"next_records": 95})
    first = {"dimension": 9, "learning_steps": 5, "starting_distance": 6.0, "epsilon": 1.0, "delta": DELTA}
    with pytest.raises(ParameterError, match="steps must be a whole number, at least 0, got -1"):
        least_conditional_sigma(SMALL, records=1, steps=-1, **first)
    with pytest.raises(ParameterError, match="dimension must be a whole number, at least 1, got 0"):
        least_conditional_sigma(SMALL, records=1, steps=9, **first | {"dimension": 0})


@pytest.mark.parametrize(
    "compute",
    [
        lambda problem: conditional_mu(problem, **HISTORY, beta=0.1),
        lambda problem: least_conditional_steps(problem, **NEXT | {"learning_steps": 100}),
        lambda problem: least_conditional_sigma(
            problem, dimension=9, records=1, steps=30, learning_steps=5, starting_distance=6, epsilon=1.0, delta=DELTA
        ),
    ],
)
def test_the_step_size_must_be_the_one_of_descent_to_delete(compute):
    compute(SMALL)
    with pytest.raises(AssumptionError, match=r"step_size = 2 / \(smoothness \+ strong_convexity\) = 0.8, got 0.5"):
        compute(dataclasses.replace(SMALL, step_size=0.5))
    with pytest.raises(AssumptionError, match="strong_convexity must be above 0, got 0"):
        compute(for_descent(Problem(100, 0, 2.0, 3.0, 1.0)))
