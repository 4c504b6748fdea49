"""Gradients over sparse rows are as near the exact ones as bounds by their entries say; shorter sums would not do."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from certified_unlearning.accounting.residual import rounding
from certified_unlearning.accounting.residual.rounding import Terms
from certified_unlearning.engine.objectives import sparse
from certified_unlearning.engine.objectives.float64 import (
    LogisticRegression64,
    Regression,
    RidgeRegression64,
    SoftmaxRegression64,
)
from certified_unlearning.mechanisms.certified_refit import objective_of, refit, sampled
from certified_unlearning.mechanisms.refit_plan import RefitPlan

LONG = np.longdouble
NEEDS_EXTENDED = pytest.mark.skipif(np.finfo(LONG).eps > 1e-18, reason="this machine has no extended precision")
KINDS = {1: RidgeRegression64, 2: LogisticRegression64, 4: SoftmaxRegression64}
M = 1e-4


def table(n: int, d: int, seed: int, *, constant: bool) -> csr_array:
    """Rows of norm at most 1 with few entries, most in the first columns; some rows are empty, as removed ones are."""
    draw = np.random.default_rng(seed)
    counts = draw.poisson(draw.choice([2, 20, 60]), size=n)
    columns = (d * draw.random(counts.sum()) ** 3).astype(int)
    entries = draw.choice([-1, 1], counts.sum()) * draw.random(counts.sum()) ** 2
    rows = csr_array((entries, (np.repeat(np.arange(n), counts), columns)), shape=(n, d))
    rows.sum_duplicates()
    norms = sparse.norms(rows)
    rows = sparse.divided(rows, np.where(norms > 0, norms, 1))
    if constant:
        rows = sparse.with_constant(rows, factor=math.sqrt(0.5), constant=math.sqrt(0.5))
    return sparse.wiped(rows, draw.choice(n, n // 10, replace=False))


def exact_gradient(objective: Regression, weights: np.ndarray) -> np.ndarray:
    """The gradient in extended precision, shape ``(scores, d)``, by sums over sorted entries."""
    rows, labels = objective.rows.tocoo(), objective.labels
    by_score = weights.reshape(-1, rows.shape[1]).astype(LONG)
    entries = rows.data.astype(LONG)
    scores = sums(by_score[:, rows.col] * entries, rows.row, rows.shape[0])
    if objective.classes == 1:
        coefficients = scores - labels.astype(LONG)
    elif objective.classes == 2:
        coefficients = -labels.astype(LONG) / (1 + np.exp(labels * scores))
    else:
        coefficients = np.exp(scores - scores.max(axis=0))
        coefficients /= coefficients.sum(axis=0)
        coefficients[labels, np.arange(len(labels))] -= 1
    total = sums(coefficients[:, rows.row] * entries, rows.col, rows.shape[1])
    return total / objective.n + LONG(objective.strong_convexity) * by_score


def sums(values: np.ndarray, places: np.ndarray, number: int) -> np.ndarray:
    order = np.argsort(places, kind="stable")
    found = np.zeros((len(values), number), dtype=LONG)
    known, firsts = np.unique(places[order], return_index=True)
    found[:, known] = np.add.reduceat(values[:, order], firsts, axis=1)
    return found


def off_and_bound(objective: Any, weights: np.ndarray, terms: Terms) -> tuple[float, float]:
    found = objective.gradient(weights).reshape(-1, objective.rows.shape[1])
    off = float(np.sqrt(((found - exact_gradient(objective, weights)) ** 2).sum()))
    return off, bound_of(objective, weights, terms)


def bound_of(objective: Regression, weights: np.ndarray, terms: Terms) -> float:
    records, features = objective.rows.shape
    return rounding.gradient_error(
        records=records,
        n=objective.n,
        features=features,
        classes=objective.classes,
        weight_norm=float(np.linalg.norm(weights)),
        strong_convexity=objective.strong_convexity,
        terms=terms,
    )


@NEEDS_EXTENDED
@pytest.mark.parametrize("classes", KINDS)
@pytest.mark.parametrize(("n", "d"), [(40, 1200), (300, 60), (3000, 5000), (9000, 1500)])
@pytest.mark.parametrize("constant", [True, False])
def test_no_gradient_over_random_sparse_rows_is_outside_its_bound(classes: int, n: int, d: int, constant: bool):
    worst = 0.0
    for seed in range(6):
        rows = table(n, d, seed, constant=constant)
        draw = np.random.default_rng(seed)
        labels = {1: draw.uniform(-1, 1, n), 2: draw.choice([-1.0, 1.0], n)}.get(
            classes, draw.integers(classes, size=n)
        )
        objective = KINDS[classes](rows, labels, n, M, classes)
        size = draw.choice([0.01, 3.0, 100.0])
        weights = size * draw.standard_normal(objective.dimension)
        off, bound = off_and_bound(objective, weights, objective.terms)
        worst = max(worst, off / bound)
        dense = bound_of(objective, weights, Terms(rows.shape[1], rounding.chain(n, rows.shape[1])))
        if rows.shape[1] <= rounding.NARROW:
            assert bound <= dense, "sparse rows of few columns have shorter sums than dense ones"
    assert 0 < worst <= 1


@NEEDS_EXTENDED
@pytest.mark.parametrize("classes", KINDS)
@pytest.mark.parametrize("n", [2000, 7000])
def test_a_refit_of_sparse_rows_is_certified_with_and_without_a_sample_first(classes: int, n: int):
    d = 1001
    assert (sampled(n, d) > 1) == (n == 7000)
    rows, draw = table(n, d, n, constant=False), np.random.default_rng(n)
    labels = {1: draw.uniform(-1, 1, n), 2: draw.choice([-1.0, 1.0], n)}.get(classes, draw.integers(classes, size=n))
    target = {"strong_convexity": 1 / n, "epsilon": 1, "delta": 1e-6, "sigma": 1e-3}
    plan = RefitPlan.make(n=n, features=d, classes=classes, sparse=True, **target)
    objective = objective_of(plan, rows, labels)
    fitted = refit(plan, objective)
    residual = float(np.sqrt((exact_gradient(objective, fitted.weights) ** 2).sum()))
    assert residual <= fitted.residual <= plan.budget
    error = fitted.residual - float(np.linalg.norm(objective.gradient(fitted.weights)))
    assert error == pytest.approx(bound_of(objective, fitted.weights, objective.terms), rel=0.01, abs=0)
    dense = Terms(d, rounding.chain(n, d))
    assert error != pytest.approx(bound_of(objective, fitted.weights, dense), rel=0.01, abs=0), "these sums are shorter"


def test_sums_are_counted_by_entries():
    rows = csr_array(np.array([[1.0, 2, 0], [0, 3, 0], [0, 4, 5], [0, 0, 0]]))
    assert sparse.terms(rows) == Terms(score=2, total=3 + 1 + 2)
    many = csr_array((np.ones(10_000), (np.arange(10_000), np.zeros(10_000, dtype=int))), shape=(10_000, 2000))
    assert sparse.block_size(many) == rounding.SPARSE_ROWS
    assert sparse.terms(many) == Terms(score=1, total=4096 + 3 + 2)
    assert sparse.terms(csr_array((3, 5))) == Terms(score=0, total=0 + 1 + 2)


def rounded_down(number: int) -> np.ndarray:
    """Numbers just below 1 of which nearly every addition loses half a unit in the last place."""
    terms, total = np.ones(number), 0.0
    for place in range(number):
        unit = math.ulp(total + 1)
        terms[place] = 1 - unit / 2 - math.ulp(0.5)
        total += terms[place]
    return terms


def norm(parts: list[Fraction]) -> float:
    return math.sqrt(sum(part * part for part in parts))


def long_column() -> tuple[RidgeRegression64, np.ndarray, float]:
    """One column of 4096 entries: its sum in the gradient loses half a unit in nearly every addition."""
    number = rounding.SPARSE_ROWS
    targets = rounded_down(number)
    column = csr_array((np.ones(number), (np.arange(number), np.zeros(number, dtype=int))), shape=(number, 1001))
    objective = RidgeRegression64(column, targets, number, M, 1)
    weights = np.zeros(1001)
    exact = -sum(map(Fraction, targets.tolist())) / number
    return objective, weights, norm([Fraction(float(objective.gradient(weights)[0])) - exact])


def long_row() -> tuple[RidgeRegression64, np.ndarray, float]:
    """One row of 4096 entries: its score loses half a unit in nearly every addition."""
    number = 4**6
    row = csr_array((np.full(number, 2.0**-6), (np.zeros(number, dtype=int), np.arange(number))), shape=(1, number))
    objective, weights = RidgeRegression64(row, np.ones(1), 1, 1e-30, 1), rounded_down(number)
    score = sum(map(Fraction, weights.tolist())) / 2**6
    found = objective.gradient(weights)
    exact = [(score - 1) / 2**6 + Fraction(1e-30) * Fraction(weight) for weight in weights.tolist()]
    return objective, weights, norm([Fraction(float(each)) - part for each, part in zip(found, exact, strict=True)])


@pytest.mark.parametrize(("made", "fault"), [(long_column, "total"), (long_row, "score")])
def test_sums_a_quarter_as_long_would_not_bound_the_worst_ones(made: Any, fault: str):
    objective, weights, off = made()
    terms = objective.terms
    assert 0.3 * bound_of(objective, weights, terms) < off <= bound_of(objective, weights, terms)
    assert off > bound_of(objective, weights, terms._replace(**{fault: getattr(terms, fault) // 4}))
