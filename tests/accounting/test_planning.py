"""Plans: each is the least (or the most) that meets its target."""

import dataclasses
import math
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from certified_unlearning.accounting import (
    Problem,
    Schedule,
    least_sigma,
    least_steps,
    least_stream_steps,
    most_records,
    stream_guarantees,
)
from certified_unlearning.errors import AssumptionError, InfeasibleError, ParameterError
from tests.accounting.paper_settings import MNIST, for_descent
from tests.accounting.test_published_plans import NAMES, certified

# --- Exactness on random problems. --------------------------------------------------------------------------


@st.composite
def problems(draw):
    n = draw(st.integers(100, 100_000))
    smoothness = 10 ** draw(st.floats(-1, 1))
    strong_convexity = smoothness * 10 ** draw(st.floats(-4, 0))
    adjacency = draw(st.sampled_from(["replace", "zero-out", "remove"]))
    return Problem(n, strong_convexity, smoothness, 1.0, draw(st.floats(0.05, 1)) / smoothness, adjacency)


TARGETS = st.floats(-3, 2).map(lambda exponent: 10**exponent)
SIGMAS = st.floats(-4, 1).map(lambda exponent: 10**exponent)
DELTAS = st.floats(-15, -0.1).map(lambda exponent: 10**exponent)
RECORDS = st.integers(1, 50)
ACCOUNTANTS = st.sampled_from(NAMES)


@given(problem=problems(), sigma=SIGMAS, target=TARGETS, delta=DELTAS, records=RECORDS, accountant=ACCOUNTANTS)
def test_least_steps_meet_the_target_and_one_less_does_not(problem, sigma, target, delta, records, accountant):
    arguments = {"sigma": sigma, "delta": delta, "records": records, "accountant": accountant}
    steps = least_steps(problem, **arguments, epsilon=target)
    assert certified(problem, steps, **arguments) <= target
    assert steps == 0 or certified(problem, steps - 1, **arguments) > target


@given(
    problem=problems(),
    sigma=SIGMAS,
    target=TARGETS,
    delta=DELTAS,
    records=RECORDS,
    accountant=ACCOUNTANTS,
    requests=st.integers(2, 6),
    minimum=st.integers(0, 2),
)
def test_streams_meet_the_target_after_every_request_and_with_no_step_to_spare(
    problem, sigma, target, delta, records, accountant, requests, minimum
):
    records = min(records, problem.n // requests - 1)
    plan = least_stream_steps(
        problem,
        sigma=sigma,
        epsilon=target,
        delta=delta,
        records_per_request=records,
        requests=requests,
        minimum_steps=minimum,
        accountant=accountant,
    )
    steps = [request.steps for request in plan]
    schedule = Schedule(sigma=sigma, records_per_request=records, steps=tuple(steps))
    guarantees = stream_guarantees(problem, schedule, delta=delta, accountant=accountant)
    assert [request.epsilon for request in plan] == [each.epsilon for each in guarantees]
    assert max(request.epsilon for request in plan) <= target
    assert min(steps) >= minimum
    arguments = {"sigma": sigma, "delta": delta, "records": records, "accountant": accountant}
    for number, last in enumerate(steps):
        if last > minimum:
            assert certified(problem, *steps[:number], last - 1, **arguments) > target


@given(
    problem=problems(),
    steps=st.integers(0, 3000),
    target=TARGETS,
    delta=DELTAS,
    records=RECORDS,
    accountant=ACCOUNTANTS,
)
def test_least_sigma_meets_the_target_and_less_does_not(problem, steps, target, delta, records, accountant):
    arguments = {"delta": delta, "records": records, "accountant": accountant}
    sigma = least_sigma(problem, **arguments, steps=steps, epsilon=target)
    assert certified(problem, steps, **arguments, sigma=sigma) <= target
    assume(sigma > 1e-300)
    assert certified(problem, steps, **arguments, sigma=sigma * (1 - 1e-12)) > target


@given(
    problem=problems(),
    sigma=SIGMAS,
    steps=st.integers(0, 500),
    target=TARGETS,
    delta=DELTAS,
    accountant=ACCOUNTANTS,
)
def test_most_records_meet_the_target_and_one_more_does_not(problem, sigma, steps, target, delta, accountant):
    arguments = {"sigma": sigma, "delta": delta, "accountant": accountant}
    try:
        records = most_records(problem, **arguments, steps=steps, epsilon=target)
    except InfeasibleError:
        records = 0
    limit = problem.n - (problem.adjacency == "remove")
    assert records == 0 or certified(problem, steps, **arguments, records=records) <= target
    assert records == limit or certified(problem, steps, **arguments, records=records + 1) > target


@given(problem=problems(), sigma=SIGMAS, target=TARGETS, delta=DELTAS, records=st.integers(1, 20), data=st.data())
def test_a_plan_by_the_exact_accountant_holds_after_any_number_of_learning_steps(
    problem, sigma, target, delta, records, data
):
    arguments = {"sigma": sigma, "delta": delta}
    plan = least_stream_steps(
        problem, **arguments, epsilon=target, records_per_request=records, requests=3, accountant="shifted"
    )
    steps = [request.steps for request in plan]
    learning_steps = data.draw(st.integers(0, 1000))
    after_less = certified(
        problem, *steps, **arguments, records=records, accountant="shifted", learning_steps=learning_steps
    )
    assert after_less <= target * (1 + 1e-12)


@given(problem=problems(), target=TARGETS, delta=DELTAS, records=RECORDS)
def test_least_sigma_without_steps_is_the_closed_form(problem, target, delta, records):
    # A + 2 sqrt(A l) = epsilon gives sqrt(A) = sqrt(l + epsilon) - sqrt(l), and A is proportional to 1 / sigma^2.
    sigma = least_sigma(problem, steps=0, epsilon=target, delta=delta, records=records)
    log_inverse_delta = -math.log(delta)
    root = target / (math.sqrt(log_inverse_delta + target) + math.sqrt(log_inverse_delta))
    assert sigma == pytest.approx(problem.sensitivity(records) / math.sqrt(problem.strong_convexity) / root, rel=1e-12)


@given(problem=problems(), sigma=SIGMAS, target=TARGETS, delta=DELTAS, records=RECORDS)
def test_sharper_accountants_ask_for_less(problem, sigma, target, delta, records):
    arguments = {"epsilon": target, "delta": delta, "records": records}
    steps = [least_steps(problem, **arguments, sigma=sigma, accountant=name) for name in NAMES]
    assert steps == sorted(steps, reverse=True)
    sigmas = [least_sigma(problem, **arguments, steps=10, accountant=name) for name in NAMES]
    assert sigmas[0] >= sigmas[1] * (1 - 1e-12) >= sigmas[2] * (1 - 2e-12)


# --- Monotony. ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("accountant", NAMES)
def test_plans_move_the_way_they_must(accountant):
    def steps(**changed):
        arguments = {"sigma": 0.03, "epsilon": 1, "delta": 1e-5, "records": 50} | changed
        return least_steps(MNIST, **arguments, accountant=accountant)

    def sigma(**changed):
        arguments = {"steps": 20, "epsilon": 1, "delta": 1e-5, "records": 50} | changed
        return least_sigma(MNIST, **arguments, accountant=accountant)

    def records(**changed):
        arguments = {"sigma": 0.05, "epsilon": 1, "delta": 1e-5, "steps": 30} | changed
        return most_records(MNIST, **arguments, accountant=accountant)

    values = {
        "sigma": [0.02, 0.03, 0.06],
        "epsilon": [0.5, 1, 3],
        "delta": [1e-8, 1e-5, 1e-2],
        "steps": [2, 30, 200],
        "records": [10, 50, 51, 5000],
    }
    for plan, grows_with, falls_with in (
        (steps, ["records"], ["sigma", "epsilon", "delta"]),
        (sigma, ["records"], ["steps", "epsilon", "delta"]),
        (records, ["sigma", "epsilon", "delta", "steps"], []),
    ):
        for name in grows_with:
            found = [plan(**{name: value}) for value in values[name]]
            assert found == sorted(found)
            assert found[0] < found[-1]
        for name in falls_with:
            found = [plan(**{name: value}) for value in values[name]]
            assert found == sorted(found, reverse=True)
            assert found[0] > found[-1]


@pytest.mark.parametrize("accountant", NAMES)
def test_steps_sigma_and_records_are_inverse_to_each_other(accountant):
    target = {"epsilon": 1, "delta": 1e-5, "accountant": accountant}
    sigma = least_sigma(MNIST, steps=50, records=100, **target)
    assert least_steps(MNIST, sigma=sigma, records=100, **target) == 50
    assert least_steps(MNIST, sigma=sigma * (1 - 1e-9), records=100, **target) == 51
    assert most_records(MNIST, sigma=sigma, steps=50, **target) == 100
    assert most_records(MNIST, sigma=sigma * (1 - 1e-9), steps=50, **target) == 99


def test_adjacencies_cost_what_their_sensitivities_do():
    def steps(adjacency, accountant):
        problem = dataclasses.replace(MNIST, adjacency=adjacency)
        return least_steps(problem, sigma=0.03, epsilon=1, delta=1e-5, records=100, accountant=accountant)

    for name in NAMES:
        assert steps("remove", name) == steps("replace", name) > steps("zero-out", name)
        halved = least_steps(MNIST, sigma=0.03, epsilon=1, delta=1e-5, records=50, accountant=name)
        assert steps("zero-out", name) == halved


# --- Ends of the scale. -------------------------------------------------------------------------------------


@pytest.mark.parametrize("accountant", NAMES)
def test_most_records_end_at_all_there_are(accountant):
    arguments = {"sigma": 1e3, "steps": 5, "epsilon": 1, "delta": 1e-5, "accountant": accountant}
    assert most_records(MNIST, **arguments) == 11_982
    assert most_records(dataclasses.replace(MNIST, adjacency="zero-out"), **arguments) == 11_982
    assert most_records(dataclasses.replace(MNIST, adjacency="remove"), **arguments) == 11_981


@pytest.mark.parametrize("accountant", NAMES)
@pytest.mark.parametrize("records", [1, 2, 3])
def test_most_records_begin_at_one(accountant, records):
    target = {"epsilon": 1, "delta": 1e-5, "accountant": accountant}
    sigma = least_sigma(MNIST, steps=5, records=records, **target)
    assert most_records(MNIST, sigma=sigma, steps=5, **target) == records


def test_the_smallest_problems_have_plans_too():
    alone = Problem(1, 0.5, 1.0, 1.0, 1.0)
    assert most_records(alone, sigma=10, steps=3, epsilon=1, delta=0.1) == 1
    pair = Problem(2, 0.5, 1.0, 1.0, 1.0, "remove")
    assert most_records(pair, sigma=10, steps=3, epsilon=1, delta=0.1) == 1


@pytest.mark.parametrize("accountant", NAMES)
def test_steps_that_would_do_without_noise_get_the_least_positive_double(accountant):
    sigma = least_sigma(MNIST, steps=10**9, epsilon=1, delta=1e-5, records=1, accountant=accountant)
    assert 0 < sigma < 1e-300


@pytest.mark.parametrize("sigma", [1e-300, 1e-12])
@pytest.mark.parametrize("accountant", NAMES)
def test_next_to_no_noise_takes_many_steps(accountant, sigma):
    arguments = {"sigma": sigma, "delta": 1e-5, "records": 1, "accountant": accountant}
    steps = least_steps(MNIST, **arguments, epsilon=1)
    assert steps > 300
    assert certified(MNIST, steps, **arguments) <= 1 < certified(MNIST, steps - 1, **arguments)


def test_one_step_is_enough_where_it_forgets_everything():
    forgetful = Problem(100, 1.0, 1.0, 1.0, 1.0)
    target = {"epsilon": 1, "delta": 1e-5, "accountant": "shifted"}
    assert least_steps(forgetful, sigma=1e-6, records=50, **target) == 1
    assert least_steps(forgetful, sigma=1e6, records=50, **target) == 0
    assert least_steps(forgetful, sigma=1e6, records=50, **target, minimum_steps=4) == 4
    assert [
        each.steps for each in least_stream_steps(forgetful, sigma=1e-6, records_per_request=3, requests=3, **target)
    ] == [1, 1, 1]


@pytest.mark.parametrize("minimum", [0, 1, 59, 60, 61, 500])
def test_steps_are_counted_from_the_minimum(minimum):
    arguments = {"sigma": 0.03, "epsilon": 1, "delta": 1 / 11_982, "accountant": "shifted"}
    steps = least_steps(MNIST, **arguments, records=100, minimum_steps=minimum)
    assert steps == max(60, minimum)


def test_the_exact_accountant_meets_targets_that_no_renyi_order_can():
    tiny = {"sigma": 0.03, "epsilon": 1e-30, "delta": 1e-5, "records": 100}
    steps = least_steps(MNIST, **tiny, accountant="shifted")
    assert certified(MNIST, steps, sigma=0.03, delta=1e-5, records=100, accountant="shifted") <= 1e-30
    assert steps < 300
    # At mu so small that delta alone covers the difference.
    assert stream_guarantees(
        MNIST, Schedule(sigma=0.03, records_per_request=100, steps=(steps,)), delta=1e-5, accountant="shifted"
    )[0].mu == pytest.approx(1e-5 * math.sqrt(2 * math.pi), rel=0.05)


# --- Bad input. ---------------------------------------------------------------------------------------------

STEPS = {"sigma": 0.03, "epsilon": 1, "delta": 1e-5, "records": 100}
SIGMA = {"steps": 1, "epsilon": 1, "delta": 1e-5, "records": 100}
MOST = {"sigma": 0.03, "steps": 900, "epsilon": 1, "delta": 1e-5}


@pytest.mark.parametrize("accountant", NAMES)
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"epsilon": 0}, "epsilon must be a finite number above 0, got 0"),
        ({"epsilon": -1}, "epsilon must be a finite number above 0, got -1"),
        ({"epsilon": math.nan}, "epsilon must be a finite number above 0, got nan"),
        ({"epsilon": math.inf}, "epsilon must be a finite number above 0, got inf"),
        ({"delta": 0}, "delta must lie strictly between 0 and 1, got 0"),
        ({"delta": 1}, "delta must lie strictly between 0 and 1, got 1"),
        ({"records": 11_983}, "records must be at most n = 11982, got 11983"),
        ({"records": 0}, "records(_per_request)? must be a whole number, at least 1, got 0"),
        ({"records": 1.5}, r"records(_per_request)? must be a whole number, at least 1, got 1\.5"),
    ],
)
def test_planners_refuse_targets_that_make_no_sense(wrong, message, accountant):
    for plan, arguments in ((least_steps, STEPS), (least_sigma, SIGMA), (most_records, MOST)):
        if set(wrong) <= set(arguments):
            with pytest.raises(ParameterError, match=f"^{message}$"):
                plan(MNIST, **arguments | wrong, accountant=accountant)


@pytest.mark.parametrize("accountant", NAMES)
@pytest.mark.parametrize("sigma", [0.0, -0.1, math.nan])
def test_planners_refuse_a_sigma_that_is_no_noise(sigma, accountant):
    for plan, arguments in ((least_steps, STEPS), (most_records, MOST)):
        with pytest.raises(ParameterError, match=f"^sigma must be a finite number above 0, got {sigma}$"):
            plan(MNIST, **arguments | {"sigma": sigma}, accountant=accountant)


@pytest.mark.parametrize("accountant", NAMES)
def test_counts_must_be_counts(accountant):
    chosen = {"accountant": accountant}
    with pytest.raises(ParameterError, match=r"^minimum_steps must be a whole number, at least 0, got -1$"):
        least_steps(MNIST, **STEPS, **chosen, minimum_steps=-1)
    for plan, arguments in ((least_sigma, SIGMA), (most_records, MOST)):
        with pytest.raises(ParameterError, match=r"^steps\[0\] must be a whole number, at least 0, got -1$"):
            plan(MNIST, **arguments | {"steps": -1}, **chosen)
    stream_arguments = {"sigma": 0.03, "epsilon": 1, "delta": 1e-5, "records_per_request": 5, "requests": 3} | chosen
    for wrong, message in (
        ({"requests": 0}, "requests must be a whole number, at least 1, got 0"),
        ({"records_per_request": 0}, "records_per_request must be a whole number, at least 1, got 0"),
        ({"requests": 3000}, "records must be at most n = 11982, got 15000"),
        ({"minimum_steps": -2}, "minimum_steps must be a whole number, at least 0, got -2"),
    ):
        with pytest.raises(ParameterError, match=f"^{message}$"):
            least_stream_steps(MNIST, **stream_arguments | wrong)


def test_an_unknown_accountant_is_refused_before_anything_is_planned():
    for plan, arguments in ((least_steps, STEPS), (least_sigma, SIGMA), (most_records, MOST)):
        with pytest.raises(ParameterError, match=r"^accountant must be one of lsi, lsi-tight, shifted, got 'best'$"):
            plan(MNIST, **arguments, accountant="best")


def test_planners_refuse_a_step_size_above_the_theorems_limit():
    for_another_theorem = for_descent(MNIST)
    for name in ("lsi", "lsi-tight"):
        for plan, arguments in ((least_steps, STEPS), (least_sigma, SIGMA), (most_records, MOST)):
            with pytest.raises(AssumptionError, match="need step_size <= 1 / smoothness"):
                plan(for_another_theorem, **arguments, accountant=name)
    beyond = dataclasses.replace(MNIST, step_size=2.01 / MNIST.smoothness)
    for plan, arguments in ((least_steps, STEPS), (least_sigma, SIGMA), (most_records, MOST)):
        assert plan(for_another_theorem, **arguments, accountant="shifted") > 0
        with pytest.raises(AssumptionError, match="contract only for step_size <= 2 / smoothness"):
            plan(beyond, **arguments, accountant="shifted")


def test_planners_refuse_problems_that_are_merely_convex():
    convex = dataclasses.replace(MNIST, strong_convexity=0.0)
    for plan, arguments in ((least_steps, STEPS), (least_sigma, SIGMA), (most_records, MOST)):
        for name in ("lsi", "lsi-tight"):
            with pytest.raises(AssumptionError, match="strong_convexity must be above 0, got 0"):
                plan(convex, **arguments, accountant=name)
        with pytest.raises(AssumptionError, match="need a contraction: strong_convexity above 0"):
            plan(convex, **arguments, accountant="shifted")


@pytest.mark.parametrize("accountant", NAMES)
def test_a_plan_of_more_steps_than_anyone_runs_is_infeasible(accountant):
    slow = dataclasses.replace(MNIST, step_size=1e-12)
    message = (
        "removing 100 records at a time with epsilon = 1 and sigma = 0.03 takes more than 1e+12 unlearning steps; "
        "raise sigma, epsilon or step_size * strong_convexity"
    )
    with pytest.raises(InfeasibleError, match=f"^{re.escape(message)}$"):
        least_steps(slow, **STEPS, accountant=accountant)


@pytest.mark.parametrize("accountant", ["lsi", "lsi-tight"])
def test_a_target_below_what_orders_can_certify_is_infeasible(accountant):
    message = r"^epsilon = 1e-30 at delta = 1e-05 needs Rényi orders above 1e\+25; raise epsilon or delta$"
    for plan, arguments in ((least_steps, STEPS), (least_sigma, SIGMA)):
        with pytest.raises(InfeasibleError, match=message):
            plan(MNIST, **arguments | {"epsilon": 1e-30}, accountant=accountant)
    assert least_sigma(MNIST, **SIGMA | {"epsilon": 1.2e-24}, accountant=accountant) > 0


@pytest.mark.parametrize("accountant", NAMES)
def test_not_even_one_record_is_infeasible(accountant):
    arguments = {"sigma": 0.0003, "steps": 1, "epsilon": 1.0, "delta": 1e-5}
    message = (
        "with steps = 1 and sigma = 0.0003, the removal of even one record exceeds epsilon = 1.0; "
        "raise steps, sigma or epsilon"
    )
    with pytest.raises(InfeasibleError, match=f"^{re.escape(message)}$"):
        most_records(MNIST, **arguments, accountant=accountant)
