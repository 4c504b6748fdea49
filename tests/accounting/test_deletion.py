"""Theorem 5.1, G.15 and the corrected 4.3: the sheet's numbers, invariants, and planted faults (sections 7.1, 7.6)."""

import dataclasses
import math
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.deletion.planning import (
    adaptive_deletion_curve,
    deletion_curve,
    plan_deletion,
    start_variance,
)
from certified_unlearning.accounting.deletion.utility import certified_risk, steps_for_risk
from certified_unlearning.errors import AssumptionError, ParameterError
from certified_unlearning.papers.forget_unlearning.theory.exact import exact_deletion_curve
from certified_unlearning.papers.forget_unlearning.theory.soundness import adaptive_epsilon
from certified_unlearning.papers.privacy_dynamics.theory.dynamics import composition, corollary_1
from tests.accounting.deletion_settings import C1, C2, at, quoted

FORMS = ("simplified", "tight", "doubled", "shifted")
PROBLEM = plan_deletion(**C1).problem
SIGMA = plan_deletion(**C1).sigma


def bound(steps, *, alpha=8.0, sigma=SIGMA, problem=PROBLEM, **options):
    return at(deletion_curve(problem, sigma=sigma, steps=steps, **options), alpha)


# --- Section 7.1 -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "kappa", "step_size", "variance", "start", "learning", "privacy", "deletion", "saved", "risk"),
    [
        (C1, 6, 1.66667, 6.4e-4, 0.0133565, 194, 56, 82, 112000, 0.096),
        (C2, 26, 1.92308, 5.33908e-6, 5.39091e-4, 1335, 240, 507, 49680000, 0.0173520),
    ],
)
def test_plans_are_those_of_the_sheet(
    setting, kappa, step_size, variance, start, learning, privacy, deletion, saved, risk
):
    plan = plan_deletion(**setting)
    assert plan.problem.smoothness / plan.problem.strong_convexity == quoted(kappa)
    assert plan.problem.step_size == quoted(step_size)
    assert plan.sigma**2 == quoted(variance)
    assert plan.start_variance == quoted(start)
    assert (plan.learning_steps, plan.deletion_steps, plan.gradients_saved) == (learning, deletion, saved)
    assert plan.risk_bound == quoted(risk)
    for_privacy = plan_deletion(**setting, certify_risk=False)
    assert for_privacy.deletion_steps == privacy
    assert for_privacy.risk_bound is None


def test_the_order_of_the_second_setting_is_that_of_its_epsilon_and_delta():
    assert C2["alpha"] == quoted(24.0259)


@pytest.mark.parametrize(("setting", "real"), [(C1, 55.2620), (C2, 239.469)])
def test_the_printed_number_of_deletion_steps_brings_the_printed_bound_to_its_target(setting, real):
    """``4 kappa log(epsilon_dp / epsilon_dd)``, a real number: the bound decays by ``exp(-1 / (4 kappa))`` a step."""
    plan = plan_deletion(**setting)
    options = {"alpha": setting["alpha"], "sigma": plan.sigma, "problem": plan.problem}
    decay = math.log(bound(0, **options) / bound(1, **options))
    assert math.log(setting["epsilon_dp"] / setting["epsilon_dd"]) / decay == quoted(real)


def test_theorems_of_one_call_have_the_sheets_values():
    assert at(composition(PROBLEM, sigma=SIGMA, steps=194), 8) == quoted(4.04167)
    found = [at(corollary_1(PROBLEM, sigma=SIGMA, steps=steps), 8) for steps in (1, 10, 194, 82)]
    assert found == quoted([0.0408105, 0.340759, 0.999691, 0.967178])


def test_theorem_g15_has_the_sheets_values():
    assert bound(56) == quoted(0.0969720)
    assert bound(56, form="tight") == quoted(0.00595926)
    least = math.log(bound(0, form="tight") / 0.1) / math.log(bound(0, form="tight") / bound(1, form="tight"))
    assert least == quoted(20.6859)
    assert [plan_deletion(**C1, certify_risk=False, form=form).deletion_steps for form in FORMS] == [56, 21, 11, 10]


def test_ten_records_jointly_cost_the_sheets_number_of_steps():
    decay = math.log(bound(0) / bound(1))
    assert math.log(bound(0, records=10) / 0.1) / decay == quoted(165.786)


def test_requests_that_depend_on_three_models_cost_three_times_the_privacy_of_present_records():
    assert adaptive_epsilon(0.1, 1.0, observed=3) == quoted(3.1)


# --- Section 7.6, items 1 and 2 --------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_the_bound_falls_with_deletion_steps_to_0(form):
    bounds = [bound(steps, form=form) for steps in range(0, 400, 7)]
    assert all(later < earlier for earlier, later in pairwise(bounds))
    assert bound(math.inf, form=form) == 0
    assert bound(10_000, form=form) < 1e-20


@pytest.mark.parametrize("form", FORMS)
def test_the_bound_grows_with_order_gradients_and_steps_before_and_falls_with_records_and_noise(form):
    base = bound(20, form=form, steps_before=100)
    assert bound(20, form=form, steps_before=100, alpha=9.0) > base
    assert bound(20, form=form, steps_before=101) > base
    assert bound(20, form=form, steps_before=100, sigma=1.1 * SIGMA) < base
    assert bound(20, form=form, steps_before=100, problem=dataclasses.replace(PROBLEM, lipschitz=1.1)) > base
    assert bound(20, form=form, steps_before=100, problem=dataclasses.replace(PROBLEM, n=1001)) < base
    assert bound(20, form=form, steps_before=100, records=2) == pytest.approx(4 * base)


def test_each_form_is_below_the_one_before():
    for steps, before in ((0, 3), (1, 1), (10, 194), (56, math.inf)):
        bounds = [bound(steps, steps_before=before, form=form) for form in FORMS]
        assert all(later <= earlier for earlier, later in pairwise(bounds))


def test_without_steps_since_the_simplified_bound_is_theorem_g9():
    for before in (1, 10, 194, math.inf):
        assert bound(0, steps_before=before) == pytest.approx(at(corollary_1(PROBLEM, sigma=SIGMA, steps=before), 8))


def test_theorem_g9_has_the_limit_and_the_slope_that_the_sheet_says():
    assert at(corollary_1(PROBLEM, sigma=SIGMA, steps=math.inf), 8) == pytest.approx(1.0)
    tiny = dataclasses.replace(PROBLEM, step_size=1e-9)
    damped, composed = (at(curve(tiny, sigma=SIGMA, steps=1), 8) for curve in (corollary_1, composition))
    assert damped / composed == pytest.approx(2)
    assert at(composition(PROBLEM, sigma=SIGMA, steps=20), 8) == pytest.approx(
        20 * at(composition(PROBLEM, sigma=SIGMA, steps=1), 8)
    )


def test_equal_budgets_need_no_deletion_step():
    assert plan_deletion(**{**C1, "epsilon_dd": 1.0}, certify_risk=False).deletion_steps == 0


def test_a_start_that_is_good_enough_needs_no_learning():
    plan = plan_deletion(**{**C1, "n": 17, "records": 1})
    assert plan.learning_steps == 0
    assert plan.gradients_saved < 0


def test_deletion_steps_for_privacy_alone_do_not_depend_on_the_size_of_requests():
    sizes = [
        plan_deletion(**{**C1, "records": records}, certify_risk=False).deletion_steps for records in (1, 10, 1000)
    ]
    assert sizes == [56, 56, 56]


# --- Theorem 4.3 made right -------------------------------------------------------------------------------------------


def adaptive(observed, *, requests=3, learning=194, steps=56, form="simplified"):
    curve = adaptive_deletion_curve(
        PROBLEM,
        sigma=SIGMA,
        learning_steps=learning,
        request_steps=[steps] * requests,
        observed=observed,
        form=form,
    )
    return at(curve, 8)


@pytest.mark.parametrize("form", FORMS)
def test_unobserved_streams_have_the_bound_of_fixed_requests(form):
    assert adaptive([], form=form) == pytest.approx(bound(56, steps_before=194 + 2 * 56, form=form))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("observed", [[0], [1], [2], [0, 2], [0, 1, 2]])
def test_adaptive_bounds_are_at_most_the_printed_sum_and_no_less_than_without_observations(form, observed):
    printed = adaptive_epsilon(bound(56, form=form), 1.0, observed=len(observed))
    assert adaptive([], form=form) < adaptive(observed, form=form) < printed


def test_all_models_observed_cost_the_chain_of_calls_that_saw_the_record():
    calls = [at(corollary_1(PROBLEM, sigma=SIGMA, steps=steps), 8) for steps in (194, 56, 56)]
    assert adaptive([0, 1, 2]) == pytest.approx(sum(calls))


@pytest.mark.parametrize(
    ("observed", "message"),
    [([3], "before the deletion"), ([1, 1], "increasing"), ([-1], r"observed\[0\]")],
)
def test_observations_that_make_no_sense_are_refused(observed, message):
    with pytest.raises(ParameterError, match=message):
        adaptive(observed)


# --- Conditions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_steps_that_are_too_long_are_refused(form):
    with pytest.raises(AssumptionError, match="step_size < 1 / smoothness"):
        bound(1, form=form, problem=dataclasses.replace(PROBLEM, step_size=1 / PROBLEM.smoothness))


@pytest.mark.parametrize("form", FORMS)
def test_losses_without_strong_convexity_are_refused(form):
    with pytest.raises(AssumptionError, match="strong_convexity"):
        bound(1, form=form, problem=dataclasses.replace(PROBLEM, strong_convexity=0.0))


def test_the_start_needs_strong_convexity():
    with pytest.raises(AssumptionError, match="strong_convexity"):
        start_variance(dataclasses.replace(PROBLEM, strong_convexity=0.0), SIGMA)


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"epsilon_dd": 2.0}, AssumptionError, "epsilon_dd must be at most"),
        ({"epsilon_dd": 0.0}, ParameterError, "epsilon_dd"),
        ({"strong_convexity": 0.5}, AssumptionError, "strong_convexity must be at most smoothness"),
        ({"strong_convexity": 0.0}, AssumptionError, "strong_convexity must be above 0"),
        ({"lipschitz": math.inf}, ParameterError, "lipschitz"),
        ({"records": 1001}, ParameterError, "records must be at most n = 1000"),
        ({"records": 0}, ParameterError, "records"),
        ({"alpha": 1.0}, ParameterError, "alpha"),
        ({"dimension": 0}, ParameterError, "dimension"),
        ({"gradient_field": "clipped"}, AssumptionError, "Theorem 5.1 does not survive this clipping"),
        ({"gradient_field": "clipped-bounded"}, AssumptionError, "Theorem 5.1 does not survive this clipping"),
        ({"form": "loose"}, ParameterError, "form must be one of"),
    ],
)
def test_plans_whose_assumptions_do_not_hold_are_refused(changed, error, message):
    with pytest.raises(error, match=message):
        plan_deletion(**{**C1, **changed})


def test_clipped_gradients_of_a_convex_function_are_planned_as_lipschitz_ones():
    clipped = plan_deletion(**C1, gradient_field="clipped-convex")
    assert dataclasses.replace(clipped, gradient_field="lipschitz") == plan_deletion(**C1)


# --- The planner audited, and shown to be audited ---------------------------------------------------------------------


def violations(plan, setting):
    """Return the promises that a plan does not keep, by formulae written anew from the sheet and by the exact laws."""
    weight, eta, alpha = setting["strong_convexity"], plan.problem.step_size, setting["alpha"]
    kappa = setting["smoothness"] / weight
    truth = Problem(setting["n"], weight, setting["smoothness"], setting["lipschitz"], eta)
    scale = alpha * setting["lipschitz"] ** 2 / (weight * plan.sigma**2 * setting["n"] ** 2)

    def deleted(steps):
        return 4 * scale * math.exp(-eta * weight * steps / 2)

    def exact(steps):
        return at(exact_deletion_curve(truth, sigma=plan.sigma, steps=steps), alpha)

    def risk_after(risk, steps):
        return risk * math.exp(-weight * eta * steps / 2) + kappa * setting["dimension"] * plan.sigma**2

    moved = 16 * (setting["records"] * setting["lipschitz"] / setting["n"]) ** 2 / weight
    start = kappa * (setting["lipschitz"] ** 2 / (2 * weight) + setting["dimension"] * plan.sigma**2)
    found = []
    slack = 1 + 1e-9
    if eta * setting["smoothness"] > 0.5 * slack:
        found.append("step size")
    if 4 * scale > setting["epsilon_dp"] * slack or exact(0) > setting["epsilon_dp"]:
        found.append("present records")
    if deleted(plan.deletion_steps) > setting["epsilon_dd"] * slack or exact(plan.deletion_steps) > plan.epsilon_dd:
        found.append("deleted records")
    if plan.epsilon_dd < deleted(plan.deletion_steps) / slack:
        found.append("certified epsilon_dd")
    if plan.risk_bound is None:
        if plan.deletion_steps > 0 and deleted(plan.deletion_steps - 1) <= setting["epsilon_dd"] / slack:
            found.append("more steps than needed")
    else:
        learned = risk_after(start, plan.learning_steps)
        edited = risk_after(kappa * (2 * plan.risk_bound + moved), plan.deletion_steps)
        if max(learned, edited) > plan.risk_bound * slack:
            found.append("risk")
        counts = [4 * kappa * math.log(setting["epsilon_dp"] / setting["epsilon_dd"])]
        counts += [4 * kappa * math.log(5 * kappa)]
        counts += [
            4 * kappa * math.log(8 * setting["epsilon_dp"] * setting["records"] ** 2 / (alpha * setting["dimension"]))
        ]
        if not max(counts) / slack <= plan.deletion_steps < max(counts) + 1 + 1e-6:
            found.append("deletion steps")
        learning = max(
            0.0, 4 * kappa * math.log(setting["epsilon_dp"] * setting["n"] ** 2 / (4 * alpha * setting["dimension"]))
        )
        if not learning / slack <= plan.learning_steps < learning + 1 + 1e-6:
            found.append("learning steps")
    return found


def random_setting(random):
    weight = 10 ** random.uniform(-3, 0)
    budget = 10 ** random.uniform(-2, 1)
    n = int(10 ** random.uniform(1, 6))
    return {
        "n": n,
        "dimension": int(10 ** random.uniform(0, 3)),
        "lipschitz": 10 ** random.uniform(-1, 1),
        "strong_convexity": weight,
        "smoothness": weight * (1 + 10 ** random.uniform(-2, 2)),
        "alpha": 1 + 10 ** random.uniform(-1, 2),
        "epsilon_dp": budget,
        "epsilon_dd": budget * 10 ** random.uniform(-4, 0),
        "records": int(random.integers(1, n + 1)),
    }


@pytest.mark.parametrize("certify_risk", [True, False])
def test_plans_keep_what_they_promise_in_500_random_settings(certify_risk):
    random = np.random.default_rng(20230723)
    for _ in range(250):
        setting = random_setting(random)
        assert violations(plan_deletion(**setting, certify_risk=certify_risk), setting) == [], setting


@pytest.mark.parametrize(
    ("certify_risk", "fault", "caught"),
    [
        (True, lambda plan: {"sigma": plan.sigma / math.sqrt(2)}, "present records"),  # Factor 2 for 4.
        (True, lambda plan: {"sigma": plan.sigma**2}, "present records"),  # A square too many.
        (True, lambda plan: {"sigma": plan.sigma / 2}, "present records"),  # L / n for 2 L / n.
        (True, lambda plan: {"sigma": 2 * plan.sigma}, "risk"),
        (True, lambda plan: {"deletion_steps": plan.deletion_steps - 1}, "deletion steps"),
        (True, lambda plan: {"learning_steps": plan.learning_steps - 1}, "learning steps"),
        (True, lambda plan: {"learning_steps": plan.learning_steps // 2}, "risk"),  # The proof's "2 kappa log".
        (True, lambda plan: {"risk_bound": plan.risk_bound / 10}, "risk"),
        (False, lambda plan: {"deletion_steps": plan.deletion_steps - 1}, "deleted records"),
        (False, lambda plan: {"deletion_steps": plan.deletion_steps + 1}, "more steps than needed"),
        (False, lambda plan: {"deletion_steps": plan.deletion_steps // 2}, "deleted records"),
        (False, lambda plan: {"epsilon_dd": plan.epsilon_dd**2}, "certified epsilon_dd"),
        (False, lambda plan: {"epsilon_dd": plan.epsilon_dd / 4}, "certified epsilon_dd"),
        (
            False,
            lambda plan: {"problem": dataclasses.replace(plan.problem, step_size=1.5 * plan.problem.step_size)},
            "step size",
        ),
    ],
)
def test_a_planted_fault_in_the_planner_is_caught(certify_risk, fault, caught):
    plan = plan_deletion(**C1, certify_risk=certify_risk)
    assert violations(plan, C1) == []
    assert caught in violations(dataclasses.replace(plan, **fault(plan)), C1)


def test_the_saving_before_rounding_is_that_of_the_sheet():
    learning, deletion = steps_for_risk(PROBLEM, alpha=8.0, dimension=10, epsilon=1.0, records=10)
    assert 1000 * (learning - deletion) == quoted(111504)
    assert certified_risk(PROBLEM, alpha=8.0, dimension=10, epsilon=1.0) == quoted(0.096)


def test_importing_the_accounting_of_deletion_imports_neither_torch_nor_scipy():
    deletion, theory = "accounting.deletion", "papers.forget_unlearning.theory"
    modules = [f"{deletion}.planning"]
    modules += [f"{theory}.{module}" for module in ("attacks", "counting", "exact", "nonconvex")]
    imports = "; ".join(f"import certified_unlearning.{module}" for module in modules)
    code = f"{imports}; import sys; print([name for name in ('torch', 'scipy') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
