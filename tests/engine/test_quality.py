"""Measures of many models at once, beside scikit-learn's of one."""

import numpy as np
import pytest
import torch
from scipy.special import expit, softmax
from sklearn import metrics

from certified_unlearning.engine import quality
from certified_unlearning.engine.objectives import logistic
from certified_unlearning.engine.objectives import softmax as many


def records(classes: int, rare: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(0)
    shares = [rare] + [(1 - rare) / (classes - 1)] * (classes - 1)
    labels = np.concatenate([np.arange(classes), draw.choice(classes, 300 - classes, p=shares)])
    return draw.standard_normal((300, 5)) + 0.3 * labels[:, None], labels


def of_scikit_learn(scores: np.ndarray, labels: np.ndarray, classes: int) -> list[float]:
    if classes == 2:
        probabilities, predicted = np.column_stack([1 - expit(scores), expit(scores)]), (scores >= 0).astype(int)
        area = metrics.roc_auc_score(labels, scores)
    else:
        probabilities, predicted = softmax(scores, axis=1), scores.argmax(axis=1)
        area = np.mean([metrics.roc_auc_score(labels == each, scores[:, each]) for each in range(classes)])
    return [
        metrics.accuracy_score(labels, predicted),
        metrics.balanced_accuracy_score(labels, predicted),
        float(area),
        metrics.log_loss(labels, probabilities),
    ]


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("rounded", [False, True])
def test_all_are_scikit_learns(classes: int, rounded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    features, labels = records(classes)
    outputs = 1 if classes == 2 else classes
    weights = np.random.default_rng(1).standard_normal((7, outputs * 5))
    if rounded:  # Many scores are equal then.
        features, weights = features.round(), weights.round()
    monkeypatch.setattr(quality, "SCORES_AT_ONCE", 3 * len(labels) * classes)
    signs = torch.from_numpy(2.0 * labels - 1 if classes == 2 else labels)
    found = quality.judged(torch.from_numpy(weights), torch.from_numpy(features), signs, classes=classes).numpy()
    for own, trial in zip(found, weights, strict=True):
        scores = features @ trial.reshape(outputs, 5).T
        np.testing.assert_allclose(own, of_scikit_learn(scores.squeeze(), labels, classes), rtol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_accuracy_is_that_of_the_objectives(classes: int) -> None:
    features, labels = records(classes)
    weights = torch.zeros(2, (1 if classes == 2 else classes) * 5, dtype=torch.float64)
    weights[1] = torch.randn(weights.shape[1], generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    signs = torch.from_numpy(2.0 * labels - 1 if classes == 2 else labels)
    found = quality.judged(weights, torch.from_numpy(features), signs, classes=classes)
    expected = (logistic if classes == 2 else many).accuracy(weights, torch.from_numpy(features), signs)
    assert found[:, 0].tolist() == expected.tolist()
    assert found[0, 2] == 0.5
    assert found[0, 3] == pytest.approx(np.log(classes))
