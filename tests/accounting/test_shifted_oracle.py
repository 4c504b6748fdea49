"""Shifted interpolation against the truth: Gaussian laws followed step by step, brute force, planted faults."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from mpmath import matrix, mp, mpf
from mpmath import sqrt as root
from scipy.optimize import minimize

from certified_unlearning.accounting.core.curves import Schedule
from certified_unlearning.accounting.core.pooling import NoisyPhase, pooled_mu
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.shifted.interpolation import curve, initial_curve, joint_curve, phase

mp.dps = 50


def powers(low, high):
    return st.floats(low, high).map(lambda exponent: 10**exponent)


# --- Quadratics of curvature m on real data sets: every law is Gaussian. -------------------------------------
# A record's data loss is -g x with |g| <= M, the regulariser (m/2) x^2. The records to be erased have g = M; what takes
# their place, and under `remove` everyone else, has g = -M; the others have g = 0.


@dataclasses.dataclass
class Run:
    """Steps on the data sets of a stream of requests, each phase with its own step size and sigma."""

    problem: Problem
    records: int
    step_sizes: list[float]
    sigmas: list[float]
    steps: list[int]
    start: float = 0.0

    @property
    def requests(self):
        return len(self.steps) - 1

    def phases(self):
        return [
            phase(
                dataclasses.replace(self.problem, step_size=step_size),
                sigma=sigma,
                records=self.records * (self.requests - number),
                steps=steps,
                removed_before=self.records * number,
            )
            for number, (step_size, sigma, steps) in enumerate(
                zip(self.step_sizes, self.sigmas, self.steps, strict=True)
            )
        ]

    def mean_gradient(self, number):
        """The mean of g over the data set that is left after so many requests."""
        n, top = self.problem.n, mpf(self.problem.lipschitz)
        erased = self.records * number
        left = self.records * self.requests - erased
        if self.problem.adjacency == "replace":
            return top * (left - erased) / n
        if self.problem.adjacency == "zero-out":
            return top * left / n
        return top * (left - (n - erased - left)) / (n - erased)

    def publications(self):
        """Yield the gap of means, the variance and the decay since the last publication, after every phase."""
        mean, other, variance = mpf(self.start), mpf(0), mpf(0)
        for number, steps in enumerate(self.steps):
            eta = mpf(self.step_sizes[number])
            c = 1 - eta * mpf(self.problem.strong_convexity)
            for _ in range(steps):
                mean = c * mean + eta * self.mean_gradient(number)
                other = c * other + eta * self.mean_gradient(self.requests)
                variance = c**2 * variance + 2 * eta * mpf(self.sigmas[number]) ** 2
            yield mean - other, variance, c**steps

    def true_mu(self):
        *_, (gap, variance, _) = self.publications()
        return float(abs(gap) / root(variance))

    def true_joint_mu(self, *, skip):
        """The mu of all published models together, the first `skip` of them kept back."""
        gaps, variances, decays = zip(*self.publications(), strict=True)
        size = len(gaps)
        covariance = matrix(size, size)
        for row in range(size):
            for column in range(size):
                first, last = min(row, column), max(row, column)
                decay = mp.fprod(decays[first + 1 : last + 1])
                covariance[row, column] = variances[first] * decay
        shown = covariance[skip:, skip:]
        gap = matrix(gaps[skip:])
        return float(root((gap.T * mp.lu_solve(shown, gap))[0]))


@st.composite
def problems(draw):
    strong_convexity = draw(powers(-2, 0))
    smoothness = strong_convexity * draw(powers(0.2, 2))
    adjacency = draw(st.sampled_from(["replace", "zero-out", "remove"]))
    longest = 2 / (smoothness + strong_convexity)
    step_size = longest * draw(st.floats(0.02, 1))
    return Problem(draw(st.integers(20, 200)), strong_convexity, smoothness, draw(powers(-1, 1)), step_size, adjacency)


@st.composite
def runs(draw):
    """Runs that obey the closed form's condition: s / (w tau^2) never increases."""
    problem = draw(problems())
    requests, records = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    steps = [draw(st.integers(1, 40)), *draw(st.lists(st.integers(0, 12), min_size=requests, max_size=requests))]
    longest = 2 / (problem.smoothness + problem.strong_convexity)
    step_sizes = [longest * draw(st.floats(0.02, 1)) for _ in steps]
    sigmas = []
    for number in range(requests + 1):
        sigma = draw(powers(-1.5, 0.5))
        if number:
            # S_t / (n_t sigma^2) must not increase; n_t never does.
            left, before = requests - number, requests - number + 1
            shrunk = problem.n - records * number if problem.adjacency == "remove" else problem.n
            was = shrunk + records if problem.adjacency == "remove" else problem.n
            sigma = max(sigma, sigmas[-1] * math.sqrt(left / shrunk * was / before))
        sigmas.append(sigma)
    start = draw(st.sampled_from([0.0, 0.01, 3.0, 1e4]))
    return Run(problem, records, step_sizes, sigmas, steps, start)


@given(run=runs())
def test_on_quadratics_the_pooled_value_is_the_true_mu(run):
    assert pooled_mu(run.phases(), starting_distance=run.start) == pytest.approx(run.true_mu(), rel=1e-12, abs=0)


@st.composite
def constant_runs(draw):
    problem = draw(problems())
    requests, records = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    steps = draw(st.lists(st.integers(1, 12), min_size=requests + 1, max_size=requests + 1))
    sigma = draw(powers(-1.5, 0.5))
    count = requests + 1
    run = Run(problem, records, [problem.step_size] * count, [sigma] * count, steps)
    return run, Schedule(sigma=sigma, records_per_request=records, steps=tuple(steps[1:]), learning_steps=steps[0])


@given(case=constant_runs())
def test_on_quadratics_a_schedule_has_the_true_mu(case):
    run, schedule = case
    assert curve(run.problem, schedule).mu == pytest.approx(run.true_mu(), rel=1e-12, abs=0)


@given(case=constant_runs(), learned_published=st.booleans())
def test_on_quadratics_all_published_models_have_the_true_joint_mu(case, learned_published):
    run, schedule = case
    value = joint_curve(run.problem, schedule, learned_published=learned_published).mu
    exact = run.true_joint_mu(skip=0 if learned_published else 1)
    assert value == pytest.approx(exact, rel=1e-12, abs=0)
    assert value >= curve(run.problem, schedule).mu * (1 - 1e-12)


@given(problem=problems(), sigma=powers(-1.5, 0.5), records=st.integers(1, 10), steps=st.integers(1, 40))
def test_on_quadratics_stationary_learning_has_the_true_mu(problem, sigma, records, steps):
    m, eta = mpf(problem.strong_convexity), mpf(problem.step_size)
    c = 1 - eta * m
    share = mpf(1 if problem.adjacency == "zero-out" else 2) * records / problem.n
    gap, variance = mpf(problem.lipschitz) * share / m, 2 * eta * mpf(sigma) ** 2 / (1 - c**2)
    asked = {"sigma": sigma, "records": records}
    assert initial_curve(problem, **asked).mu == pytest.approx(float(gap / root(variance)), rel=1e-12)
    schedule = Schedule(sigma=sigma, records_per_request=records, steps=(steps,))
    assert curve(problem, schedule).mu == pytest.approx(float(c**steps * gap / root(variance)), rel=1e-12)
    # Learned parameters that far apart and fixed: the noise of the unlearning steps alone.
    alone = c**steps * gap / root(variance * (1 - c ** (2 * steps)))
    learning = phase(problem, **asked, steps=math.inf)
    unlearning = phase(problem, sigma=sigma, records=0, steps=steps)
    noiseless = dataclasses.replace(learning, noise_std=0.0)
    assert pooled_mu([noiseless, unlearning]) == pytest.approx(float(alone), rel=1e-12)


# --- Any steps: Gaussian laws of linear maps in mpmath, to the last digits. ----------------------------------


def truth(phases, start, contractions=None):
    """The mu of one-dimensional linear maps x -> c x + s; the phases' own contractions unless others are given."""
    gap, variance = mpf(start), mpf(0)
    for number, part in enumerate(phases):
        c = 1 - mpf(part.contraction_gap) if contractions is None else mpf(contractions[number])
        for _ in range(part.steps):
            gap = c * gap + mpf(part.sensitivity)
            variance = c**2 * variance + mpf(part.noise_std) ** 2
    return float(abs(gap) / root(variance))


GAPS = st.one_of(st.just(0.0), powers(-12, -0.01), st.floats(0.9, 0.999999), st.just(1.0))


@st.composite
def phases_in_one_block(draw):
    """Phases in which s / (w tau^2) never increases, from the last one backwards."""
    last = NoisyPhase(draw(st.integers(1, 30)), draw(GAPS), draw(st.sampled_from([0.0, 0.3, 5.0])), draw(powers(-3, 3)))
    phases = [last]
    for _ in range(draw(st.integers(0, 4))):
        later, noise_std = phases[0], draw(powers(-3, 3))
        least = later.sensitivity * (1 - later.contraction_gap) * (noise_std / later.noise_std) ** 2
        sensitivity = least * draw(st.floats(1.0, 4.0)) + draw(st.sampled_from([0.0, 0.1, 2.0]))
        phases.insert(0, NoisyPhase(draw(st.integers(1, 30)), draw(GAPS), sensitivity, noise_std))
    return phases


@given(phases=phases_in_one_block(), start=st.sampled_from([0.0, 1.0, 1e6]))
def test_of_linear_maps_that_obey_the_condition_the_pooled_value_is_the_true_mu(phases, start):
    assert pooled_mu(phases, starting_distance=start) == pytest.approx(truth(phases, start), rel=1e-13, abs=0)


# --- Diagonal quadratics with curvatures between m and L: never below the truth. -----------------------------


@st.composite
def diagonal_cases(draw):
    """Phases in any order, with differences in any direction; steps up to 2 / L."""
    problem = draw(problems())
    dimension = draw(st.integers(1, 4))
    vectors = st.lists(st.floats(-1, 1), min_size=dimension, max_size=dimension).map(np.array)
    shares = np.abs(draw(vectors))
    curvatures = problem.strong_convexity + shares * (problem.smoothness - problem.strong_convexity)
    parts = []
    for _ in range(draw(st.integers(1, 6))):
        step_size = draw(st.floats(0.02, 1)) * 2 / problem.smoothness
        part = phase(
            dataclasses.replace(problem, step_size=step_size),
            sigma=draw(powers(-1.5, 0.5)),
            records=draw(st.integers(0, 4)),
            steps=draw(st.integers(1, 15)),
        )
        direction = draw(vectors)
        difference = part.sensitivity * direction / max(float(np.linalg.norm(direction)), 1e-3)
        parts.append((part, 1 - step_size * curvatures, difference))
    return parts, draw(vectors)


def true_mu_of_diagonal(parts, start):
    gap, variance = start, np.zeros_like(start)
    for part, factors, difference in parts:
        for _ in range(part.steps):
            gap = factors * gap + difference
            variance = factors**2 * variance + part.noise_std**2
    # Squares of numbers below 1e-150 lose their digits.
    return math.hypot(*(gap / np.sqrt(variance)))


@given(case=diagonal_cases())
def test_on_diagonal_quadratics_the_pooled_value_is_never_below_the_true_mu(case):
    parts, start = case
    # Other than numpy's norm, hypot does not underflow.
    value = pooled_mu([part for part, _, _ in parts], starting_distance=math.hypot(*start))
    assert value >= true_mu_of_diagonal(parts, start) * (1 - 1e-12)


# --- The pooled value against brute force. -------------------------------------------------------------------


def sums(phases, start):
    """Signal p and noise q of every step, as the end of the run sees them."""
    steps = [part for part in phases for _ in range(part.steps)]
    weights = np.cumprod([1.0, *(1 - part.contraction_gap for part in reversed(steps))])[::-1]
    signals = np.array([part.sensitivity for part in steps]) * weights[1:]
    signals[0] += weights[0] * start
    return signals, (np.array([part.noise_std for part in steps]) * weights[1:]) ** 2


def by_convex_minorant(phases, start):
    """Slopes of the greatest convex minorant by the max-min formula of isotonic regression."""
    signals, noises = sums(phases, start)
    signal, noise = np.concatenate([[0], np.cumsum(signals)]), np.concatenate([[0], np.cumsum(noises)])
    count = len(signals)
    total = 0.0
    for step in range(count):
        slope = max(
            min((signal[end] - signal[begin]) / (noise[end] - noise[begin]) for end in range(step + 1, count + 1))
            for begin in range(step + 1)
        )
        total += slope**2 * noises[step]
    return math.sqrt(total)


def by_minimising(phases, start):
    """Least cost of shifts that cancel the distance at the end and never make it negative before."""
    signals, noises = sums(phases, start)
    available = np.cumsum(signals)
    scale = available[-1]
    allowed = {"type": "ineq", "fun": lambda shifts: (available - np.cumsum(shifts))[:-1] / scale}
    spent = {"type": "eq", "fun": lambda shifts: (available[-1] - np.sum(shifts)) / scale}
    best = minimize(
        lambda shifts: np.sum(shifts**2 / noises) / np.sum(signals**2 / noises),
        signals,
        jac=lambda shifts: 2 * shifts / noises / np.sum(signals**2 / noises),
        constraints=[allowed, spent],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return math.sqrt(best.fun * np.sum(signals**2 / noises))


ANY_PHASE = st.builds(
    NoisyPhase,
    steps=st.integers(1, 4),
    contraction_gap=st.floats(0, 0.7),
    sensitivity=st.one_of(st.just(0.0), st.floats(0.05, 2)),
    noise_std=st.floats(0.2, 3),
)
ANY_PHASES = st.lists(ANY_PHASE, min_size=1, max_size=6)
STARTS = st.sampled_from([0.0, 0.1, 4.0])


@given(phases=ANY_PHASES, start=STARTS)
def test_pooling_by_phases_is_the_greatest_convex_minorant_over_steps(phases, start):
    assert pooled_mu(phases, starting_distance=start) == pytest.approx(by_convex_minorant(phases, start), rel=1e-11)


@given(phases=st.lists(ANY_PHASE, min_size=1, max_size=3), start=STARTS)
def test_pooling_is_the_least_cost_of_a_coupling(phases, start):
    assume(start or any(part.sensitivity for part in phases))
    assert pooled_mu(phases, starting_distance=start) == pytest.approx(by_minimising(phases, start), rel=1e-5)


@given(phases=ANY_PHASES, start=STARTS, data=st.data())
def test_no_linear_maps_of_smaller_contraction_exceed_the_pooled_value(phases, start, data):
    steps = [dataclasses.replace(part, steps=1) for part in phases for _ in range(part.steps)]
    factors = [data.draw(st.one_of(st.sampled_from([0.0, 1.0]), st.floats(-1, 1))) for _ in steps]
    contractions = [factor * (1 - part.contraction_gap) for factor, part in zip(factors, steps, strict=True)]
    assert truth(steps, start, contractions) <= pooled_mu(steps, starting_distance=start) * (1 + 1e-12)


# --- Planted faults: the checks above can fail. --------------------------------------------------------------

FAULTS = {
    "none": {},
    "eta for 2 eta in the noise": {"noise": 1 / math.sqrt(2)},
    "eta for 2 eta in the sensitivity": {"difference": 1 / 2},
    "c for c squared": {"power": 1},
    "S for S squared": {"records": 2},
}


def closed_form(run, *, noise=1.0, difference=1.0, power=2, records=1):
    """The closed form for one request, written out once more, with places to go wrong in."""
    (learning, unlearning), problem = run.steps, run.problem
    eta, c = problem.step_size, 1 - problem.step_size * problem.strong_convexity
    s = 2 * eta * problem.lipschitz * run.records**records / problem.n * difference
    tau = math.sqrt(2 * eta) * run.sigmas[0] * noise
    signal = s * c**unlearning * (1 - c**learning) / (1 - c)
    variance = tau**2 * (1 - c ** (power * (learning + unlearning))) / (1 - c**power)
    return signal / math.sqrt(variance)


ONE_REQUEST = [
    Run(Problem(1000, 0.05, 0.8, 1, 1.25), 3, [1.25] * 2, [0.1] * 2, [50, 7]),
    Run(Problem(200, 0.5, 2.0, 3, 0.4), 5, [0.4] * 2, [0.7] * 2, [12, 3]),
]


@pytest.mark.parametrize("run", ONE_REQUEST)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_breaks_the_agreement_with_the_truth(run, fault):
    error = abs(closed_form(run, **FAULTS[fault]) / run.true_mu() - 1)
    assert error < 1e-12 if fault == "none" else error > 0.2


@pytest.mark.parametrize("run", ONE_REQUEST)
@pytest.mark.parametrize("fault", ["eta for 2 eta in the sensitivity", "c for c squared"])
def test_a_planted_fault_falls_below_the_truth(run, fault):
    assert closed_form(run, **FAULTS[fault]) < 0.8 * run.true_mu()
