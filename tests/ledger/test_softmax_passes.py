"""A ledger of three classes in which requests correct the weights by passes: what it stores, and what survives."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from certified_unlearning import certificate
from certified_unlearning.certificate import ResidualCertificate
from certified_unlearning.cli import app
from certified_unlearning.data.tables.declaration import Table
from certified_unlearning.engine.objectives.float64 import SoftmaxRegression64
from certified_unlearning.errors import LedgerError
from certified_unlearning.ledger import requests
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.initialisation import initialise
from certified_unlearning.ledger.model import method_of, read_secret, read_stored
from certified_unlearning.ledger.verification import verify
from certified_unlearning.mechanisms import refit_plan
from certified_unlearning.mechanisms.certified_refit import objective_of
from certified_unlearning.mechanisms.refit_plan import RefitPlan
from certified_unlearning.mechanisms.refits import softmax
from tests.ledger.conftest import Forks, Original


@pytest.fixture(scope="module")
def made(original: Original, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As where learning anew is dear."""
    path, table = tmp_path_factory.mktemp("softmax"), original.table.copy()
    table.loc[table["weight"] > 0.3, "ill"] = "perhaps"
    table.to_csv(path / "three.csv", index=False)
    declared = Table(path=str(path / "three.csv"), label="ill", identifier="person")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(refit_plan, "DEAR", 1.0)
        initialise(path / "model", declared, epsilon=1.0, C=0.1, sigma=0.003, records_between_reads=9)
    return path / "model"


@pytest.fixture
def model(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "model"))


def opened(path: Path) -> tuple[RefitPlan, SoftmaxRegression64, np.ndarray, dict[str, np.ndarray]]:
    """Return the plan, the loss over what is left, and the current secret: weights, and the arrays beside them."""
    directory, state = ModelDirectory(path), requests.status(path).state
    method, secret = method_of(directory, read_stored(directory, state)), read_secret(directory, state.current)
    assert secret is not None
    plan = method.plan_after([])
    objective = objective_of(plan, *method._training(plan, state.current.version))
    assert isinstance(objective, SoftmaxRegression64)
    arrays = dict(secret.arrays)
    return plan, objective, arrays.pop("weights"), arrays


def distance_times_m(path: Path) -> float:
    """Return how large the gradient over the remaining records is, in double precision."""
    _, objective, weights, _ = opened(path)
    return float(np.linalg.norm(objective.gradient(weights)))


def test_requests_pass_and_a_planned_reading_makes_the_secret_anew(model: Path) -> None:
    plan, _, _, learned = opened(model)
    assert plan.by_passes
    readings = []
    for person in ("p3", "p4", "p5", "p6", "p7", "p8", "p9"):
        requests.request(model, [person])
        (version,) = apply(model).versions
        readings.append(version.reading)
        assert distance_times_m(model) <= plan.budget
        kept = opened(model)[3]
        assert kept.keys() == {"gradient", "factor", "steps", "changes"}
        assert (kept["factor"] == learned["factor"]).all() == ("scheduled" not in readings)
    # 2, 1, 2, 1, 2 and 1 records, and 2 more: data are read for the request with which more than 9 are gone.
    assert readings == ["pass"] * 6 + ["scheduled"]
    stated = verify(model).current
    assert isinstance(stated, ResidualCertificate)
    assert (stated.mechanism, stated.passes, stated.scheduled_reads) == ("certified-refit", 6, 1)
    certificate.verify(stated)
    said = CliRunner().invoke(app, ["status", str(model)])
    assert "by reading the data again, as planned" in said.output
    said = CliRunner().invoke(app, ["show", str(model), "--id", "p9"])
    assert said.exit_code == 0
    directory, state = ModelDirectory(model), requests.status(model).state
    anew = method_of(directory, read_stored(directory, state)).learn(None)  # type: ignore[arg-type]
    left = read_secret(directory, state.current)
    assert left is not None
    assert anew.secret is not None
    for name, array in left.arrays.items():
        assert (array == anew.secret.arrays[name]).all(), f"{name} is no function of the remaining records"


def test_what_is_stored_spares_a_pass(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passes, right = [0], SoftmaxRegression64.gradient

    def counted(objective: SoftmaxRegression64, weights: np.ndarray) -> np.ndarray:
        passes[0] += objective.strong_convexity > 0
        return right(objective, weights)

    monkeypatch.setattr(SoftmaxRegression64, "gradient", counted)
    requests.request(model, ["p3"])
    apply(model)
    assert 1 <= passes[0] <= 4


def test_an_interrupted_request_evaluates_what_it_lost(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    requests.request(model, ["p3"])
    with monkeypatch.context() as patch:
        patch.setattr(softmax, "corrected", interrupted)
        with pytest.raises(KeyboardInterrupt):
            apply(model)
    (version,) = apply(model).versions
    assert version.reading == "pass"
    assert distance_times_m(model) <= opened(model)[0].budget
    assert isinstance(verify(model).current, ResidualCertificate)


@pytest.mark.exhaustive
def test_apply_that_is_killed_at_every_sixth_of_its_changes_is_finished_once(
    model: Path, tmp_path: Path, fork: Forks
) -> None:
    """From a state with steps of an earlier request; where the removed rows are zero by then, they are lost."""
    requests.request(model, ["p3"])
    apply(model)
    requests.request(model, ["p4"])
    budget, kills, readings = opened(model)[0].budget, 0, set()
    while True:
        copy = Path(shutil.copytree(model, tmp_path / f"kill-{kills}"))
        if fork("apply", copy, kill_at=6 * kills + 1) == 0:
            break
        kills += 1
        assert fork("apply", copy) == 0
        verified = verify(copy)
        assert verified.state.records_removed == 3
        assert distance_times_m(copy) <= budget
        readings.add(verified.state.current.reading)
        shutil.rmtree(copy)
    assert kills > 6
    assert readings == {"pass"}


def test_a_secret_that_was_edited_is_refused(model: Path) -> None:
    path = ModelDirectory(model).secret(1)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    requests.request(model, ["p3"])
    with pytest.raises(LedgerError, match="is not the secret state that the ledger recorded"):
        apply(model)


def test_records_are_added_by_learning_anew(made: Path, original: Original, tmp_path: Path) -> None:
    """Of all records that are left, the added ones included, with a guide of their own."""
    from certified_unlearning.ledger.adding.addition import add
    from tests.ledger.tables import write_new

    declared = Table(
        path=str(made.parent / "three.csv"), label="ill", identifier="person", classes=("no", "perhaps", "yes")
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(refit_plan, "DEAR", 1.0)
        initialise(tmp_path / "model", declared, epsilon=1.0, C=0.1, sigma=0.003, records_between_reads=9)
    write_new(tmp_path / "new.csv")
    add(tmp_path / "model", tmp_path / "new.csv")
    requests.request(tmp_path / "model", ["p3"])
    (version,) = apply(tmp_path / "model").versions
    assert version.reading == "pass"
    stated = verify(tmp_path / "model").current
    assert isinstance(stated, ResidualCertificate)
    assert (stated.additions, stated.passes) == (1, 1)
    certificate.verify(stated)


def test_init_says_what_requests_do(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refit_plan, "DEAR", 1.0)
    data = ["--data", str(made.parent / "three.csv"), "--label", "ill", "--id", "person"]
    said = CliRunner().invoke(app, ["init", str(tmp_path / "model"), *data, "--epsilon", "1", "--C", "0.1"])
    assert said.exit_code == 0, said.output
    assert "every request passes over the rows, and the model is learned anew after" in " ".join(said.output.split())
