"""The excess risk under replacement, and Table 1 (sections 4.4, 4.6, 7.1, 7.6)."""

import math

import pytest

from certified_unlearning.accounting.deletion.planning import plan_deletion
from certified_unlearning.accounting.deletion.utility import certified_risk, steps_for_risk
from certified_unlearning.errors import ParameterError
from certified_unlearning.papers.forget_unlearning.theory.comparison import table_1
from tests.accounting.deletion_settings import C1, C2, quoted

PLAN = plan_deletion(**C1)


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


@pytest.mark.parametrize("records", [0, 1001, 1.5])
def test_requests_of_impossible_size_are_refused(records):
    with pytest.raises(ParameterError, match="records must be"):
        steps_for_risk(PLAN.problem, alpha=8.0, dimension=10, epsilon=1.0, records=records)


def test_deletion_may_be_dearer_than_retraining():
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
