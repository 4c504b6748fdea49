"""Every bound says so where its conditions do not hold."""

import dataclasses
import math

import pytest

from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.deletion.rates import lemma_5_rate, sharp_rate
from certified_unlearning.errors import AssumptionError, ParameterError
from certified_unlearning.papers.privacy_dynamics.theory.dynamics import (
    BOUNDS,
    corollary_2,
    theorem_1,
    theorem_2,
    theorem_2_from,
)
from certified_unlearning.papers.privacy_dynamics.theory.gaussians import (
    exact_hessian,
    exact_quadratic,
    inverse_lsi,
    lower_bound,
    theorem_3,
)
from tests.papers.privacy_dynamics.dynamics_settings import SIGMA, UNIT, equal, linear, paper, value

LEMMA_5 = ["theorem-2", "theorem-2-best", "corollary-1", "accountant", "envelope", "sharp-envelope", "sharp-lsi"]


@pytest.mark.parametrize("name", [*LEMMA_5, "time-optimal"])
def test_bounds_under_lemma_5_refuse_what_it_excludes(name):
    bound = BOUNDS[name].curve
    at_limit = dataclasses.replace(paper(), step_size=0.25)
    message = r"^Lemma 5 needs step_size < 1 / smoothness = 0\.25, got step_size = 0\.25$"
    with pytest.raises(AssumptionError, match=message):
        bound(at_limit, sigma=SIGMA, steps=1)
    bound(dataclasses.replace(paper(), step_size=0.2499999), sigma=SIGMA, steps=1)
    with pytest.raises(AssumptionError, match="strong_convexity must be above 0, got 0"):
        bound(dataclasses.replace(paper(), strong_convexity=0.0), sigma=SIGMA, steps=1)


@pytest.mark.parametrize("function", [lemma_5_rate, sharp_rate])
def test_rates_refuse_what_lemma_5_excludes(function):
    with pytest.raises(AssumptionError, match="Lemma 5 needs step_size < 1 / smoothness"):
        function(dataclasses.replace(paper(), step_size=0.25))


def test_a_constant_that_the_caller_answers_for_asks_for_no_convexity():
    convex = dataclasses.replace(paper(), strong_convexity=0.0, step_size=1.0)
    assert value(theorem_2, convex, 1, lsi_constant=1250.0) == equal(10 * 0.0016 * -math.expm1(-0.5))
    with pytest.raises(ParameterError, match=r"^lsi_constant must be a finite number above 0, got 0"):
        theorem_2(convex, sigma=SIGMA, steps=1, lsi_constant=0.0)


@pytest.mark.parametrize("gamma", [0.0, -0.5, 1.0000001, math.nan])
def test_gamma_lies_between_0_and_1(gamma):
    with pytest.raises(ParameterError, match=f"^gamma must be above 0 and at most 1, got {gamma}$"):
        theorem_2(paper(), sigma=SIGMA, steps=1, gamma=gamma)
    with pytest.raises(ParameterError, match=f"^gamma must be above 0 and at most 1, got {gamma}$"):
        theorem_2_from(linear(1), paper(), sigma=SIGMA, steps=1, gamma=gamma)


@pytest.mark.parametrize(("bound", "name", "limit"), [(corollary_2, "Corollary 2", 2), (theorem_3, "Theorem 3", 1)])
def test_squared_distances_are_what_the_paper_says(bound, name, limit):
    for problem, found in ((paper(1, 4), "strong_convexity = 1, smoothness = 4"), (paper(0.5, 1), "= 0.5, ")):
        with pytest.raises(AssumptionError, match=f"^{name} is about the losses .*needs strong_.*{found}"):
            bound(problem, sigma=SIGMA, steps=1)
    with pytest.raises(AssumptionError, match=f"^{name} needs step_size < {limit}, got step_size = {limit}$"):
        bound(dataclasses.replace(UNIT, step_size=limit), sigma=SIGMA, steps=1)


def test_corollary_2_allows_steps_up_to_2():
    long = dataclasses.replace(UNIT, step_size=1.5)
    assert value(corollary_2, long, 2) == equal(10 * 0.0016 / 0.5 * -math.expm1(-0.75))


@pytest.mark.parametrize("bound", [exact_quadratic, lower_bound])
def test_quadratics_must_contract(bound):
    with pytest.raises(AssumptionError, match=r"^a quadratic loss needs step_size < 1 / curvature = 0\.5, got step_si"):
        bound(Problem(10, 2, 4, 1, 0.5), sigma=SIGMA, steps=1)
    with pytest.raises(AssumptionError, match=r"^a quadratic loss needs curvatures above 0, got 0"):
        bound(Problem(10, 0, 4, 1, 0.5), sigma=SIGMA, steps=1)


@pytest.mark.parametrize(
    ("curvatures", "message"), [([1, 50, 2], "step_size < 1 / curvature = 0.02, got"), ([1, -1, 2], "above 0, got -1")]
)
def test_every_curvature_must_contract(curvatures, message):
    with pytest.raises(AssumptionError, match=message):
        exact_hessian(curvatures, [1, 1, 1], step_size=0.02, sigma=SIGMA, steps=1)


@pytest.mark.parametrize("name", sorted(BOUNDS))
@pytest.mark.parametrize("steps", [-1, 1.5, math.nan, -math.inf])
def test_steps_are_whole_numbers(name, steps):
    with pytest.raises(ParameterError, match=f"^steps must be a whole number, at least 0, got {steps}$"):
        BOUNDS[name].curve(UNIT, sigma=SIGMA, steps=steps)


@pytest.mark.parametrize("name", sorted(BOUNDS))
@pytest.mark.parametrize("sigma", [0.0, -1.0, math.inf])
def test_sigma_is_above_0(name, sigma):
    with pytest.raises(ParameterError, match=f"^sigma must be a finite number above 0, got {sigma}$"):
        BOUNDS[name].curve(UNIT, sigma=sigma, steps=1)


@pytest.mark.parametrize("name", sorted(BOUNDS))
def test_records_are_counted_by_the_problem(name):
    with pytest.raises(ParameterError, match=r"^records must be at most n = 5000, got 5001"):
        BOUNDS[name].curve(UNIT, sigma=SIGMA, steps=1, records=5001)


def test_theorem_1_refuses_senseless_values():
    with pytest.raises(ParameterError, match=r"^field_sensitivity must be a finite number above 0, got 0"):
        theorem_1(field_sensitivity=0.0, sigma=1.0, time=1.0)
    with pytest.raises(ParameterError, match=r"^time must be a finite number, at least 0, got -1"):
        theorem_1(field_sensitivity=1.0, sigma=1.0, time=-1.0)


def test_starts_have_a_spread_of_at_least_0():
    with pytest.raises(ParameterError, match=r"^start_variance must be a finite number, at least 0, got -1"):
        exact_quadratic(paper(), sigma=SIGMA, steps=1, start_variance=-1.0)
    with pytest.raises(ParameterError, match=r"^start must be a finite number, at least 0, got -1"):
        inverse_lsi(paper(), sigma=SIGMA, steps=1, start=-1.0)
    with pytest.raises(ParameterError, match=r"^sigma must be a finite number above 0, got 0"):
        inverse_lsi(paper(), sigma=0.0, steps=1, start=1.0)
    with pytest.raises(ParameterError, match=r"^steps must be a whole number, at least 0, got 0.5"):
        inverse_lsi(paper(), sigma=1.0, steps=0.5, start=1.0)
