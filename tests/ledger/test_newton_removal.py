"""A ledger whose removals are certified against an exact refit: by Newton steps, or by reading the data again."""

import itertools
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from typer.testing import CliRunner

from certified_unlearning import certificate
from certified_unlearning.certificate import ResidualCertificate
from certified_unlearning.cli import app
from certified_unlearning.data.tables.declaration import Table
from certified_unlearning.data.tables.table import read_blocks
from certified_unlearning.errors import LedgerError, ParameterError
from certified_unlearning.ledger import load_model, requests
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.initialisation import initialise
from certified_unlearning.ledger.model import method_of, read_secret, read_stored, with_intercept
from certified_unlearning.ledger.verification import verify
from certified_unlearning.mechanisms import refit_plan
from certified_unlearning.mechanisms.newton_removal import NewtonRemoval
from certified_unlearning.mechanisms.refit_plan import RefitPlan
from tests.ledger.conftest import Forks, Original
from tests.ledger.tables import write_table

SIGMA = 0.03
"""Large, for there are few records."""


def make(path: Path, data: Path, **asked: object) -> None:
    table = Table(path=str(data), label="ill", identifier="person")
    usual = {"epsilon": 1.0, "C": 0.1, "mechanism": "newton-removal", "sigma": SIGMA, "records_between_reads": 4}
    initialise(path, table, **(usual | asked))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def made(original: Original, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("newton") / "model"
    make(path, original.data)
    return path


@pytest.fixture
def model(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "model"))


def plan_of(path: Path) -> RefitPlan:
    learner = read_stored(ModelDirectory(path), requests.status(path).state).learner
    assert isinstance(learner, RefitPlan)
    return learner


def secret_weights(path: Path) -> np.ndarray:
    secret = read_secret(ModelDirectory(path), requests.status(path).state.current)
    assert secret is not None
    return secret.arrays["weights"]


def exact_refit(original: Original, path: Path, gone: set[str]) -> np.ndarray:
    """Return the minimiser on the records that are left, by SciPy on rows made anew from the table."""
    stored = read_stored(ModelDirectory(path), requests.status(path).state)
    (block,) = read_blocks(stored.table)
    kept = ~original.table["person"].isin(gone).to_numpy()
    rows = with_intercept(block.features)[kept].astype(float)
    signs, plan = block.labels[kept].astype(float), plan_of(path)

    def value(w: np.ndarray) -> float:
        return float(np.logaddexp(0, -signs * (rows @ w)).sum() / plan.n + plan.strong_convexity / 2 * w @ w)

    def gradient(w: np.ndarray) -> np.ndarray:
        return rows.T @ (-signs / (1 + np.exp(signs * (rows @ w)))) / plan.n + plan.strong_convexity * w

    return minimize(value, np.zeros(rows.shape[1]), jac=gradient, method="BFGS", options={"gtol": 1e-11}).x


def test_learned_weights_are_the_minimiser_with_noise_of_the_declared_size(original: Original, model: Path) -> None:
    plan = plan_of(model)
    assert np.linalg.norm(secret_weights(model) - exact_refit(original, model, set())) < 1e-6
    noise = load_model(model).weights.ravel() - secret_weights(model)
    # 4 numbers: their norm is 0 or above 7 sigma with probability below 1e-9.
    assert 0 < np.linalg.norm(noise) < 7 * plan.sigma


def test_every_version_has_noise_of_its_own(model: Path) -> None:
    """Equal noise would cancel in the difference of two versions, which would show the removed records."""
    noise = [load_model(model).weights.ravel() - secret_weights(model)]
    for person in ("p3", "p4"):
        requests.request(model, [person])
        apply(model)
        noise.append(load_model(model).weights.ravel() - secret_weights(model))
    apart = [np.abs(one - other).min() for one, other in itertools.combinations(noise, 2)]
    # Of 12 differences of normal numbers none is that small but with probability below 1e-7.
    assert min(apart) > 1e-8 * SIGMA


def test_a_pass_corrects_a_version_and_is_no_reading(
    original: Original, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where learning anew is dear: versions say so, readings by counts go on, and what was bounded is stored."""
    model = tmp_path / "model"
    with monkeypatch.context() as patched:
        patched.setattr(refit_plan, "DEAR", 1.0)
        make(model, original.data, sigma=0.003, records_between_reads=9)
    plan, gone, readings = plan_of(model), set(), []
    assert plan.by_passes
    for person in ("p3", "p4", "p5", "p6", "p7", "p8", "p9"):
        requests.request(model, [person])
        (version,) = apply(model).versions
        gone.add(person)
        readings.append(version.reading)
        distance = np.linalg.norm(secret_weights(model) - exact_refit(original, model, gone))
        assert distance <= plan.budget / plan.strong_convexity + 1e-8
    assert readings.count("scheduled") == 1
    assert readings.count("pass") >= 2
    stated = verify(model).current
    assert isinstance(stated, ResidualCertificate)
    assert (stated.passes, stated.scheduled_reads) == (readings.count("pass"), 1)
    status = CliRunner().invoke(app, ["status", str(model)])
    assert "a step, corrected by passes over the rows" in status.output
    secret = read_secret(ModelDirectory(model), requests.status(model).state.current)
    assert secret is not None
    assert secret.header["left"].keys() == {"residual", "dual", "displacement", "change", "records", "moved"}


def test_requests_stay_within_the_budget_of_an_exact_refit(original: Original, model: Path) -> None:
    plan, gone, readings = plan_of(model), set(), []
    for person in ("p3", "p4", "p5", "p6", "p7"):
        requests.request(model, [person])
        (version,) = apply(model).versions
        gone.add(person)
        readings.append(version.reading)
        distance = np.linalg.norm(secret_weights(model) - exact_refit(original, model, gone))
        assert distance <= plan.budget / plan.strong_convexity + 1e-8
    # 2, 1, 2, 1 and 2 records; data are read for the request with which more than 4 are gone.
    assert readings == ["none", "none", "scheduled", "none", "none"]
    verified = verify(model)
    assert isinstance(verified.current, ResidualCertificate)
    assert (verified.current.removed, verified.current.releases) == (8, 6)
    assert (verified.current.scheduled_reads, verified.current.unscheduled_reads) == (1, 0)
    assert verified.current.epsilon <= 1
    certificate.verify(verified.current)


def test_a_request_between_reads_reads_its_own_rows_only(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_reading(*_: object) -> None:
        pytest.fail("the data were read")

    monkeypatch.setattr(NewtonRemoval, "fit", no_reading)
    requests.request(model, ["p3"])
    (version,) = apply(model).versions
    assert version.reading == "none"


def test_only_the_current_secret_stays(model: Path) -> None:
    directory = ModelDirectory(model)
    before = directory.secret(1).read_bytes()
    requests.request(model, ["p3"])
    apply(model)
    assert not directory.secret(1).exists()
    assert directory.secret(2).read_bytes() != before
    assert verify(model).strangers == ()


def test_the_published_file_and_the_certificate_hold_nothing_secret(model: Path) -> None:
    directory = ModelDirectory(model)
    secret = secret_weights(model)
    published = directory.weights(1).read_bytes()
    assert secret.tobytes() not in published
    assert directory.secret(1).stat().st_size > len(published)
    stated = json.loads(directory.certificate(1).read_text())
    residual = read_secret(directory, requests.status(model).state.current)
    assert residual is not None
    assert repr(residual.header["residual"]) not in json.dumps(stated)


def test_a_secret_that_was_edited_is_refused(model: Path) -> None:
    path = ModelDirectory(model).secret(1)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    requests.request(model, ["p3"])
    for command in (verify, apply):
        with pytest.raises(LedgerError, match="is not the secret state that the ledger recorded"):
            command(model)


def test_an_interrupted_apply_reads_the_data_for_what_it_lost(
    original: Original, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    requests.request(model, ["p3"])
    with monkeypatch.context() as patch:
        patch.setattr(NewtonRemoval, "remove", interrupted)
        with pytest.raises(KeyboardInterrupt):
            apply(model)
    (version,) = apply(model).versions
    assert version.reading == "unscheduled"
    plan = plan_of(model)
    distance = np.linalg.norm(secret_weights(model) - exact_refit(original, model, {"p3"}))
    assert distance <= plan.budget / plan.strong_convexity + 1e-8
    current = verify(model).current
    assert isinstance(current, ResidualCertificate)
    assert current.unscheduled_reads == 1


@pytest.mark.sampled
@pytest.mark.parametrize("accident", ["kill_at", "fail_at"])
def test_apply_that_is_killed_or_finds_the_disk_full_at_any_of_its_changes_is_finished_once(
    original: Original, model: Path, tmp_path: Path, fork: Forks, accident: str
) -> None:
    requests.request(model, ["p3"])
    plan, right = plan_of(model), exact_refit(original, model, {"p3"})
    accidents = 0
    while True:
        copy = Path(shutil.copytree(model, tmp_path / f"{accident}-{accidents + 1}"))
        if fork("apply", copy, **{accident: accidents + 1}) == 0:
            break
        accidents += 1
        assert fork("apply", copy) == 0
        assert verify(copy).state.records_removed == 2
        distance = np.linalg.norm(secret_weights(copy) - right)
        assert distance <= plan.budget / plan.strong_convexity + 1e-8
        shutil.rmtree(copy)
    assert accidents > 40


def test_three_classes_are_refitted(original: Original, tmp_path: Path) -> None:
    table = original.table.copy()
    table.loc[table.index[::3], "ill"] = "perhaps"
    table.to_csv(tmp_path / "three.csv", index=False)
    make(tmp_path / "model", tmp_path / "three.csv", records_between_reads=None)
    requests.request(tmp_path / "model", ["p3"])
    (version,) = apply(tmp_path / "model").versions
    assert version.reading == "scheduled"
    current = verify(tmp_path / "model").current
    assert isinstance(current, ResidualCertificate)
    assert current.mechanism == "certified-refit"


@pytest.mark.parametrize("classes", [2, 3])
def test_a_reading_leaves_the_secret_that_learning_from_the_remaining_records_gives(
    original: Original, tmp_path: Path, classes: int
) -> None:
    table, path = original.table.copy(), tmp_path / "model"
    if classes == 3:
        table.loc[table.index[::3], "ill"] = "perhaps"
    table.to_csv(tmp_path / "table.csv", index=False)
    make(path, tmp_path / "table.csv")
    for person in ("p3", "p4", "p5"):
        requests.request(path, [person])
        (version,) = apply(path).versions
    assert version.reading == "scheduled"
    directory, state = ModelDirectory(path), requests.status(path).state
    left, anew = read_secret(directory, state.current), method_of(directory, read_stored(directory, state))
    learned = anew.learn(torch.device("cpu")).secret
    assert left is not None
    assert learned is not None
    assert left.header == learned.header
    assert left.arrays.keys() == learned.arrays.keys()
    for name, array in left.arrays.items():
        assert (array == learned.arrays[name]).all(), name


@pytest.mark.parametrize(
    ("asked", "name"),
    [({"steps": 5}, "steps"), ({"batch_size": 60}, "batch_size"), ({"accountant": "lsi"}, "accountant")],
)
def test_what_means_nothing_is_refused(original: Original, tmp_path: Path, asked: dict[str, object], name: str) -> None:
    with pytest.raises(ParameterError, match=f"`{name}` does not apply to newton-removal"):
        make(tmp_path / "model", original.data, **asked)
    with pytest.raises(ParameterError, match="`records_between_reads` does not apply to langevin"):
        make(tmp_path / "model", original.data, mechanism="langevin")
    assert not (tmp_path / "model").exists()


def test_the_command_line_says_against_what(tmp_path: Path) -> None:
    write_table(tmp_path / "people.csv")
    run, model = CliRunner().invoke, str(tmp_path / "model")
    asked = [
        "--data",
        str(tmp_path / "people.csv"),
        "--label",
        "ill",
        "--id",
        "person",
        "--C",
        "0.1",
        "--sigma",
        "0.03",
    ]
    said = run(
        app, ["init", model, "--epsilon", "1", *asked, "--mechanism", "newton-removal", "--records-between-reads", "9"]
    )
    assert said.exit_code == 0, said.output
    assert "data are read again after 9 removed records at the latest" in said.output
    run(app, ["request", model, "--id", "p3"])
    said = run(app, ["apply", model])
    assert "removed 2 records of 1 person by a Newton step" in said.output
    assert "against an exact refit with the same noise, for requests fixed in advance: epsilon = " in said.output
    assert "No guarantee for the remaining records" in said.output
    assert run(app, ["verify", model]).exit_code == 0
    assert "by a Newton step" in run(app, ["status", model]).output
