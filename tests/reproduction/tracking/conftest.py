"""Result directories as the pipeline writes them, with drawn accuracies, and fresh SQLite stores."""

import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from certified_unlearning import certificate
from certified_unlearning.mechanisms.run import ExperimentPlan, Run
from certified_unlearning.mechanisms.settings import Settings
from certified_unlearning.papers.langevin_unlearning.paper import PAPER
from certified_unlearning.reproduction.layout import Layout, certificate_file
from certified_unlearning.reproduction.tables import Tables
from certified_unlearning.reproduction.tracking import FigureView, StoreStatus, prepare_store
from certified_unlearning.reproduction.tracking.store import why_unreachable
from tests.support.planning import experiment_called, make
from tests.support.rating import MAJORITY, rated
from tests.support.waiting import PATIENCE

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"  # before any test loads MLflow

TRIALS = 5
DATA = {
    "n": 1437, "d": 64, "classes": {"train": {"-1": 700, "+1": 737}}, "features": "pixels", "sha256": "5eed" * 16,
    "largest_eigenvalue": 0.2,
}  # fmt: skip
SWEEPS: dict[str, dict[str, Any]] = {
    "fig3a": {"accountants": ["lsi", "shifted"], "epsilon": [0.5, 1.0], "unlearning_steps": 1, "descent_steps": [1, 5]},
    "fig3b": {"accountants": ["lsi"], "epsilon": 1.0, "sigma": 0.1, "records": 10, "records_per_request": [5]},
    "fig3c": {"accountants": ["lsi"], "epsilon": 1.0, "sigma": [0.1, 0.5], "records": 10},
    "fig4": {"accountants": ["lsi"], "epsilon": [1.0, 5.0], "sigma": 0.1, "records": [1, 10]},
}


def write_results(results: Path, preset: str, experiment: str, sweep: dict[str, Any]) -> ExperimentPlan:
    """Write an experiment's plan, rows, curves, certificates and figures through the project's writers."""
    settings = Settings(
        dataset="digits", features=None, trials=TRIALS, seed=123, regularisation=2.0e-5, delta="1/n",
        adjacency="replace", smoothness="bound", step_size="1/L", radius=None, start=1000.0, learning_steps="learned",
        minimum_steps=0, dtype="float32", device="cpu", accountants=sweep["accountants"],
    )  # fmt: skip
    swept = {name: value for name, value in sweep.items() if name != "accountants"}
    plan = make(experiment, settings, experiment_called(experiment).sweep(**swept), DATA, preset_name=preset)
    layout = Layout(results, preset)
    plan.write(layout.plan(PAPER.name, experiment))
    for mechanism in dict.fromkeys(run.mechanism for run in plan.runs):
        write_rows(layout, plan, plan.of(mechanism))
    for run in (*plan.of("langevin"), *plan.of("descent-to-delete")):
        certified = certificate.of(run, key=plan.key(run), noise_source="seed")
        certificate.write(certified, layout.certificates(PAPER.name, experiment) / certificate_file(run))
    for ending in ("png", "pdf"):
        path = layout.figure(PAPER.name, experiment, ending)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(f"{experiment} as {ending}".encode())
    return plan


def write_rows(layout: Layout, plan: ExperimentPlan, runs: tuple[Run, ...], draw: int = 0) -> None:
    """Write the rows and curves of one mechanism's runs; another ``draw`` is another outcome."""
    tables = Tables(plan, "cpu", MAJORITY)
    for run in runs:
        if run.mechanism == "scikit-learn":  # One accuracy for all trials, and no curve.
            own = np.random.default_rng([draw, int(plan.key(run)[:8], 16)])
            tables.add_models([run], [rated(own.normal(0.9, 0.01, 1)) for _ in run.requests], seconds=1.5)
            continue
        random = np.random.default_rng([draw, int(plan.key(run)[:8], 16)])
        accuracies = [random.normal(0.9, 0.01, TRIALS) for _ in run.requests]
        tables.add_models([run], [rated(each) for each in accuracies], seconds=1.5)
        learned = random.normal(0.9, 0.01, TRIALS)
        tables.add_curve(run, "learning", {1: learned - 0.3, run.learning_steps: learned})
        # Where a request takes no step, this point has the same step as the one before it.
        step = run.learning_steps + sum(request.unlearning_steps for request in run.requests)
        tables.add_curve(run, "unlearning", {step: accuracies[-1]})
    whose = (PAPER.name, runs[0].experiment, runs[0].mechanism)
    tables.write(layout.run_rows(*whose), layout.curves(*whose))


class Store:
    """A prepared SQLite store and what is in it."""

    def __init__(self, root: Path) -> None:
        self.path = root / "mlflow.db"
        self.uri = f"sqlite:///{self.path}"
        self.artifacts = root / "mlartifacts"

    def prepare(self, preset: str = "smoke", figures: Sequence[FigureView] = ()) -> StoreStatus:
        return prepare_store(preset, figures, uri=self.uri)

    def runs(self, status: StoreStatus, filter_string: str = "") -> list[Any]:
        from mlflow import MlflowClient

        return list(MlflowClient(self.uri).search_runs([status.experiment_id], filter_string, max_results=1000))

    def rows(self) -> dict[str, int]:
        """The number of rows of every table that tracking writes to."""
        tables = ("runs", "metrics", "latest_metrics", "params", "tags", "inputs", "input_tags", "datasets")
        return {table: self._query(f"select count(*) from {table}")[0][0] for table in tables}

    def contents(self, status: StoreStatus) -> dict[str, Any]:
        """All that active runs say, by key: name, state, constants, tags, every logged number, artifacts."""
        contents = {}
        for run in self.runs(status):
            tags = {name: value for name, value in run.data.tags.items() if name != "mlflow.parentRunId"}
            numbers = self._query(f"select key, step, value from metrics where run_uuid = '{run.info.run_id}'")
            artifacts = self.artifacts / run.info.artifact_uri.removeprefix("mlflow-artifacts:/")
            key = tags["certified_unlearning.run_key"]
            assert key not in contents, "two active runs have the same key"
            contents[key] = {
                "name": run.info.run_name,
                "status": run.info.status,
                "params": run.data.params,
                "tags": tags,
                "numbers": sorted(numbers),
                "files": {path.name: path.read_bytes() for path in artifacts.glob("*")},
                "datasets": [(each.dataset.name, each.dataset.digest) for each in run.inputs.dataset_inputs],
            }
        return contents

    def _query(self, statement: str) -> list[Any]:
        with closing(sqlite3.connect(self.path)) as connection:
            return connection.execute(statement).fetchall()

    @contextmanager
    def server(self) -> Iterator[str]:
        """Serve the store on this machine."""
        with closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        command = [
            sys.executable, "-m", "mlflow", "server", "--backend-store-uri", self.uri, "--workers", "1",
            "--artifacts-destination", str(self.artifacts), "--host", "127.0.0.1", "--port", port,
        ]  # fmt: skip
        environment = {
            **os.environ,
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # four processes less
        }
        log = self.path.with_name("server.log")
        with log.open("w") as output:
            process = subprocess.Popen(command, env=environment, stdout=output, stderr=output, start_new_session=True)
        try:
            uri = f"http://127.0.0.1:{port}"
            deadline = time.monotonic() + PATIENCE
            while why_unreachable(uri):
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.1)
            yield uri
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(timeout=PATIENCE)


@pytest.fixture(autouse=True)
def no_server_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("store"))
    assert store.prepare("template").reachable
    return store


@pytest.fixture
def store(empty_store: Store, tmp_path: Path) -> Store:
    shutil.copy(empty_store.path, tmp_path / "mlflow.db")
    return Store(tmp_path)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results"


@pytest.fixture
def write_experiment(results: Path) -> Callable[..., ExperimentPlan]:
    def write(experiment: str, preset: str = "smoke", **changes: Any) -> ExperimentPlan:
        return write_results(results, preset, experiment, {**SWEEPS[experiment], **changes})

    return write


@pytest.fixture
def plan(write_experiment: Callable[..., ExperimentPlan]) -> ExperimentPlan:
    return write_experiment("fig3a")


@pytest.fixture
def rewrite_rows(results: Path) -> Callable[..., None]:
    return lambda plan, mechanism, draw: write_rows(Layout(results, plan.preset), plan, plan.of(mechanism), draw)
