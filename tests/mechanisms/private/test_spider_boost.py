"""SpiderBoost on full batches: without noise it is gradient descent, with noise its errors are those stated."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from certified_unlearning.accounting.core.conversion import epsilon_from_mu
from certified_unlearning.accounting.private.losses import LinearProblem, ScalarLoss
from certified_unlearning.accounting.private.spider import SpiderBoost
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.errors import AssumptionError
from certified_unlearning.mechanisms.private import rounding_share
from certified_unlearning.mechanisms.private.noisy_descent import embedded
from certified_unlearning.mechanisms.private.spider_boost import iterates, learn

TANH = ScalarLoss(name="tanh")
ROWS = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]], dtype=torch.float64)
RECORDS = BoundedRecords(ROWS, torch.tensor([1.0, -0.5, 0.25]), loss=TANH, row_norm=1.0)
THREE = LinearProblem(n=3, features=2, row_norm=1.0, loss=TANH, radius=1.0)


def quiet(**changes: object) -> SpiderBoost:
    given = {"steps": 4, "period": 2, "step_size": 0.2, "sigma_gradient": 1e-300, "sigma_difference": 1e-300}
    return SpiderBoost(problem=THREE, **given | changes)


@pytest.mark.parametrize("period", [1, 2, 3, 4])
def test_without_noise_it_is_gradient_descent_for_every_period(period):
    path = [each[0] for each in iterates(quiet(period=period), RECORDS, [0])]
    assert path[-1].numpy() == pytest.approx(np.array([0.463608, -0.158339]), abs=1e-6)
    assert float(RECORDS.mean_gradients(path[-1][None]).norm()) == pytest.approx(0.386042, abs=1e-6)
    descended = torch.zeros(1, 2, dtype=torch.float64)
    for weights in path:
        assert weights.numpy() == pytest.approx(descended[0].numpy(), abs=1e-12)
        descended = descended - 0.2 * RECORDS.mean_gradients(descended)


def sphere(n: int, d: int) -> BoundedRecords:
    generator = torch.Generator().manual_seed(0)
    rows = torch.nn.functional.normalize(torch.randn(n, d, generator=generator, dtype=torch.float64))
    return BoundedRecords(rows, (2 * rows[:, 0]).tanh(), loss=TANH, row_norm=1.0)


def test_the_noise_of_gradients_and_differences_is_what_the_plan_says():
    """Chi-squared, 500 trials of 12 steps each; wrong once in 1e6."""
    n, d, trials = 300, 4, 500
    records = sphere(n, d)
    problem = LinearProblem(n=n, features=d, row_norm=1.0, loss=TANH, radius=1.0)
    plan = SpiderBoost(problem=problem, steps=12, period=4, step_size=0.1, sigma_gradient=0.05, sigma_difference=0.7)
    path = [each.clone() for each in iterates(plan, records, list(range(trials)))]
    estimates = [(here - there) / plan.step_size for here, there in pairwise(path)]
    total, count = 0.0, 0
    for step, estimate in enumerate(estimates):
        if step % 4 == 0:
            error = (estimate - records.mean_gradients(path[step])) / plan.sigma_gradient
        else:
            difference = records.mean_gradients(path[step]) - records.mean_gradients(path[step - 1])
            apart = torch.linalg.vector_norm(path[step] - path[step - 1], dim=1, keepdim=True)
            error = (estimate - estimates[step - 1] - difference) / (plan.sigma_difference * apart)
        total, count = total + float((error**2).sum()), count + error.numel()
    assert abs(total - count) < 4.9 * math.sqrt(2 * count)


def test_points_as_near_as_rounding_have_the_noise_of_points_farther_apart():
    plan = quiet(period=4, step_size=1e-30, sigma_difference=1.0)
    path = [each[0].clone() for each in iterates(plan, RECORDS, [3])]
    jumps = [float((path[step + 1] - 2 * path[step] + path[step - 1]).norm()) / 1e-30 for step in (1, 2, 3)]
    assert min(jumps) > 1e-16  # With the noise of their distance alone it would be 1e-30.


def test_far_points_have_no_more_noise_than_two_gradients():
    plan = quiet(period=100, step_size=1e3, sigma_gradient=1.0, sigma_difference=1.0, steps=3)
    path = [each.clone() for each in iterates(plan, RECORDS, list(range(200)))]
    apart = (path[2] - path[1]).norm(dim=1)
    assert float(apart.min()) > plan.farthest
    fresh = (path[2] - path[3]) / 1e3 - (path[1] - path[2]) / 1e3
    fresh -= RECORDS.mean_gradients(path[2]) - RECORDS.mean_gradients(path[1])
    assert float(fresh.std()) == pytest.approx(plan.farthest, rel=0.25)


def test_a_planned_run_nears_a_stationary_point():
    """As S3, by full batches and replace-one: the gradient falls from 0.31 to a fraction; the bound is far above."""
    records = sphere(5000, 10)
    problem = LinearProblem(n=5000, features=10, row_norm=1.0, loss=TANH, radius=1.0)
    plan = SpiderBoost.plan(problem, epsilon=1, delta=1e-6, gap=1.0, steps=300)
    assert epsilon_from_mu(plan.mu, 1e-6) <= 1
    start = float(records.mean_gradients(torch.zeros(1, 10, dtype=torch.float64)).norm())
    found = records.mean_gradients(learn(plan, records, list(range(20)))).norm(dim=1)
    assert float(found.mean()) < 0.6 * start
    assert float((found**2).mean().sqrt()) < plan.stationarity_bound(1.0)


def test_an_embedded_run_does_not_depend_on_the_number_of_columns_but_for_its_matrix():
    """Algorithm 8: bounds of embedded rows hold surely, so all of delta is spent on the optimiser."""
    generator = torch.Generator().manual_seed(2)
    plans, sizes = [], []
    for d in (40, 160):
        rows = torch.nn.functional.pad(sphere(2000, 10).rows, (0, d - 10))
        targets = sphere(2000, 10).targets
        inside = LinearProblem(n=2000, features=d, row_norm=1.0, loss=TANH, radius=1.0).embedded(20)
        plans.append(SpiderBoost.plan(inside, epsilon=1, delta=1e-6, gap=1.0, steps=200))
        matrix = torch.randn(20, d, generator=generator, dtype=torch.float64) / math.sqrt(20)
        records = BoundedRecords(embedded(matrix, rows), targets, loss=TANH, row_norm=inside.row_norm)
        lifted = learn(plans[-1], records, [0, 1, 2, 3]) @ matrix
        whole = BoundedRecords(rows, targets, loss=TANH, row_norm=1.0)
        start = whole.mean_gradients(torch.zeros(1, d, dtype=torch.float64)).norm()
        sizes.append(float(whole.mean_gradients(lifted).norm(dim=1).mean() / start))
    assert plans[0] == plans[1]
    assert max(sizes) < 0.8


def test_every_iterate_but_the_first_may_be_published():
    plan = quiet(sigma_gradient=1e-3)
    path = torch.stack([each.clone() for each in iterates(plan, RECORDS, list(range(300)))])
    found = learn(plan, RECORDS, list(range(300)))
    steps = [int((path[:, trial] == found[trial]).all(dim=1).nonzero()[0]) for trial in range(300)]
    counts = np.bincount(steps, minlength=5)
    assert counts[0] == 0
    assert counts[1:].min() > 35  # 75 are expected of each; fewer than 36 once in 1e6.


def test_weights_without_bound_are_not_rounded_away(monkeypatch):
    monkeypatch.setattr(rounding_share, "gradient_error", lambda **given: 1.0)
    with pytest.raises(AssumptionError, match="but the plan allows"):
        list(iterates(quiet(), RECORDS, [0]))


def test_periods_are_longer_where_there_is_less_noise():
    periods = [
        SpiderBoost.plan(replace(THREE, n=n, features=10), epsilon=1, delta=1e-6, gap=1.0, steps=500).period
        for n in (2_000, 20_000)
    ]
    assert periods[0] < periods[1]
