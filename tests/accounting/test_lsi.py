import dataclasses
import math

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import log_ndtr, ndtr

from certified_unlearning.accounting import Problem, Schedule, epsilon_from_renyi
from certified_unlearning.accounting.langevin import lsi
from certified_unlearning.errors import AssumptionError, ParameterError
from tests.accounting.paper_settings import CIFAR, MNIST, TEN_CLASSES
from tests.accounting.quadratic_streams import ORDERS, RECORDS, SIGMAS, STEPS, exact_stream_renyi, problems


def value_at(curve, alpha):
    return float(curve(np.array([alpha]))[0])


def sequential_renyi(alpha, problem, *, sigma, records_per_request, steps):
    return value_at(lsi.curve(problem, Schedule(sigma, records_per_request, tuple(steps))), alpha)


def initial_renyi(alpha, problem, **arguments):
    return value_at(lsi.initial_curve(problem, **arguments), alpha)


def epsilon(problem, *, sigma, delta, records, steps):
    curve = lsi.curve(problem, Schedule(sigma, records, tuple(steps)))
    return epsilon_from_renyi(curve, delta, conversion="paper").epsilon


def recursion(alpha, problem, *, sigma, records_per_request, steps):
    """Corollary 3.4 written down as it stands in the paper, with the constants multiplied out."""
    m, eta = problem.strong_convexity, problem.step_size
    n = problem.n - (records_per_request * (len(steps) - 1) if problem.adjacency == "remove" else 0)
    lipschitz = problem.lipschitz / (2 if problem.adjacency == "zero-out" else 1)

    def initial(order):
        return 4 * order * records_per_request**2 * lipschitz**2 / (m * sigma**2 * n**2)

    *earlier, last = steps
    decay = math.exp(-eta * m * last / alpha)
    if not earlier:
        return decay * initial(alpha)
    before = recursion(2 * alpha, problem, sigma=sigma, records_per_request=records_per_request, steps=earlier)
    return decay * (alpha - 0.5) / (alpha - 1) * (initial(2 * alpha) + before)


def gaussian_delta(epsilon_value, mu):
    """The exact delta between N(0, 1) and N(mu, 1)."""
    near = ndtr(mu / 2 - epsilon_value / mu)
    return near - math.exp(epsilon_value + log_ndtr(-mu / 2 - epsilon_value / mu))


# --- The exact oracle: on f(x; d) = (m/2) ||x - d||^2 every law is Gaussian. --------------------------------


def assert_bounds_the_exact_divergence(bound, problem, alpha, sigma, records, steps):
    arguments = {"sigma": sigma, "records_per_request": records, "steps": steps}
    exact = exact_stream_renyi(alpha, problem, **arguments)
    assert bound(alpha, problem, **arguments) >= exact * (1 - 1e-9)


@given(problem=problems(), alpha=ORDERS, sigma=SIGMAS, records=RECORDS, steps=STEPS)
def test_the_bound_is_never_below_the_exact_divergence_on_quadratics(problem, alpha, sigma, records, steps):
    assert_bounds_the_exact_divergence(sequential_renyi, problem, alpha, sigma, records, steps)


@given(problem=problems(), alpha=ORDERS, sigma=SIGMAS, records=RECORDS, steps=st.integers(0, 2000))
def test_the_bound_on_finite_learning_is_never_below_the_exact_divergence(problem, alpha, sigma, records, steps):
    contraction = 1 - problem.step_size * problem.strong_convexity
    gap, variance = 0.0, 0.0
    for _ in range(steps):
        gap = contraction * gap + problem.step_size * problem.sensitivity(records)
        variance = contraction**2 * variance + 2 * problem.step_size * sigma**2
    exact = alpha * gap**2 / (2 * variance) if steps else 0.0
    bound = initial_renyi(alpha, problem, sigma=sigma, records=records, learning_steps=steps)
    assert exact * (1 - 1e-9) <= bound <= initial_renyi(alpha, problem, sigma=sigma, records=records)


@given(problem=problems(), alpha=ORDERS, sigma=SIGMAS, records=RECORDS, steps=STEPS)
def test_the_bound_equals_the_papers_recursion(problem, alpha, sigma, records, steps):
    arguments = {"sigma": sigma, "records_per_request": records, "steps": steps}
    assert sequential_renyi(alpha, problem, **arguments) == pytest.approx(
        recursion(alpha, problem, **arguments), rel=1e-11, abs=1e-300
    )


@given(problem=problems(), sigma=SIGMAS, steps=st.integers(0, 300), delta=st.floats(1e-12, 0.5))
def test_epsilon_covers_the_exact_trade_off_on_quadratics(problem, sigma, steps, delta):
    certified = epsilon(problem, sigma=sigma, delta=delta, records=1, steps=[steps])
    assume(certified < 700)
    renyi = exact_stream_renyi(1.0, problem, sigma=sigma, records_per_request=1, steps=[steps])
    assume(renyi > 1e-12)
    assert gaussian_delta(certified, math.sqrt(2 * renyi)) <= delta * (1 + 1e-9)


@pytest.mark.parametrize("beyond", [-1, 0, 1, 2, 3, 300])
def test_a_stream_longer_than_the_exact_sum_is_cut_by_less_than_rounding(beyond):
    rng = np.random.default_rng(0)
    steps = [int(count) for count in rng.integers(0, 20_000, size=lsi.RECENT_REQUESTS + beyond)]
    arguments = {"sigma": 0.03, "records_per_request": 5, "steps": steps}
    for alpha in (1.001, 2.0, 37.0):
        ours, exact = sequential_renyi(alpha, MNIST, **arguments), recursion(alpha, MNIST, **arguments)
        assert ours == pytest.approx(exact, rel=1e-11)


@pytest.mark.parametrize("adjacency", ["replace", "remove"])
@pytest.mark.parametrize("requests", [2, 56, 57, 150, 1200])
@pytest.mark.parametrize("recent", [10, 3000, 10**6])
def test_terms_left_out_of_a_long_stream_change_no_digit(recent, requests, adjacency):
    """Against the recursion in 40 digits, at orders where the recent requests' steps hide old terms or do not."""
    problem = dataclasses.replace(MNIST, adjacency=adjacency)
    steps = tuple([200] * (requests - 2) + [recent, 7])
    sensitivities = lsi.stream_sensitivities(problem, 5, requests)
    for alpha in (1.0001, 3.0, 500.0):
        with mpmath.workdps(40):
            bound = mpmath.mpf(0)
            for number, (count, sensitivity) in enumerate(zip(steps, sensitivities, strict=True)):
                order = mpmath.mpf(alpha) * 2 ** (requests - 1 - number)
                per_order = mpmath.mpf(sensitivity) ** 2 / (mpmath.mpf(0.03) ** 2 * problem.strong_convexity)
                if number == 0:
                    bound = order * per_order
                else:
                    bound = (order - mpmath.mpf(1) / 2) / (order - 1) * (2 * order * per_order + bound)
                bound *= mpmath.exp(-mpmath.mpf(problem.step_size) * problem.strong_convexity * count / order)
            expected = float(mpmath.log(bound))
        ours = lsi.curve(problem, Schedule(0.03, 5, steps)).log_divergence(np.array([alpha]))
        assert ours == pytest.approx([expected], rel=3e-14, abs=3e-14)


@pytest.mark.parametrize("adjacency", ["replace", "remove"])
@pytest.mark.parametrize("earlier", [1, 2, 3, 6])
def test_where_a_stream_is_cut_the_bound_is_never_too_small_and_exact_without_steps(monkeypatch, earlier, adjacency):
    monkeypatch.setattr(lsi, "RECENT_REQUESTS", 3)
    problem = dataclasses.replace(MNIST, adjacency=adjacency)
    # Orders so high that the terms left out change nothing.
    without_steps = {"sigma": 0.03, "records_per_request": 5, "steps": [0] * earlier + [100, 200, 300]}
    ours, exact = sequential_renyi(1e13, problem, **without_steps), recursion(1e13, problem, **without_steps)
    assert ours == pytest.approx(exact, rel=1e-12)
    with_steps = without_steps | {"steps": [10**12] * earlier + [100, 200, 300]}
    assert sequential_renyi(1e13, problem, **with_steps) > recursion(1e13, problem, **with_steps) * (1 + 1e-6)
    low_order = sequential_renyi(1.5, problem, **without_steps) / recursion(1.5, problem, **without_steps)
    assert 1 < low_order < 1.1


def test_a_thousand_requests_do_not_overflow():
    steps = [100 * (request + 1) for request in range(1100)]
    assert 0 < epsilon(MNIST, sigma=0.03, delta=1e-5, records=5, steps=steps) < 10


# --- Planted faults: what the checks above would say of a wrong accountant. ---------------------------------


def with_constant(name, factor):
    def faulty(alpha, problem, **arguments):
        wrong = dataclasses.replace(problem, **{name: factor * getattr(problem, name)})
        return recursion(alpha, wrong, **arguments)

    return faulty


def records_not_squared(alpha, problem, *, records_per_request, **arguments):
    return recursion(alpha, problem, records_per_request=math.sqrt(records_per_request), **arguments)


def one_step_too_many(alpha, problem, *, steps, **arguments):
    return recursion(alpha, problem, steps=[*steps[:-1], steps[-1] + 1], **arguments)


def without_the_triangle_inequality(alpha, problem, *, steps, **arguments):
    return recursion(alpha, problem, steps=steps[-1:], **arguments)


def without_the_order_in_the_exponent(alpha, problem, *, steps, **arguments):
    return recursion(alpha, problem, steps=[int(count * alpha) for count in steps], **arguments)


FAULTS = {
    "2 eta for eta": with_constant("step_size", 2),
    "eta / 2 for eta": with_constant("step_size", 0.5),
    "2 m for m": with_constant("strong_convexity", 2),
    "M / 2 for M": with_constant("lipschitz", 0.5),
    "S for S^2": records_not_squared,
    "one step too many": one_step_too_many,
    "earlier requests forgotten": without_the_triangle_inequality,
    "no order in the exponent": without_the_order_in_the_exponent,
}
CASE = {"sigma": 0.03, "records_per_request": 10, "steps": [200, 100]}


def agrees_with_the_recursion(accountant):
    return accountant(5.0, MNIST, **CASE) == pytest.approx(recursion(5.0, MNIST, **CASE), rel=1e-11)


def holds_on_the_quadratic(accountant):
    """Look for a violation over a coarse grid of cases (a loose bound forgives small faults)."""
    cases = [
        (alpha, records, steps)
        for alpha in (1.01, 2.0, 50.0)
        for records in (1, 10)
        for steps in ([0], [10], [1000], [0, 0], [50, 50], [0, 0, 0, 100])
    ]
    for alpha, records, steps in cases:
        try:
            assert_bounds_the_exact_divergence(accountant, MNIST, alpha, 0.03, records, steps)
        except AssertionError:
            return False
    return True


def test_the_accountant_passes_the_checks_that_faults_must_fail():
    assert agrees_with_the_recursion(sequential_renyi)
    assert holds_on_the_quadratic(sequential_renyi)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_breaks_the_agreement_with_the_recursion(fault):
    assert not agrees_with_the_recursion(FAULTS[fault])


# The theorem is loose by a factor 2 to 4 on quadratics and by 2 alpha in the exponent, so the oracle sees only these.
@pytest.mark.parametrize("fault", ["M / 2 for M", "S for S^2", "earlier requests forgotten"])
def test_a_planted_fault_falls_below_the_exact_divergence(fault):
    assert not holds_on_the_quadratic(FAULTS[fault])


# --- Values and properties. ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "expected"), [(MNIST, 0.0258362534), (CIFAR, 0.0444444444), (TEN_CLASSES, 0.00142222222)]
)
def test_initial_renyi_at_order_10_is_the_published_value(problem, expected):
    assert initial_renyi(10.0, problem, sigma=0.03, records=1) == pytest.approx(expected, rel=3e-9)


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (MNIST, [27.9930, 11.6713, 5.25431, 1.96221, 0.957852]),
        (CIFAR, [40.2788, 16.1394, 7.06971, 2.58788, 1.25394]),
        (TEN_CLASSES, [5.21932, 2.48166, 1.20883, 0.475852, 0.236646]),
    ],
)
def test_initial_epsilon_is_the_published_value(problem, expected):
    curves = [lsi.initial_curve(problem, sigma=sigma, records=100) for sigma in (0.05, 0.1, 0.2, 0.5, 1)]
    values = [epsilon_from_renyi(curve, 1 / problem.n, conversion="paper").epsilon for curve in curves]
    assert values == pytest.approx(expected, rel=6e-6)


@pytest.mark.parametrize("problem", [MNIST, CIFAR, TEN_CLASSES])
def test_without_unlearning_epsilon_is_the_closed_form(problem):
    delta = 1 / problem.n
    scale = 4 * (100 * problem.lipschitz / 0.03 / problem.n) ** 2 / problem.strong_convexity
    closed_form = scale + 2 * math.sqrt(scale * math.log(1 / delta))
    assert epsilon(problem, sigma=0.03, delta=delta, records=100, steps=[0]) == pytest.approx(closed_form, rel=1e-12)


def test_the_text_of_figure_3c_quotes_the_renyi_bound_at_the_order_that_is_best_after_unlearning():
    curve = lsi.curve(MNIST, Schedule(0.05, 100, (1738,)))
    alpha = epsilon_from_renyi(curve, 1 / 11_982, conversion="paper").alpha
    assert alpha == pytest.approx(11.71, abs=0.01)
    assert initial_renyi(alpha, MNIST, sigma=0.05, records=100) == pytest.approx(109, abs=0.5)


def test_zero_out_has_a_quarter_of_the_renyi_bound():
    zero_out = dataclasses.replace(MNIST, adjacency="zero-out")
    arguments = {"sigma": 0.03, "records_per_request": 5, "steps": [10, 20]}
    ratio = sequential_renyi(7.0, zero_out, **arguments) / sequential_renyi(7.0, MNIST, **arguments)
    assert ratio == pytest.approx(0.25, rel=1e-12)


@pytest.mark.parametrize("adjacency", ["replace", "zero-out", "remove"])
@pytest.mark.parametrize("requests", [1, 2, 7])
def test_the_sensitivities_of_a_stream_are_those_of_its_requests(adjacency, requests):
    problem = dataclasses.replace(MNIST, adjacency=adjacency)
    expected = [problem.sensitivity(30, removed_before=30 * number) for number in range(requests)]
    assert lsi.stream_sensitivities(problem, 30, requests) == pytest.approx(expected, rel=1e-14)
    assert (expected[-1] > expected[0]) == (adjacency == "remove" and requests > 1)


@given(problem=problems(), sigma=SIGMAS, records=st.integers(1, 10), steps=st.integers(0, 1000))
def test_epsilon_falls_with_steps_sigma_and_delta_and_grows_with_records(problem, sigma, records, steps):
    base = {"sigma": sigma, "delta": 1e-5, "records": records, "steps": [steps]}
    value = epsilon(problem, **base)
    rounding = 1 + 1e-12
    assert epsilon(problem, **base | {"steps": [steps + 1]}) <= value * rounding
    assert epsilon(problem, **base | {"sigma": 1.1 * sigma}) < value
    assert epsilon(problem, **base | {"delta": 1.1e-5}) < value
    assert epsilon(problem, **base | {"records": records + 1}) > value


def test_a_curve_has_the_same_value_at_an_order_alone_and_among_others():
    curve = lsi.curve(MNIST, Schedule(0.03, 100, (50, 100, 0)))
    orders = np.array([1.5, 2.0, 10.0, 100.0, 1e6])
    assert list(curve(orders)) == pytest.approx([value_at(curve, order) for order in orders], rel=1e-15)
    assert curve.orders is None


def test_finite_learning_scales_the_initial_bound_by_what_was_learned():
    infinite = initial_renyi(3.0, MNIST, sigma=0.03, records=5)
    finite = initial_renyi(3.0, MNIST, sigma=0.03, records=5, learning_steps=17)
    rate = MNIST.strong_convexity * MNIST.step_size
    assert finite == pytest.approx(infinite * (1 - math.exp(-17 * rate)), rel=1e-13)
    assert initial_renyi(3.0, MNIST, sigma=0.03, records=5, learning_steps=0) == 0


def test_unlearning_bounds_speak_of_stationarity_whatever_the_learning_steps():
    schedule = Schedule(0.03, 5, (10, 20))
    finite = dataclasses.replace(schedule, learning_steps=3)
    assert value_at(lsi.curve(MNIST, finite), 3.0) == value_at(lsi.curve(MNIST, schedule), 3.0)


@pytest.mark.parametrize("nothing", [[-math.inf], [-math.inf, -math.inf]])
def test_where_nothing_was_learned_the_bound_is_zero(nothing):
    curve = lsi.sequential_curve(np.array(nothing), np.full(len(nothing), 1.0))
    assert list(curve(np.array([1.5, 20.0]))) == [0.0, 0.0]


# --- Bad input. ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0.0, math.nan, math.inf])
def test_a_sigma_that_makes_no_sense_is_refused(sigma):
    with pytest.raises(ParameterError, match=f"sigma must be a finite number above 0, got {sigma}"):
        lsi.initial_curve(MNIST, sigma=sigma, records=1)
    with pytest.raises(ParameterError, match=f"sigma must be a finite number above 0, got {sigma}"):
        lsi.check_assumptions(MNIST, sigma)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (0, "records must be a whole number, at least 1, got 0"),
        (11_983, "records must be at most n = 11982, got 11983"),
    ],
)
def test_records_that_make_no_sense_are_refused(records, message):
    with pytest.raises(ParameterError, match=message):
        lsi.initial_curve(MNIST, sigma=0.03, records=records)


@pytest.mark.parametrize("learning_steps", [-1, 1.5, math.nan])
def test_learning_steps_that_are_no_count_are_refused(learning_steps):
    with pytest.raises(ParameterError, match="learning_steps must be a whole number, at least 0"):
        lsi.initial_curve(MNIST, sigma=0.03, records=1, learning_steps=learning_steps)


def test_a_stream_that_removes_more_records_than_there_are_is_refused_where_they_are_gone():
    remove = dataclasses.replace(MNIST, adjacency="remove")
    assert value_at(lsi.curve(remove, Schedule(0.03, 1997, (1,) * 5)), 2.0) > 0
    with pytest.raises(ParameterError, match=r"at most n = 11982, got 1998 \(after the earlier removal of 9990\)"):
        lsi.curve(remove, Schedule(0.03, 1998, (1,) * 6))


BOUNDS = [
    lambda problem: lsi.curve(problem, Schedule(0.03, 1, (1,))),
    lambda problem: lsi.initial_curve(problem, sigma=0.03, records=1),
]


@pytest.mark.parametrize("bound", BOUNDS)
def test_a_step_size_above_the_theorems_limit_is_refused(bound):
    too_long = dataclasses.replace(MNIST, step_size=1.000001 / MNIST.smoothness)
    with pytest.raises(AssumptionError, match=r"need step_size <= 1 / smoothness = 3\.817.*, got step_size = 3\.817"):
        bound(too_long)


@pytest.mark.parametrize("bound", BOUNDS)
def test_a_loss_that_is_only_convex_is_refused(bound):
    with pytest.raises(AssumptionError, match="strong_convexity must be above 0, got 0"):
        bound(Problem(100, 0.0, 1.0, 1.0, 0.5))


def test_a_step_size_that_is_the_rounded_limit_is_allowed():
    limit = math.nextafter(1 / MNIST.smoothness, math.inf)
    lsi.check_assumptions(dataclasses.replace(MNIST, step_size=limit), 0.03)
    with pytest.raises(AssumptionError):
        lsi.check_assumptions(dataclasses.replace(MNIST, step_size=math.nextafter(limit, math.inf)), 0.03)
