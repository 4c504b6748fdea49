"""Streams whose requests remove different numbers of records, by every accountant."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certified_unlearning.accounting import (
    Schedule,
    stream_guarantees,
    unlearning_curve,
    unlearning_epsilon,
)
from certified_unlearning.accounting.langevin import hoelder, lsi
from certified_unlearning.accounting.shifted import interpolation as shifted
from certified_unlearning.errors import ParameterError
from certified_unlearning.papers.langevin_unlearning.theory import general as lsi_general
from tests.accounting.paper_settings import MNIST
from tests.accounting.quadratic_streams import (
    ORDERS,
    SIGMAS,
    exact_stream_mus,
    exact_stream_renyi,
    problem_of_each_request,
    problems,
    sequential_bound,
    unequal_requests,
)

NAMES = ("lsi", "lsi-tight", "shifted")
ADJACENCIES = ("replace", "zero-out", "remove")
ROUNDING = 1e-12


def general(problem, schedule):
    """Convex losses on a ball, where steps still forget something."""
    return lsi_general.curve(problem, schedule, radius=0.1, convex=True)


def value_at(curve, alpha):
    return float(curve(np.array([alpha]))[0])


# --- The schedule. -------------------------------------------------------------------------------------------


def test_a_schedule_has_one_size_for_all_requests_or_one_for_each():
    assert Schedule(0.03, 20, (5, 0, 7)).records == (20, 20, 20)
    assert Schedule(0.03, (3, 1, 20), (5, 0, 7)).records == (3, 1, 20)
    assert Schedule(0.03, tuple(np.array([3, 1])), (5, 0)).records == (3, 1)


def test_a_schedule_may_come_before_the_first_request_and_is_followed_by_requests():
    learned = Schedule(0.03, (), (), learning_steps=9)
    assert learned.records == ()
    assert learned.followed_by(records=3, steps=8) == Schedule(0.03, (3,), (8,), 9)
    assert Schedule(0.03, 5, (1, 2)).followed_by(records=3, steps=8) == Schedule(0.03, (5, 5, 3), (1, 2, 8))


@pytest.mark.parametrize(
    ("sizes", "steps", "message"),
    [
        ((3,), (5, 7), "or one number for each request, got 1 number for 2 requests"),
        ((3, 4, 5), (5, 7), "or one number for each request, got 3 numbers for 2 requests"),
        ((), (5,), "or one number for each request, got 0 numbers for 1 request"),
        ((3, 0), (5, 7), r"records_per_request\[1\] must be a whole number, at least 1, got 0"),
        ((1.5, 3), (5, 7), r"records_per_request\[0\] must be a whole number, at least 1, got 1\.5"),
        ([3, 4], (5, 7), r"records_per_request must be a whole number, at least 1, got \[3, 4\]"),
        ((3, 4), (5, -7), r"steps\[1\] must be a whole number, at least 0, got -7"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(sizes, steps, message):
    with pytest.raises(ParameterError, match=f"{message}$"):
        Schedule(0.03, sizes, steps)


# --- The same sizes, written one by one. ---------------------------------------------------------------------


@given(
    problem=problems(), size=st.integers(1, 40), steps=unequal_requests(), learning_steps=st.sampled_from([7, math.inf])
)
def test_equal_sizes_one_by_one_give_the_very_same_values(problem, size, steps, learning_steps):
    _, steps = steps
    at_once = Schedule(0.03, size, steps, learning_steps)
    one_by_one = dataclasses.replace(at_once, records_per_request=(size,) * len(steps))
    orders = np.array([1.5, 9.0, 300.0])
    for curve in (lsi.curve, hoelder.curve, general):
        hoelder._CACHE.clear()
        values = curve(problem, at_once).log_divergence(orders)
        hoelder._CACHE.clear()
        assert list(curve(problem, one_by_one).log_divergence(orders)) == list(values)
    assert shifted.curve(problem, one_by_one) == shifted.curve(problem, at_once)
    joint = [shifted.joint_curve(problem, each, learned_published=True) for each in (one_by_one, at_once)]
    assert joint[0] == joint[1]


# --- Against the truth on quadratics. ------------------------------------------------------------------------


@given(
    problem=problems(),
    sigma=SIGMAS,
    requests=unequal_requests(),
    learning_steps=st.one_of(st.integers(1, 100), st.just(math.inf)),
)
def test_on_quadratics_shifted_interpolation_is_exact(problem, sigma, requests, learning_steps):
    records, steps = requests
    schedule = Schedule(sigma, records, steps, learning_steps)
    last, alone = exact_stream_mus(problem, sigma=sigma, records=records, steps=steps, learning_steps=learning_steps)
    # A positive mu is never rounded down to 0.
    assert shifted.curve(problem, schedule).mu == pytest.approx(last, rel=ROUNDING, abs=1e-300)
    # The learned model shown or not: without it, its phase and the first request's count as one.
    shown = shifted.joint_curve(problem, schedule, learned_published=True).mu
    assert shown == pytest.approx(math.hypot(*alone), rel=ROUNDING)
    first, _ = exact_stream_mus(
        # The first request's model, against all that is left: the later requests take no steps.
        problem,
        sigma=sigma,
        records=records,
        steps=(steps[0], *[0] * (len(steps) - 1)),
        learning_steps=learning_steps,
    )
    kept_back = shifted.joint_curve(problem, schedule, learned_published=False).mu
    assert kept_back == pytest.approx(math.hypot(first, *alone[2:]), rel=ROUNDING, abs=1e-300)


@pytest.mark.parametrize("curve", [lsi.curve, hoelder.curve])
@given(problem=problems(), alpha=ORDERS, sigma=SIGMAS, requests=unequal_requests())
def test_no_renyi_bound_is_below_the_exact_divergence_on_quadratics(curve, problem, alpha, sigma, requests):
    records, steps = requests
    value = value_at(curve(problem, Schedule(sigma, records, steps)), alpha)
    assert value >= exact_stream_renyi(alpha, problem, sigma=sigma, records_per_request=records, steps=steps) * (
        1 - 1e-9
    )
    mu, _ = exact_stream_mus(problem, sigma=sigma, records=records, steps=steps)
    assert value >= alpha * mu**2 / 2 * (1 - 1e-9)


@given(problem=problems(), sigma=SIGMAS, requests=unequal_requests(), delta=st.floats(1e-12, 0.1))
def test_no_accountant_is_below_a_sharper_one(problem, sigma, requests, delta):
    schedule = Schedule(sigma, *requests)
    epsilons = [unlearning_epsilon(problem, schedule, delta=delta, accountant=name) for name in NAMES]
    assert epsilons[0] >= epsilons[1] * (1 - 1e-4)
    assert epsilons[1] >= epsilons[2] * (1 - ROUNDING)


# --- Against the recursions as they are written down. --------------------------------------------------------


@given(problem=problems(), sigma=SIGMAS, requests=unequal_requests(), alpha=ORDERS)
def test_the_paper_s_bound_is_its_recursion(problem, sigma, requests, alpha):
    records, steps = requests
    met = zip(problem_of_each_request(problem, records), records, strict=True)
    initials = [each.sensitivity(size) ** 2 / (each.strong_convexity * sigma**2) for each, size in met]
    exponents = [problem.step_size * problem.strong_convexity * count for count in steps]
    value = value_at(lsi.curve(problem, Schedule(sigma, records, steps)), alpha)
    assert value == pytest.approx(sequential_bound(alpha, initials, exponents), rel=1e-9, abs=0)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_bound_for_convex_losses_is_its_recursion(adjacency):
    problem = dataclasses.replace(MNIST, adjacency=adjacency, n=500)
    records, steps, ball = (3, 200, 1, 40), (5, 1, 0, 7), {"radius": 0.1, "convex": True}
    initials = [
        value_at(lsi_general.initial_curve(each, sigma=3.0, records=size, learning_steps=math.inf, **ball), 2.0) / 2
        for each, size in zip(problem_of_each_request(problem, records), records, strict=True)
    ]
    # The first step from the saturated constant on; where it stays.
    log_cap = lsi_general._ProjectedDescent(problem, 3.0, 0.1, True).log_full_cap
    each_step = lsi_general.recuperation(problem, sigma=3.0, steps=1, log_constant=log_cap, **ball)
    value = value_at(lsi_general.curve(problem, Schedule(3.0, records, steps), **ball), 9.0)
    expected = sequential_bound(9.0, initials, [each_step * count for count in steps])
    assert each_step > 1e-3
    assert value == pytest.approx(expected, rel=1e-10)
    # Learning long enough is learning to stationarity.
    long = value_at(lsi_general.curve(problem, Schedule(3.0, records, steps, 10_000), **ball), 9.0)
    assert long == pytest.approx(expected, rel=1e-6)


def on_a_grid(problem, schedule, orders):
    """The best Hölder exponents of every request, among orders of a grid, without lines and ladders."""
    rate = problem.step_size * problem.strong_convexity
    a, b = orders[:, np.newaxis], orders[np.newaxis, :]
    forward = backward = None
    met = problem_of_each_request(problem, schedule.records)
    for each, size, count in zip(met, schedule.records, schedule.steps, strict=True):
        initial = each.sensitivity(size) ** 2 / (problem.strong_convexity * schedule.sigma**2)
        decay = np.exp(-rate * count / orders)
        if forward is None:
            forward = backward = decay * initial * orders
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            through = np.where(b > a, a * (b - 1) / (b * (a - 1)) * forward + initial * a * (b - 1) / (b - a), np.inf)
            back = np.where(b > a, initial * a * b / (b - a) + backward, np.inf)
        forward, backward = decay * through.min(axis=1), decay * back.min(axis=1)
    return np.maximum(forward, backward)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("records", [(1, 30, 5, 200, 2), (60, 20, 40, 10, 30), (4000, 3000, 1500, 500, 1000)])
def test_the_sharper_bound_agrees_with_the_recursion_on_a_grid_of_orders(adjacency, records):
    problem = dataclasses.replace(MNIST, adjacency=adjacency)
    schedule = Schedule(0.03, records, (900, 100, 400, 0, 700))
    orders = 1 + np.exp(np.linspace(math.log(0.1), math.log(1e5), 1400))
    inner = (orders > 1.5) & (orders < 200)
    ratio = (hoelder.curve(problem, schedule)(orders) / on_a_grid(problem, schedule, orders))[inner]
    assert ratio.max() <= 1 + 5e-5
    assert ratio.min() >= 1 - 2e-3


def test_what_is_cached_of_unequal_streams_changes_no_value():
    rng = np.random.default_rng(3)
    steps = tuple(rng.integers(0, 900, size=45).tolist())
    sizes = [tuple(rng.integers(1, 60, size=45).tolist()) for _ in range(2)]
    sizes.append((*sizes[0][:-1], 999))  # differs in the last request only
    sizes.append((*sizes[0][:-2], 999, sizes[0][-1]))
    cases = [
        (dataclasses.replace(MNIST, adjacency=adjacency), records[:count], steps[:count])
        for adjacency in ("zero-out", "remove")
        for count in (45, 44, 45, 1)
        for records in sizes
    ]

    def value(problem, records, steps):
        return value_at(hoelder.curve(problem, Schedule(0.03, records, steps)), 9.0)

    warm = [value(*case) for case in cases]
    cold = []
    for case in cases:
        hoelder._CACHE.clear()
        cold.append(value(*case))
    assert warm == cold
    assert len(set(warm)) > len(cases) / 3


# --- Planted faults: the comparisons above can fail. ---------------------------------------------------------

FAULTS = {
    "none": lambda sizes: sizes,
    "sizes in reverse order": lambda sizes: sizes[::-1],
    "the first request's size for all": lambda sizes: (sizes[0],) * len(sizes),
}


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", NAMES)
def test_sizes_given_to_the_wrong_requests_fall_below_the_truth(monkeypatch, adjacency, fault, name):
    problem = dataclasses.replace(MNIST, adjacency=adjacency)
    records, steps = (1, 1000), (2000, 3)
    monkeypatch.setattr(Schedule, "records", property(lambda self: FAULTS[fault](self.records_per_request)))
    mu, _ = exact_stream_mus(problem, sigma=0.03, records=records, steps=steps)
    curve = unlearning_curve(problem, Schedule(0.03, records, steps), accountant=name)
    ratio = curve.mu**2 / mu**2 if name == "shifted" else value_at(curve, 2.0) / mu**2
    assert ratio >= 1 - ROUNDING if fault == "none" else ratio < 1e-3


# --- Streams of guarantees, and the ends. --------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_after_each_request_holds_what_holds_after_that_part_of_the_stream(name, adjacency):
    problem = dataclasses.replace(MNIST, adjacency=adjacency)
    records, steps = (40, 3, 200, 1), (90, 30, 500, 4)
    found = stream_guarantees(problem, Schedule(0.03, records, steps, 70), delta=1e-5, accountant=name)
    for number, guarantee in enumerate(found, start=1):
        part = Schedule(0.03, records[:number], steps[:number], 70)
        assert guarantee.epsilon == unlearning_epsilon(problem, part, delta=1e-5, accountant=name)
    assert len({each.epsilon for each in found}) == len(records) == len(found)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("learning_steps", [0, 5, math.inf])
def test_before_the_first_request_nothing_tells_the_models_apart(name, learning_steps):
    schedule = Schedule(0.03, (), (), learning_steps)
    assert unlearning_epsilon(MNIST, schedule, delta=1e-5, accountant=name) < 1e-30
    assert stream_guarantees(MNIST, schedule, delta=1e-5, accountant=name) == []
    assert value_at(general(MNIST, schedule), 9.0) == 0
    assert shifted.joint_curve(MNIST, schedule, learned_published=True).mu == 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_more_records_than_there_are_are_refused_whatever_the_sizes(name, adjacency):
    problem = dataclasses.replace(MNIST, adjacency=adjacency)
    limit = MNIST.n - (adjacency == "remove")
    unlearning_curve(problem, Schedule(0.03, (9000, limit - 9000), (1, 1)), accountant=name)
    with pytest.raises(ParameterError, match=r"at most n = 11982|a record must remain"):
        unlearning_curve(problem, Schedule(0.03, (9000, limit - 8999), (1, 1)), accountant=name)
    with pytest.raises(ParameterError, match=r"at most n = 11982|a record must remain"):
        unlearning_curve(problem, Schedule(0.03, (limit + 1, 1), (1, 1)), accountant=name)


def test_a_sum_of_sizes_with_the_same_steps_counts_as_one_request_of_that_size():
    # A request that takes no steps before the next one comes is one with it: exactly so for the sharp accountant.
    for adjacency in ADJACENCIES:
        problem = dataclasses.replace(MNIST, adjacency=adjacency)
        together = shifted.curve(problem, Schedule(0.03, (37,), (9,), 50)).mu
        apart = shifted.curve(problem, Schedule(0.03, (30, 2, 5), (0, 0, 9), 50)).mu
        assert apart == pytest.approx(together, rel=ROUNDING)
