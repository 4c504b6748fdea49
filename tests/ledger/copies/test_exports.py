"""Copies elsewhere are recorded before they are made, and named when a removal leaves them behind."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from certified_unlearning import certificate
from certified_unlearning.errors import DataError, ParameterError, StorageError, UnlearningError
from certified_unlearning.ledger import load_model, requests
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.copies import exports
from certified_unlearning.ledger.copies.exports import export, withdraw
from certified_unlearning.ledger.directory import ModelDirectory, file_sha256
from certified_unlearning.ledger.verification import verify
from tests.ledger.conftest import Original, Unlearn
from tests.ledger.tables import make_regression, write_table


def outdated(model: Path) -> dict[str, bool]:
    found = requests.status(model)
    return {each.name: each.is_outdated(found.state) for each in found.copies}


def test_a_copy_holds_the_current_weights_certificate_and_columns(model: Path, tmp_path: Path) -> None:
    done = export(model, to=tmp_path / "served", name="served")
    assert (done.name, done.version) == ("served", 1)
    assert sorted(each.name for each in (tmp_path / "served").iterdir()) == [
        "certificate.json",
        "columns.json",
        "weights.safetensors",
    ]
    assert file_sha256(tmp_path / "served" / "weights.safetensors") == file_sha256(ModelDirectory(model).weights(1))
    certificate.verify(certificate.read_any(tmp_path / "served" / "certificate.json"))
    columns = json.loads((tmp_path / "served" / "columns.json").read_text())
    assert columns["table"]["features"] == ["height", "weight", "age"]
    assert (columns["intercept"], columns["version"]) == (True, 1)
    assert safetensors.numpy.load_file(tmp_path / "served" / "weights.safetensors")["weights"].shape == (1, 4)
    verify(model)


def test_a_copy_predicts_what_the_model_does(model: Path, original: Original, tmp_path: Path) -> None:
    export(model, to=tmp_path / "served")
    copied, stored = load_model(tmp_path / "served"), load_model(model)
    rows = copied.rows(original.table)
    assert copied.version == 1
    assert np.array_equal(copied.predict_proba(rows), stored.predict_proba(stored.rows(original.table)))


def test_a_copy_of_a_model_of_numbers_predicts_them(tmp_path: Path) -> None:
    table = write_table(tmp_path / "people.csv", numbers=True)
    make_regression(tmp_path / "model", tmp_path / "people.csv")
    export(tmp_path / "model", to=tmp_path / "served")
    copied, stored = load_model(tmp_path / "served"), load_model(tmp_path / "model")
    assert np.array_equal(copied.predict(copied.rows(table)), stored.predict(stored.rows(table)))


def test_a_damaged_copy_is_one_sentence(model: Path, tmp_path: Path) -> None:
    served = tmp_path / "served"
    export(model, to=served)
    safetensors.numpy.save_file({"weights": np.zeros((1, 3))}, served / "weights.safetensors")
    with pytest.raises(DataError, match=r"has weights of shape \(1, 3\), but columns.json declares 4 in a row"):
        load_model(served)
    (served / "weights.safetensors").write_bytes(b"others")
    with pytest.raises(DataError, match=r"weights.safetensors does not hold a model's weights: "):
        load_model(served)
    (served / "weights.safetensors").unlink()
    with pytest.raises(DataError, match=r"cannot read .*weights.safetensors: No such file"):
        load_model(served)
    (served / "columns.json").write_text('{"table": 1, "intercept": true, "version": 1}')
    with pytest.raises(DataError, match=r"columns.json is not the declaration of a copy's columns: table: "):
        load_model(served)


def test_a_copy_tells_neither_where_the_data_lie_nor_whose_they_are_nor_random_numbers(
    model: Path, tmp_path: Path
) -> None:
    export(model, to=tmp_path / "served")
    text = (tmp_path / "served" / "columns.json").read_text()
    assert "people.csv" not in text
    assert "person" not in text
    assert "learner" not in text


def test_a_removal_makes_copies_outdated_until_they_are_replaced_or_withdrawn(model: Path, tmp_path: Path) -> None:
    export(model, to=tmp_path / "served", name="served")
    export(model, name="mlflow: churn 3")
    assert outdated(model) == {"served": False, "mlflow: churn 3": False}
    requests.request(model, ["p3"])
    assert outdated(model) == {"served": False, "mlflow: churn 3": False}
    apply(model)
    assert outdated(model) == {"served": True, "mlflow: churn 3": True}
    export(model, to=tmp_path / "served", name="served")
    assert outdated(model) == {"mlflow: churn 3": True, "served": False}
    assert withdraw(model, "mlflow: churn 3").version == 1
    assert outdated(model) == {"served": False}
    verify(model)


def test_a_copy_is_replaced_where_it_lies_and_nowhere_else(model: Path, tmp_path: Path) -> None:
    export(model, to=tmp_path / "served", name="served")
    export(model, name="registry")
    for place in (None, tmp_path / "another"):
        with pytest.raises(ParameterError, match=r"the copy 'served' is in .*served: give --to .* to replace it"):
            export(model, to=place, name="served")
    with pytest.raises(ParameterError, match="the copy 'registry' was made by you: leave --to out to replace it"):
        export(model, to=tmp_path / "another", name="registry")
    assert not (tmp_path / "another").exists()
    withdraw(model, "served")
    export(model, to=tmp_path / "another", name="served")


def test_the_certificate_of_a_copy_is_verified_by_its_directory(model: Path, tmp_path: Path, unlearn: Unlearn) -> None:
    export(model, to=tmp_path / "served")
    assert f"{tmp_path / 'served' / 'certificate.json'}: " in unlearn("verify", tmp_path / "served").stdout


def test_what_became_of_the_files_of_a_copy_is_said(model: Path, tmp_path: Path) -> None:
    export(model, to=tmp_path / "served")
    (copy,) = requests.status(model).copies
    assert copy.trouble() is None
    weights = tmp_path / "served" / "weights.safetensors"
    weights.write_bytes(b"others")
    assert copy.trouble() == f"{weights} holds other weights"
    shutil.rmtree(tmp_path / "served")
    assert copy.trouble() == f"{weights} cannot be read"


def test_a_copy_is_recorded_before_it_is_made(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise StorageError("cannot write: No space left on device")

    monkeypatch.setattr(exports, "_write", full)
    with pytest.raises(StorageError):
        export(model, to=tmp_path / "served", name="served")
    assert outdated(model) == {"served": False}


def test_spoilt_weights_are_not_copied(model: Path, tmp_path: Path) -> None:
    ModelDirectory(model).weights(1).write_bytes(b"others")
    with pytest.raises(UnlearningError, match="was tampered with: it is not the model that the ledger recorded"):
        export(model, to=tmp_path / "served")
    assert requests.status(model).copies == []
    assert not (tmp_path / "served").exists()


def test_where_no_copy_may_go_is_one_sentence(model: Path, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="give --to with a directory for the copy, or --name"):
        export(model)
    for place in (model, model / "served", model.parent):
        with pytest.raises(ParameterError, match="must not be the model directory, lie inside it or contain it"):
            export(model, to=place)
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "photos").touch()
    with pytest.raises(ParameterError, match="contains photos, which is not part of a copy of a model"):
        export(model, to=tmp_path / "served")
    with pytest.raises(ParameterError, match="photos is no directory"):
        export(model, to=tmp_path / "served" / "photos")
    for name in ("", " ", "a\nb", "x" * 501):
        with pytest.raises(ParameterError, match="the name of a copy must have from 1 to 500 printable characters"):
            export(model, name=name)
    with pytest.raises(ParameterError, match=r"no copy is called 'served' \(copies: there are none\)"):
        withdraw(model, "served")
    with pytest.raises(DataError, match="is not a model directory"):
        export(tmp_path / "served", name="served")
    assert requests.status(model).copies == []


def test_the_command_and_status_say_what_is_due(model: Path, tmp_path: Path, unlearn: Unlearn) -> None:
    printed = unlearn("export", model, "--to", tmp_path / "served", "--name", "served").stdout
    assert f"the copy 'served' of version 1 was recorded, and written to {tmp_path / 'served'}\nhead: 2:" in printed
    assert "copy 'served': version 1\n" in unlearn("status", model, "--no-quality").stdout
    unlearn("request", model, "--id", "p3")
    unlearn("apply", model, "--no-quality")
    printed = unlearn("status", model, "--no-quality").stdout
    assert "copy 'served': version 1, which still knows records that were removed since: `unlearn exp" in printed
    assert f"--to {tmp_path / 'served'} --name served` replaces it with version 2; use --withdraw" in printed
    found = json.loads(unlearn("status", model, "--no-quality", "--json").stdout)
    assert [(each["name"], each["outdated"]) for each in found["copies"]] == [("served", True)]
    with pytest.raises(ParameterError, match="--withdraw records that a copy is gone: leave out --to and --name"):
        unlearn("export", model, "--withdraw", "served", "--name", "served")
    assert "of version 1 was recorded as gone" in unlearn("export", model, "--withdraw", "served").stdout
    assert "copy 'served'" not in unlearn("status", model, "--no-quality").stdout
