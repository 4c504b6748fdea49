import dataclasses
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln, ndtr

from certified_unlearning.accounting import Problem, Schedule
from certified_unlearning.errors import AssumptionError, ParameterError
from certified_unlearning.papers.langevin_unlearning.theory import general as lsi_general

PROBLEM = Problem(n=500, strong_convexity=0.0, smoothness=2.0, lipschitz=3.0, step_size=0.05)
# So large that no constant saturates.
UNBOUNDED = 1e9


def log_bound(alpha, problem, *, sigma=0.7, records=1, steps=(0,), learning_steps, radius=UNBOUNDED, **case):
    schedule = Schedule(sigma, records, tuple(steps), learning_steps)
    curve = lsi_general.curve(problem, schedule, radius=radius, **case)
    return float(curve.log_divergence(np.array([alpha]))[0])


def bound(alpha, problem, **arguments):
    return math.exp(log_bound(alpha, problem, **arguments))


# --- The theorems written down step by step, with 40 digits. ------------------------------------------------


def recursion(alpha, problem, *, sigma, records, steps, learning_steps, radius, convex, start_constant=0.0):
    """The logarithm of the bound: Theorems 3.2 and 3.3 and Corollary 3.4 as they stand, but for eq. 44's Ctilde."""
    with mpmath.workdps(40):
        eta, big_l, big_m = (mpmath.mpf(value) for value in (problem.step_size, problem.smoothness, problem.lipschitz))
        h = eta * mpmath.mpf(sigma) ** 2
        g = mpmath.mpf(1) if convex else (1 + eta * big_l) ** 2
        square = 4 * (mpmath.mpf(radius) + eta * big_m) ** 2
        half_cap = 6 * (square + h) * mpmath.exp(square / h)
        full_cap = 6 * (square + 2 * h) * mpmath.exp(square / (2 * h))
        constant = mpmath.mpf(start_constant)
        total = mpmath.mpf(0)

        def learn_one_step():
            nonlocal constant, total
            half_constant = min(g * constant + h, half_cap)
            total = (total + 1) / (1 + h / half_constant)
            constant = min(half_constant + h, full_cap)

        def initial(order, number):
            left = problem.n - number * records if problem.adjacency == "remove" else problem.n
            doubled = mpmath.mpf(1) if problem.adjacency == "zero-out" else mpmath.mpf(2)
            scale = (doubled * records * big_m / left) ** 2 / 4
            return 2 * order * eta * scale / mpmath.mpf(sigma) ** 2 * entering[number]

        for _ in range(learning_steps):
            learn_one_step()
        entering, exponents = [], []
        for count in steps:
            entering.append(total)
            exponent = mpmath.mpf(0)
            for _ in range(count):
                exponent += mpmath.log(1 + 2 * h / (g * constant))
                learn_one_step()
            exponents.append(exponent)

        def after(order, number):
            decay = mpmath.exp(-exponents[number] / order)
            if number == 0:
                return decay * initial(order, 0)
            factor = (order - mpmath.mpf(1) / 2) / (order - 1)
            return decay * factor * (initial(2 * order, number) + after(2 * order, number - 1))

        return float(mpmath.log(after(mpmath.mpf(alpha), len(steps) - 1)))


CASES = {
    "a point": {"sigma": 0.7, "steps": (5, 0, 9), "learning_steps": 12, "radius": 40.0},
    "realistic radius": {"sigma": 0.1414, "steps": (7,), "learning_steps": 30, "radius": 100.0},
    "saturates early": {"sigma": 3.0, "steps": (5, 4), "learning_steps": 20, "radius": 0.2, "start_constant": 0.4},
    "half-steps saturate first": {"sigma": 3.0, "steps": (3, 4), "learning_steps": 6, "radius": 0.001},
    "saturates while learning": {"sigma": 3.0, "steps": (3, 4), "learning_steps": 60, "radius": 0.35},
    "saturates while unlearning": {"sigma": 3.0, "steps": (40, 30), "learning_steps": 10, "radius": 0.4},
    "wide start": {"sigma": 0.7, "steps": (3, 4), "learning_steps": 6, "radius": 0.9, "start_constant": 1e6},
    "start of variance 1": {"sigma": 0.7, "steps": (5, 6), "learning_steps": 1, "radius": 9.0, "start_constant": 1.0},
}


@pytest.mark.parametrize("adjacency", ["replace", "zero-out", "remove"])
@pytest.mark.parametrize("convex", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_the_bound_is_that_of_the_theorems_step_by_step(case, convex, adjacency):
    problem = dataclasses.replace(PROBLEM, adjacency=adjacency)
    for alpha, records in ((1.3, 1), (7.0, 20)):
        arguments = CASES[case] | {"records": records, "convex": convex}
        expected = recursion(alpha, problem, **arguments)
        assert log_bound(alpha, problem, **arguments) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("convex", [True, False])
def test_four_of_the_cases_reach_saturation(convex):
    """Otherwise the comparison above would not see the largest constants."""

    def depends_on_the_radius(case):
        arguments = CASES[case] | {"convex": convex}
        free = log_bound(2.0, PROBLEM, **arguments | {"radius": UNBOUNDED})
        return abs(free - log_bound(2.0, PROBLEM, **arguments)) > 1e-6

    assert {case for case in CASES if depends_on_the_radius(case)} == {case for case in CASES if "saturate" in case}


# --- Closed forms. ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [1, 2, 10, 10_000])
def test_convex_learning_from_a_point_is_the_closed_form(steps):
    """sum_{t<T} prod (t' + 1/2) / (t' + 1) telescopes: (2/3) (T - 1/2 + Gamma(T + 1/2) / (2 sqrt(pi) Gamma(T + 1)))."""
    ratio = math.exp(gammaln(steps + 0.5) - gammaln(steps + 1)) / math.sqrt(math.pi)
    total = 2 / 3 * (steps - 0.5 + ratio / 2)
    sensitivity = PROBLEM.sensitivity(7)
    expected = 3.0 * PROBLEM.step_size * sensitivity**2 / (2 * 0.7**2) * total
    initial = lsi_general.initial_curve(
        PROBLEM, sigma=0.7, records=7, learning_steps=steps, radius=UNBOUNDED, convex=True
    )
    assert float(initial(np.array([3.0]))[0]) == pytest.approx(expected, rel=1e-12)


@given(
    steps=st.integers(0, 500),
    log_constant=st.floats(-20, 20),
    sigma=st.floats(0.01, 10),
    step_size=st.floats(1e-6, 1.0),
)
def test_recuperation_telescopes_below_saturation(steps, log_constant, sigma, step_size):
    """Convex: log(C_K / C_0). Non-convex: log(C_K / (g^K C_0)), which stays bounded however large K is."""
    problem = dataclasses.replace(PROBLEM, step_size=step_size)
    noise, g = 2 * step_size * sigma**2, (1 + step_size * problem.smoothness) ** 2
    arguments = {"sigma": sigma, "steps": steps, "log_constant": log_constant, "radius": UNBOUNDED}
    relative = noise / math.exp(log_constant)
    convex = lsi_general.recuperation(problem, **arguments, convex=True)
    assert convex == pytest.approx(math.log1p(relative * steps), rel=1e-10)
    geometric = -math.expm1(-steps * math.log(g)) / (g - 1)
    not_convex = lsi_general.recuperation(problem, **arguments, convex=False)
    assert not_convex == pytest.approx(math.log1p(relative * geometric), rel=1e-8)
    assert not_convex <= convex * (1 + 1e-12)


@pytest.mark.parametrize("convex", [True, False])
def test_at_saturation_every_step_gains_the_same(convex):
    descent = lsi_general._ProjectedDescent(PROBLEM, 3.0, 0.2, convex)
    arguments = {"sigma": 3.0, "radius": 0.2, "convex": convex, "log_constant": descent.log_full_cap}
    one = lsi_general.recuperation(PROBLEM, **arguments, steps=1)
    assert one > 1e-3
    assert lsi_general.recuperation(PROBLEM, **arguments, steps=70) == pytest.approx(70 * one, rel=1e-12)
    g = 1.0 if convex else (1 + PROBLEM.step_size * PROBLEM.smoothness) ** 2
    noise = 2 * PROBLEM.step_size * 9.0
    assert one == pytest.approx(math.log1p(noise / (g * math.exp(descent.log_full_cap))), rel=1e-13)


@pytest.mark.parametrize("convex", [True, False])
def test_infinite_learning_is_the_limit_of_long_learning(convex):
    arguments = {"sigma": 3.0, "radius": 0.2, "records": 3, "convex": convex}
    for steps in ((0,), (40,), (40, 7)):
        long = log_bound(2.5, PROBLEM, **arguments, steps=steps, learning_steps=100_000)
        infinite = log_bound(2.5, PROBLEM, **arguments, steps=steps, learning_steps=math.inf)
        assert infinite == pytest.approx(long, rel=1e-11)


@pytest.mark.parametrize("convex", [True, False])
def test_infinite_learning_has_the_geometric_sum_at_the_saturated_constant(convex):
    """eps0(alpha) = alpha s^2 C_{t,1} / (2 sigma^4), here about exp(2e7)."""
    sigma = math.sqrt(1e-3 / PROBLEM.step_size)
    square = 4 * (100 + PROBLEM.step_size * PROBLEM.lipschitz) ** 2
    log_full_cap = math.log(6 * (square + 2e-3)) + square / 2e-3
    growth = 0.0 if convex else 2 * math.log(1 + PROBLEM.step_size * PROBLEM.smoothness)
    expected = math.log(4 * PROBLEM.sensitivity(5) ** 2 / (2 * sigma**4)) + growth + log_full_cap
    arguments = {"sigma": sigma, "records": 5, "radius": 100.0, "convex": convex, "learning_steps": math.inf}
    assert log_bound(4.0, PROBLEM, **arguments) == pytest.approx(expected, rel=1e-14)
    # Steps gain nothing at such a constant.
    assert log_bound(4.0, PROBLEM, **arguments, steps=(10**12,)) == pytest.approx(expected, rel=1e-14)


def test_the_full_steps_constant_is_the_smaller_one_unless_the_noise_is_of_the_balls_size():
    """Cbar >= Ctilde where 4 (R + eta M)^2 >= .861 eta sigma^2."""
    for ratio, larger in ((0.85, "full"), (0.86, "full"), (0.862, "half"), (1.0, "half"), (1e4, "half")):
        sigma = math.sqrt(4 * (2.0 + PROBLEM.step_size * PROBLEM.lipschitz) ** 2 / ratio / PROBLEM.step_size)
        descent = lsi_general._ProjectedDescent(PROBLEM, sigma, 2.0, True)
        assert (descent.log_half_cap > descent.log_full_cap) == (larger == "half")


# --- Exact laws. --------------------------------------------------------------------------------------------


def exact_quadratic(alpha, problem, *, curvature, sigma, records, steps, learning_steps, start_constant):
    """Quadratics of a given curvature, one request after another, from N(0, start_constant), without projection.

    Retraining is on the last data all along. Each data set's gradient differs from the next one's by the sensitivity.
    """
    eta = problem.step_size
    factor = 1 - eta * curvature
    gap, variance = 0.0, start_constant
    to_come = [problem.sensitivity(records, removed_before=number * records) for number in range(len(steps))]
    for phase, count in enumerate((learning_steps, *steps)):
        difference = sum(to_come[phase:])
        for _ in range(count):
            gap = factor * gap + eta * difference
            variance = factor**2 * variance + 2 * eta * sigma**2
    return alpha * gap**2 / (2 * variance) if gap else 0.0


@st.composite
def quadratics(draw):
    convex = draw(st.booleans())
    smoothness = 10 ** draw(st.floats(-2, 2))
    problem = Problem(
        n=draw(st.integers(200, 10_000)),
        strong_convexity=0.0,
        smoothness=smoothness,
        lipschitz=10 ** draw(st.floats(-2, 2)),
        step_size=draw(st.floats(0.001, 2)) / smoothness,
        adjacency=draw(st.sampled_from(["replace", "zero-out", "remove"])),
    )
    curvature = smoothness * draw(st.floats(0, 1) if convex else st.floats(-1, 1))
    return problem, convex, curvature


@given(
    case=quadratics(),
    alpha=st.floats(-2, 3).map(lambda exponent: 1 + 10**exponent),
    sigma=st.floats(-2, 1).map(lambda exponent: 10**exponent),
    records=st.integers(1, 20),
    learning_steps=st.integers(0, 60),
    steps=st.lists(st.integers(0, 40), min_size=1, max_size=4),
    start_constant=st.sampled_from([0.0, 1e-3, 1.0, 100.0]),
)
def test_the_bound_is_never_below_the_exact_divergence_on_quadratics(
    case, alpha, sigma, records, learning_steps, steps, start_constant
):
    problem, convex, curvature = case
    shared = {"sigma": sigma, "records": records, "steps": steps, "learning_steps": learning_steps}
    shared |= {"start_constant": start_constant}
    exact = exact_quadratic(alpha, problem, curvature=curvature, **shared)
    assert bound(alpha, problem, **shared, convex=convex) >= exact * (1 - 1e-9)


def walk(**changes):
    """Linear losses: the tightest case of the convex bound. The bound over the exact divergence after learning."""
    arguments = {"sigma": 0.7, "records": 4, "steps": (0,), "learning_steps": 400, "start_constant": 0.0}
    exact = exact_quadratic(2.0, PROBLEM, curvature=0.0, **arguments)
    arguments["convex"] = True
    problem = dataclasses.replace(PROBLEM, **{key: changes.pop(key) for key in list(changes) if key == "step_size"})
    return bound(2.0, problem, **arguments | changes) / exact


def test_on_linear_losses_the_bound_is_a_third_too_large_and_faults_make_it_too_small():
    assert walk() == pytest.approx(4 / 3, rel=2e-3)
    assert walk(step_size=PROBLEM.step_size / 2) < 1
    assert walk(records=2) < 1
    assert walk(sigma=1.4) < 1
    assert walk(learning_steps=200) < 1
    assert walk(start_constant=1e-9) == pytest.approx(walk(), rel=1e-6)


def test_without_the_order_in_the_exponent_unlearning_would_fall_below_the_exact_divergence():
    """Linear losses: the exact divergence falls by T / (T + K), the bound at order alpha by its alpha-th root."""
    arguments = {"sigma": 0.7, "records": 4, "learning_steps": 50, "start_constant": 0.0}
    before, after = (
        {
            "exact": exact_quadratic(8.0, PROBLEM, curvature=0.0, **arguments, steps=(count,)),
            "bound": bound(8.0, PROBLEM, **arguments, steps=(count,), convex=True),
        }
        for count in (0, 150)
    )
    assert after["exact"] / before["exact"] == pytest.approx(1 / 4, rel=1e-12)
    assert after["bound"] / before["bound"] == pytest.approx(4 ** (-1 / 8), rel=1e-12)


class ProjectedWalk:
    """Noisy gradient steps on a double well in one dimension, projected on [-R, R], as a Markov chain on fine cells."""

    def __init__(self, problem, sigma, radius, cells=300):
        self.edges = np.linspace(-radius, radius, cells + 1)
        self.centres = (self.edges[:-1] + self.edges[1:]) / 2
        self.problem, self.sigma = problem, sigma

    def kernel(self, extra_gradient):
        gradient = self.centres**3 - self.centres + extra_gradient
        means = self.centres - self.problem.step_size * gradient
        std = math.sqrt(2 * self.problem.step_size) * self.sigma
        below = ndtr((self.edges[1:-1] - means[:, np.newaxis]) / std)
        # The projection puts what falls outside into the outermost cells.
        padded = np.hstack([np.zeros((len(means), 1)), below, np.ones((len(means), 1))])
        return np.diff(padded, axis=1)


def two_sided_renyi(alpha, p, q):
    return max(math.log(np.sum(a**alpha * b ** (1 - alpha))) / (alpha - 1) for a, b in ((p, q), (q, p)))


@pytest.mark.parametrize("learning_steps", [1, 30, math.inf])
def test_the_bound_holds_for_a_projected_double_well(learning_steps):
    # |3 x^2 - 1| <= 2 and |x^3 - x + gap / 2| <= 1 on [-1, 1].
    problem = Problem(n=10, strong_convexity=0.0, smoothness=2.0, lipschitz=1.0, step_size=0.2)
    sigma, radius, gap = 1.5, 1.0, problem.sensitivity(1)
    walk_on = ProjectedWalk(problem, sigma, radius)
    old, new = walk_on.kernel(gap / 2), walk_on.kernel(-gap / 2)
    start = np.full(len(old), 0.0)
    start[len(start) // 2] = 1.0
    learned = 2000 if learning_steps == math.inf else learning_steps
    unlearned, retrained = (start @ np.linalg.matrix_power(kernel, learned) for kernel in (old, new))
    for steps in range(5):
        for alpha in (1.5, 5.0):
            exact = two_sided_renyi(alpha, unlearned, retrained)
            case = {"steps": (steps,), "learning_steps": learning_steps, "radius": radius, "convex": False}
            assert 1e-8 < exact <= bound(alpha, problem, sigma=sigma, **case)
        unlearned, retrained = unlearned @ new, retrained @ new


# --- Properties. --------------------------------------------------------------------------------------------


def test_the_bound_grows_with_radius_records_and_learning_and_falls_with_steps():
    base = {"sigma": 3.0, "records": 3, "steps": (10, 10), "learning_steps": 20, "radius": 0.2}
    for convex in (True, False):
        value = log_bound(2.0, PROBLEM, **base, convex=convex)
        for larger in (
            {"radius": 0.25},
            {"records": 4},
            {"learning_steps": 25},
            {"sigma": 2.9},
            {"start_constant": 0.1},
        ):
            assert log_bound(2.0, PROBLEM, **base | larger, convex=convex) > value
        assert log_bound(2.0, PROBLEM, **base | {"steps": (10, 12)}, convex=convex) < value
    assert log_bound(2.0, PROBLEM, **base, convex=False) > log_bound(2.0, PROBLEM, **base, convex=True)


@pytest.mark.parametrize("convex", [True, False])
def test_a_model_that_learned_nothing_has_nothing_to_unlearn(convex):
    for steps in ((0,), (5,), (0, 0)):
        assert log_bound(2.0, PROBLEM, steps=steps, learning_steps=0, convex=convex) == -math.inf
    assert log_bound(2.0, PROBLEM, steps=(5, 0), learning_steps=0, convex=convex) > -math.inf


def test_constants_that_no_double_could_hold_give_an_infinite_bound():
    arguments = {"sigma": 1e-160, "radius": 1.0, "learning_steps": math.inf, "convex": True}
    assert 1e307 < log_bound(2.0, PROBLEM, **arguments, steps=(3,)) < math.inf
    schedule = Schedule(1e-160, 1, (3,), math.inf)
    assert lsi_general.curve(PROBLEM, schedule, radius=1.0, convex=True)(np.array([2.0])) == math.inf


# --- Bad input. ---------------------------------------------------------------------------------------------


def test_a_step_size_above_two_over_l_is_refused_for_convex_losses_only():
    limit = math.nextafter(2 / PROBLEM.smoothness, math.inf)
    at_limit = dataclasses.replace(PROBLEM, step_size=limit)
    beyond = dataclasses.replace(PROBLEM, step_size=math.nextafter(limit, math.inf))
    assert log_bound(2.0, at_limit, learning_steps=3, convex=True) < 0
    assert log_bound(2.0, beyond, learning_steps=3, convex=False) < 0
    with pytest.raises(AssumptionError, match=r"need step_size <= 2 / smoothness = 1\.0, got step_size = 1\.0000"):
        log_bound(2.0, beyond, learning_steps=3, convex=True)


def test_a_strongly_convex_loss_is_convex():
    problem = dataclasses.replace(PROBLEM, strong_convexity=0.5)
    assert log_bound(2.0, problem, learning_steps=3, convex=True) == log_bound(
        2.0, PROBLEM, learning_steps=3, convex=True
    )
    with pytest.raises(
        AssumptionError, match=r"non-convex losses must have strong_convexity = 0, got strong_convexity = 0\.5"
    ):
        log_bound(2.0, problem, learning_steps=3, convex=False)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"radius": 0.0}, r"radius must be a finite number above 0, got 0\.0"),
        ({"radius": math.inf}, "radius must be a finite number above 0, got inf"),
        ({"start_constant": -1.0}, r"start_constant must be a finite number, at least 0, got -1\.0"),
        ({"learning_steps": 10**7}, "at most 10000000, or learning_steps must be infinite; got 10000001 in all"),
        ({"records": 501}, "records must be at most n = 500, got 501"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong, message):
    arguments = {"learning_steps": 3, "steps": (1,), "convex": True}
    assert log_bound(2.0, PROBLEM, **arguments) < 0
    with pytest.raises(ParameterError, match=message):
        log_bound(2.0, PROBLEM, **arguments | wrong)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"steps": -1}, "steps must be a whole number, at least 0, got -1"),
        ({"steps": 10**7 + 1}, "steps must be at most 10000000, got 10000001"),
        ({"sigma": 0.0}, r"sigma must be a finite number above 0, got 0\.0"),
    ],
)
def test_recuperation_refuses_what_makes_no_sense(wrong, message):
    arguments = {"sigma": 1.0, "steps": 2, "log_constant": 0.0, "radius": 1.0, "convex": True}
    with pytest.raises(ParameterError, match=message):
        lsi_general.recuperation(PROBLEM, **arguments | wrong)
