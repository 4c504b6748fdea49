"""Removals from ridge regression: the bound is above the true gradient, always, and faults are found."""

import numpy as np
import pytest

from certified_unlearning.accounting.residual import newton
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms import newton_removal
from certified_unlearning.mechanisms.newton_removal import NewtonRemoval
from certified_unlearning.mechanisms.refit_plan import RefitPlan
from tests.mechanisms.residual_streams import EXTENDED, LONG

pytestmark = pytest.mark.skipif(not EXTENDED, reason="this machine has no extended precision to compare with")


def plan_of(n, d, m, **options):
    return RefitPlan.make(
        n=n, features=d, classes=1, strong_convexity=m, epsilon=1.0, delta=1e-5, **{"sigma": 1e-3} | options
    )


def true_gradient(plan, rows, targets, weights):
    x, w, y = rows.astype(LONG), weights.astype(LONG), targets.astype(LONG)
    gradient = (x @ w - y) @ x / plan.n + LONG(plan.strong_convexity) * w
    return float(np.sqrt((gradient**2).sum()))


def stream(seed, **options):
    """Yield true gradient, bound, budget and reading after every request, until few records are left."""
    draw = np.random.default_rng(seed)
    n, d = int(draw.integers(60, 301)), int(draw.integers(1, 6))
    rows = draw.standard_normal((n, d)) * draw.lognormal(0, 2, d)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    targets = np.clip(rows @ draw.standard_normal(d) + 0.3 * draw.standard_normal(n), -1, 1)
    plan = plan_of(n, d, float(10 ** draw.uniform(-4, 0)), **options)
    how = NewtonRemoval(plan)
    model, since = how.fit(rows, targets), 0
    yield true_gradient(plan, rows, targets, model.weights), model.residual, plan, "scheduled"
    for some in np.array_split(draw.permutation(n)[: n - 5], 40):
        gone = rows[some].copy()
        rows[some] = 0
        model, reading = how.remove(model, gone, targets[some], rows, targets, since_read=since)
        since = 0 if reading != "none" else since + len(some)
        yield true_gradient(plan, rows, targets, model.weights), model.residual, plan, reading


@pytest.mark.parametrize("between", [None, 1000])
def test_the_bound_is_never_below_the_true_gradient(between):
    """300 streams of 40 requests, in which nearly all records leave; read at times, or hardly ever."""
    answered = 0
    for seed in range(300):
        for true, bound, plan, reading in stream(seed, records_between_reads=between):
            assert true <= bound <= plan.budget
            answered += reading == "none"
    assert answered > (4000 if between is None else 10_000), "most requests read nothing"


@pytest.mark.parametrize(
    "fault",
    [
        lambda rows, targets, weights, *_, **__: np.zeros_like(weights),  # A request that changes nothing.
        lambda rows, targets, weights, n, *_, **__: -rows.T @ (rows @ weights) / n,  # Targets are forgotten.
    ],
)
def test_a_fault_in_what_is_removed_is_found(fault, monkeypatch):
    monkeypatch.setattr(newton_removal, "removed_gradient", fault)
    assert any(true > bound for seed in range(5) for true, bound, *_ in stream(seed, records_between_reads=1000))


def test_a_matrix_that_keeps_removed_records_is_found(monkeypatch):
    monkeypatch.setattr(newton_removal, "downdate", lambda *_, **__: None)
    assert any(true > bound for seed in range(5) for true, bound, *_ in stream(seed, records_between_reads=1000))


def test_weights_stay_within_the_public_bound():
    from certified_unlearning.accounting.residual.release import largest_weights

    draw = np.random.default_rng(0)
    for m in (1e-4, 1e-2, 1.0):
        rows = draw.standard_normal((100, 3))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        plan = plan_of(100, 3, m)
        found = NewtonRemoval(plan).fit(rows, np.sign(rows[:, 0])).weights
        assert np.linalg.norm(found) <= largest_weights(classes=1, strong_convexity=m, residual=plan.budget)


def test_what_ridge_regression_does_not_have_is_refused():
    with pytest.raises(ParameterError, match="always uses downdates and has no strict timing"):
        plan_of(100, 3, 0.1, strict=True)
    with pytest.raises(
        ParameterError, match="not_downdated must be 0 for a quadratic, whose matrix is always downdated, got 2"
    ):
        newton.residual_after(0.1, newton.Step(1.0, 0.0, 1.0), left=0.0, n=10, not_downdated=2, quadratic=True)
