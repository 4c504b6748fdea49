"""Compiled softmax gradients over float32 rows are within the bounds on rounding, whatever the sizes."""

import numpy as np
import pytest

from certified_unlearning.accounting.residual import rounding
from certified_unlearning.engine.compiled import softmax as compiled
from certified_unlearning.engine.objectives.float64 import SoftmaxRegression64

pytestmark = pytest.mark.skipif(compiled.library() is None, reason="this machine has no C++ compiler")
LONG = np.longdouble


def problem(n: int, d: int, classes: int, size: float = 5.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Float32 rows of norm 1, of which some are zero and of class 0, as removed records are; labels; weights."""
    draw = np.random.default_rng(n + d + classes)
    rows = draw.standard_normal((n, d))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    labels = draw.integers(classes, size=n)
    rows[::7], labels[::7] = 0, 0
    return rows, labels, size * draw.standard_normal((classes, d))


def slopes_of(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    p = np.exp(scores - scores.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    p[np.arange(len(labels)), labels] -= 1
    return p


def exact(rows: np.ndarray, labels: np.ndarray, weights: np.ndarray, by_class: np.ndarray) -> np.ndarray:
    """The sum over rows in extended precision."""
    wide = rows.astype(LONG)
    slopes = slopes_of(wide @ weights.T.astype(LONG), labels) * by_class[labels][:, None].astype(LONG)
    return slopes.T @ wide


def allowed_of(n: int, weights: np.ndarray) -> float:
    classes, features = weights.shape
    return rounding.gradient_error(
        records=n,
        n=n,
        features=features,
        classes=classes,
        weight_norm=float(np.linalg.norm(weights)),
        strong_convexity=0.0,
    )


@pytest.mark.parametrize("classes", [3, 5, 6, 14, 101])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (7, 8), (8, 7), (400, 19), (90, 300)])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_within_the_bounds_on_rounding(n: int, d: int, classes: int, weighted: bool):
    rows, labels, weights = problem(n, d, classes)
    shares = np.linspace(0.1, 1, classes) if weighted else np.ones(classes)
    objective = SoftmaxRegression64(rows, labels, n, 0.0, classes, tuple(shares) if weighted else None)
    assert compiled.takes(rows, labels)
    found = objective.gradient(weights.ravel()).reshape(classes, d)
    true = exact(rows, labels, weights, shares) / n
    assert float(np.sqrt(((found - true) ** 2).sum())) <= allowed_of(n, weights)


@pytest.mark.parametrize("size", [0.01, 100.0, 1e6])
def test_it_is_within_the_bounds_for_weights_of_all_sizes(size: float):
    rows, labels, weights = problem(2000, 20, 4, size)
    found = SoftmaxRegression64(rows, labels, 2000, 0.0, 4).gradient(weights.ravel()).reshape(4, 20)
    true = exact(rows, labels, weights, np.ones(4)) / 2000
    assert float(np.sqrt(((found - true) ** 2).sum())) <= allowed_of(2000, weights)


def test_single_precision_would_not_be():
    """The planted fault: what the bounds allow is far below what float32 scores are off by."""
    rows, labels, weights = problem(3000, 100, 5)
    slopes = slopes_of((rows @ weights.T.astype(np.float32)).astype(float), labels)
    true = exact(rows, labels, weights, np.ones(5)).astype(float)
    assert np.linalg.norm(slopes.T @ rows - true) / 3000 > 1000 * allowed_of(3000, weights)


def test_calls_are_cut_between_blocks(monkeypatch: pytest.MonkeyPatch):
    """Pieces give the same bits, for a block is added as a whole."""
    rows, labels, weights = problem(3000, 20, 5)
    whole = compiled.softmax_gradient(rows, labels, weights, block=256, class_weights=None)
    monkeypatch.setattr(compiled, "NUMBERS_OF_A_CALL", 5 * 20 * 600)
    assert (compiled.softmax_gradient(rows, labels, weights, block=256, class_weights=None) == whole).all()


def test_other_rows_are_left_to_numpy(monkeypatch: pytest.MonkeyPatch):
    rows, labels, weights = problem(500, 9, 4)
    assert not compiled.takes(rows.astype(np.float64), labels)
    assert not compiled.takes(np.asfortranarray(rows), labels)
    assert not compiled.takes(rows, labels.astype(np.int32))
    compiled_one = SoftmaxRegression64(rows, labels, 500, 0.1, 4).gradient(weights.ravel())
    monkeypatch.setattr(compiled, "library", lambda: None)
    by_numpy = SoftmaxRegression64(rows, labels, 500, 0.1, 4).gradient(weights.ravel())
    assert by_numpy == pytest.approx(compiled_one, rel=1e-12, abs=1e-16)


@pytest.mark.parametrize("label", [-1, 4])
def test_labels_that_no_class_has_are_refused(label: int):
    """They would be read and written beside the scores."""
    rows, labels, weights = problem(50, 9, 4)
    labels[3] = label
    with pytest.raises(IndexError, match="labels must lie between 0 and 3"):
        compiled.softmax_gradient(rows, labels, weights, block=256, class_weights=None)
