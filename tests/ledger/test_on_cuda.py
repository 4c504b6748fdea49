"""A ledger whose noisy steps are taken on a GPU that is not there (`tests.support.fake_cuda`)."""

from pathlib import Path

import numpy as np
import pytest

from certified_unlearning.data.tables.table import Table
from certified_unlearning.ledger import load_model, requests
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.initialisation import initialise
from certified_unlearning.ledger.methods import noisy_steps
from certified_unlearning.ledger.verification import verify
from tests.ledger.conftest import Original
from tests.ledger.tables import LANGEVIN
from tests.support.fake_cuda import as_a_gpu_draws, fake_cuda


def answered(directory: Path, data: Path, device: str, batch_size: int | None) -> np.ndarray:
    """Learn a model, and answer two requests."""
    table = Table(path=str(data), label="ill", identifier="person")
    initialise(directory, table, **LANGEVIN, C=0.1, steps=5, records=3, device=device, batch_size=batch_size)
    for people in (["p3", "p4"], ["p7"]):
        requests.request(directory, people)
        apply(directory)
    verify(directory)
    return load_model(directory).weights


@pytest.mark.parametrize("batch_size", [None, 90], ids=["all records", "mini-batches"])
def test_a_ledger_on_a_gpu_learns_and_answers_requests_as_on_the_cpu(
    batch_size: int | None, original: Original, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noisy_steps, "noise_key", lambda: 7)
    with fake_cuda() as seen:
        found = answered(tmp_path / "cuda", original.data, "cuda", batch_size)
    assert "ledger.methods.noisy_steps:place_training" in seen.reached, "the records were on the GPU"
    with as_a_gpu_draws():
        expected = answered(tmp_path / "cpu", original.data, "cpu", batch_size)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
