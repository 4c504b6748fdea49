"""`apply` is Langevin unlearning on the data without the requested records, with noise that nobody can repeat."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from certified_unlearning import certificate
from certified_unlearning.accounting import Schedule
from certified_unlearning.data.tables.declaration import Table
from certified_unlearning.data.tables.table import read_blocks
from certified_unlearning.errors import (
    AssumptionError,
    DataError,
    ParameterError,
    StorageError,
    UnlearningError,
)
from certified_unlearning.ledger import load_model, requests
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.initialisation import initialise
from certified_unlearning.ledger.methods import noisy_steps
from certified_unlearning.ledger.model import read_stored, with_intercept
from certified_unlearning.ledger.store import Ledger
from certified_unlearning.ledger.training import dense
from certified_unlearning.ledger.verification import verify
from certified_unlearning.mechanisms.learners.history import Removal
from certified_unlearning.mechanisms.learners.langevin import LangevinLearner
from tests.ledger.conftest import Original
from tests.ledger.tables import LANGEVIN, make_model, make_refit


def test_apply_takes_the_planned_noisy_steps_on_the_data_without_the_records(
    original: Original, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned = load_model(model).weights
    requests.request(model, ["p3", "p4"])
    monkeypatch.setattr(noisy_steps, "noise_key", lambda: 7)
    apply(model)
    state = requests.status(model).state
    stored = read_stored(ModelDirectory(model), state)
    (block,) = read_blocks(stored.table)
    left = np.array([person not in ("p3", "p4") for person in block.identifiers or ()])
    batch = state.batches[0]
    assert batch.steps == stored.learner.plan_removal([], 3).steps
    expected = stored.learner.unlearn(
        torch.from_numpy(learned),
        torch.from_numpy(with_intercept(block.features[left])),
        torch.from_numpy(block.labels[left]).float(),
        [Removal(3, batch.steps)],
        [7],
    )
    np.testing.assert_allclose(load_model(model).weights, expected.numpy(), rtol=1e-5, atol=1e-6)


def test_equal_applications_draw_different_noise(original: Original, tmp_path: Path) -> None:
    for name in ("one", "other"):
        make_model(tmp_path / name, original.data)
    one, other = (load_model(tmp_path / name).weights for name in ("one", "other"))
    assert not np.any(one == other)


def test_no_file_of_the_directory_has_the_key_of_the_noise(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = 0x0123456789ABCDEF0123456789ABCDEF
    monkeypatch.setattr(noisy_steps, "noise_key", lambda: key)
    requests.request(model, ["p3"])
    apply(model)
    written = [str(key).encode(), f"{key:x}".encode(), key.to_bytes(16, "little"), key.to_bytes(16, "big")]
    for path in model.rglob("*"):
        assert path.is_dir() or not any(form in path.read_bytes() for form in written)


def test_the_certificate_accounts_for_every_earlier_removal(model: Path) -> None:
    for people in (["p3", "p4"], ["p5"], ["p6", "p7", "p8"]):
        requests.request(model, people)
        apply(model)
    certified = certificate.read(ModelDirectory(model).certificate(4))
    certificate.verify(certified)
    steps = tuple(batch.steps for batch in requests.status(model).state.batches)
    learner = read_stored(ModelDirectory(model), requests.status(model).state).learner
    assert certified.schedule == Schedule(
        sigma=learner.sigma, records_per_request=(3, 2, 4), steps=steps, learning_steps=learner.learning_steps
    )
    assert certified.epsilon <= 1
    assert certified.epsilon_all_published is not None
    assert certified.epsilon < certified.epsilon_all_published
    assert certified.noise_source == "system entropy"


def test_nothing_pending_makes_no_version(model: Path) -> None:
    before = requests.status(model).head
    applied = apply(model)
    assert (applied.versions, applied.head) == ((), before)


def test_an_unknown_device_is_one_sentence_and_nothing_is_planned(model: Path) -> None:
    requests.request(model, ["p3"])
    with pytest.raises(ParameterError, match="device must be auto, cpu or cuda, got 'tpu'"):
        apply(model, device="tpu")
    assert requests.status(model).state.planned is None


def test_a_loaded_model_predicts_as_its_weights_say(original: Original, model: Path) -> None:
    loaded = load_model(model)
    (block,) = read_blocks(Table(path=str(original.data), label="ill", identifier="person"))
    assert loaded.feature_names == ["height", "weight", "age"]
    scores = loaded.decision_function(block.features)
    coefficients, intercept = loaded.weights[0, :-1], loaded.weights[0, -1]
    np.testing.assert_allclose(scores, (block.features @ coefficients + intercept) / np.sqrt(2), rtol=1e-4, atol=1e-6)
    right = loaded.predict(block.features) == original.table["ill"]
    assert right.mean() > 0.75
    with pytest.raises(ParameterError, match=r"rows must have shape \(n, 3\), got \(450, 2\)"):
        loaded.predict(block.features[:, :2])


def test_loading_while_an_apply_deletes_the_weights_gives_the_new_ones(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from certified_unlearning.ledger import prediction

    read_weights = prediction.read_weights

    def read_after_an_apply(*args: object) -> object:
        monkeypatch.undo()
        requests.request(model, ["p3"])
        apply(model)
        return read_weights(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(prediction, "read_weights", read_after_an_apply)
    assert load_model(model).version == 2


def test_three_classes_and_no_intercept(original: Original, tmp_path: Path) -> None:
    table = original.table.assign(ill=[("no", "yes", "maybe")[row % 3] for row in range(450)])
    table.to_parquet(tmp_path / "people.parquet")
    model = tmp_path / "model"
    declared = Table(path=str(tmp_path / "people.parquet"), label="ill", identifier="person")
    initialise(model, declared, **LANGEVIN, C=0.1, steps=5, records=3, intercept=False, dtype="float64")
    requests.request(model, ["p1"])
    apply(model)
    verify(model)
    loaded = load_model(model)
    assert loaded.weights.shape == (3, 3)
    assert loaded.weights.dtype == np.float64
    assert set(loaded.predict(np.eye(3))) <= {"maybe", "no", "yes"}


def test_rows_that_stay_on_disk_give_a_model_too(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests.request(model, ["p3"])
    sysconf = {"SC_PAGE_SIZE": 1, "SC_PHYS_PAGES": 1}
    monkeypatch.setattr("certified_unlearning.ledger.methods.noisy_steps.os.sysconf", sysconf.__getitem__)
    apply(model)
    verify(model)


def test_identifiers_may_be_numbers(original: Original, tmp_path: Path) -> None:
    table = original.table.assign(person=range(450))
    table.to_parquet(tmp_path / "people.parquet")
    declared = Table(path=str(tmp_path / "people.parquet"), label="ill", identifier="person")
    initialise(tmp_path / "model", declared, epsilon=1, C=0.1)
    assert requests.request(tmp_path / "model", ["17", "18.0"]).records == 2


def test_init_refuses_a_directory_that_is_not_empty_and_takes_one_that_is(original: Original, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    make_model(tmp_path / "model", original.data)
    for path in (tmp_path / "model", original.data):
        with pytest.raises(ParameterError, match="exists already and is not an empty directory; a new model needs"):
            make_model(path, original.data)


def test_init_refuses_the_working_directory_and_a_mount_point_before_it_writes(
    original: Original, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "model"
    place.mkdir()
    (tmp_path / "link").symlink_to(place)
    monkeypatch.chdir(place)
    for path in (Path(), Path("../model"), place, tmp_path / "link"):
        with pytest.raises(ParameterError, match="is the working directory, which `init` would replace; run it from"):
            make_model(path, original.data)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Path, "is_mount", lambda path: path == place)
    with pytest.raises(ParameterError, match="is a mount point, which `init` cannot replace; name a directory inside"):
        make_model(place, original.data)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "model"]
    assert list(place.iterdir()) == []


def test_what_a_killed_init_left_is_deleted_by_the_next(original: Original, tmp_path: Path) -> None:
    left = tmp_path / ".model.unfinished" / "training"
    left.mkdir(parents=True)
    (left / "features.float32").write_bytes(b"secret")
    (left.parent / "weights-1.safetensors").write_bytes(b"secret")
    make_model(tmp_path / "model", original.data)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    verify(tmp_path / "model")


def test_two_inits_of_one_model_do_not_mix(original: Original, tmp_path: Path) -> None:
    unfinished = ModelDirectory(tmp_path / ".model.unfinished")
    unfinished.path.mkdir()
    unfinished.lock.touch()
    with unfinished.locked(), pytest.raises(StorageError, match="another `unlearn` command is using"):
        make_model(tmp_path / "model", original.data)


@pytest.mark.parametrize(
    ("changes", "parameters", "sentence"),
    [
        ({"identifier": None}, {}, "identifier is missing: without a column that says whose record each row is"),
        ({"split": {"test": 0.2}}, {}, "split must be left out: a model directory holds training records only"),
        ({"label": "sick"}, {}, "people.csv has no column 'sick'"),
        ({"path": "nowhere.csv"}, {}, "cannot read nowhere.csv: No such file or directory"),
        ({"features": ["height", "ill"]}, {}, "which is the label, not a feature"),
        ({}, {"C": 0}, "C must be a finite number above 0, got 0"),
        ({}, {"epsilon": -1}, "epsilon must be"),
        ({}, {"mechanism": "langevin", "sigma": 1, "steps": 1}, "sigma and steps cannot both be given"),
        ({}, {"mechanism": "langevin", "sigma": 1e-12}, "rounding in float64 would take more than 10% of epsilon"),
    ],
)
def test_a_mistake_at_init_is_one_sentence_and_leaves_nothing(
    original: Original, tmp_path: Path, changes: dict[str, object], parameters: dict[str, object], sentence: str
) -> None:
    declared = {"path": str(original.data), "label": "ill", "identifier": "person"} | changes
    with pytest.raises(UnlearningError, match=sentence) as caught:
        initialise(tmp_path / "model", Table(**declared), **{"epsilon": 1, "C": 0.1} | parameters)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_table_that_changes_while_it_is_read_is_refused(
    original: Original, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from certified_unlearning.ledger import initialisation

    data = tmp_path / "people.csv"
    data.write_bytes(original.data.read_bytes())

    def read_and_write(table: Table, *, all_columns: bool) -> object:
        yield from read_blocks(table, all_columns=all_columns)
        pd.read_csv(data).to_csv(data)

    monkeypatch.setattr(initialisation, "read_blocks", read_and_write)
    with pytest.raises(DataError, match="was changed while it was read; try again"):
        make_model(tmp_path / "model", data)
    assert list(tmp_path.iterdir()) == [data]


def test_what_sqlite_calls_an_input_output_error_is_most_often_a_full_disk(model: Path) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_WRITE
    sentence = r"cannot use the ledger .*: disk I/O error; is the disk full\?$"
    with pytest.raises(StorageError, match=sentence), Ledger.opened(ModelDirectory(model).ledger):
        raise error


@pytest.mark.parametrize(("epsilon", "delta", "steps"), [(1.0, 1e-9, 20), (10.0, 1e-5, 3000)])
def test_what_the_papers_accountant_plans_is_published_with_a_certificate_that_verifies(
    original: Original, tmp_path: Path, epsilon: float, delta: float, steps: int
) -> None:
    """Learning was too short for so small a delta, and rounding too much for so large an epsilon."""
    table = Table(path=str(original.data), label="ill", identifier="person")
    path = tmp_path / "model"
    asked = LANGEVIN | {"epsilon": epsilon, "delta": delta, "steps": steps, "accountant": "lsi"}
    initialise(path, table, **asked, C=0.1, device="cpu")
    requests.request(path, ["p3"])
    apply(path)
    stated = verify(path).current
    assert stated.epsilon <= epsilon
    assert stated.extra_delta <= 0.05 * delta


def test_a_batch_that_no_certificate_could_state_is_refused_before_a_row_is_touched(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssumptionError("more than delta would be added to delta")

    requests.request(model, ["p3"])
    monkeypatch.setattr(LangevinLearner, "_require_payable", refuse)
    with pytest.raises(AssumptionError):
        apply(model)
    monkeypatch.undo()
    assert requests.status(model).state.planned is None
    assert verify(model).state.current.version == 1
    assert apply(model).versions[0].version == 2


def test_a_request_that_needs_no_reading_reads_the_training_copy_once(
    original: Original, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, read = tmp_path / "model", 0
    make_refit(path, original.data)
    requests.request(path, ["p4"])

    def counted(*given: Any) -> Iterator[memoryview]:
        nonlocal read
        for block in right(*given):
            read += len(block)
            yield block

    right = dense._blocks
    monkeypatch.setattr(dense, "_blocks", counted)
    assert apply(path).versions[0].reading == "none"
    assert read == sum(file.stat().st_size for file in (path / "training").iterdir())
    verify(path)
