"""Planning one more request after a history of requests of unequal sizes."""

import dataclasses
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certified_unlearning.accounting import (
    PlannedRequest,
    Schedule,
    least_steps,
    least_steps_after,
    least_stream_steps,
    unlearning_epsilon,
)
from certified_unlearning.accounting.langevin import accountants
from certified_unlearning.errors import AssumptionError, InfeasibleError, ParameterError
from tests.accounting.paper_settings import MNIST
from tests.accounting.quadratic_streams import problems, unequal_requests

NAMES = ("lsi", "lsi-tight", "shifted")
TARGET = {"epsilon": 1.0, "delta": 1e-5}
HISTORY = Schedule(0.03, (40, 3, 200), (90, 30, 500))


def epsilon_after(problem, schedule, *, records, steps, accountant, delta=1e-5):
    return unlearning_epsilon(
        problem, schedule.followed_by(records=records, steps=steps), delta=delta, accountant=accountant
    )


def assert_least(problem, schedule, plan, *, records, accountant, epsilon, delta=1e-5, minimum=0):
    """The plan meets the target, is what it says, and one step less misses."""
    asked = {"records": records, "accountant": accountant, "delta": delta}
    assert plan.epsilon == epsilon_after(problem, schedule, steps=plan.steps, **asked) <= epsilon
    assert plan.steps == minimum or epsilon_after(problem, schedule, steps=plan.steps - 1, **asked) > epsilon


# --- The least steps are the least. --------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize("accountant", NAMES)
@pytest.mark.parametrize("adjacency", ["replace", "zero-out", "remove"])
@pytest.mark.parametrize("sizes", [(), (1,), (300, 2, 40), (2, 40, 300)])
@pytest.mark.parametrize("records", [25, 300, 900])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_one_step_less_than_planned_misses_the_target(accountant, adjacency, sizes, records, epsilon):
    problem = dataclasses.replace(MNIST, adjacency=adjacency)
    schedule = Schedule(0.03, (), ())
    for size in sizes:
        plan = least_steps_after(problem, schedule, records=size, epsilon=epsilon, delta=1e-5, accountant=accountant)
        schedule = schedule.followed_by(records=size, steps=plan.steps)
    plan = least_steps_after(problem, schedule, records=records, epsilon=epsilon, delta=1e-5, accountant=accountant)
    assert_least(problem, schedule, plan, records=records, accountant=accountant, epsilon=epsilon)
    assert plan.steps > 0


@given(
    problem=problems(),
    sigma=st.floats(-4, 1).map(lambda exponent: 10**exponent),
    requests=unequal_requests(),
    learning_steps=st.one_of(st.just(math.inf), st.integers(0, 2000)),
    records=st.integers(1, 20),
    epsilon=st.floats(-3, 2).map(lambda exponent: 10**exponent),
    delta=st.floats(-15, -0.1).map(lambda exponent: 10**exponent),
    minimum=st.integers(0, 2),
    accountant=st.sampled_from(NAMES),
)
def test_after_any_history_the_plan_is_the_least(
    problem, sigma, requests, learning_steps, records, epsilon, delta, minimum, accountant
):
    problem = dataclasses.replace(problem, n=problem.n + 100)
    schedule = Schedule(sigma, *requests, learning_steps)
    asked = {"records": records, "epsilon": epsilon, "delta": delta, "accountant": accountant}
    plan = least_steps_after(problem, schedule, **asked, minimum_steps=minimum)
    assert_least(problem, schedule, plan, **asked, minimum=minimum)


@pytest.mark.parametrize("learning_steps", [1, 40, 3000])
def test_losses_that_are_merely_convex_can_be_planned_after_finite_learning(learning_steps):
    convex = dataclasses.replace(MNIST, strong_convexity=0.0)
    for schedule in (Schedule(0.03, (), (), learning_steps), Schedule(0.03, (2, 9), (50, 3), learning_steps)):
        plan = least_steps_after(convex, schedule, records=30, **TARGET, accountant="shifted")
        assert_least(convex, schedule, plan, records=30, accountant="shifted", epsilon=1.0)


def test_one_step_is_enough_where_it_forgets_everything():
    forgetful = dataclasses.replace(MNIST, strong_convexity=MNIST.smoothness)
    for records, steps in ((9000, 1), (1, 0)):
        plan = least_steps_after(forgetful, HISTORY, records=records, **TARGET, accountant="shifted")
        assert plan.steps == steps


def test_learning_steps_count_for_the_accountant_that_knows_them():
    few, many, all_steps = (
        least_steps_after(
            MNIST, Schedule(0.03, (40,), (5,), learning_steps), records=100, **TARGET, accountant="shifted"
        ).steps
        for learning_steps in (10, 30, math.inf)
    )
    assert 0 < few < many < all_steps
    assert least_steps_after(MNIST, Schedule(0.03, (), (), 0), records=100, **TARGET, accountant="shifted") == (0, 0.0)
    for accountant in ("lsi", "lsi-tight"):
        plans = {
            least_steps_after(MNIST, Schedule(0.03, (40,), (5,), steps), records=9, **TARGET, accountant=accountant)
            for steps in (10, math.inf)
        }
        assert len(plans) == 1


@pytest.mark.parametrize("accountant", NAMES)
@pytest.mark.parametrize("adjacency", ["replace", "zero-out", "remove"])
def test_a_stream_is_planned_request_by_request(accountant, adjacency):
    problem = dataclasses.replace(MNIST, adjacency=adjacency)
    asked = TARGET | {"accountant": accountant}
    whole = least_stream_steps(problem, sigma=0.03, records_per_request=20, requests=6, **asked)
    assert least_steps(problem, sigma=0.03, records=20, **asked) == whole[0].steps
    # The history may give one size for all, or one for each.
    for known in range(6):
        steps = tuple(request.steps for request in whole[:known])
        histories = [Schedule(0.03, (20,) * known, steps), *([Schedule(0.03, 20, steps)] if known else [])]
        for history in histories:
            assert least_steps_after(problem, history, records=20, **asked) == whole[known]


def test_the_paper_is_the_default_accountant():
    plan = least_steps_after(MNIST, HISTORY, records=9, **TARGET)
    assert plan == least_steps_after(MNIST, HISTORY, records=9, **TARGET, accountant="lsi")
    assert isinstance(plan, PlannedRequest)


# --- Planted faults. -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("accountant", NAMES)
@pytest.mark.parametrize(
    "wrong", [lambda sizes: sizes[::-1], lambda sizes: (sizes[0],) * len(sizes)], ids=["reverse order", "first for all"]
)
def test_a_plan_for_sizes_of_the_wrong_requests_misses_the_target(monkeypatch, accountant, wrong):
    schedule = Schedule(0.03, (3,), (5000,))
    with monkeypatch.context() as planted:
        right = Schedule.records
        planted.setattr(Schedule, "records", property(lambda self: wrong(right.fget(self))))
        plan = least_steps_after(MNIST, schedule, records=900, **TARGET, accountant=accountant)
    assert epsilon_after(MNIST, schedule, records=900, steps=plan.steps, accountant=accountant) > 2


@pytest.mark.parametrize("accountant", NAMES)
@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_an_estimate_that_is_off_is_corrected(monkeypatch, accountant, factor):
    asked = {"records": 100, "accountant": accountant}
    schedule = dataclasses.replace(HISTORY, learning_steps=50)
    right = least_steps_after(MNIST, schedule, **asked, **TARGET)
    known = accountants.ACCOUNTANTS[accountant]
    wrong = dataclasses.replace(known, contraction_gap=lambda problem: factor * known.contraction_gap(problem))
    monkeypatch.setitem(accountants.ACCOUNTANTS, accountant, wrong)
    assert least_steps_after(MNIST, schedule, **asked, **TARGET) == right


def test_the_estimate_after_finite_learning_is_right_up_to_rounding(monkeypatch):
    # The exact accountant is asked at most at the plan, one below and once more.
    known, asked = accountants.ACCOUNTANTS["shifted"], []

    def counted(*arguments):
        curve_after = known.curve_by_answer(*arguments)
        return lambda steps: asked.append(1) or curve_after(steps)

    counting = dataclasses.replace(known, curve_by_answer=counted)
    monkeypatch.setitem(accountants.ACCOUNTANTS, "shifted", counting)
    for problem in (MNIST, dataclasses.replace(MNIST, strong_convexity=0.0)):
        for learning_steps in (3, 60, 2000):
            asked.clear()
            schedule = Schedule(0.03, (40, 3), (5, 6), learning_steps)
            plan = least_steps_after(problem, schedule, records=500, **TARGET, accountant="shifted")
            assert plan.steps > 10
            assert len(asked) <= 3


# --- Bad input. ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("accountant", NAMES)
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"epsilon": 0}, "epsilon must be a finite number above 0, got 0"),
        ({"delta": 1}, "delta must lie strictly between 0 and 1, got 1"),
        ({"records": 0}, "records must be a whole number, at least 1, got 0"),
        ({"records": 1.5}, "records must be a whole number, at least 1, got 1.5"),
        ({"records": 11_740}, "records must be at most n = 11982, got 11740 (after the earlier removal of 243)"),
        ({"minimum_steps": -1}, "minimum_steps must be a whole number, at least 0, got -1"),
    ],
)
def test_a_next_request_that_makes_no_sense_is_refused(accountant, wrong, message):
    with pytest.raises(ParameterError, match=f"^{re.escape(message)}$"):
        least_steps_after(MNIST, HISTORY, **{"records": 9, **TARGET, "accountant": accountant} | wrong)


def test_the_last_record_cannot_be_removed_from_a_mean():
    remove = dataclasses.replace(MNIST, adjacency="remove")
    with pytest.raises(ParameterError, match="with adjacency remove, a record must remain"):
        least_steps_after(remove, HISTORY, records=MNIST.n - 243, **TARGET)


def test_an_unknown_accountant_and_assumptions_that_fail_are_refused():
    with pytest.raises(ParameterError, match="accountant must be one of lsi, lsi-tight, shifted, got 'best'"):
        least_steps_after(MNIST, HISTORY, records=9, **TARGET, accountant="best")
    convex = dataclasses.replace(MNIST, strong_convexity=0.0)
    for accountant in NAMES:
        with pytest.raises(AssumptionError, match=r"strong_convexity (must be )?above 0"):
            least_steps_after(convex, HISTORY, records=9, **TARGET, accountant=accountant)


@pytest.mark.parametrize("accountant", NAMES)
@pytest.mark.parametrize("learning_steps", [10**12, math.inf])
def test_a_request_of_more_steps_than_anyone_runs_is_infeasible(accountant, learning_steps):
    slow = dataclasses.replace(MNIST, step_size=1e-12)
    message = r"^removing 100 records at a time with epsilon = 1\.0 and sigma = 0\.03 takes more than 1e\+12 unlearning"
    with pytest.raises(InfeasibleError, match=message):
        least_steps_after(
            slow, Schedule(0.03, (5,), (3,), learning_steps), records=100, **TARGET, accountant=accountant
        )
