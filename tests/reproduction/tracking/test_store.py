"""Setting up the store, and how little is lost when it is not there."""

import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

import pytest

from certified_unlearning.errors import DataError
from certified_unlearning.reproduction.tracking import StoreStatus, prepare_store
from certified_unlearning.reproduction.tracking.store import display, first_line, page, why_unreachable
from certified_unlearning.reproduction.tracking.view import VIEW, FigureView, address, experiment_tags
from tests.reproduction.tracking.of_langevin import sync, track
from tests.support.planning import experiment_called

LONGEST_WAIT = 60.0
"""Above what is waited for, also beside busy processes, and below the minutes for which MLflow tries again."""


@pytest.fixture
def closed_port() -> str:
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    return f"http://127.0.0.1:{port}"


@pytest.fixture
def silent_listener() -> Iterator[str]:
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@contextmanager
def server(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()


def status_code(code: int) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(code)
        request.end_headers()

    return answer


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    start = time.monotonic()
    yield
    assert time.monotonic() - start < seconds


def ready(uri: str) -> StoreStatus:
    return StoreStatus(tracking_uri=uri, reachable=True, experiment_id="1", warning=None)


def assert_warns(warning: str | None, uri: str) -> None:
    assert warning is not None
    assert uri in warning
    assert "run `unlearn track --sync` when MLflow is back" in warning
    assert "\n" not in warning
    assert ". " not in warning, "more than one sentence"


def test_a_fresh_store_is_made_with_one_experiment_for_each_preset(empty_store):
    first, again = empty_store.prepare("template"), empty_store.prepare("template")
    other = empty_store.prepare("other")
    assert first.reachable
    assert first.warning is None
    assert again == first
    assert other.experiment_id != first.experiment_id
    from mlflow import MlflowClient

    experiment = MlflowClient(empty_store.uri).get_experiment(first.experiment_id)
    assert experiment.name == "certified-unlearning/template"
    assert experiment.artifact_location == "mlflow-artifacts:/certified-unlearning/template"


def test_an_experiment_is_described_and_has_a_saved_view_though_it_is_older_than_these(store):
    from mlflow import MlflowClient

    client = MlflowClient(store.uri)
    made = client.create_experiment("certified-unlearning/smoke", tags={"mlflow.note.content": "before"})
    status = store.prepare()
    assert status.experiment_id == made
    tags = client.get_experiment(made).tags
    assert tags == experiment_tags("smoke", made)
    first_line = tags["mlflow.note.content"].splitlines()[0]
    assert f"({address(made, charts=True)})" in first_line
    assert "Preset `smoke`" in first_line
    figures = [FigureView.of(experiment_called(name)) for name in ("fig3a", "fig3b")]
    assert store.prepare(figures=figures).page == f"http://127.0.0.1:5000/{address(made)}"
    tags = client.get_experiment(made).tags
    links = re.findall(r"\((#[^)]+)\)", tags["mlflow.note.content"].splitlines()[0])
    keys = [parse_qs(link.partition("?")[2])["viewStateShareKey"] for link in links]
    assert keys == [[VIEW], ["fig3a"], ["fig3b"]]
    views = {key: json.loads(tags[f"mlflow.sharedViewState.{key}"]) for (key,) in keys}
    assert [view["name"].partition(":")[0] for view in views.values()] == ["All sweep points", "Fig. 3a", "Fig. 3b"]
    times = [view["createdAt"] for view in views.values()]
    assert times == sorted(times, reverse=True), "the page lists the newest view first"


def test_a_figure_s_view_has_its_runs_and_its_own_axes_and_a_stream_has_lines():
    def charts(name: str) -> tuple[str, list[tuple[str, str]]]:
        (view,) = [
            json.loads(json.loads(value)["state"])
            for key, value in experiment_tags("smoke", "1", [FigureView.of(experiment_called(name))]).items()
            if key == f"mlflow.sharedViewState.{name}"
        ]
        axes = [
            (each["xaxis"]["key"], each["yaxis"]["key"])
            if each["type"] == "SCATTER"
            else (each["selectedXAxisMetricKey"], each["metricKey"])
            for each in view["compareRunCharts"]
        ]
        return view["searchFilter"], axes

    common = [("epsilon", "accuracy"), ("epsilon", "K")]
    only = "tags.`kind` = 'run' and tags.`figure` = '{}'"
    assert charts("fig3a") == (only.format("fig3a"), [("epsilon_target", "accuracy"), *common])
    assert charts("fig3c") == (only.format("fig3c"), [("sigma", "K"), ("sigma", "accuracy"), *common])
    removed = "request/records_removed"
    lines = [(removed, "request/accumulated_K"), (removed, "request/accuracy")]
    assert charts("fig3b") == (only.format("fig3b"), [*lines, *common])


def test_every_tag_fits_into_a_database_however_many_figures_there_are():
    several = ("accuracy_mean", "unlearning_steps", "accumulated_steps", "auc", "log_loss", "seconds", "sigma", "mu")
    many = [
        FigureView(name=f"figure_{number}", label=f"Fig. {number}", title=80 * "x", x="records_removed", y=several)
        for number in range(50)
    ]
    tags = experiment_tags("a-preset-with-a-name", "123456", many)
    assert len(tags) == 50 + 3
    assert max(map(len, tags.values())) <= 5000


def test_a_page_is_at_the_server_without_its_password_or_where_mlflow_s_own_listens():
    assert page("sqlite:///mlflow.db", "7") == f"http://127.0.0.1:5000/{address('7')}"
    assert page("https://user:secret@host/ml/", "7") == f"https://host/ml/{address('7')}"


def test_the_store_is_the_one_that_the_environment_names(store, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store.uri)
    assert prepare_store("smoke").tracking_uri == store.uri


def test_an_experiment_that_was_deleted_is_brought_back(store):
    from mlflow import MlflowClient

    before = store.prepare()
    MlflowClient(store.uri).delete_experiment(before.experiment_id)
    assert store.prepare() == before


def test_a_status_is_read_back_as_it_was_written(tmp_path, store):
    status = store.prepare()
    status.write(tmp_path / "store.json")
    assert StoreStatus.read(tmp_path / "store.json") == status
    (tmp_path / "store.json").write_text("{}")
    with pytest.raises(DataError, match=r"store\.json is not the status of an MLflow store"):
        StoreStatus.read(tmp_path / "store.json")
    with pytest.raises(DataError, match=r"cannot read .*absent\.json"):
        StoreStatus.read(tmp_path / "absent.json")


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["closed_port", "silent_listener"])
def test_a_dead_server_costs_a_warning_and_little_time(name, request, results, plan):
    uri = request.getfixturevalue(name)
    with at_most(LONGEST_WAIT):
        status = prepare_store("smoke", uri=uri)
    assert (status.reachable, status.experiment_id) == (False, None)
    assert_warns(status.warning, uri)
    with at_most(0.5):  # known to be dead: not asked again
        result = track(results, "fig3a", status, uri)
    assert_warns(result.warning, uri)
    with at_most(LONGEST_WAIT):  # died since it was prepared
        result = track(results, "fig3a", ready(uri), uri)
    assert_warns(result.warning, uri)
    with at_most(LONGEST_WAIT):
        result = sync(results, uri=uri)
    assert_warns(result.warning, uri)
    assert (result.added, result.updated, result.unchanged) == (0, 0, 0)
    assert not (results / "smoke/tracking").exists()


def test_a_closed_port_is_noticed_at_once(closed_port):
    with at_most(0.5):
        assert why_unreachable(closed_port) == "it does not accept connections"


def test_a_server_that_is_about_to_start_is_waited_for(closed_port):
    port = int(closed_port.rpartition(":")[2])

    class Healthy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status_code(200)(self)

        def log_message(self, *_: object) -> None:
            pass

    def start() -> None:
        time.sleep(0.8)
        with ThreadingHTTPServer(("127.0.0.1", port), Healthy) as http:
            http.handle_request()

    threading.Thread(target=start, daemon=True).start()
    assert why_unreachable(closed_port) == "it does not accept connections"
    with at_most(LONGEST_WAIT):
        assert why_unreachable(closed_port, patience=60) is None


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["closed_port", "silent_listener"])
def test_no_server_is_waited_for_longer_than_is_said(name, request):
    start = time.monotonic()
    with at_most(4.0 + LONGEST_WAIT):
        assert why_unreachable(request.getfixturevalue(name), patience=4.0)
    assert time.monotonic() - start >= 4.0


def test_a_file_that_is_no_database_is_not_waited_for(tmp_path):
    (tmp_path / "garbage.db").write_text("this is no database " * 1000)
    with at_most(LONGEST_WAIT):
        assert not prepare_store("smoke", uri=f"sqlite:///{tmp_path}/garbage.db", patience=60).reachable


def test_a_server_that_sends_byte_by_byte_is_given_up_in_time():
    def trickle(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
        while True:
            time.sleep(0.2)
            request.wfile.write(b"x")
            request.wfile.flush()

    def answer(request: BaseHTTPRequestHandler) -> None:
        try:
            trickle(request)
        except ConnectionError:
            return

    with server(answer) as uri, at_most(LONGEST_WAIT):
        assert why_unreachable(uri) == "no answer within 3 s"


@pytest.mark.parametrize(
    ("code", "reason"), [(503, "it answers with status 503"), (401, None), (404, None), (200, None)]
)
def test_a_server_is_there_unless_it_says_that_it_failed(code, reason):
    with server(status_code(code)) as uri:
        assert why_unreachable(uri) == reason


def test_a_server_that_is_well_but_fails_to_log_costs_a_warning(results, plan):
    def answer(request: BaseHTTPRequestHandler) -> None:
        status_code(200 if request.path == "/health" else 500)(request)

    with server(answer) as uri:
        assert_warns(prepare_store("smoke", uri=uri).warning, uri)
        result = track(results, "fig3a", ready(uri), uri)
        assert_warns(result.warning, uri)


@pytest.mark.parametrize("path", ["absent/mlflow.db", "garbage.db"])
def test_a_database_that_cannot_be_opened_is_not_tried_for_minutes(tmp_path, path):
    (tmp_path / "garbage.db").write_text("this is no database " * 1000)
    with at_most(LONGEST_WAIT):
        status = prepare_store("smoke", uri=f"sqlite:///{tmp_path}/{path}")
    assert_warns(status.warning, path)


def test_an_old_store_is_left_alone_and_the_warning_says_how_to_upgrade_it(store):
    import sqlite3

    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("update alembic_version set version_num = '0584bdc529eb'")
        connection.commit()
    status = store.prepare("another")
    assert not status.reachable
    assert "mlflow db upgrade" in str(status.warning)


def test_a_store_other_than_the_prepared_one_is_not_written_to(store, results, plan, tmp_path):
    result = track(results, "fig3a", store.prepare(), f"sqlite:///{tmp_path}/b.db")
    assert_warns(result.warning, "b.db")
    assert not (tmp_path / "b.db").exists()


def test_passwords_are_never_shown():
    assert display("postgresql://user:secret@host:5432/mlflow") == "postgresql://host:5432/mlflow"
    assert display("https://user:p@ss@host/path") == "https://host/path"
    assert display("sqlite:////data/user@host/mlflow.db") == "sqlite:////data/user@host/mlflow.db"
    uri = "http://user:secret@127.0.0.1:9"
    assert "secret" not in prepare_store("smoke", uri=uri).model_dump_json()


def test_no_message_holds_the_password_of_an_address():
    error = ValueError("API request to http://me:secret@there:5000/api failed.\nand more")
    assert first_line(error) == "API request to http://there:5000/api failed"
