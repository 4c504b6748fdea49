"""Bounds on deletion against laws that are not Gaussian, followed on a grid; lemmas as equalities (section 7.4)."""

import math

import numpy as np
import pytest
from scipy.sparse import csc_matrix, eye
from scipy.sparse.linalg import splu

from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.deletion.planning import deletion_curve, start_variance
from certified_unlearning.papers.forget_unlearning.theory.gibbs import (
    BoundedProblem,
    divergence_from_gibbs,
    gibbs_risk,
    largest_step_size,
)
from tests.accounting.deletion_settings import at, quoted
from tests.papers.privacy_dynamics.dynamics_settings import tracked_inverse_lsi


def divergence(law, reference, alpha):
    """Of two laws on one grid."""
    held = (law > 0) & (reference > 0)
    exponents = alpha * np.log(law[held]) + (1 - alpha) * np.log(reference[held])
    return float((exponents.max() + np.log(np.exp(exponents - exponents.max()).sum())) / (alpha - 1))


def normalised(exponents):
    law = np.exp(exponents - exponents.max())
    return law / law.sum()


def kernel(grid, moved, variance):
    """One step, row by row: normal around where the gradient step moves each point of the grid."""
    return normalised_rows(-((grid[None, :] - moved[:, None]) ** 2) / (2 * variance))


def normalised_rows(exponents):
    laws = np.exp(exponents)
    laws /= laws.sum(axis=1, keepdims=True)
    return laws


# --- Convex losses ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pseudo_huber():
    """Losses sqrt(1 + (theta - c)^2), records 0, 1, 2, 3 and 60 or -60; divergences by number of steps."""
    records, weight, alpha = 5, 0.2, 4.0
    problem = Problem(records, weight, weight + 1.0, 1.0, 1 / (2 * (weight + 1.0)))
    variance = 4 * alpha / (weight * records**2)
    grid = np.linspace(-90, 90, 1801)
    steps = {}
    for last in (60, -60):
        gradient = weight * grid
        for centre in (0, 1, 2, 3, last):
            gradient = gradient + (grid - centre) / np.sqrt(1 + (grid - centre) ** 2) / records
        steps[last] = kernel(grid, grid - problem.step_size * gradient, 2 * problem.step_size * variance)
    start = start_variance(problem, math.sqrt(variance))
    law = reference = normalised(-(grid**2) / (2 * start))
    present, deleted = {}, {}
    for step in range(1, 61):
        law, reference = law @ steps[60], reference @ steps[-60]
        present[step] = divergence(law, reference, alpha)
    for step in range(1, 21):
        law, reference = law @ steps[-60], reference @ steps[-60]
        deleted[step] = divergence(law, reference, alpha)
    return problem, math.sqrt(variance), start, present, deleted


def test_convex_divergences_are_those_of_the_sheet(pseudo_huber):
    problem, sigma, start, present, deleted = pseudo_huber
    assert (problem.step_size, sigma**2, start) == (quoted(0.416667), quoted(3.2), quoted(16.6957))
    assert [present[step] for step in (1, 5, 20, 60)] == quoted([0.00374150, 0.0682406, 0.232672, 0.250287])
    assert [deleted[step] for step in (1, 5, 20)] == quoted([0.178518, 0.0459007, 3.98751e-4])


def test_convex_divergences_never_exceed_any_bound(pseudo_huber):
    problem, sigma, _, present, deleted = pseudo_huber
    for form in ("simplified", "tight", "doubled", "shifted"):
        for before, exact in present.items():
            assert exact <= at(deletion_curve(problem, sigma=sigma, steps=0, steps_before=before, form=form), 4)
        for since, exact in deleted.items():
            assert exact <= at(deletion_curve(problem, sigma=sigma, steps=since, steps_before=60, form=form), 4)


def test_tight_bounds_on_the_convex_divergences_are_those_of_the_sheet(pseudo_huber):
    problem, sigma, *_ = pseudo_huber
    found = [at(deletion_curve(problem, sigma=sigma, steps=steps, form="tight"), 4) for steps in (1, 5, 20)]
    assert found == quoted([0.481693, 0.349975, 0.105630])


# --- A bounded non-convex loss ----------------------------------------------------------------------------------------

SINE = BoundedProblem(n=1, dimension=1, lipschitz=0.1, regularisation=1.0, smoothness=1.1, boundedness=math.e)
VARIANCE, ALPHA = 0.4, 2.0
GRID = np.linspace(-5, 5, 1601)
GIBBS = normalised(-(GRID**2 / 2 + 0.1 * np.sin(GRID)) / VARIANCE)


@pytest.fixture(scope="module")
def sine_kernel():
    """The loss sin(theta) / 10, its step on the grid; entries that underflow left out."""
    step_size = largest_step_size(SINE, alpha=ALPHA)
    dense = kernel(GRID, GRID - step_size * (GRID + 0.1 * np.cos(GRID)), 2 * step_size * VARIANCE)
    return step_size, csc_matrix(np.where(dense > 1e-30, dense, 0.0).T)


def test_non_convex_divergences_are_those_of_the_sheet_and_below_their_bounds(sine_kernel):
    step_size, transition = sine_kernel
    assert step_size == quoted(0.00118763)
    assert SINE.largest_loss(math.sqrt(VARIANCE)) == pytest.approx(0.1)
    law = normalised(-((GRID - 1) ** 2) / (2 * 0.2))
    start = divergence(law, GIBBS, ALPHA)
    assert start == quoted(2.04684)
    exact, bounds = [], []
    for step in range(1, 4097):
        law = transition @ law
        if step in (256, 1024, 4096):
            exact.append(divergence(law, GIBBS, ALPHA))
            bounds.append(divergence_from_gibbs(SINE, step_size=step_size, alpha=ALPHA, steps=step, start=start))
    assert exact == quoted([1.28791, 0.258964, 1.80366e-4])
    assert bounds == quoted([4.12102, 3.52313, 1.92308])


def test_the_non_convex_floor_is_that_of_the_sheet(sine_kernel):
    """The law that steps leave as it is, by inverse iteration."""
    _, transition = sine_kernel
    solve = splu(csc_matrix(transition - (1 - 1e-9) * eye(len(GRID)))).solve
    law = GIBBS
    for _ in range(3):
        law = np.abs(solve(law))
        law /= law.sum()
    assert divergence(law, GIBBS, ALPHA) == pytest.approx(1.799e-7, rel=5e-4)


def test_the_start_is_as_near_to_the_gibbs_law_as_the_sheet_says():
    start = normalised(-(GRID**2) / (2 * VARIANCE))
    assert divergence(start, GIBBS, ALPHA) == quoted(0.0171851)
    assert divergence(start, GIBBS, ALPHA) <= math.log(SINE.boundedness) / 2


def test_gibbs_laws_of_shifted_sines_are_as_near_as_the_sheet_says():
    other = normalised(-(GRID**2 / 2 + 0.1 * np.sin(GRID + 1)) / VARIANCE)
    gap = 0.2 * math.sin(0.5)
    assert gap == quoted(0.0958851)
    assert (divergence(GIBBS, other, 2), divergence(GIBBS, other, 64)) == (quoted(0.00530608), quoted(0.0446204))
    assert (divergence(other, GIBBS, 2), divergence(other, GIBBS, 64)) == (quoted(0.00606060), quoted(0.286360))
    # Lemma G.23's bound, at every order.
    assert 2 * gap / VARIANCE == quoted(0.479426)


def test_the_risk_of_the_gibbs_law_is_that_of_the_sheet_and_below_its_bound():
    objective = GRID**2 / 2 + 0.1 * np.sin(GRID)
    fine = np.linspace(-1, 1, 200_001)
    least = (fine**2 / 2 + 0.1 * np.sin(fine)).min()
    assert GIBBS @ objective - least == quoted(0.200357)
    assert gibbs_risk(SINE, sigma=math.sqrt(VARIANCE)) == quoted(0.348806)


# --- Lemmas as equalities ---------------------------------------------------------------------------------------------


def test_shifted_gaussians_turn_lemmas_g4_to_g6_into_equalities():
    """``N(m, s^2 / l)`` against ``N(0, s^2 / l)``: the score gap is ``l m / s^2`` everywhere."""
    weight, variance, mean, alpha = 2.0, 0.5, 0.7, 3.0
    score = weight * mean / variance
    kullback = mean**2 / (2 * variance / weight)
    assert variance / (2 * weight) * score**2 == quoted(kullback) == quoted(0.98)
    assert 2 * variance / weight * kullback == quoted(mean**2) == quoted(0.49)
    renyi = alpha * kullback
    # alpha times the divergence's derivative by the order is the divergence; I_q / E_q is the squared score.
    left = renyi + (alpha - 1) * renyi
    assert left == quoted(alpha**2 * variance / (2 * weight) * score**2) == quoted(8.82)


@pytest.mark.parametrize(
    ("mean", "variance", "left", "right"), [(1.0, 0.3, 5.2, 6.03333), (0.0, 0.25, 1.0, 2.0), (0.5, 1.0, 5.0, 5.25)]
)
def test_lemma_g20_holds_on_gaussians_with_the_sheets_numbers(mean, variance, left, right):
    """Objective ``l theta^2 / 2``: by quadrature, ``E_mu (l theta)^2 <= s^4 I(mu | pi) + 2 s^2 l``."""
    weight, temperature = 2.0, 0.5
    points = np.linspace(-12, 12, 40_001)
    law = normalised(-((points - mean) ** 2) / (2 * variance))
    score = weight * points / temperature - (points - mean) / variance
    assert law @ (weight * points) ** 2 == quoted(left)
    assert temperature**2 * (law @ score**2) + 2 * temperature * weight == quoted(right)
    assert left <= right


def test_log_sobolev_constants_are_those_of_the_sheet():
    """In the paper's convention; `tracked_inverse_lsi` has the inverse, of a law or of noise."""
    assert 1 / tracked_inverse_lsi(1 / 2, map_lipschitz=1, noise_variance=1 / 3) == quoted(1.2)
    assert 1 / tracked_inverse_lsi(1 / 2, map_lipschitz=0.5, noise_variance=0) == quoted(8)
    # Lemma G.3 divides the constant by B: the rate of Theorem G.22 is that of Gibbs laws of LS(lambda / B).
    halved = BoundedProblem(n=1, dimension=1, lipschitz=1.0, regularisation=1.0, smoothness=1.0, boundedness=2.0)
    step_size = largest_step_size(halved, alpha=2.0)
    after = [
        divergence_from_gibbs(halved, step_size=step_size, alpha=2.0, steps=k, start=1.0) for k in (0, 1, math.inf)
    ]
    rate = -math.log((after[1] - after[2]) / (after[0] - after[2])) / step_size
    assert 2 * rate == pytest.approx(0.5, rel=1e-4)
