"""`unlearn audit`: the model's own mechanism on a scratch copy, which is gone afterwards; the model is as it was.

Honest models are called violated with probability `RARE` at most, each time.
"""

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from certified_unlearning.audit.directories import DirectoryMethod, audit_directory
from certified_unlearning.audit.scratch import scratch_beside
from certified_unlearning.cli import app
from certified_unlearning.data.tables.table import Table
from certified_unlearning.errors import AssumptionError, DataError, Interrupted, ParameterError, StorageError
from certified_unlearning.ledger import requests
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.initialisation import initialise
from certified_unlearning.ledger.methods.exact_refit import ExactRefit
from certified_unlearning.ledger.verification import verify

FEATURES = 60
RECORDS = 600
RARE = 1e-6
ASKED: dict[str, dict[str, Any]] = {
    "newton-removal": {"epsilon": 1.0, "C": 1.0},
    "langevin": {"epsilon": 1.0, "C": 0.25, "steps": 700, "records": 10, "batch_size": None},
    "mini-batches": {"mechanism": "langevin", "epsilon": 1.0, "C": 0.25, "batch_size": 50},
    "weighted": {"mechanism": "newton-removal", "epsilon": 1.0, "C": 1.0, "class_weight": {"k0": 1.0, "k1": 3.0}},
    "noisy-sgd": {"steps": 20},
}


NUMBERS: dict[str, dict[str, Any]] = {
    "newton-removal": {"epsilon": 1.0, "C": 1.0},
    "langevin": {"epsilon": 1.0, "C": 0.1, "steps": 3000, "records": 25},
    "without intercept": {"mechanism": "newton-removal", "epsilon": 1.0, "C": 1.0, "intercept": False},
}


def make(path: Path, classes: int = 2, class_weight: Any = None, **asked: Any) -> Path:
    """Make a model of a table with many columns, for few records are hidden by few columns; of numbers for 1 class."""
    draw = np.random.default_rng(0)
    table = pd.DataFrame(draw.uniform(-1, 1, (RECORDS, FEATURES)), columns=[f"c{each}" for each in range(FEATURES)])
    amounts = 500 + 200 * table["c0"] + 100 * table["c1"]
    table["kind"] = (
        amounts
        if classes == 1
        else [f"k{each}" for each in np.digitize(table["c0"], np.linspace(-1, 1, classes + 1)[1:-1])]
    )
    table["person"] = [f"p{each}" for each in range(RECORDS)]
    data = path.with_suffix(".csv")
    table.to_csv(data, index=False)
    said: dict[str, Any] = {"classes": [f"k{each}" for each in range(classes)], "class_weight": class_weight}
    if classes == 1:
        said = {"target_range": (0.0, 1000.0)}
    columns = Table(path=str(data), label="kind", identifier="person", **said)
    initialise(path, columns, **asked)
    return path


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(
        tmp_path_factory.mktemp("numbers") / "model", 1, mechanism="newton-removal", **NUMBERS["newton-removal"]
    )


@pytest.fixture(scope="module", params=["classes", "numbers"])
def either(request: pytest.FixtureRequest) -> Path:
    return request.getfixturevalue("newton" if request.param == "classes" else "numbers")


@pytest.fixture(scope="module")
def newton(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("audited") / "model", mechanism="newton-removal", **ASKED["newton-removal"])


def contents(path: Path) -> dict[str, bytes]:
    return {str(each.relative_to(path)): each.read_bytes() for each in sorted(path.rglob("*")) if each.is_file()}


def copies(path: Path) -> list[Path]:
    """Return scratch copies of a model."""
    return [each for each in path.parent.iterdir() if "audit-" in each.name]


def test_a_model_is_audited_on_a_copy_and_stays_as_it_is(either: Path) -> None:
    before = contents(either)
    found = audit_directory(either, canaries=50, request_size=10, alpha=RARE)
    assert found.verdict == "nothing found"
    assert (found.certified, found.method) == (True, "newton-removal")
    assert found.claim.epsilon == pytest.approx(1.0)
    assert contents(either) == before
    assert copies(either) == []


@pytest.mark.parametrize("name", ASKED)
def test_every_mechanism_of_the_ledger_that_publishes_weights_can_be_audited(name: str, tmp_path: Path) -> None:
    path = make(tmp_path / "model", **({"mechanism": name} | ASKED[name]))
    found = audit_directory(path, canaries=50, request_size=5, alpha=RARE)
    assert found.verdict in ("nothing found", "no power")
    assert found.claim.epsilon <= 1
    if name in ("langevin", "weighted"):
        assert found.verdict == "nothing found"


@pytest.mark.parametrize("name", ["langevin", "without intercept"])
def test_models_that_predict_numbers_are_audited_whatever_their_mechanism(name: str, tmp_path: Path) -> None:
    path = make(tmp_path / "model", 1, **({"mechanism": name} | NUMBERS[name]))
    found = audit_directory(path, canaries=50, request_size=25, alpha=RARE)
    assert found.claim.epsilon <= 1
    assert found.verdict == "nothing found"


@pytest.mark.statistical
def test_honest_models_that_predict_numbers_are_rarely_called_violated(numbers: Path) -> None:
    """At most three of forty audits: more have probability 9e-8."""
    verdicts = [audit_directory(numbers, canaries=50, request_size=25).verdict for _ in range(40)]
    assert verdicts.count("violated") <= 3
    assert verdicts.count("nothing found") >= 37


def test_canaries_of_numbers_have_either_end_of_the_declared_range(
    numbers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    learn = DirectoryMethod.learn

    def learns(self: DirectoryMethod, X: Any, y: Any) -> Any:
        seen.append((self.target_range, y[-25:], np.linalg.norm(X[-25:], axis=1)))
        return learn(self, X, y)

    monkeypatch.setattr(DirectoryMethod, "learn", learns)
    audit_directory(numbers, canaries=50, request_size=25)
    ((target_range, targets, lengths),) = seen
    assert target_range == (-1.0, 1.0)
    assert set(targets) == {-1.0, 1.0}
    assert lengths.max() <= 1 + 1e-9


def test_models_of_several_classes_and_those_that_removed_before_are_audited(tmp_path: Path) -> None:
    path = make(tmp_path / "model", classes=3, mechanism="newton-removal", epsilon=1.0, C=1.0)
    requests.request(path, [f"p{each}" for each in range(40)])
    apply(path)
    found = audit_directory(path, canaries=20, request_size=10, alpha=RARE)
    assert found.verdict in ("nothing found", "no power")
    verify(path)
    with pytest.raises(ParameterError, match=r"half of the .* canaries must be removed"):
        audit_directory(path, canaries=20, removed=5)


def test_a_removal_that_was_left_out_is_called_violated_with_exit_status_3(
    either: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: the old version is published again."""

    def keeps(self: ExactRefit, weights: Any, secret: Any, *_: Any) -> Any:
        return self.learned._replace(reading="none")

    learn = ExactRefit.learn

    def learns(self: ExactRefit, device: Any) -> Any:
        self.learned = learn(self, device)
        return self.learned

    monkeypatch.setattr(ExactRefit, "remove", keeps)
    monkeypatch.setattr(ExactRefit, "learn", learns)
    done = CliRunner().invoke(app, ["audit", str(either), "--request-size", "25"])
    assert done.exit_code == 3, done.output
    assert "violated" in done.output
    last = done.output.strip().splitlines()[-1]
    assert last.startswith("certified at most 1.00; measured at least ")
    assert "before unlearning the same attack showed at least" in last


def test_the_command_prints_one_json_object(newton: Path) -> None:
    done = CliRunner().invoke(app, ["audit", str(newton), "--canaries", "20", "--request-size", "10", "--json"])
    found = json.loads(done.output)
    assert done.exit_code == (3 if found["verdict"] == "violated" else 0), done.output
    assert found["right_before"][0] >= 9
    assert found["claim"]["epsilon"] == pytest.approx(1.0)
    assert found["model"] == str(newton)


def test_an_interruption_deletes_the_copy(either: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def interrupted(self: DirectoryMethod, *_: Any) -> None:
        seen.append(self.scratch)
        assert self.scratch.stat().st_mode & 0o077 == 0
        raise Interrupted

    monkeypatch.setattr(DirectoryMethod, "unlearn", interrupted)
    with pytest.raises(Interrupted):
        audit_directory(either, canaries=20)
    assert seen
    assert copies(either) == []


def test_the_copy_of_a_killed_audit_is_deleted_by_the_next_one_and_that_of_a_running_one_is_not(either: Path) -> None:
    before = contents(either)
    child = os.fork()
    if child == 0:
        with scratch_beside(either) as scratch:
            (scratch / "records").write_text("of somebody")
            os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    (abandoned,) = copies(either)
    assert (abandoned / "records").exists()
    with scratch_beside(either) as running:
        assert copies(either) == [running]
        audit_directory(either, canaries=20, request_size=10)
        assert copies(either) == [running]
    assert copies(either) == []
    assert contents(either) == before


def test_what_cannot_be_audited_is_refused_before_anything_is_written(newton: Path, tmp_path: Path) -> None:
    answers = make(tmp_path / "answers", mechanism="certified-ensemble")
    with pytest.raises(AssumptionError, match="certifies answers"):
        audit_directory(answers)
    with pytest.raises(DataError, match="lock is missing"):
        audit_directory(tmp_path)
    with pytest.raises(
        DataError, match=r"answers\.csv is not a model directory \(it is a file\); `unlearn init` makes one"
    ):
        audit_directory(tmp_path / "answers.csv")
    with pytest.raises(
        DataError, match=r"none is not a model directory \(nothing is there\); `unlearn init` makes one"
    ):
        audit_directory(tmp_path / "none")
    with pytest.raises(DataError, match="too few for 500 canaries"):
        audit_directory(newton, canaries=1000)
    with pytest.raises(ParameterError, match="canaries"):
        audit_directory(newton, canaries=1)


def test_too_small_a_disk_is_said_before_anything_begins(newton: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1000}))
    with pytest.raises(StorageError, match="GB left"):
        audit_directory(newton, canaries=20)
