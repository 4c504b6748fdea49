"""Contents of MLflow after tracking: one finished run for each sweep point, whatever happened on the way."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import mlflow
import pytest
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import BAD_REQUEST, TEMPORARILY_UNAVAILABLE

from certified_unlearning.errors import DataError, StorageError
from certified_unlearning.files import read_json
from certified_unlearning.papers.langevin_unlearning.paper import PAPER
from certified_unlearning.reproduction.layout import Layout
from certified_unlearning.reproduction.tracking import StoreStatus, TrackResult, pages
from certified_unlearning.reproduction.tracking.runs import PARENT_TAG
from certified_unlearning.reproduction.tracking.store import Artifacts
from tests.reproduction.tracking.of_langevin import sync, track
from tests.support.planning import experiment_called
from tests.support.waiting import PATIENCE

TRACK = """
import sys
from pathlib import Path
from certified_unlearning.reproduction import declared
from certified_unlearning.reproduction.layout import Layout
from certified_unlearning.reproduction.tracking import StoreStatus, track_experiment

results, experiment, status, uri = sys.argv[1:]
layout, shown = Layout(Path(results), "smoke"), declared.experiment(experiment)
where = {"uri": uri, "artifact_root": Path(results).with_name("mlartifacts")}
print(track_experiment(layout, "langevin_unlearning", shown, StoreStatus.read(status), **where).model_dump_json())

from mlflow.telemetry.utils import is_telemetry_disabled

assert is_telemetry_disabled()
"""
KILL_BEFORE_THE_THIRD_RUN_IS_FINISHED = """
import itertools, os, signal
from mlflow import MlflowClient

calls, finish = itertools.count(1), MlflowClient.set_terminated
MlflowClient.set_terminated = lambda *arguments, **keywords: (
    os.kill(os.getpid(), signal.SIGKILL) if next(calls) == 3 else finish(*arguments, **keywords)
)
"""


def counts(result: TrackResult) -> tuple[int, int, int]:
    assert result.warning is None
    return result.added, result.updated, result.unchanged


def start(script: str, results: Path, experiment: str, store, status: StoreStatus) -> subprocess.Popen[str]:
    status.write(results / "store.json")
    arguments = (results, experiment_called(experiment).reference, results / "store.json", store.uri)
    command = [sys.executable, "-c", script, *map(str, arguments)]
    # Little else: MLflow's telemetry keeps still by itself where it sees a test or a continuous integration.
    kept = ("HOME", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_every_sweep_point_becomes_a_finished_run_below_its_figure(store, results, plan):
    status = store.prepare()
    result = track(results, "fig3a", status, store.uri)
    assert counts(result) == (len(plan.runs), 0, 0)
    runs = {run.data.tags["certified_unlearning.run_key"]: run for run in store.runs(status)}
    (parent,) = [run for run in runs.values() if PARENT_TAG not in run.data.tags]
    assert parent.info.run_name == "Fig. 3a: Test accuracy after one record was removed, against the target ε"
    assert parent.data.metrics["epsilon"] == pytest.approx(1.0, abs=1e-6)
    contents = store.contents(status)
    assert {each["status"] for each in contents.values()} == {"FINISHED"}
    for planned in plan.runs:
        run = runs[plan.key(planned)]
        files = contents[plan.key(planned)]["files"]
        assert run.data.tags[PARENT_TAG] == parent.info.run_id
        assert run.data.tags["mechanism"] == planned.mechanism
        assert run.data.tags["guarantee"] == planned.guarantee
        assert run.data.metrics.get("epsilon") == planned.requests[0].epsilon
        assert ("epsilon" in run.data.metrics) == (planned.variant != "warm start")
        assert run.data.metrics.get("mu") == planned.requests[0].mu
        assert run.data.params["accountant"] == planned.accountant
        assert run.data.metrics["K"] == planned.requests[0].unlearning_steps
        assert run.data.metrics["sigma"] == planned.sigma
        assert run.info.end_time - run.info.start_time == 1500  # what its rows say, not what logging took
        assert abs(run.info.end_time / 1000 - time.time()) < 600
        assert run.data.tags["mlflow.source.name"] == "certified_unlearning.papers.langevin_unlearning.fig3a"
        assert run.data.tags["mlflow.note.content"].startswith(planned.method)
        assert 0.85 < run.data.metrics["accuracy"] < 0.95
        assert run.data.params["delta"] == str(plan.constants.delta)
        assert run.data.params["data_sha256"] == plan.constants.data_sha256
        assert run.inputs.dataset_inputs[0].dataset.name == "digits"
        assert run.inputs.dataset_inputs[0].dataset.digest == plan.constants.data_sha256[:36]
        assert files["accuracies.png"].startswith(b"\x89PNG")
    names = [run.info.run_name for run in runs.values()]
    assert {"Langevin (lsi), K = 1, epsilon = 0.5", "Langevin (shifted), K = 1, epsilon = 0.5"} <= set(names)
    assert len(set(names)) == len(names)
    assert "fig3a.png" in contents[parent.data.tags["certified_unlearning.run_key"]]["files"]


def test_tracking_again_adds_nothing(store, results, plan):
    status = store.prepare()
    track(results, "fig3a", status, store.uri)
    before, rows = store.contents(status), store.rows()
    assert counts(track(results, "fig3a", status, store.uri)) == (
        0,
        0,
        len(plan.runs),
    )
    assert store.rows() == rows
    assert store.contents(status) == before


def test_a_changed_result_replaces_the_run_of_the_same_key(store, results, plan, rewrite_rows):
    status = store.prepare()
    track(results, "fig3a", status, store.uri)
    before, ids = store.contents(status), {run.info.run_id for run in store.runs(status)}
    rewrite_rows(plan, "langevin", 1)
    changed = {plan.key(run) for run in plan.of("langevin")}
    result = track(results, "fig3a", status, store.uri)
    assert counts(result) == (0, len(changed), len(plan.runs) - len(changed))
    after = store.contents(status)
    assert set(after) == set(before)
    (parent,) = [key for key in after if after[key]["tags"]["kind"] == "experiment"]  # Its headline is one of them.
    assert {key for key in after if after[key] != before[key]} == changed | {parent}
    assert len(ids & {run.info.run_id for run in store.runs(status)}) == len(before) - len(changed) - 1


def test_another_sweep_gets_its_own_parent_and_takes_over_the_points_it_shares(store, results, plan, write_experiment):
    status = store.prepare()
    track(results, "fig3a", status, store.uri)
    wider = write_experiment("fig3a", epsilon=[0.5, 1.0, 2.0])
    shared = {plan.key(run) for run in plan.runs} & {wider.key(run) for run in wider.runs}
    assert shared
    result = track(results, "fig3a", status, store.uri)
    assert counts(result) == (len(wider.runs) - len(shared), 0, len(shared))
    assert len(store.runs(status, "tags.kind = 'experiment'")) == 2
    parents = Counter(run.data.tags.get(PARENT_TAG) for run in store.runs(status))
    assert sorted(parents.values()) == sorted([2, len(wider.runs), len(plan.runs) - len(shared)])


@pytest.mark.sampled
@pytest.mark.parametrize("method", ["create_run", "log_batch", "log_inputs", "log", "set_terminated"])
def test_a_run_that_was_interrupted_anywhere_is_finished(store, results, write_experiment, method, monkeypatch):
    class Interrupted(BaseException):
        pass

    def interrupted(*arguments: object, **keywords: object) -> None:
        calls.append(method)
        if len(calls) == 3:
            raise Interrupted
        return original(*arguments, **keywords)

    plan, status, calls = write_experiment("fig3b"), store.prepare(), []
    with monkeypatch.context() as patch:
        whose = Artifacts if method == "log" else mlflow.MlflowClient
        original = getattr(whose, method)
        patch.setattr(whose, method, interrupted)
        with pytest.raises(Interrupted):
            track(results, "fig3b", status, store.uri)
    left = sorted(each["status"] for each in store.contents(status).values())
    assert left == ["FINISHED"] * 2 + ["RUNNING"] * (method != "create_run")
    result = track(results, "fig3b", status, store.uri)
    assert sum(counts(result)) == len(plan.runs)
    resumed = store.contents(status)
    for run in store.runs(status):
        mlflow.MlflowClient(store.uri).delete_run(run.info.run_id)
    track(results, "fig3b", status, store.uri)
    assert resumed == store.contents(status), "an undisturbed pass says something else"


@pytest.mark.parametrize("breaks", [3, 4])
def test_a_server_that_stops_for_a_while_loses_no_run_and_doubles_none(
    store, results, write_experiment, breaks, monkeypatch
):
    def broken(*arguments: object, **keywords: object) -> None:
        calls.append("log_batch")
        if len(calls) in range(2, 2 + breaks):
            raise MlflowException("connection refused", TEMPORARILY_UNAVAILABLE)
        return log_batch(*arguments, **keywords)

    plan, status, calls, log_batch = write_experiment("fig3b"), store.prepare(), [], mlflow.MlflowClient.log_batch
    with monkeypatch.context() as patch:
        patch.setattr(mlflow.MlflowClient, "log_batch", broken)
        result = track(results, "fig3b", status, store.uri, patience=1.0)
    if breaks == 4:  # It has to end some time.
        assert "connection refused" in str(result.warning)
        result = track(results, "fig3b", status, store.uri)
    assert result.warning is None
    assert sum(counts(result)) == len(plan.runs)
    assert len(store.contents(status)) == len(plan.runs) + 1
    assert {each["status"] for each in store.contents(status).values()} == {"FINISHED"}


@pytest.mark.workflow
def test_a_killed_process_leaves_a_run_that_the_next_one_finishes(store, results, plan):
    status = store.prepare()
    process = start(KILL_BEFORE_THE_THIRD_RUN_IS_FINISHED + TRACK, results, "fig3a", store, status)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == -signal.SIGKILL
    (left,) = store.runs(status, "attributes.status = 'RUNNING'")
    result = track(results, "fig3a", status, store.uri)
    assert counts(result) == (len(plan.runs) - 2, 1, 1)
    (finished,) = [run for run in store.runs(status) if run.info.run_id == left.info.run_id]
    assert finished.info.status == "FINISHED"
    assert len(store.runs(status)) == len(plan.runs) + 1
    _, updated, unchanged = counts(track(results, "fig3a", status, store.uri))
    assert (updated, unchanged) == (0, len(plan.runs))


def test_duplicates_of_two_callers_at_once_are_cleaned_up(store, results, plan):
    status = store.prepare()
    track(results, "fig3a", status, store.uri)
    before = store.contents(status)
    client = mlflow.MlflowClient(store.uri)
    for run in store.runs(status)[:3]:
        client.create_run(status.experiment_id, tags=run.data.tags, run_name=run.info.run_name)
    with pytest.raises(AssertionError, match="the same key"):
        store.contents(status)
    result = track(results, "fig3a", status, store.uri)
    assert counts(result) == (0, 0, len(plan.runs))
    assert store.contents(status) == before


@pytest.mark.workflow
def test_four_processes_at_once_fill_a_fresh_store_without_losing_a_run(store, results, write_experiment):
    """Four processes write to one store at once; each imports MLflow."""
    plans = {name: write_experiment(name) for name in ("fig3a", "fig3b", "fig3c", "fig4")}
    status = store.prepare()
    processes = [start(TRACK, results, name, store, status) for name in plans]
    for plan, process in zip(plans.values(), processes, strict=True):
        output, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, errors
        assert counts(TrackResult.model_validate_json(output)) == (len(plan.runs), 0, 0)
        assert not errors, "MLflow is not quiet"
    contents = store.contents(status)
    assert {each["status"] for each in contents.values()} == {"FINISHED"}
    figures = Counter(each["tags"]["figure"] for each in contents.values())
    assert figures == {name: len(plan.runs) + 1 for name, plan in plans.items()}
    assert len(contents) == store.rows()["runs"], "runs in another experiment"


@pytest.mark.parametrize(
    ("code", "tracked"), [(BAD_REQUEST, True), (TEMPORARILY_UNAVAILABLE, False)], ids=["race", "other-failure"]
)
def test_a_data_set_that_another_process_recorded_at_the_same_moment_is_no_failure(
    store, results, plan, code, tracked, monkeypatch
):
    # What four processes that record the same data set together get from MLflow's store: BAD_REQUEST.
    def fail_once(*arguments: object) -> None:
        monkeypatch.setattr(mlflow.MlflowClient, "log_inputs", log_inputs)
        raise MlflowException("UNIQUE constraint failed: datasets.experiment_id, datasets.name", code)

    log_inputs = mlflow.MlflowClient.log_inputs
    monkeypatch.setattr(mlflow.MlflowClient, "log_inputs", fail_once)
    result = track(results, "fig3a", store.prepare(), store.uri)
    assert (result.warning is None) == tracked
    assert result.added == (len(plan.runs) if tracked else 0)


@pytest.mark.exhaustive
def test_a_stream_of_more_numbers_than_one_batch_takes_is_logged_whole(store, results, write_experiment):
    plan = write_experiment("fig3b", records=250, records_per_request=[1])
    status = store.prepare()
    result = track(results, "fig3b", status, store.uri)
    assert counts(result) == (len(plan.runs), 0, 0)
    (stream,) = plan.of("langevin")
    numbers = store.contents(status)[plan.key(stream)]["numbers"]
    steps = {step: value for name, step, value in numbers if name == "request/K"}
    assert steps == {number: request.unlearning_steps for number, request in enumerate(stream.requests, start=1)}
    assert len(numbers) > 1000


def test_sync_tracks_what_was_missed_and_then_nothing(store, results, write_experiment):
    plans = [
        write_experiment("fig3a"),
        write_experiment("fig4"),
        write_experiment("fig3a", preset="digits"),
    ]
    write_experiment("fig3c")
    smoke, digits = Layout(results, "smoke"), Layout(results, "digits")
    for rows in smoke.of(PAPER.name, "fig3c").glob("*.rows.parquet"):
        rows.unlink()  # planned, not run yet
    status = store.prepare("smoke")
    track(results, "fig3a", status, store.uri)
    total = sum(len(plan.runs) for plan in plans)
    result = sync(results, uri=store.uri, artifact_root=store.artifacts)
    assert counts(result) == (total - len(plans[0].runs), 0, len(plans[0].runs))
    assert StoreStatus.read(smoke.tracking_store) == status
    assert read_json(digits.tracked(PAPER.name, "fig3a"))["added"] == len(plans[2].runs)
    assert not smoke.tracked(PAPER.name, "fig3c").exists()
    assert len(store.runs(store.prepare("digits"))) == len(plans[2].runs) + 1
    rows = store.rows()
    assert counts(sync(results, uri=store.uri, artifact_root=store.artifacts)) == (0, 0, total)
    assert store.rows() == rows


def test_the_pages_of_what_was_tracked_are_known_after_it_and_each_figure_has_a_view(store, results, plan):
    from mlflow import MlflowClient

    sync(results, uri=store.uri, artifact_root=store.artifacts)
    (made,) = [each for each in MlflowClient(store.uri).search_experiments() if each.name.endswith("/smoke")]
    assert "mlflow.sharedViewState.fig3a" in made.tags
    assert pages(results) == {"smoke": store.prepare().page}


def test_sync_of_nothing_is_nothing(store, tmp_path):
    assert counts(sync(tmp_path / "no-results", uri=store.uri)) == (0, 0, 0)


def test_damaged_results_are_an_error_and_not_a_warning(store, results, plan):
    Layout(results, "smoke").run_rows(PAPER.name, "fig3a", "langevin").write_text("damaged")
    with pytest.raises(DataError, match="is not a Parquet file"):
        track(results, "fig3a", store.prepare(), store.uri)


def test_artifacts_that_cannot_be_written_are_an_error_in_one_sentence(store, results, plan):
    status = store.prepare()
    store.artifacts.write_text("a file where the directory should be")
    with pytest.raises(StorageError, match="cannot write MLflow's artifacts"):
        track(results, "fig3a", status, store.uri)
