"""Compiled gradients over float32 rows are within the bounds on rounding, whatever the sizes."""

import numpy as np
import pytest

from certified_unlearning.accounting.residual import rounding
from certified_unlearning.engine.compiled import gradient as compiled
from certified_unlearning.engine.objectives.float64 import LogisticRegression64

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


def test_other_rows_are_left_to_numpy(monkeypatch: pytest.MonkeyPatch):
    rows, labels, weights = problem(500, 9)
    assert not compiled.takes(rows.astype(np.float64), labels)
    assert not compiled.takes(np.asfortranarray(rows), labels)
    assert not compiled.takes(rows, labels.astype(np.float32))
    compiled_one = LogisticRegression64(rows, labels, 500, 0.1, 2).gradient(weights)
    monkeypatch.setattr(compiled, "library", lambda: None)
    assert LogisticRegression64(rows, labels, 500, 0.1, 2).gradient(weights) == pytest.approx(compiled_one, rel=1e-12)
