"""The step of least squares: against its formula, replacements, streamed rows, what is refused, and its exact law."""

import math

import numpy as np
import pytest
import torch

from certified_unlearning.engine import descent
from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.objectives.rows import StreamedRows
from certified_unlearning.engine.objectives.squared import SquaredObjective
from certified_unlearning.engine.phase import DescentPhase
from certified_unlearning.errors import AssumptionError, DataError

N, D, STRENGTH, STEP = 50, 4, 0.2, 0.7


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((N, D))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows, rng.uniform(-1, 1, N)


def as_tensors(rows, targets):
    return torch.from_numpy(rows.copy()), torch.from_numpy(targets.copy())


def by_formula(rows, targets, weights, *, normaliser=None):
    gradient = (weights @ rows.T - targets) @ rows / (normaliser or len(rows)) + STRENGTH * weights
    return weights - STEP * gradient


def stepped(objective, weights):
    after = torch.from_numpy(weights.copy())
    objective.descend(after, STEP)
    return after.numpy()


@pytest.mark.parametrize("rows_at_once", [7, 16_384])
def test_a_step_of_all_trials_is_the_formulas(table, rows_at_once):
    weights = np.random.default_rng(1).standard_normal((3, D))
    objective = SquaredObjective(*as_tensors(*table), strong_convexity=STRENGTH, rows_at_once=rows_at_once)
    np.testing.assert_allclose(stepped(objective, weights), by_formula(*table, weights), rtol=1e-12, atol=1e-14)


def test_the_normaliser_stays_where_records_leave(table):
    rows, targets = table
    weights = np.random.default_rng(1).standard_normal((3, D))
    left = SquaredObjective(*as_tensors(rows[5:], targets[5:]), strong_convexity=STRENGTH, normaliser=N)
    expected = by_formula(rows[5:], targets[5:], weights, normaliser=N)
    np.testing.assert_allclose(stepped(left, weights), expected, rtol=1e-12, atol=1e-14)
    zeroed = rows.copy()
    zeroed[:5] = 0
    as_zeros = SquaredObjective(*as_tensors(zeroed, targets), strong_convexity=STRENGTH)
    np.testing.assert_allclose(stepped(as_zeros, weights), expected, rtol=1e-12, atol=1e-14)


def test_replacements_are_made_one_after_another_and_undone(table):
    rows, targets = table
    weights = np.random.default_rng(1).standard_normal((2, D))
    new_rows, new_targets = rows[:3] * -0.5, np.array([1.0, -1.0, 0.0])
    objective = SquaredObjective(
        *as_tensors(rows, targets),
        strong_convexity=STRENGTH,
        replacements=(torch.tensor([9, 4, 30]), *as_tensors(new_rows, new_targets)),
    )
    for count in (0, 2, 3, 1):
        objective.remove(count)
        now, now_targets = rows.copy(), targets.copy()
        now[[9, 4, 30][:count]], now_targets[[9, 4, 30][:count]] = new_rows[:count], new_targets[:count]
        expected = by_formula(now, now_targets, weights)
        np.testing.assert_allclose(stepped(objective, weights), expected, rtol=1e-12, atol=1e-14)


def test_rows_may_be_streamed(table):
    class Source:
        shape = table[0].shape

        def read_into(self, out, start):
            out[:] = table[0][start : start + len(out)]

    weights = np.random.default_rng(1).standard_normal((2, D))
    rows = StreamedRows(Source(), dtype=torch.float64, device=torch.device("cpu"))
    objective = SquaredObjective(rows, torch.from_numpy(table[1]), strong_convexity=STRENGTH)
    np.testing.assert_allclose(stepped(objective, weights), by_formula(*table, weights), atol=1e-6)


def test_what_the_caller_does_to_rows_and_targets_later_does_not_matter(table):
    rows, targets = as_tensors(*table)
    weights = np.random.default_rng(1).standard_normal((2, D))
    objective = SquaredObjective(rows, targets, strong_convexity=STRENGTH)
    rows.fill_(math.nan)
    targets.fill_(math.nan)
    assert np.isfinite(stepped(objective, weights)).all()


@pytest.mark.parametrize("wrong", [1.0001, math.nan, math.inf])
def test_rows_and_targets_that_break_the_bound_are_refused(table, wrong):
    rows, targets = table
    with pytest.raises(AssumptionError, match=r"rows must have norm at most 1, .*, got (1.0001|nan|inf)"):
        SquaredObjective(
            *as_tensors(np.where(np.arange(N)[:, None] == 3, rows * wrong, rows), targets), strong_convexity=STRENGTH
        )
    with pytest.raises(DataError, match=r"the target of record 3 must be a number between -1 and 1, got"):
        SquaredObjective(*as_tensors(rows, np.where(np.arange(N) == 3, -wrong, targets)), strong_convexity=STRENGTH)


def test_wide_rows_of_norm_1_in_float32_are_taken():
    rows = torch.nn.functional.normalize(torch.ones(3, 100_000, dtype=torch.float64)).float()
    SquaredObjective(rows, torch.ones(3), strong_convexity=STRENGTH)


def trials_of(table, *, trials, steps, sigma, radius, strength=STRENGTH):
    objective = SquaredObjective(*as_tensors(*table), strong_convexity=strength)
    phase = DescentPhase(
        removed=0, steps=[steps] * trials, sigma=[sigma] * trials, keys=[address(k) for k in range(trials)]
    )
    start = torch.zeros(trials, D, dtype=torch.float64)
    run = descent.run(objective, start, [phase], step_size=STEP, measure=lambda w: w[:, 0], radius=radius)
    return run.weights.numpy()


@pytest.mark.parametrize("strength", [STRENGTH, 0.5])
def test_in_a_wide_ball_trials_follow_the_gaussian_law(table, strength):
    """Means and covariances of 20 000 trials within 6 deviations of the exact ones: 20 comparisons, 1e-7 false alarms.

    With the other strength, a planted fault, they are not.
    """
    rows, targets = table
    trials, steps, sigma = 20_000, 6, 0.3
    weights = trials_of(table, trials=trials, steps=steps, sigma=sigma, radius=1e6, strength=strength)
    shrink = np.eye(D) - STEP * (rows.T @ rows / N + STRENGTH * np.eye(D))
    mean, covariance = np.zeros(D), np.zeros((D, D))
    for _ in range(steps):
        mean = shrink @ mean + STEP * rows.T @ targets / N
        covariance = shrink @ covariance @ shrink.T + 2 * STEP * sigma**2 * np.eye(D)
    variances = np.diag(covariance)
    of_means = np.abs(weights.mean(axis=0) - mean) / np.sqrt(variances / trials)
    found = np.cov(weights.T)
    of_covariances = np.abs(found - covariance) / np.sqrt((covariance**2 + np.outer(variances, variances)) / trials)
    agree = max(of_means.max(), of_covariances.max()) < 6
    assert agree == (strength == STRENGTH)


def test_no_trial_leaves_a_narrow_ball(table):
    weights = trials_of(table, trials=500, steps=10, sigma=2.0, radius=0.4)
    norms = np.linalg.norm(weights, axis=1)
    assert norms.max() <= 0.4 * (1 + 1e-12)
    assert (norms > 0.399).mean() > 0.5
