"""Certified refits end within the budget, for softmax regression and for more columns than a factor is made of."""

import numpy as np
import pytest

from certified_unlearning.errors import InfeasibleError
from certified_unlearning.mechanisms import certified_refit
from certified_unlearning.mechanisms.certified_refit import (
    FINEST,
    conjugate_gradients,
    gradient_error,
    minimiser,
    objective_of,
    refit,
)
from certified_unlearning.mechanisms.refit_plan import Counts, RefitPlan

LONG = np.longdouble
EXTENDED = pytest.mark.skipif(np.finfo(LONG).eps > 1e-18, reason="this machine has no extended precision")


def problem(n: int, d: int, classes: int, seed: int = 0):
    draw = np.random.default_rng(seed)
    centres = draw.standard_normal((classes, d))
    labels = draw.integers(classes, size=n)
    rows = centres[labels] + draw.standard_normal((n, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows, (2.0 * labels - 1 if classes == 2 else labels)


def plan_of(n: int, d: int, classes: int, **options: object) -> RefitPlan:
    given = {"strong_convexity": 1 / 80, "epsilon": 1, "delta": 1e-6, "sigma": 1e-3}
    return RefitPlan.make(n=n, features=d, classes=classes, **given | options)


def true_norm(plan: RefitPlan, rows, labels, weights) -> float:
    x, w = rows.astype(LONG), weights.astype(LONG)
    if plan.classes == 2:
        a = x * labels[:, None].astype(LONG)
        gradient = -(a / (1 + np.exp(a @ w))[:, None]).sum(0) / plan.n + LONG(plan.strong_convexity) * w
    else:
        by_class = w.reshape(plan.classes, -1)
        scores = x @ by_class.T
        p = np.exp(scores - scores.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        p[np.arange(len(labels)), labels] -= 1
        gradient = (p.T @ x / plan.n + LONG(plan.strong_convexity) * by_class).ravel()
    return float(np.sqrt((gradient * gradient).sum()))


@EXTENDED
def test_more_columns_than_a_factor_is_made_of_are_refitted():
    rows, labels = problem(60, 5001, 2)
    plan = plan_of(60, 5001, 2)
    fitted = refit(plan, objective_of(plan, rows, labels))
    assert true_norm(plan, rows, labels, fitted.weights) <= fitted.residual <= plan.budget


@EXTENDED
@pytest.mark.parametrize(("classes", "sigma"), [(2, 1e-3), (2, 4e-9), (3, 1e-3), (10, 1e-3), (10, 1e-8)])
@pytest.mark.parametrize("n", [2000, 8000])
def test_a_refit_is_certified_with_and_without_a_sample_first(classes: int, sigma: float, n: int):
    assert (certified_refit.sampled(n, 12) > 1) == (n == 8000)
    rows, labels = problem(n, 12, classes)
    plan = plan_of(n, 12, classes, sigma=sigma)
    fitted = refit(plan, objective_of(plan, rows, labels))
    assert true_norm(plan, rows, labels, fitted.weights) <= fitted.residual <= plan.budget
    rows[:300] = 0
    again = refit(plan, objective_of(plan, rows, labels))
    assert true_norm(plan, rows, labels, again.weights) <= again.residual <= plan.budget
    assert true_norm(plan, rows, labels, fitted.weights) > plan.budget, "the old weights would not have done"


def test_what_has_no_factor_reads_for_every_request():
    assert plan_of(1000, 20, 3).records_between_reads == 0
    assert not plan_of(1000, 20, 3).removes_by_newton
    assert plan_of(1000, 5001, 2).records_between_reads == 0
    assert not plan_of(1000, 5001, 2).removes_by_newton
    assert plan_of(1000, 20, 2).removes_by_newton


def test_the_rounding_of_a_gradient_is_part_of_what_is_certified():
    rows, labels = problem(2000, 12, 2)
    plan = plan_of(2000, 12, 2)
    fitted = refit(plan, objective_of(plan, rows, labels))
    evaluated = float(np.linalg.norm(objective_of(plan, rows, labels).gradient(fitted.weights)))
    assert fitted.residual - evaluated == pytest.approx(gradient_error(plan, fitted.weights), rel=0.01)


def test_a_solver_that_gets_nowhere_is_no_fit(monkeypatch: pytest.MonkeyPatch):
    rows, labels = problem(500, 5, 3)
    plan = plan_of(500, 5, 3, sigma=1e-6)
    monkeypatch.setattr(certified_refit, "_ROUNDS", 1)
    with pytest.raises(InfeasibleError, match="after 1 Newton steps, the gradient's norm is"):
        refit(plan, objective_of(plan, rows, labels))


@pytest.mark.parametrize("classes", [2, 4])
def test_gradients_and_products_are_derivatives(classes: int):
    rows, labels = problem(300, 6, classes)
    plan = plan_of(300, 6, classes)
    objective = objective_of(plan, rows, labels)
    draw = np.random.default_rng(1)
    weights, direction = draw.standard_normal((2, objective.dimension))
    step = 1e-5
    ahead, behind = weights + step * direction, weights - step * direction
    slope = (objective.value(ahead) - objective.value(behind)) / (2 * step)
    assert slope == pytest.approx(float(objective.gradient(weights) @ direction), rel=1e-6)
    change = (objective.gradient(ahead) - objective.gradient(behind)) / (2 * step)
    assert change == pytest.approx(objective.hessian_at(weights)(direction), rel=1e-5, abs=1e-8)


def test_conjugate_gradients_solve():
    draw = np.random.default_rng(2)
    root = draw.standard_normal((8, 8))
    matrix, right = root @ root.T + np.eye(8), draw.standard_normal(8)
    solution = conjugate_gradients(lambda vector: matrix @ vector, right, tolerance=1e-10)
    assert np.linalg.norm(matrix @ solution - right) <= 1e-9 * np.linalg.norm(right)


def test_counts():
    counts = Counts().after(3, "none").after(2, "scheduled").after(4, "unscheduled").after(1, "none")
    assert counts == Counts(removed=10, requests=4, since_read=1, scheduled=1, unscheduled=1)


def skewed(seed: int):
    """A refit on records of a few directions, and a class whose losses count 10 000 times as much as another's."""
    draw = np.random.default_rng(seed)
    rows, labels = np.eye(12)[draw.integers(0, 12, 60)], draw.integers(0, 3, 60)
    rows = np.hstack([rows, np.ones((60, 1))]) / np.sqrt(2)
    rows[3 : 7 + 4 * (seed % 10)] = 0
    weights = (0.01, 1.0, 1e-4)
    plan = plan_of(60, 13, 3, strong_convexity=1 / 600_000, sigma=0.1, class_weights=weights)
    return plan, objective_of(plan, rows, labels)


def test_steps_by_the_gradient_and_by_the_loss_do_not_go_back_and_forth(monkeypatch: pytest.MonkeyPatch):
    for seed in range(30):
        plan, objective = skewed(seed)
        assert refit(plan, objective).residual <= plan.budget
    monkeypatch.setattr(certified_refit, "_QUICK", certified_refit._ROUNDS)
    refused = 0
    for seed in range(30):
        try:
            refit(*skewed(seed))
        except InfeasibleError:
            refused += 1
    assert refused > 0


@pytest.mark.parametrize("classes", [2, 3])
def test_the_exact_minimiser_is_far_nearer_than_a_refit(classes: int):
    plan = plan_of(3000, 8, classes)
    objective = objective_of(plan, *problem(3000, 8, classes))
    fitted = refit(plan, objective)
    exact = minimiser(plan, objective, fitted.weights)
    assert np.linalg.norm(objective.gradient(exact)) <= FINEST * plan.budget
    assert np.linalg.norm(objective.gradient(fitted.weights)) > 10 * FINEST * plan.budget
