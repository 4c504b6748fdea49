"""A ledger whose model learns by mini-batches: dealt rows, zeroed in their places, and nothing else read."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from certified_unlearning import certificate
from certified_unlearning.accounting.core.curves import Cycle
from certified_unlearning.data.stored_rows import StoredRows
from certified_unlearning.data.tables.table import read_blocks
from certified_unlearning.errors import LedgerError
from certified_unlearning.ledger import load_model, requests
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.methods import noisy_steps
from certified_unlearning.ledger.model import read_stored, with_intercept
from certified_unlearning.ledger.verification import verify
from certified_unlearning.mechanisms.learners.history import Removal
from certified_unlearning.mechanisms.learners.minibatch import MiniBatchLearner
from tests.ledger.conftest import Original
from tests.ledger.tables import make_model

BATCH = 60


@pytest.fixture(scope="module")
def dealt(original: Original, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dealt") / "model"
    make_model(path, original.data, batch_size=BATCH)
    return path


@pytest.fixture
def model(dealt: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(dealt, tmp_path / "model"))


def stored_rows(path: Path) -> tuple[np.ndarray, np.ndarray]:
    directory = ModelDirectory(path)
    return np.fromfile(directory.features, np.float32).reshape(450, -1), np.fromfile(directory.places, np.int64)


def test_rows_lie_dealt_and_signed(original: Original, model: Path) -> None:
    rows, places = stored_rows(model)
    stored = read_stored(ModelDirectory(model), requests.status(model).state)
    (block,) = read_blocks(stored.table)
    assert sorted(places) == list(range(450))
    assert (np.diff(places) != 1).sum() > 400
    expected = -block.labels[:, None].astype(np.float32) * with_intercept(block.features)
    np.testing.assert_array_equal(rows[places], expected)


def test_apply_takes_the_planned_steps_from_its_place_in_the_cycle(
    original: Original, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned = load_model(model).weights
    monkeypatch.setattr(noisy_steps, "noise_key", lambda: 7)
    rows, places = stored_rows(model)
    requests.request(model, ["p3", "p4"])
    apply(model)
    state = requests.status(model).state
    learner = read_stored(ModelDirectory(model), state).learner
    assert isinstance(learner, MiniBatchLearner)
    gone = [row for row, person in enumerate(original.table["person"]) if person in ("p3", "p4")]
    told = learner.places_of(places[gone])
    planned = learner.plan_removal([], 3, told)
    assert Removal.read(3, state.batches[0].steps, state.batches[0].places) == planned
    rows[places[gone]] = 0
    after, _ = stored_rows(model)
    np.testing.assert_array_equal(after, rows)
    kept = torch.from_numpy(rows).to(getattr(torch, learner.dtype))
    expected = learner.unlearn(torch.from_numpy(learned), kept, torch.zeros(450), [planned], [7])
    np.testing.assert_allclose(load_model(model).weights, expected.numpy(), rtol=1e-5, atol=1e-6)


def test_certificates_of_request_after_request_are_verified(model: Path) -> None:
    for people in (["p3"], ["p4", "p5"]):
        requests.request(model, people)
        apply(model)
    verified = verify(model)
    assert verified.current.cycle == Cycle(8, BATCH)
    assert verified.current.records_per_request == (2, 3)
    assert verified.current.epsilon <= 1
    certificate.verify(verified.current)


def test_a_request_reads_its_batches_and_no_other_rows(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    read_into = StoredRows.read_into

    def noted(self: StoredRows, out: np.ndarray, start: int) -> None:
        read.append((start, len(out)))
        read_into(self, out, start)

    monkeypatch.setattr(StoredRows, "read_into", noted)
    requests.request(model, ["p3"])
    applied = apply(model)
    batch = applied.versions[0].batch
    assert batch is not None
    assert len(read) == batch.steps
    assert all(length <= BATCH for _, length in read)


def test_an_interrupted_apply_is_finished(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests.request(model, ["p3"])

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(MiniBatchLearner, "unlearn", interrupted)
        with pytest.raises(KeyboardInterrupt):
            apply(model)
    assert requests.status(model).state.planned is not None
    assert len(apply(model).versions) == 1
    assert verify(model).state.records_removed == 2


@pytest.mark.parametrize("name", ["features", "places"])
def test_a_training_copy_that_was_edited_is_refused(model: Path, name: str) -> None:
    path = getattr(ModelDirectory(model), name)
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(content)
    requests.request(model, ["p3"])
    for command in (verify, apply):
        with pytest.raises(LedgerError, match="the training copy is not what the ledger recorded"):
            command(model)


def test_three_classes(original: Original, tmp_path: Path) -> None:
    table = original.table.copy()
    table.loc[table.index[::3], "ill"] = "perhaps"
    table.to_csv(tmp_path / "three.csv", index=False)
    made = make_model(tmp_path / "model", tmp_path / "three.csv", batch_size=BATCH)
    assert made.state.start.records == 450
    requests.request(tmp_path / "model", ["p3"])
    apply(tmp_path / "model")
    assert verify(tmp_path / "model").current.classes == 3
