"""Theorem 5.2 with its corrections: section 7.2's numbers, planted faults, and what of its claims fails (E7 to E9)."""

import dataclasses
import math

import numpy as np
import pytest

from certified_unlearning.errors import AssumptionError, ParameterError
from certified_unlearning.papers.forget_unlearning.theory.gibbs import (
    BoundedProblem,
    divergence_from_gibbs,
    gibbs_risk,
    largest_step_size,
    nonconvex_risk,
)
from certified_unlearning.papers.forget_unlearning.theory.nonconvex import plan_nonconvex_deletion
from tests.accounting.deletion_settings import quoted
from tests.papers.forget_unlearning.gaussian_laws import GaussianLaw, gaussian_divergence

N1 = BoundedProblem(n=10**4, dimension=20, lipschitz=1.0, regularisation=1.0, smoothness=1.5, boundedness=2.0)
TARGETS = {"alpha": 2.0, "epsilon_dp": 1.0, "epsilon_dd": 0.1, "records": 100}
PLAN = plan_nonconvex_deletion(N1, **TARGETS)
RANGE = {"lipschitz": 1.0, "regularisation": 1.0, "smoothness": 1.5, "boundedness": 2.0, "dimension": 1}
# The sheet's setting for a fixed range has epsilon_dp = d, which the theorem just excludes.
NEARLY_1 = math.nextafter(1, 0)


def test_the_plan_is_that_of_the_sheet():
    assert PLAN.step_size == quoted(8.68056e-6)
    assert largest_step_size(N1, alpha=2.0) == quoted(8.68056e-4)
    assert PLAN.learning_steps == quoted(1.21154e6)
    assert PLAN.deletion_steps == quoted(669686)
    assert PLAN.gradients_saved == quoted(541858 * 10**4)
    assert PLAN.sigma**2 == quoted(2.10338e-7)
    assert PLAN.largest_loss == quoted(3.64487e-8)
    assert PLAN.risk_bound == quoted(2.96968e-4)
    assert gibbs_risk(N1, sigma=PLAN.sigma) == quoted(3.82747e-6)
    assert PLAN.start_variance == quoted(2.10338e-7)


def test_both_forms_of_the_deletion_steps_agree():
    """(19) and the form in the proof, at the least number of learning steps."""
    scale = 2 * N1.boundedness / (N1.regularisation * PLAN.step_size)
    log_b, fraction = math.log(N1.boundedness), 100 / 10**4
    learning = scale * math.log(2.0 * log_b / 0.1)
    printed = learning - scale * math.log(log_b / (2 * (0.1 + fraction * log_b)))
    used = scale * math.log(2 * 2.0 * (0.1 + fraction * log_b) / 0.1)
    assert (learning, printed, used) == (quoted(1.21154e6), quoted(669686), quoted(669686))
    assert (PLAN.learning_steps, PLAN.deletion_steps) == (math.ceil(learning), math.ceil(used))
    assert 10**4 * (learning - used) == quoted(541858 * 10**4)


def test_both_forms_of_the_noise_agree():
    printed = 2 * 2.0 * N1.boundedness / 10**8 * math.log(2.0 * math.log(N1.boundedness) / 0.1)
    assert PLAN.sigma**2 == quoted(printed)


def test_the_divergence_from_the_gibbs_law_keeps_to_its_target():
    numbers = {"step_size": PLAN.step_size, "alpha": 2.0}
    log_b = math.log(2.0)
    learned = divergence_from_gibbs(N1, **numbers, steps=PLAN.learning_steps, start=log_b / 2)
    edited = divergence_from_gibbs(N1, **numbers, steps=PLAN.deletion_steps, start=0.1 + log_b / 100)
    assert (learned, edited) == (quoted(0.1), quoted(0.1))
    assert max(learned, edited) == PLAN.epsilon_dd <= 0.1


def test_the_zero_model_has_less_risk_than_is_certified():
    assert PLAN.zero_model_risk == quoted(7.28974e-8)
    assert PLAN.zero_model_risk < PLAN.risk_bound


def test_a_saving_needs_small_requests():
    limit = 0.5 - 0.1 / math.log(2.0)
    assert limit == quoted(0.355730)
    for records, saves in ((3557, True), (3558, False)):
        plan = plan_nonconvex_deletion(N1, **{**TARGETS, "records": records})
        assert (plan.gradients_saved > 0) is saves


def test_the_printed_step_size_exceeds_what_its_proof_needs():
    problem = BoundedProblem(n=100, dimension=2, lipschitz=1.0, regularisation=1.0, smoothness=1.5, boundedness=2.0)
    stated = 1.0 * 0.5 / (64 * 2 * 64 * 2 * 1.5**2)
    assert stated == quoted(1.35634e-5)
    assert largest_step_size(problem, alpha=64.0) == quoted(8.47711e-7)
    plan = plan_nonconvex_deletion(problem, alpha=64.0, epsilon_dp=1.0, epsilon_dd=0.5)
    assert plan.step_size == quoted(8.47711e-7)
    with pytest.raises(AssumptionError, match=r"Theorem G\.22 needs step_size"):
        divergence_from_gibbs(problem, step_size=stated, alpha=64.0, steps=1, start=0.1)


@pytest.mark.parametrize(
    ("fraction", "factor", "claimed"),
    [(1e-1, 0.356675, 2.30259), (1e-2, 0.653926, None), (1e-4, 0.692747, None), (1e-6, 0.693143, 13.8155)],
)
def test_the_saving_of_the_papers_example_does_not_grow_with_n(fraction, factor, claimed):
    n = 10**6
    problem = BoundedProblem(n, 10, 1.0, regularisation=1.0, smoothness=1.5, boundedness=2.0)
    epsilon_dd = math.log(2.0) / 4
    records = round(fraction * n)
    plan = plan_nonconvex_deletion(problem, alpha=2.0, epsilon_dp=1.0, epsilon_dd=epsilon_dd, records=records)
    unit = 2 * problem.boundedness / (problem.regularisation * plan.step_size)
    assert plan.gradients_saved / (n * unit) == pytest.approx(factor, abs=2 / unit)
    assert math.log(2 / (1 + 4 * fraction)) == quoted(factor)
    if claimed is not None:
        assert math.log(1 / fraction) == quoted(claimed)


def test_the_risk_is_that_of_its_parts():
    sigma, epsilon = PLAN.sigma, 0.1
    near = 1.0 * sigma * math.sqrt(2 * epsilon * 2 / 1) + epsilon * 2 * sigma**2 * 2.5
    gibbs = 20 * sigma**2 / 2 * (math.log(1.5) + 2 * math.sqrt(2))
    assert nonconvex_risk(N1, sigma=sigma, epsilon_dd=epsilon) == pytest.approx(near + gibbs)


# --- The plan audited -------------------------------------------------------------------------------------------------


def violations(plan, problem, targets):
    """Return the promises that a plan does not keep, by the sheet's formulae written out anew."""
    b, weight, s, d = problem.boundedness, problem.regularisation, problem.smoothness, problem.dimension
    alpha, fraction, slack = targets["alpha"], targets["records"] / problem.n, 1 + 1e-9
    floor = 32 * d * plan.step_size * alpha * b * s**2 / weight

    def after(steps, start):
        return alpha * math.exp(-weight * plan.step_size * steps / (2 * b)) * start + floor

    def call(steps):
        return alpha * (problem.lipschitz / (problem.n * plan.sigma)) ** 2 * plan.step_size * steps

    starts = math.log(b) / 2, targets["epsilon_dd"] + fraction * math.log(b)
    counts = plan.learning_steps, plan.deletion_steps
    found = []
    if plan.step_size > weight / (64 * b * alpha**2 * s**2) * slack:
        found.append("step size")
    if max(map(call, counts)) > targets["epsilon_dp"] * slack:
        found.append("present records")
    if max(map(call, counts)) < targets["epsilon_dp"] / slack:
        found.append("more noise than needed")
    divergence = max(map(after, counts, starts))
    if not divergence / slack <= plan.epsilon_dd <= targets["epsilon_dd"] or divergence > targets["epsilon_dd"] * slack:
        found.append("deleted records")
    for steps, start in zip(counts, starts, strict=True):
        if steps > 0 and after(steps - 1, start) <= targets["epsilon_dd"] * (1 - 1e-12):
            found.append("more steps than needed")
    return found


def test_plans_keep_what_they_promise_in_500_random_settings():
    random = np.random.default_rng(52)
    for _ in range(500):
        n, weight, d = int(10 ** random.uniform(1, 6)), 10 ** random.uniform(-2, 1), int(10 ** random.uniform(0.5, 3))
        problem = BoundedProblem(
            n,
            d,
            lipschitz=10 ** random.uniform(-1, 1),
            regularisation=weight,
            smoothness=weight * (1 + 10 ** random.uniform(-2, 1)),
            boundedness=1 + 10 ** random.uniform(-2, 1),
        )
        budget = d * random.uniform(0.01, 0.9)
        targets = {
            "alpha": 1 + 10 ** random.uniform(-1, 1.5),
            "epsilon_dp": budget,
            "epsilon_dd": budget * 10 ** random.uniform(-3, 0),
            "records": int(random.integers(1, n + 1)),
        }
        assert violations(plan_nonconvex_deletion(problem, **targets), problem, targets) == [], (problem, targets)


@pytest.mark.parametrize(
    ("fault", "caught"),
    [
        (lambda plan: {"sigma": plan.sigma / 2}, "present records"),  # Sensitivity halved.
        (lambda plan: {"sigma": plan.sigma**2}, "present records"),  # A square too many.
        (lambda plan: {"sigma": 2 * plan.sigma}, "more noise than needed"),
        (lambda plan: {"deletion_steps": plan.deletion_steps - 1}, "deleted records"),
        (lambda plan: {"learning_steps": plan.learning_steps - 1}, "deleted records"),
        (lambda plan: {"deletion_steps": plan.deletion_steps + 1}, "more steps than needed"),
        (lambda plan: {"learning_steps": plan.learning_steps + 1}, "more steps than needed"),
        (lambda plan: {"step_size": 1000 * plan.step_size}, "step size"),
        (lambda plan: {"step_size": 2 * plan.step_size}, "deleted records"),
        (lambda plan: {"step_size": plan.step_size / 2}, "deleted records"),
        (lambda plan: {"epsilon_dd": plan.epsilon_dd / 2}, "deleted records"),
    ],
)
def test_a_planted_fault_in_the_planner_is_caught(fault, caught):
    assert violations(PLAN, N1, TARGETS) == []
    assert caught in violations(dataclasses.replace(PLAN, **fault(PLAN)), N1, TARGETS)


def ula_divergence(problem, *, step_size, alpha, steps, mean, variance):
    """Of losses that are 0, exact: from ``N(mean, variance)``, against ``pi``; variances in units of its own."""
    kept = (1 - step_size * problem.regularisation) ** steps
    fixed = 1 / (1 - step_size * problem.regularisation / 2)
    law = GaussianLaw(kept * np.full(problem.dimension, mean), kept**2 * variance + (1 - kept**2) * fixed)
    return gaussian_divergence(law, GaussianLaw(np.zeros(problem.dimension), 1.0), alpha=alpha)


def ula_settings(count):
    random = np.random.default_rng(22)
    for _ in range(count):
        weight = 10 ** random.uniform(-2, 1)
        problem = BoundedProblem(
            100,
            int(random.integers(1, 30)),
            lipschitz=1.0,
            regularisation=weight,
            smoothness=weight * (1 + 10 ** random.uniform(-3, 0)),
            boundedness=1 + 10 ** random.uniform(-6, 0.5),
        )
        alpha = 1 + 10 ** random.uniform(-1, 1)
        step_size = largest_step_size(problem, alpha=alpha) * random.uniform(0.1, 1)
        mean, variance = random.uniform(-2, 2), random.uniform(0.3, 0.999 * alpha / (alpha - 1))
        numbers = {"step_size": step_size, "alpha": alpha}
        yield problem, numbers, {"mean": mean, "variance": variance}, int(10 ** random.uniform(0, 6))


def test_no_certified_divergence_from_the_gibbs_law_is_below_the_exact_one_in_500_random_settings():
    for problem, numbers, start, steps in ula_settings(500):
        initial = ula_divergence(problem, **numbers, steps=0, **start)
        exact = ula_divergence(problem, **numbers, steps=steps, **start)
        assert exact <= divergence_from_gibbs(problem, **numbers, steps=steps, start=initial)


def faulty(problem, numbers, *, steps, start, fault):
    honest = divergence_from_gibbs(problem, **numbers, steps=steps, start=start)
    floor = divergence_from_gibbs(problem, **numbers, steps=math.inf, start=0.0)
    if fault == "no floor":
        return honest - floor
    if fault == "a rate ten times too large":
        return divergence_from_gibbs(problem, **numbers, steps=10 * steps, start=start)
    return (honest - floor) / numbers["alpha"] ** 4 + floor


@pytest.mark.parametrize("fault", ["no floor", "a rate ten times too large", "a wrong power of the order"])
def test_the_oracle_catches_a_planted_fault(fault):
    caught = 0
    for problem, numbers, start, steps in ula_settings(500):
        initial = ula_divergence(problem, **numbers, steps=0, **start)
        exact = ula_divergence(problem, **numbers, steps=steps, **start)
        caught += exact > faulty(problem, numbers, steps=steps, start=initial, fault=fault)
    assert caught > 0


# --- Conditions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"epsilon_dp": 20.0}, AssumptionError, "epsilon_dp < dimension"),
        ({"epsilon_dd": 2.0}, AssumptionError, "epsilon_dd must be at most"),
        ({"records": 10**4 + 1}, ParameterError, "records must be at most n"),
        ({"records": 0}, ParameterError, "records"),
        ({"alpha": 1.0}, ParameterError, "alpha"),
        ({"gradient_field": "clipped-convex"}, AssumptionError, "Theorem 5.2 does not survive"),
    ],
)
def test_plans_whose_assumptions_do_not_hold_are_refused(changed, error, message):
    with pytest.raises(error, match=message):
        plan_nonconvex_deletion(N1, **{**TARGETS, **changed})


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"boundedness": 1.0}, ParameterError, "boundedness"),
        ({"boundedness": math.inf}, ParameterError, "boundedness"),
        ({"regularisation": 2.0}, AssumptionError, "at least regularisation"),
        ({"regularisation": 0.0}, ParameterError, "regularisation"),
        ({"lipschitz": math.inf}, ParameterError, "lipschitz"),
        ({"n": 0}, ParameterError, "n must be"),
    ],
)
def test_constants_that_make_no_sense_are_refused(changed, error, message):
    with pytest.raises(error, match=message):
        dataclasses.replace(N1, **changed)
