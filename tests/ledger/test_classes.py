"""Where a model's list of classes comes from: read off the records only where no class is rare, and then said."""

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from certified_unlearning import certificate
from certified_unlearning.data.tables.declaration import Table
from certified_unlearning.errors import DataError
from certified_unlearning.ledger import initialisation, requests
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.model import StoredModel, method_of, read_stored
from certified_unlearning.ledger.verification import verify
from tests.ledger.conftest import Original, Unlearn

FROM_RECORDS = "declared, classes from the records"
MECHANISMS: dict[str, dict[str, Any]] = {
    "langevin": {"epsilon": 1.0, "delta": "1/n", "C": 0.1, "steps": 5},
    "newton-removal": {"epsilon": 1.0, "C": 0.1},
    "noisy-sgd": {"steps": 20, "sigma": 0.02},
    "certified-ensemble": {"budgets": (1, 2)},
    "federated-averaging": {"recompute": 0.9},
}


def write_labels(path: Path, labels: Sequence[object]) -> Path:
    draw = np.random.default_rng(0)
    columns = {"age": draw.uniform(-1, 1, len(labels)), "label": labels, "person": range(len(labels))}
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


def make(path: Path, data: Path, mechanism: str = "langevin", classes: tuple[str, ...] | None = None) -> None:
    table = Table(path=str(data), label="ill", identifier="person", classes=classes)
    initialisation.initialise(path, table, mechanism=mechanism, **MECHANISMS[mechanism])  # type: ignore[arg-type]


def init(unlearn: Unlearn, model: Path, data: Path, *flags: str) -> None:
    asked = ("--data", data, "--label", "label", "--id", "person", "--epsilon", 1, "--C", 0.1, "--no-quality", *flags)
    assert unlearn("init", model, *asked).exit_code == 0


RARE = {
    "one": (["neg"] * 150 + ["HIV-positive"] + ["pos"] * 149, "the class 'HIV-positive' (1 record) of the label", True),
    "nine": (["a"] * 150 + ["b"] * 9, "the class 'b' (9 records) of the label", False),
    "two": (["-1"] * 50 + ["it's"] * 3 + ["1"] * 20 + ["x y"], "classes 'x y' (1 record), \"it's\" (3 records)", False),
    "case": (["yes"] * 299 + ["Yes"] + ["no"] * 50, "'Yes' (1 record, probably a misspelling of 'yes')", True),
    "blank": (["New York"] * 99 + ["New  york"] + ["Oslo"] * 50, "probably a misspelling of 'New York'", True),
}


@pytest.mark.parametrize(("labels", "named", "of_one"), RARE.values(), ids=RARE.keys())
def test_classes_with_few_records_are_not_read_off_the_data(
    tmp_path: Path, unlearn: Unlearn, labels: list[str], named: str, of_one: bool
) -> None:
    data, model = write_labels(tmp_path / "people.csv", labels), tmp_path / "model"
    with pytest.raises(DataError) as caught:
        init(unlearn, model, data)
    said = str(caught.value)
    assert "\n" not in said
    assert named in said
    leaves = "this person is" if of_one else "these people are"
    assert f" even after {leaves} removed, and would reveal that such records existed" in said
    assert ("correct the misspelling" in said) == ("misspelling of" in said)
    assert not [path for path in tmp_path.iterdir() if path != data]
    # What the message says to add makes the model that was asked for.
    flags = shlex.split(said.partition("without these records: ")[2].partition(" (in a YAML file")[0])
    assert flags[::2] == ["--class"] * len(set(labels))
    init(unlearn, model, data, *flags)
    line = re.findall(r"in a YAML file: (classes: .*)\)$", said)[0]
    (tmp_path / "table.yaml").write_text(f"path: people.csv\nlabel: label\nidentifier: person\n{line}\n")
    unlearn("init", tmp_path / "by-file", "--table", tmp_path / "table.yaml", "--epsilon", 1, "--C", 0.1)
    for made in (model, tmp_path / "by-file"):
        stored = read_stored(ModelDirectory(made), requests.status(made).state)
        assert stored.classes_from == "declaration"
        assert stored.table.classes == tuple(flags[1::2]) == tuple(yaml.safe_load(line)["classes"])


def test_ten_records_of_a_class_are_enough(tmp_path: Path, unlearn: Unlearn) -> None:
    init(unlearn, tmp_path / "model", write_labels(tmp_path / "people.csv", ["a"] * 150 + ["b"] * 10))


def test_a_missing_label_is_no_class(tmp_path: Path, unlearn: Unlearn) -> None:
    data = write_labels(tmp_path / "people.csv", ["a"] * 150 + [None] + ["b"] * 10)
    with pytest.raises(DataError, match="label: missing in row 151: leave out such rows"):
        init(unlearn, tmp_path / "model", data)


def test_a_list_of_very_many_rare_classes_is_cut(tmp_path: Path, unlearn: Unlearn) -> None:
    data = write_labels(tmp_path / "people.csv", [f"c{number % 100}" for number in range(150)])
    with pytest.raises(DataError, match=r"'c61' \(1 record\) and 88 more of the label label, ") as caught:
        init(unlearn, tmp_path / "model", data)
    assert str(caught.value).count("--class") == 100


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_certificate_says_that_classes_were_taken_from_the_records(
    original: Original, tmp_path: Path, unlearn: Unlearn, mechanism: str
) -> None:
    for classes, origin, features in ((None, "records", FROM_RECORDS), (("no", "yes"), "declaration", "declared")):
        model = tmp_path / origin
        make(model, original.data, mechanism, classes)
        requests.request(model, ["p3"])
        apply(model)
        verify(model)
        for version in (1, 2):
            certified = certificate.read_any(model / f"certificate-{version}.json")
            certificate.verify(certified)
            assert certified.features == features
            words = [each.by for each in certified.assumptions if each.statement.startswith("preprocessing")]
            assert len(words) == 1
            shown = "does not change after a removal, and may show that a removed record existed" in words[0]
            assert shown == (origin == "records")
            assert ("classes, categories and ranges were chosen independently" in words[0]) == (origin == "declaration")
        for command in ("status", "verify"):
            assert json.loads(unlearn(command, model, "--json").stdout)["classes_from"] == origin
            said = "classes: taken from the records; " if origin == "records" else "classes: declared\n"
            assert said in unlearn(command, model).stdout


def test_of_an_earlier_directory_it_is_not_known(
    original: Original, tmp_path: Path, unlearn: Unlearn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def earlier(**stored: Any) -> StoredModel:
        return StoredModel(**{name: value for name, value in stored.items() if name != "classes_from"})

    model = tmp_path / "model"
    with monkeypatch.context() as patched:
        patched.setattr(initialisation, "StoredModel", earlier)
        make(model, original.data)
    assert "classes_from" not in (model / "model.json").read_text()
    requests.request(model, ["p3"])
    apply(model)
    for command in ("status", "verify"):
        assert json.loads(unlearn(command, model, "--json").stdout)["classes_from"] is None
        assert "did not record which" in unlearn(command, model).stdout
    assert certificate.read_any(model / "certificate-2.json").features == "declared"


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_certificate_that_hides_where_classes_come_from_is_not_the_models(
    original: Original, tmp_path: Path, mechanism: str
) -> None:
    model, hiding = tmp_path / "model", tmp_path / "hiding"
    make(model, original.data, mechanism)
    make(hiding, original.data, mechanism, ("no", "yes"))
    directory = ModelDirectory(model)
    method = method_of(directory, read_stored(directory, requests.status(model).state))
    assert method.is_of(certificate.read_any(model / "certificate-1.json"), [])
    assert not method.is_of(certificate.read_any(hiding / "certificate-1.json"), [])
