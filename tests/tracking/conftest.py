"""Result directories as the pipeline writes them, with drawn accuracies, and fresh SQLite stores."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from certified_unlearning import certificate, parameters
from certified_unlearning.experiments.model import Plan, Run
from certified_unlearning.experiments.plan import make_plan
from certified_unlearning.experiments.tables import Tables
from certified_unlearning.tracking import StoreStatus, prepare_store

TRIALS = 5
DATA = {"n": 1437, "d": 64, "features": "pixels", "sha256": "5eed" * 16, "largest_eigenvalue": 0.2}
SWEEPS: dict[str, dict[str, Any]] = {
    "fig3a": {"epsilon": [0.5, 1.0], "unlearning_steps": 1, "descent_steps": [1, 5]},
    "fig3b": {"epsilon": 1.0, "sigma": 0.1, "records": 10, "records_per_request": [5]},
    "fig3c": {"epsilon": 1.0, "sigma": [0.1, 0.5], "records": 10},
    "fig4": {"epsilon": [1.0, 5.0], "sigma": 0.1, "records": [1, 10]},
}


def write_results(results: Path, preset: str, experiment: str, seed: int = 0) -> Plan:
    """Write an experiment's plan, records, curves, certificates and figures through the project's writers."""
    settings = parameters.Common(
        dataset="digits", trials=TRIALS, seed=seed, regularisation=2.0e-5, delta="1/n", adjacency="replace",
        smoothness="bound", step_size="1/L", radius=None, start=1000.0, learning_steps="learned",
        stationarity=1.0e-8, dtype="float32", device="cpu",
    )  # fmt: skip
    sweep = parameters.Experiments.model_fields[experiment].annotation(**SWEEPS[experiment])
    plan = make_plan(preset, settings, experiment, sweep, DATA)
    directory = results / preset
    plan.write(directory / "plans" / f"{experiment}.json")
    for mechanism in dict.fromkeys(run.mechanism for run in plan.runs):
        write_records(directory, plan, plan.of(mechanism))
    for run in (*plan.of("langevin"), *plan.of("descent-to-delete")):
        certified = certificate.certify(plan, run)
        certificate.write(certified, directory / "certificates" / experiment / f"{certified.run_key}.json")
    (directory / "figures").mkdir(exist_ok=True)
    for ending in ("png", "pdf"):
        (directory / "figures" / f"{experiment}.{ending}").write_bytes(f"{experiment} as {ending}".encode())
    return plan


def write_records(directory: Path, plan: Plan, runs: tuple[Run, ...], draw: int = 0) -> None:
    """Write the records and curves of one mechanism's runs; another ``draw`` is another outcome."""
    random = np.random.default_rng([draw, len(runs)])
    tables = Tables(plan, "cpu")
    for run in runs:
        accuracies = [random.normal(0.9, 0.01, TRIALS) for _ in run.requests]
        tables.add_accuracies([run], accuracies, seconds=1.5)
        learned = random.normal(0.9, 0.01, TRIALS)
        tables.add_curve(run, "learning", {1: learned - 0.3, run.learning_steps: learned})
        # Where a request takes no step, this point has the same step as the one before it.
        step = run.learning_steps + sum(request.unlearning_steps for request in run.requests)
        tables.add_curve(run, "unlearning", {step: accuracies[-1]})
    name = f"{runs[0].experiment}-{runs[0].mechanism}.parquet"
    tables.write(directory / "records" / name, directory / "curves" / name)


class Store:
    """A prepared SQLite store and what is in it."""

    def __init__(self, root: Path) -> None:
        self.path = root / "mlflow.db"
        self.uri = f"sqlite:///{self.path}"
        self.artifacts = root / "mlartifacts"

    def prepare(self, preset: str = "smoke") -> StoreStatus:
        return prepare_store(preset, uri=self.uri, artifact_root=self.artifacts)

    def runs(self, status: StoreStatus, filter_string: str = "") -> list[Any]:
        from mlflow import MlflowClient

        return list(MlflowClient(self.uri).search_runs([status.experiment_id], filter_string, max_results=1000))

    def rows(self, table: str) -> int:
        with sqlite3.connect(self.path) as connection:
            return int(connection.execute(f"select count(*) from {table}").fetchone()[0])


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
def plan(results: Path) -> Plan:
    return write_results(results, "smoke", "fig3a")


@pytest.fixture
def write_experiment(results: Path) -> Callable[..., Plan]:
    return lambda experiment, preset="smoke", seed=0: write_results(results, preset, experiment, seed)


@pytest.fixture
def rewrite_records(results: Path) -> Callable[..., None]:
    return lambda plan, mechanism, draw: write_records(results / plan.preset, plan, plan.of(mechanism), draw)
