"""Where MLflow keeps its runs: whether it answers, and the one place where it is set up."""

import logging
import os
import re
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import requests
import sqlalchemy
from pydantic import BaseModel, ConfigDict

from certified_unlearning.files import read_model, write_model
from certified_unlearning.reproduction.tracking.view import FigureView, address, experiment_tags

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

DEFAULT_URI = "sqlite:///mlflow.db"
PROBE_SECONDS = 3.0
"""Seconds that a store may take for its first answer."""
PATIENCE_SECONDS = 60.0
"""How long the pipeline asks a server again that does not answer: as long as one takes to start on a busy machine."""
_FIRST_PAUSE = 0.5
LOCAL_PAGE = "http://127.0.0.1:5000"
"""Where ``mlflow ui`` listens."""

_SERVED = "mlflow-artifacts:/"
_SERVERS = ("http://", "https://")
_DATABASES = ("sqlite", "postgresql", "mysql", "mssql")
# Read by MLflow when it is loaded.
_ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    # MLflow's own defaults (7 retries of 120 s) would block each call for minutes when the server dies.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",
    # Otherwise there would be two lines for each run.
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    # Otherwise each file has a progress bar, even in mails from cron.
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
}


class StoreStatus(BaseModel):
    """Status of the store before jobs fan out.

    Attributes:
        tracking_uri: Its address, without a password.
        reachable: Whether it answered and is ready.
        experiment_id: The preset's MLflow experiment; None when not reachable.
        warning: What is wrong and what to do about it, in one sentence; None when reachable.
        page: Address of the table of sweep points: at the server, or at ``mlflow ui`` where the store is local; None
            when not reachable.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    tracking_uri: str
    reachable: bool
    experiment_id: str | None
    warning: str | None
    page: str | None = None

    def write(self, path: str | Path) -> None:
        """Write the status as JSON, atomically."""
        write_model(path, self)

    @classmethod
    def read(cls, path: str | Path) -> "StoreStatus":
        """Read a status.

        Raises:
            DataError: The file is missing or is no status.
        """
        return read_model(path, cls, "the status of an MLflow store")


def prepare_store(
    preset: str, figures: Sequence[FigureView] = (), *, uri: str | None = None, patience: float = 0.0
) -> StoreStatus:
    """Create the store where it does not exist, and in it the MLflow experiment ``certified-unlearning/<preset>``.

    Call it once before jobs fan out: a fresh SQLite store does not survive several first users, and an experiment
    that several processes create at once sends their runs elsewhere.

    Args:
        preset: The preset's name.
        figures: Experiments of which MLflow's page gets a view with charts.
        uri: The store's address; MLFLOW_TRACKING_URI by default, else ``sqlite:///mlflow.db``.
        patience: How many seconds to keep asking a server that does not answer.

    Returns:
        The store's status. A store that does not answer is not an error.
    """
    uri = tracking_uri(uri)
    reason = why_unreachable(uri, patience)
    if reason:
        return _unreachable(uri, reason)
    try:
        experiment_id = _experiment_id(client(uri), preset, uri, figures)
    except failures() as error:
        return _unreachable(uri, first_line(error))
    return StoreStatus(
        tracking_uri=display(uri),
        reachable=True,
        experiment_id=experiment_id,
        warning=None,
        page=page(uri, experiment_id),
    )


def page(uri: str, experiment_id: str) -> str:
    """Return where a browser finds the table of sweep points of an MLflow experiment."""
    server = display(uri).rstrip("/") if uri.startswith(_SERVERS) else LOCAL_PAGE
    return f"{server}/{address(experiment_id)}"


def tracking_uri(uri: str | None = None) -> str:
    """Return the store's address: the argument, else MLFLOW_TRACKING_URI, else a local SQLite file."""
    return uri or os.environ.get("MLFLOW_TRACKING_URI") or DEFAULT_URI


def display(uri: str) -> str:
    """Return an address without user name and password."""
    return re.sub(r"://[^/\s]*@", "://", uri)


def client(uri: str) -> "MlflowClient":
    """Load MLflow, which takes seconds, and return a client of the store."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient

    # Errors that they would log as stack traces arrive here as exceptions, and become one sentence.
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    return MlflowClient(tracking_uri=uri)


def failures() -> tuple[type[Exception], ...]:
    """Return the exceptions by which a store fails, and nothing else; ask after `client` has loaded MLflow."""
    from mlflow.exceptions import MlflowException

    return MlflowException, requests.RequestException, sqlalchemy.exc.SQLAlchemyError


def why_unreachable(uri: str, patience: float = 0.0) -> str | None:
    """Return why a store cannot be used, or None; does not load MLflow.

    A server is asked again, after longer and longer pauses and with more and more time to answer, until ``patience``
    seconds have passed, but at least once. Errors that waiting cannot fix, such as a file that is not a database, are
    reported at once.
    """
    deadline = time.monotonic() + patience
    allowed, pause = PROBE_SECONDS, _FIRST_PAUSE
    while True:
        reason = _why_silent(uri, allowed)
        left = deadline - time.monotonic()
        if reason is None or not _may_come_up(uri) or left <= 0:
            return reason
        time.sleep(min(pause, left))
        pause *= 2
        allowed = min(2 * allowed, max(PROBE_SECONDS, deadline - time.monotonic()))


def _may_come_up(uri: str) -> bool:
    """Return whether a store is a server, which may not have started yet."""
    return uri.startswith(_SERVERS) or (uri.startswith(_DATABASES) and not uri.startswith("sqlite"))


def _why_silent(uri: str, seconds: float) -> str | None:
    """Ask once, and wait no longer than some seconds for the answer."""
    answer: list[str | None] = []
    # A thread, because neither a name look-up nor a server that sends byte by byte heeds a time limit.
    thread = threading.Thread(target=lambda: answer.append(_probe(uri, seconds)), daemon=True)
    thread.start()
    thread.join(seconds)
    return answer[0] if answer else f"no answer within {seconds:g} s"


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, without the password of any address that it contains."""
    return display((str(error).strip() or type(error).__name__).splitlines()[0].rstrip("."))


def _probe(uri: str, seconds: float) -> str | None:
    if uri.startswith(_SERVERS):
        return _probe_server(uri, seconds)
    if uri.startswith(_DATABASES):
        return _probe_database(uri)
    return None  # MLflow knows more kinds of stores, and says itself what is wrong with one.


def _probe_server(uri: str, seconds: float) -> str | None:
    try:
        response = requests.get(f"{uri.rstrip('/')}/health", timeout=seconds)
    except requests.exceptions.SSLError:
        return None  # It is there; MLflow has its own settings for certificates.
    except requests.Timeout:
        return f"no answer within {seconds:g} s"
    except requests.ConnectionError:
        return "it does not accept connections"
    except requests.RequestException as error:
        return first_line(error)
    return f"it answers with status {response.status_code}" if response.status_code >= 500 else None


def _probe_database(uri: str) -> str | None:
    # MLflow itself would try ten times, for almost two minutes.
    try:
        engine = sqlalchemy.create_engine(uri)
        try:
            sqlalchemy.inspect(engine).get_table_names()
        finally:
            engine.dispose()
    except (sqlalchemy.exc.SQLAlchemyError, ImportError) as error:
        return first_line(error)
    return None


def _experiment_id(client: "MlflowClient", preset: str, uri: str, figures: Sequence[FigureView]) -> str:
    name = f"certified-unlearning/{preset}"
    experiment = client.get_experiment_by_name(name)
    if experiment is None:
        # A server decides itself where artifacts go.
        location = f"{_SERVED}{name}" if uri.startswith(_DATABASES) else None
        experiment = client.get_experiment(client.create_experiment(name, artifact_location=location))
    elif experiment.lifecycle_stage == "deleted":
        client.restore_experiment(experiment.experiment_id)
    experiment_id = str(experiment.experiment_id)
    for tag, value in experiment_tags(preset, experiment_id, figures).items():
        if experiment.tags.get(tag) != value:
            client.set_experiment_tag(experiment_id, tag, value)
    return experiment_id


class Artifacts:
    """The place for files of runs.

    Into a database, MLflow writes by absolute path where a run's files lie; but of files that a server hands out, it
    writes only the path below the server's own directory. We do the latter, and put the files into the directory that
    ``mlflow ui`` hands out by default: database and files can then be moved together.

    Attributes:
        client: Client of the store.
    """

    def __init__(self, client: "MlflowClient", uri: str, root: Path) -> None:
        self.client = client
        self._root = root if uri.startswith(_DATABASES) else None

    def log(self, run: "Run", files: Mapping[str, bytes]) -> None:
        """Log a run's files, by their names."""
        place = str(run.info.artifact_uri)
        if self._root is not None and place.startswith(_SERVED):
            _write(self._root / place.removeprefix(_SERVED), files)
            return
        with tempfile.TemporaryDirectory() as directory:
            _write(Path(directory), files)
            self.client.log_artifacts(run.info.run_id, directory)


def _write(directory: Path, files: Mapping[str, bytes]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (directory / name).write_bytes(content)


def _unreachable(uri: str, reason: str) -> StoreStatus:
    return StoreStatus(tracking_uri=display(uri), reachable=False, experiment_id=None, warning=untracked(uri, reason))


def untracked(uri: str, reason: str) -> str:
    """Return the warning that something was not tracked: one sentence that says what to do."""
    return (
        f"MLflow at {display(uri)} is not available ({reason}), so tracking is left out and no result is lost; "
        "run `unlearn track --sync` when it is back"
    )
