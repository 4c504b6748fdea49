"""MLflow's own page in a browser, and tracking through its server."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import mlflow
import pytest

from certified_unlearning.reproduction.tracking import FigureView, StoreStatus, prepare_store
from certified_unlearning.reproduction.tracking.view import address
from tests.reproduction.tracking.conftest import Store
from tests.reproduction.tracking.of_langevin import track
from tests.support.browser import chromium
from tests.support.planning import experiment_called

pytestmark = pytest.mark.workflow

PLOTS = """[...document.querySelectorAll('.js-plotly-plot')].map(plot => ({
    x: plot.data.flatMap(trace => [...trace.x]), y: plot.data.flatMap(trace => [...trace.y]),
}))"""


@pytest.fixture
def server(store) -> Iterator[str]:
    with store.server() as uri:
        yield uri


@pytest.fixture
def status(server, results, plan) -> StoreStatus:
    status = prepare_store("smoke", [FigureView.of(experiment_called("fig3a"))], uri=server)
    result = track(results, "fig3a", status, server)
    assert (result.added, result.warning) == (len(plan.runs), None)
    return status


def test_a_server_is_tracked_to_and_its_page_shows_the_sweep_and_compares_two_runs(
    server, status, store, results, plan, tmp_path: Path
):
    """A server of MLflow starts, and a browser opens its pages."""
    again = track(results, "fig3a", status, server)
    assert (again.added, again.updated, again.unchanged) == (0, 0, len(plan.runs))
    contents = store.contents(status)
    listed = mlflow.MlflowClient(server).list_artifacts(next(iter(store.runs(status))).info.run_id)
    assert "accuracies.png" in {artifact.path for artifact in listed}
    runs = {run.data.tags["certified_unlearning.run_key"]: run for run in store.runs(status)}
    (parent,) = [run for run in runs.values() if run.data.tags["kind"] == "experiment"]
    with chromium(width=1280, height=1800) as page:
        page.goto(f"{server}/{address(status.experiment_id)}")
        header = page.get_by_role("columnheader")
        for name in ("mechanism", "accountant", "epsilon", "K", "accuracy"):
            header.get_by_text(name, exact=True).wait_for()
        page.get_by_text("Langevin (lsi), K = 1, epsilon = 0.5").wait_for()
        page.screenshot(path=tmp_path / "runs.png")
        shown = page.inner_text("body")
        for planned in plan.runs:
            metrics = runs[plan.key(planned)].data.metrics
            assert contents[plan.key(planned)]["name"] in shown
            assert f"{metrics['accuracy']:.17g}"[:6] in shown
            assert ("epsilon" in metrics) == (planned.variant != "warm start")
            if "epsilon" in metrics:
                assert f"{metrics['epsilon']:.17g}"[:6] in shown
        assert parent.info.run_name not in shown
        langevin, others = (
            [shown.index(planned.point) for planned in plan.runs if (planned.mechanism == "langevin") == about]
            for about in (True, False)
        )
        assert langevin == sorted(langevin)
        assert max(langevin) < min(others)

        # By the link in the description, in a page of its own.
        with page.context.expect_page() as opened:
            page.get_by_role("link", name="Fig. 3a").click()
        charts = opened.value
        axes = (("epsilon_target", "accuracy"), ("epsilon", "accuracy"), ("epsilon", "K"))
        for x, y in axes:
            charts.get_by_text(f"{x} vs. {y}", exact=True).wait_for()
        logged = [runs[plan.key(each)].data.metrics for each in plan.runs]
        expected = [sorted((each[x], each[y]) for each in logged if {x, y} <= each.keys()) for x, y in axes]
        lengths = [len(points) for points in expected]
        charts.wait_for_function(f"() => {PLOTS}.map(plot => plot.x.length).join() == '{','.join(map(str, lengths))}'")
        plots = charts.evaluate(f"() => {PLOTS}")
        assert [sorted(zip(plot["x"], plot["y"], strict=True)) for plot in plots] == expected
        charts.screenshot(path=tmp_path / "charts.png")

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


def test_a_database_and_its_artifacts_can_be_moved_together(store, results, plan, tmp_path: Path):
    status = store.prepare()
    track(results, "fig3a", status, store.uri)
    moved = Store(tmp_path / "elsewhere")
    moved.path.parent.mkdir()
    for path in (store.path, store.artifacts):
        path.rename(moved.path.parent / path.name)
    with moved.server() as uri:
        client = mlflow.MlflowClient(uri)
        expected = {"experiment": {"plan.json", "fig3a.png"}, "run": {"accuracies.csv", "accuracies.png"}}
        for run in moved.runs(status):
            names = {artifact.path for artifact in client.list_artifacts(run.info.run_id)}
            assert names >= expected[run.data.tags["kind"]]
        (run,) = moved.runs(status, "attributes.run_name = 'Langevin (lsi), K = 1, epsilon = 0.5'")
        downloaded = client.download_artifacts(run.info.run_id, "accuracies.csv", str(tmp_path))
        assert Path(downloaded).read_text().startswith("request,records_removed,trial,accuracy")
