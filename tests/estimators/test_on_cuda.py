"""Estimators on a GPU that is not there (`tests.support.fake_cuda`): they learn, unlearn, predict, and are saved."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from certified_unlearning import CertifiedMLPClassifier, ExactLogisticRegression
from certified_unlearning.estimators import (
    LangevinLogisticRegression,
    LangevinRidge,
    PublishedStateDescentToDelete,
    SecretStateDescentToDelete,
)
from tests.support.fake_cuda import as_a_gpu_draws, fake_cuda

N = 60
GENERATOR = np.random.default_rng(3)
ROWS = GENERATOR.standard_normal((N, 3))
ROWS /= np.linalg.norm(ROWS, axis=1, keepdims=True)
TWO, THREE = (ROWS[:, 0] > 0).astype(int), np.digitize(ROWS[:, 0], [-0.4, 0.4])
ON = {"device": "cuda", "random_state": 1}
QUICK = {"C": 0.3, "dtype": "float64"}
NETWORK = {"hidden_layer_sizes": (3,), "epochs": 1, "batch_size": 20, "budgets": (1, 2)}
EXACT = {"C": 1.0, "steps": 8, "batch_size": 5}

MODELS: dict[str, tuple[Callable[..., Any], dict[str, Any], Any]] = {
    "langevin": (LangevinLogisticRegression, {**QUICK, "batch_size": None}, TWO),
    "langevin, three classes": (LangevinLogisticRegression, {**QUICK, "C": 0.1, "batch_size": None}, THREE),
    "langevin, other records": (
        LangevinLogisticRegression,
        {"C": 0.3, "batch_size": None, "adjacency": "replace"},
        TWO,
    ),
    "langevin, mini-batches": (LangevinLogisticRegression, {**QUICK, "batch_size": 20}, TWO),
    "langevin, mini-batches and weights": (
        LangevinLogisticRegression,
        {**QUICK, "batch_size": 20, "class_weight": {0: 0.5, 1: 1.0}},
        TWO,
    ),
    "ridge": (LangevinRidge, {"alpha": 60.0, "target_range": (-1, 1), "dtype": "float64"}, ROWS @ [0.3, -0.2, 0.1]),
    "descent-to-delete": (SecretStateDescentToDelete, QUICK, TWO),
    "descent-to-delete, published": (PublishedStateDescentToDelete, QUICK, TWO),
    "network": (CertifiedMLPClassifier, NETWORK, TWO),
    "network, clipped": (CertifiedMLPClassifier, {**NETWORK, "clipping": "l2", "momentum": 0.5}, THREE),
    **{
        f"exact, {mechanism}": (ExactLogisticRegression, {**EXACT, "mechanism": mechanism}, labels)
        for mechanism, labels in (("noisy-sgd", TWO), ("quantized-sgd", THREE), ("subsample-gd", TWO))
    },
}


def used(name: str, directory: Path, device: str) -> list[np.ndarray]:
    """Fit a model, remove records twice, the second time after it was saved and loaded, and predict."""
    make, parameters, labels = MODELS[name]
    model = make(**{**parameters, **ON, "device": device}).fit(ROWS, labels)
    found = [model.predict(ROWS)]
    model.unlearn([7, 40])
    found.append(model.predict(ROWS[:9]))
    model.save(directory)
    again = make.load(directory)
    again.device = device
    again.unlearn([3])
    if isinstance(again, CertifiedMLPClassifier):
        found.append(again.certified_radius(ROWS[:9]))
    return [*found, again.predict(ROWS)]


@pytest.mark.parametrize("name", MODELS)
def test_a_model_on_a_gpu_learns_unlearns_and_predicts_as_one_on_the_cpu(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fake_cuda() as seen:
        found = used(name, tmp_path / "cuda", "cuda")
    assert any(each.startswith("engine.") for each in seen.reached), "it was on the GPU"
    with as_a_gpu_draws():
        expected = used(name, tmp_path / "cpu", "cpu")
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    elsewhere = MODELS[name][0].load(tmp_path / "cuda")
    np.testing.assert_allclose(elsewhere.predict(ROWS[:9]), expected[1], rtol=1e-9)
    elsewhere.device = "cpu"
    with as_a_gpu_draws():
        np.testing.assert_allclose(elsewhere.unlearn([3]).predict(ROWS), expected[-1], rtol=1e-9)
