"""The excess risk under replacement, and Table 1 (sections 4.4, 4.6, 7.1, 7.6)."""

import dataclasses
import math

import numpy as np
import pytest

from certified_unlearning.accounting.deletion.planning import plan_deletion
from certified_unlearning.accounting.deletion.utility import (
    certified_risk,
    gradients_saved,
    minimiser_shift,
    risk_after_edit,
    risk_after_steps,
    sharp_risk_after_steps,
    starting_risk,
    steps_for_risk,
    table_1,
)
from certified_unlearning.errors import AssumptionError, ParameterError
from tests.accounting.deletion_settings import C1, C2, quoted

PLAN = plan_deletion(**C1)
NOISE = {"sigma": PLAN.sigma, "dimension": 10}


@pytest.mark.parametrize(("setting", "learning", "deletion"), [(C1, 193.133, 81.6287), (C2, 1334.69, 506.224)])
def test_steps_for_the_risk_are_those_of_the_sheet(setting, learning, deletion):
    plan = plan_deletion(**setting)
    numbers = {"alpha": setting["alpha"], "dimension": setting["dimension"], "epsilon": setting["epsilon_dp"]}
    found = steps_for_risk(plan.problem, **numbers, records=setting["records"])
    assert found == (quoted(learning), quoted(deletion))


def test_larger_requests_need_the_sheets_steps():
    found = [
        steps_for_risk(PLAN.problem, alpha=8.0, dimension=10, epsilon=1.0, records=records).deletion
        for records in (1, 20, 100)
    ]
    assert found == quoted([81.6287, 88.5331, 165.786])


def test_the_largest_entry_of_the_second_setting_is_five_condition_numbers():
    """8 epsilon r^2 / (alpha d) is 33.2975 there; 5 kappa is 130."""
    assert 8 * C2["epsilon_dp"] * C2["records"] ** 2 / (C2["alpha"] * C2["dimension"]) == quoted(33.2975)
    kappa = C2["smoothness"] / C2["strong_convexity"]
    plan = plan_deletion(**C2)
    numbers = {"alpha": C2["alpha"], "dimension": C2["dimension"], "epsilon": C2["epsilon_dp"]}
    assert steps_for_risk(plan.problem, **numbers, records=1).deletion == quoted(4 * kappa * math.log(130))


def test_risks_along_the_first_setting_are_those_of_the_sheet():
    start = starting_risk(PLAN.problem, **NOISE)
    assert start == quoted(60.0384)
    learned = risk_after_steps(PLAN.problem, start, steps=194, **NOISE)
    assert learned == quoted(0.0569303)
    edited = risk_after_edit(PLAN.problem, 0.096, records=10)
    assert edited == quoted(1.344)
    assert risk_after_steps(PLAN.problem, edited, steps=82, **NOISE) == quoted(0.0825123)
    assert minimiser_shift(PLAN.problem, 10) == quoted(0.8)


def test_the_certified_risk_never_grows_along_a_stream():
    random = np.random.default_rng(1)
    for _ in range(300):
        n = int(10 ** random.uniform(1, 5))
        weight = 10 ** random.uniform(-3, 0)
        setting = {
            **C1,
            "n": n,
            "dimension": int(10 ** random.uniform(0, 3)),
            "strong_convexity": weight,
            "smoothness": weight * (1 + 10 ** random.uniform(-2, 2)),
            "alpha": 1 + 10 ** random.uniform(-1, 2),
            "epsilon_dp": 10 ** random.uniform(-1, 1),
            "epsilon_dd": 0.05,
            "records": int(random.integers(1, n + 1)),
        }
        plan = plan_deletion(**setting)
        noise = {"sigma": plan.sigma, "dimension": setting["dimension"]}
        start = starting_risk(plan.problem, **noise)
        learned = risk_after_steps(plan.problem, start, steps=plan.learning_steps, **noise)
        edited = risk_after_edit(plan.problem, plan.risk_bound, records=setting["records"])
        answered = risk_after_steps(plan.problem, edited, steps=plan.deletion_steps, **noise)
        assert max(learned, answered) <= plan.risk_bound * (1 + 1e-12), setting


@pytest.mark.parametrize("steps", [0, 1, 10, 194, math.inf])
def test_the_sharper_risk_is_below_the_lemma(steps):
    sharp = sharp_risk_after_steps(PLAN.problem, 10.0, steps=steps, **NOISE)
    assert sharp < risk_after_steps(PLAN.problem, 10.0, steps=steps, **NOISE)


def test_no_step_leaves_the_sharper_risk_as_it_was():
    assert sharp_risk_after_steps(PLAN.problem, 10.0, steps=0, **NOISE) == 10.0


def test_the_sharper_risk_is_one_step_of_its_recursion_after_another():
    problem, risk = PLAN.problem, 10.0
    contraction = problem.strong_convexity * problem.step_size * (2 - problem.step_size * problem.smoothness)
    for _ in range(7):
        risk = (1 - contraction) * risk + problem.step_size * 10 * PLAN.sigma**2 * problem.smoothness
    assert sharp_risk_after_steps(problem, 10.0, steps=7, **NOISE) == pytest.approx(risk)


@pytest.mark.parametrize("function", [risk_after_steps, sharp_risk_after_steps])
def test_steps_that_are_too_long_or_losses_that_are_merely_convex_are_refused(function):
    for changed, message in (({"step_size": 4.0}, "step_size < 1 / smoothness"), ({"strong_convexity": 0.0}, "strong")):
        with pytest.raises(AssumptionError, match=message):
            function(dataclasses.replace(PLAN.problem, **changed), 1.0, steps=1, **NOISE)


@pytest.mark.parametrize("records", [0, 1001, 1.5])
def test_requests_of_impossible_size_are_refused(records):
    with pytest.raises(ParameterError, match="records must be"):
        risk_after_edit(PLAN.problem, 1.0, records=records)
    with pytest.raises(ParameterError, match="records must be"):
        gradients_saved(PLAN.problem, alpha=8.0, dimension=10, epsilon_dp=1.0, epsilon_dd=0.1, records=records)


def test_deletion_may_be_dearer_than_retraining():
    assert gradients_saved(PLAN.problem, alpha=8.0, dimension=10, epsilon_dp=1.0, epsilon_dd=0.1, records=1000) < 0
    assert plan_deletion(**{**C1, "records": 1000}).gradients_saved < 0


def test_deletion_steps_for_privacy_serve_the_risk_of_small_requests():
    """``r <= sqrt(alpha d / (8 epsilon_dd))`` and ``5 kappa <= epsilon_dp / epsilon_dd``."""
    setting = {**C1, "epsilon_dd": 1 / 40}
    largest = math.isqrt(int(8 * 10 / (8 / 40)))
    assert largest == 20
    for records, serves in ((largest, True), (largest + 1, False)):
        real = steps_for_risk(PLAN.problem, alpha=8.0, dimension=10, epsilon=1.0, records=records).deletion
        assert (real <= 24 * math.log(40) * (1 + 1e-12)) is serves
        plans = [plan_deletion(**{**setting, "records": records}, certify_risk=flag) for flag in (True, False)]
        assert plans[0].deletion_steps >= plans[1].deletion_steps


def test_the_certified_risk_is_that_of_the_sheet():
    assert certified_risk(PLAN.problem, alpha=8.0, dimension=10, epsilon=1.0) == quoted(0.096)


def test_table_1_has_the_sheets_values():
    rows = table_1(n=10**5, dimension=100, epsilon=1.0, request=5)
    assert [row.saved for row in rows] == quoted([9.999, 921034, 555654, 921034])
    assert [row.has_secret_state for row in rows] == [False, True, False, False]


def test_table_1_refuses_logarithms_that_are_not_above_0():
    with pytest.raises(ParameterError, match="Table 1 needs"):
        table_1(n=10, dimension=100, epsilon=1.0, request=5)
    with pytest.raises(ParameterError, match="Table 1 needs"):
        table_1(n=10**5, dimension=1, epsilon=1.0, request=1)
