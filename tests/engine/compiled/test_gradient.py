"""Compiled gradients over float32 rows are within the bounds on rounding, whatever the sizes."""

import numpy as np
import pytest

from certified_unlearning.accounting.residual import rounding
from certified_unlearning.engine.compiled import gradient as compiled
from certified_unlearning.engine.objectives.float64 import LogisticRegression64, gradients

pytestmark = pytest.mark.skipif(compiled.library() is None, reason="this machine has no C++ compiler")
LONG = np.longdouble


def problem(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Float32 rows of norm 1, of which some are zero and without a label, as removed records are; labels; weights."""
    draw = np.random.default_rng(seed)
    rows = draw.standard_normal((n, d))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    labels = np.where(draw.random(n) < 0.5, -1.0, 1.0)
    rows[::7], labels[::7] = 0, 0
    return rows, labels, 5 * draw.standard_normal(d)


def exact(rows: np.ndarray, labels: np.ndarray, weights: np.ndarray, by_class: tuple[float, float]) -> np.ndarray:
    """The sum over rows in extended precision."""
    wide, signs = rows.astype(LONG), labels.astype(LONG)
    slopes = -signs / (1 + np.exp(signs * (wide @ weights.astype(LONG))))
    return wide.T @ (slopes * np.where(labels > 0, by_class[1], by_class[0]))


@pytest.mark.parametrize("d", [1, 7, 8, 19, 300])
@pytest.mark.parametrize("n", [1, 7, 8, 300, 5000])
@pytest.mark.parametrize("class_weights", [None, (0.25, 1.0)])
def test_it_is_within_the_bounds_on_rounding(n: int, d: int, class_weights: tuple[float, float] | None):
    rows, labels, weights = problem(n, d)
    objective = LogisticRegression64(rows, labels, n, 0.0, 2, class_weights)
    assert compiled.takes(rows, labels)
    found = objective.gradient(weights)
    true = exact(rows, labels, weights, class_weights or (1.0, 1.0)) / n
    allowed = rounding.gradient_error(
        records=n, n=n, features=d, classes=2, weight_norm=float(np.linalg.norm(weights)), strong_convexity=0.0
    )
    assert float(np.sqrt(((found - true) ** 2).sum())) <= allowed


@pytest.mark.parametrize("d", [1, 7, 8, 19, 300])
@pytest.mark.parametrize("n", [1, 7, 8, 300, 5000])
def test_how_far_scores_moved_is_told_beside_the_same_gradient(n: int, d: int, monkeypatch: pytest.MonkeyPatch):
    rows, labels, weights = problem(n, d)
    since = weights - np.random.default_rng(n).standard_normal(d)
    objective = LogisticRegression64(rows, labels, n, 0.0, 2)
    true = float(np.abs(rows.astype(LONG) @ (weights.astype(LONG) - since)).max())
    moved = float(np.linalg.norm(weights - since))
    # Rows of norm 1: half a unit of float32 is in the norm, which `ROW_NORM` covers.
    allowed = rounding.score_move(0.0, features=d, moved=moved) * rounding.ROW_NORM
    for _ in range(2):
        gradient, farthest = objective.gradient_and_farthest(weights, since)
        assert abs(farthest - true) <= allowed
        assert rounding.score_move(farthest, features=d, moved=moved) * rounding.ROW_NORM >= true
        assert gradient == pytest.approx(objective.gradient(weights), rel=1e-11, abs=1e-15)
        monkeypatch.setattr(compiled, "library", lambda: None)


def test_scores_in_single_precision_would_be_off_by_more():
    """The planted fault."""
    rows, _, way = problem(5000, 300)
    allowed = rounding.score_move(0.0, features=300, moved=float(np.linalg.norm(way)))
    single = float(np.abs(rows @ way.astype(np.float32)).max())
    assert abs(single - float(np.abs(rows.astype(LONG) @ way.astype(LONG)).max())) > 1000 * allowed


def test_single_precision_would_not_be():
    """The planted fault: what the bounds allow is far below what float32 sums are off by."""
    rows, labels, weights = problem(5000, 300)
    narrow = weights.astype(np.float32)
    slopes = -labels / (1 + np.exp(labels * (rows @ narrow).astype(float)))
    true = exact(rows, labels, weights, (1.0, 1.0)) / 5000
    allowed = rounding.gradient_error(
        records=5000, n=5000, features=300, classes=2, weight_norm=float(np.linalg.norm(weights)), strong_convexity=0.0
    )
    assert np.linalg.norm(rows.T @ slopes / 5000 - true.astype(float)) > 1000 * allowed


def test_calls_are_cut_between_blocks(monkeypatch: pytest.MonkeyPatch):
    """Pieces give the same bits, for a block is added as a whole."""
    rows, labels, weights = problem(3000, 20)
    whole = compiled.logistic_gradient(rows, labels, weights, block=256, class_weights=None)
    monkeypatch.setattr(compiled, "NUMBERS_OF_A_CALL", 20 * 600)
    assert (compiled.logistic_gradient(rows, labels, weights, block=256, class_weights=None) == whole).all()
    gradient, farthest = compiled.gradient_and_farthest(rows, labels, weights, -weights, block=256, class_weights=None)
    assert gradient == pytest.approx(whole, rel=1e-12)
    assert farthest == pytest.approx(np.abs(rows @ weights).max(), rel=1e-12)


@pytest.mark.parametrize("d", [1, 19, 256])
@pytest.mark.parametrize("n", [1, 9, 700])
@pytest.mark.parametrize("positives", [[0], [2, 0], [4, 1, 0], [0, 1, 2, 3], [0, 1, 2, 3, 4, 5, 6, 7, 8]])
@pytest.mark.parametrize("class_weights", [None, tuple(np.linspace(0.1, 1, 9))])
def test_each_class_against_the_rest_is_within_the_bounds(
    n: int, d: int, positives: list[int], class_weights: tuple[float, ...] | None, monkeypatch: pytest.MonkeyPatch
):
    rows, _, _ = problem(n, d)
    draw = np.random.default_rng(n + d)
    numbers, weights = draw.integers(0, 9, n), 5 * draw.standard_normal((len(positives), d))
    numbers[::7] = 0
    of_record = np.array(class_weights or np.ones(9), dtype=LONG)[numbers]
    objective = LogisticRegression64(rows, numbers, n, 0.0, 2, class_weights, positives[0])
    assert compiled.takes(rows, numbers, np.int64)
    found = gradients(objective, weights, positives)
    assert (objective.gradient(weights[0]) == gradients(objective, weights[:1], positives[:1])[0]).all()
    monkeypatch.setattr(compiled, "library", lambda: None)
    for each in (found, gradients(objective, weights, positives)):
        for positive, of_class, gradient in zip(positives, weights, each, strict=True):
            signs = np.where(numbers == positive, 1.0, -1.0).astype(LONG)
            slopes = -signs / (1 + np.exp(signs * (rows.astype(LONG) @ of_class.astype(LONG)))) * of_record
            allowed = rounding.gradient_error(
                records=n,
                n=n,
                features=d,
                classes=2,
                weight_norm=float(np.linalg.norm(of_class)),
                strong_convexity=0.0,
            )
            assert float(np.sqrt(((gradient - rows.astype(LONG).T @ slopes / n) ** 2).sum())) <= allowed


def test_other_rows_are_left_to_numpy(monkeypatch: pytest.MonkeyPatch):
    rows, labels, weights = problem(500, 9)
    assert not compiled.takes(rows.astype(np.float64), labels)
    assert not compiled.takes(np.asfortranarray(rows), labels)
    assert not compiled.takes(rows, labels.astype(np.float32))
    compiled_one = LogisticRegression64(rows, labels, 500, 0.1, 2).gradient(weights)
    monkeypatch.setattr(compiled, "library", lambda: None)
    assert LogisticRegression64(rows, labels, 500, 0.1, 2).gradient(weights) == pytest.approx(compiled_one, rel=1e-12)
