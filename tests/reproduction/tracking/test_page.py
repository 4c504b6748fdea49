"""MLflow's own page in a browser, and tracking through its server."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import mlflow
import pytest

from certified_unlearning.reproduction.tracking import StoreStatus, prepare_store
from tests.reproduction.tracking.of_langevin import track
from tests.support.browser import chromium


@pytest.fixture
def server(store) -> Iterator[str]:
    with store.server() as uri:
        yield uri


@pytest.fixture
def status(server, results, plan) -> StoreStatus:
    status = prepare_store("smoke", uri=server)
    result = track(results, "fig3a", status, server)
    assert (result.added, result.warning) == (len(plan.runs), None)
    return status


def test_a_server_is_tracked_to_and_its_page_shows_the_sweep_and_compares_two_runs(
    server, status, store, results, plan, tmp_path: Path
):
    again = track(results, "fig3a", status, server)
    assert (again.added, again.updated, again.unchanged) == (0, 0, len(plan.runs))
    contents = store.contents(status)
    listed = mlflow.MlflowClient(server).list_artifacts(next(iter(store.runs(status))).info.run_id)
    assert "accuracies.png" in {artifact.path for artifact in listed}
    runs = {run.data.tags["certified_unlearning.run_key"]: run for run in store.runs(status)}
    with chromium() as page:
        page.set_default_timeout(60_000)
        page.goto(
            f"{server}/#/experiments/{status.experiment_id}/runs"
            "?workflowType=machine_learning&viewStateShareKey=sweep-points"
        )
        header = page.get_by_role("columnheader")
        for name in ("epsilon", "K", "accuracy"):
            header.get_by_text(name, exact=True).wait_for()
        page.get_by_text("Langevin (lsi), K = 1, epsilon = 0.5").wait_for()
        page.screenshot(path=tmp_path / "runs.png")
        shown = page.inner_text("body")
        for planned in plan.runs:
            metrics = runs[plan.key(planned)].data.metrics
            assert contents[plan.key(planned)]["name"] in shown
            assert f"{metrics['accuracy']:.17g}"[:10] in shown
            assert ("epsilon" in metrics) == (planned.variant != "warm start")
            if "epsilon" in metrics:
                assert f"{metrics['epsilon']:.17g}"[:10] in shown

        two = [runs[plan.key(planned)] for planned in plan.of("langevin")[:2]]
        ids = quote(json.dumps([run.info.run_id for run in two]))
        page.goto(f"{server}/#/compare-runs?runs={ids}&experiments={quote(json.dumps([status.experiment_id]))}")
        page.get_by_text("Comparing 2 Runs from 1 Experiment").wait_for()
        for run in two:
            page.get_by_text(run.info.run_name).first.wait_for()
            page.get_by_text(run.info.run_id).first.wait_for()
        page.screenshot(path=tmp_path / "comparison.png")
        shown = page.inner_text("body")
        for run in two:
            assert run.data.params["sigma"] in shown
