"""Ridge regression in a ball: its constants, what its rounding costs, and its guarantee against exact laws."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy.stats import norm

from certified_unlearning.accounting.core import rounding as rounding_module
from certified_unlearning.accounting.core.conversion import delta_from_mu
from certified_unlearning.accounting.core.curves import Schedule
from certified_unlearning.accounting.core.losses import loss_constants, ridge_constants, ridge_radius
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.core.rounding import (
    FAILURE,
    NORM_EXCESS,
    UNIT_ROUNDOFF,
    longest_noise,
    resolution,
    rounding,
)
from certified_unlearning.accounting.guarantees import as_computed
from certified_unlearning.accounting.shifted.interpolation import curve
from certified_unlearning.engine.descent import project
from certified_unlearning.engine.objectives.squared import SquaredObjective
from certified_unlearning.errors import ParameterError
from tests.accounting.test_rounding import DTYPES, KINDS, TORCH, WIDE, planted_rows, planted_weights

STRENGTHS = st.floats(-5, 2).map(lambda exponent: 10.0**exponent)


def minimiser(rows, targets, strength):
    n, d = rows.shape
    return np.linalg.solve(rows.T @ rows / n + strength * np.eye(d), rows.T @ targets / n)


@st.composite
def tables(draw):
    n, d = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = rng.standard_normal((n, d))
    rows *= draw(st.floats(0.01, 1)) / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    targets = np.where(rng.random(n) < 0.5, np.sign(rows[:, 0]), rng.uniform(-1, 1, n))
    return rows, targets


# The constants.


@given(table=tables(), strength=STRENGTHS)
def test_the_ball_holds_the_minimiser_of_every_table_before_and_after_removals(table, strength):
    rows, targets = table
    radius = ridge_radius(strength) * (1 + 1e-9)
    assert np.linalg.norm(minimiser(rows, targets, strength)) <= radius
    zeroed = rows.copy()
    zeroed[: len(rows) // 2] = 0
    assert np.linalg.norm(minimiser(zeroed, targets, strength)) <= radius
    left = slice(len(rows) // 2, None)
    assert np.linalg.norm(minimiser(rows[left], targets[left], strength)) <= radius
    assert ridge_radius(strength) <= min(1 / math.sqrt(strength), 1 / strength)


@pytest.mark.parametrize("strength", [1e-6, 0.01, 0.9, 1.0, 1.1, 50.0])
def test_one_record_attains_the_ball_so_no_smaller_one_would_do(strength):
    row = np.array([[min(1.0, math.sqrt(strength))]])
    attained = abs(minimiser(row, np.ones(1), strength)[0])
    assert attained == pytest.approx(ridge_radius(strength), rel=1e-12)
    assert attained > 0.99 * ridge_radius(strength)


@given(table=tables(), strength=STRENGTHS, seed=st.integers(0, 2**32))
def test_in_the_ball_gradients_are_below_m_and_curvature_lies_between_strong_convexity_and_l(table, strength, seed):
    rows, targets = table
    constants = ridge_constants(n=len(rows), regularisation=strength / len(rows))
    assert constants == loss_constants(classes=1, n=len(rows), regularisation=strength / len(rows), bounds="tight")
    direction = np.random.default_rng(seed).standard_normal(rows.shape[1])
    weights = direction / np.linalg.norm(direction) * ridge_radius(strength)
    gradients = (rows @ weights - targets)[:, None] * rows
    assert np.linalg.norm(gradients, axis=1).max() <= constants.lipschitz * (1 + 1e-12)
    curvatures = np.linalg.eigvalsh(rows.T @ rows / len(rows)) + strength
    assert constants.strong_convexity * (1 - 1e-9) <= curvatures.min()
    assert curvatures.max() <= constants.smoothness * (1 + 1e-12)


@pytest.mark.parametrize("strength", [1e-4, 0.3, 5.0])
def test_a_record_that_pulls_from_the_far_edge_attains_m_and_l(strength):
    constants = ridge_constants(n=1, regularisation=strength)
    objective = SquaredObjective(torch.ones(1, 1).double(), -torch.ones(1).double(), strong_convexity=strength)
    edge = torch.tensor([[ridge_radius(strength)], [0.0]], dtype=torch.float64)
    after = edge.clone()
    objective.descend(after, 0.5)
    at_edge, at_origin = ((edge - after) / 0.5)[:, 0].tolist()
    assert at_edge - strength * float(edge[0]) == pytest.approx(constants.lipschitz, rel=1e-12)
    assert (at_edge - at_origin) / float(edge[0]) == pytest.approx(constants.smoothness, rel=1e-12)


# Rounding.


def problem_of(n, strength, *, adjacency="zero-out"):
    constants = ridge_constants(n=n, regularisation=strength / n)
    return Problem(
        n, strength, constants.smoothness, constants.lipschitz, 1 / constants.smoothness, adjacency=adjacency
    )


def rounding_of(problem, features, dtype):
    return rounding(
        n=problem.n,
        features=features,
        classes=1,
        strong_convexity=problem.strong_convexity,
        lipschitz=problem.lipschitz,
        step_size=problem.step_size,
        dtype=dtype,
        projects=True,
    )


def planted_targets(kind, rows, rng):
    if kind in ("equal", "thirds"):
        return -np.ones(len(rows))
    return rng.choice([-1.0, 1.0], len(rows)) * (rng.random(len(rows)) if kind == "random" else 1)


def errors_of_a_step(dtype, kind, n, features, strength, seed):
    """Return the largest error of an engine's step and the projection after it, and the problem.

    From weights up to the ball's edge; before the projection a noise is added that throws some far out of the ball.
    The exact step is of the weights that are stored, in a wide type; noise and its sum are exact numbers in both.
    """
    rng = np.random.default_rng(seed)
    problem, wide = problem_of(n, strength), WIDE[dtype]
    radius = ridge_radius(strength)
    rows = torch.from_numpy(planted_rows(kind, n, features, rng)).to(TORCH[dtype])
    targets = torch.from_numpy(planted_targets(kind, rows, rng)).to(TORCH[dtype])
    weights = planted_weights(rows.double().numpy(), features, radius * (1 - 1e-6), rng)
    weights = torch.from_numpy(weights).to(TORCH[dtype])
    exact_rows, exact_targets = rows.numpy().astype(wide), targets.numpy().astype(wide)
    before = weights.numpy().astype(wide)
    residuals = before @ exact_rows.T - exact_targets
    gradient = residuals @ exact_rows / n + wide(strength) * before
    exact = before - wide(problem.step_size) * gradient
    SquaredObjective(rows, targets, strong_convexity=strength).descend(weights, problem.step_size)
    step_errors = np.sqrt(((weights.numpy().astype(wide) - exact) ** 2).sum(axis=1))
    noise = torch.from_numpy(rng.standard_normal(weights.shape)).to(TORCH[dtype]) * 2 * radius
    noise[::2] = 0
    total = weights.numpy().astype(wide) + noise.numpy().astype(wide)
    scale = np.minimum(radius / np.maximum(np.sqrt((total**2).sum(axis=1, keepdims=True)), wide(1e-300)), 1)
    weights.add_(noise)
    project(weights, radius)
    off = np.sqrt(((weights.numpy().astype(wide) - total * scale) ** 2).sum(axis=1))
    # The sum of weights and noise is rounded before it is projected: in proportion to how long it is.
    off -= UNIT_ROUNDOFF[dtype] * np.sqrt((noise.numpy().astype(wide) ** 2).sum(axis=1))
    return float((step_errors + off).max()), problem


LARGEST_SIZE = {"float32": 2_000_000, "float64": 200_000}


def cases_of(dtype):
    shapes = itertools.product((1, 2, 7, 100, 1025, 20_000), (1, 3, 33, 1000))
    strengths = itertools.cycle([1e-4, 1e-2, 1.0, 30.0, 1e-3])
    for (n, features), kind in itertools.product(shapes, KINDS):
        if n * features <= LARGEST_SIZE[dtype]:
            yield kind, n, features, next(strengths), n + features


@DTYPES
def test_a_step_and_its_projection_err_by_less_than_the_bound(dtype):
    count = 0
    for case in cases_of(dtype):
        error, problem = errors_of_a_step(dtype, *case)
        assert error <= rounding_of(problem, case[2], dtype).fixed, case
        count += 1
    assert count > 100


def test_faulty_bounds_of_a_step_are_exceeded():
    without_sums = without_ball = 0
    for case in cases_of("float32"):
        if case[1] * case[2] > 100_000:
            continue
        error, problem = errors_of_a_step("float32", *case)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(rounding_module, "_gamma", lambda count, unit: 0.0)
            without_sums += error > rounding_of(problem, case[2], "float32").fixed
        # As if gradients were at most 1 and weights 0, as at the centre of the ball.
        centre = Problem(problem.n, problem.strong_convexity, problem.smoothness, 1.0, problem.step_size)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(rounding_module, "ridge_radius", lambda strong_convexity: 0.0)
            without_ball += error > rounding_of(centre, case[2], "float32").fixed
    assert without_sums > 0
    assert without_ball > 0


@DTYPES
@pytest.mark.parametrize(("n", "features"), [(1, 10_000), (5000, 20), (300, 300)])
def test_worst_cases_that_no_sample_meets_are_counted(dtype, n, features):
    """Sums whose roundings all go one way: of scores, of gradients, of the norm in a projection; and the sampler's."""
    problem = problem_of(n, 0.01)
    found, unit, radius = rounding_of(problem, features, dtype), UNIT_ROUNDOFF[dtype], ridge_radius(0.01)
    scores, gradients = features * unit * radius, n * unit * problem.lipschitz
    projection = (features + 6) * unit * radius
    assert found.fixed >= problem.step_size * (scores + gradients) + projection
    assert found.per_noise >= resolution(features, dtype) + unit * longest_noise(features)
    assert found.failure >= (features + 4) * FAILURE


def test_a_step_in_float64_is_compared_with_fifty_digits():
    rng = np.random.default_rng(3)
    strength, n, d = 1e-3, 40, 5
    problem, radius = problem_of(n, strength), ridge_radius(strength)
    rows = planted_rows("thirds", n, d, rng)
    targets = rng.choice([-1.0, 1.0], n)
    start = rng.standard_normal(d)
    start *= radius / np.linalg.norm(start)
    weights = torch.from_numpy(start[None].copy())
    SquaredObjective(torch.from_numpy(rows), torch.from_numpy(targets), strong_convexity=strength).descend(
        weights, problem.step_size
    )
    with mp.workdps(50):
        exact = [mpf(float(each)) for each in start]
        residuals = [
            mp.fsum(mpf(float(x)) * w for x, w in zip(row, exact, strict=True)) - mpf(float(y))
            for row, y in zip(rows, targets, strict=True)
        ]
        after = [
            w
            - mpf(problem.step_size)
            * (
                mp.fsum(r * mpf(float(x)) for r, x in zip(residuals, rows[:, place], strict=True)) / n
                + mpf(strength) * w
            )
            for place, w in enumerate(exact)
        ]
        off = mp.sqrt(mp.fsum((mpf(float(w)) - v) ** 2 for w, v in zip(weights[0].tolist(), after, strict=True)))
    bound = rounding_of(problem, d, "float64").fixed
    assert 0 < off <= bound
    assert bound < 1e-12, "the bound is of use"


def test_a_longer_row_may_have_a_gradient_longer_by_the_square_of_that():
    problem = problem_of(10, 0.01)
    computed = as_computed(problem, dimension=3, classes=1, dtype="float32", variant="least-steps", projects=True)
    row, radius = 1 + NORM_EXCESS, ridge_radius(0.01)
    longest = row * (row * radius + 1)
    assert longest / 10 <= computed.sensitivity(1)
    assert longest / 10 > problem.sensitivity(1) * (1 + NORM_EXCESS / 2)


def test_a_ball_that_a_difference_would_lose_is_counted():
    strong = problem_of(10, 1e20)
    assert strong.lipschitz - 1 == 0
    without = rounding_of(strong, 1, "float64").fixed
    weak_part = 12 * UNIT_ROUNDOFF["float64"] * ridge_radius(1e20)
    assert without >= 20 * UNIT_ROUNDOFF["float64"] * strong.step_size + weak_part


@pytest.mark.parametrize(("projects", "variant"), [(False, "least-steps"), (True, "secret-state")])
def test_without_a_ball_or_without_noise_in_every_step_there_is_no_bound(projects, variant):
    with pytest.raises(ParameterError, match="needs noise and a projection onto a ball in every step"):
        as_computed(problem_of(10, 0.1), dimension=3, classes=1, dtype="float32", variant=variant, projects=projects)


# The guarantee, against exact laws.


def gaussian_delta(epsilon, *laws):
    """The hockey-stick divergence of two Gaussians, each a mean and a deviation; the larger of both directions."""
    low = min(mean - 12 * deviation for mean, deviation in laws)
    high = max(mean + 12 * deviation for mean, deviation in laws)
    # Of cells: at most that of the laws, and by less than 1e-9 less.
    one, other = (np.diff(norm.cdf(np.linspace(low, high, 200_001), *law)) for law in laws)
    return max(np.maximum(p - math.exp(epsilon) * q, 0).sum() for p, q in ((one, other), (other, one)))


@pytest.mark.parametrize("adjacency", ["zero-out", "replace", "remove"])
@pytest.mark.parametrize(("steps", "learning_steps"), [(3, 40), (12, 40), (1, 5)])
@pytest.mark.parametrize("strength", [0.05, 0.4])
def test_where_the_ball_is_never_reached_laws_are_gaussian_and_the_accountant_is_never_below(
    adjacency, steps, learning_steps, strength
):
    """One feature, one record that leaves; with `zero-out` and `remove` its curvature goes as well as its pull."""
    n, sigma = 5, 0.02
    problem = problem_of(n, strength, adjacency=adjacency)
    rows, targets = np.array([1.0, 0.9, 0.5, -0.7, 0.2]), np.array([1.0, 0.2, -0.3, 0.4, -0.1])
    after, after_targets, normaliser = rows.copy(), targets.copy(), n
    if adjacency == "replace":
        after_targets[0] = -1.0
    else:
        after[0] = 0.0
        normaliser = n - 1 if adjacency == "remove" else n

    def law(phases):
        mean, variance, farthest = 0.0, 2 * sigma**2 / strength, 0.0
        for x, y, count, number in phases:
            shrink = 1 - problem.step_size * (strength + (x @ x) / number)
            for _ in range(count):
                mean = shrink * mean + problem.step_size * (x @ y) / number
                variance = shrink**2 * variance + 2 * problem.step_size * sigma**2
                farthest = max(farthest, abs(mean) + 5 * math.sqrt(variance))
        return mean, math.sqrt(variance), farthest

    left = (after, after_targets, steps, normaliser)
    mean, deviation, farthest = law([(rows, targets, learning_steps, n), left])
    other_mean, other_deviation, other_farthest = law([(after, after_targets, learning_steps, normaliser), left])
    assert max(farthest, other_farthest) < ridge_radius(strength)
    schedule = Schedule(sigma=sigma, records_per_request=(1,), steps=(steps,), learning_steps=learning_steps)
    mu = curve(problem, schedule).mu
    for epsilon in (0.1, 0.5, 1.0, 3.0):
        exact = gaussian_delta(epsilon, (mean, deviation), (other_mean, other_deviation))
        assert exact <= delta_from_mu(mu, epsilon) + 1e-12


def projected_law(records, phases, problem, sigma, radius, cells=1501):
    """The law of one weight after noisy projected steps, as masses of cells whose ends hold what the edges collect.

    The start is N(0, 2 sigma^2 / m), projected. Within a cell the law is put in its middle, which moves it by at most
    half a cell: little beside the noise of a step.
    """
    places = np.linspace(-radius, radius, cells)
    borders = np.concatenate([[-np.inf], (places[1:] + places[:-1]) / 2, [np.inf]])
    masses = np.diff(norm.cdf(borders, scale=sigma * math.sqrt(2 / problem.strong_convexity)))
    noise = math.sqrt(2 * problem.step_size) * sigma
    for number, count in phases:
        rows, targets = records[number]
        gradients = (places[:, None] * rows - targets) @ rows / problem.n + problem.strong_convexity * places
        kernel = np.diff(norm.cdf((borders - (places - problem.step_size * gradients)[:, None]) / noise), axis=1)
        for _ in range(count):
            masses = masses @ kernel
    return masses


def largest_gap(problem, schedule, sigma, strength, n):
    """Return by how much the exact delta exceeds the certified one at most, over epsilons: above 0, it is wrong."""
    # Nearly all records say nothing; the one that leaves pulls against the edge where the start often lies.
    rows, targets = np.zeros(n), np.zeros(n)
    rows[0], targets[0] = 1.0, -1.0
    after = rows.copy()
    after[0] = 0.0
    records, (steps,) = [(rows, targets), (after, targets)], schedule.steps
    radius = ridge_radius(strength)
    laws = [
        projected_law(records, [(learned, int(schedule.learning_steps)), (1, steps)], problem, sigma, radius)
        for learned in (0, 1)
    ]
    mu = curve(problem, schedule).mu
    gaps = []
    for epsilon in (0.05, 0.2, 0.5, 1.0, 2.0):
        exact = max(np.maximum(one - math.exp(epsilon) * other, 0).sum() for one, other in (laws, laws[::-1]))
        gaps.append(exact - delta_from_mu(mu, epsilon))
    return max(gaps)


@pytest.mark.parametrize("learning_steps", [1, 3, 30])
@pytest.mark.parametrize("steps", [1, 4])
def test_where_the_ball_is_reached_the_accountant_is_never_below_the_exact_law(learning_steps, steps):
    """With the planted fault ``M = 1``, the gradient's bound at the centre, it is."""
    n, strength, sigma = 2, 0.01, 0.8
    problem = problem_of(n, strength)
    schedule = Schedule(sigma=sigma, records_per_request=(1,), steps=(steps,), learning_steps=learning_steps)
    assert largest_gap(problem, schedule, sigma, strength, n) <= 1e-9
    if learning_steps == 1:
        faulty = Problem(n, strength, problem.smoothness, 1.0, problem.step_size, adjacency="zero-out")
        assert largest_gap(faulty, schedule, sigma, strength, n) > 0.01
