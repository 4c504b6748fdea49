"""The store of MLflow's runs. Only this module sets up the store, and checks whether it answers."""

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
"""Seconds within which a store must give its first answer."""
PATIENCE_SECONDS = 60.0
"""Number of seconds during which the pipeline keeps asking a server that does not answer. A server may need so much
time to start on a busy machine.
"""
_FIRST_PAUSE = 0.5
LOCAL_PAGE = "http://127.0.0.1:5000"
"""Address of ``mlflow ui``."""

_SERVED = "mlflow-artifacts:/"
_SERVERS = ("http://", "https://")
_DATABASES = ("sqlite", "postgresql", "mysql", "mssql")
# MLflow reads these variables when it is loaded.
_ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    # With MLflow's own defaults (7 retries of 120 s), each call would block for minutes if the server dies.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",
    # Otherwise, MLflow prints two lines for each run.
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    # Otherwise, each file has a progress bar, even in mails from cron.
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
}


class StoreStatus(BaseModel):
    """The status of the store before jobs are started in parallel.

    Attributes:
        tracking_uri: Address of the store, without a password.
        reachable: Whether the store answers and is ready.
        experiment_id: The preset's MLflow experiment; None if the store is not reachable.
        warning: What is wrong and what to do about it, in one sentence; None if the store is reachable.
        page: Address of the table of sweep points: at the server, or at ``mlflow ui`` if the store is local; None if
            the store is not reachable.
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
            DataError: The file is missing, or is not a status.
        """
        return read_model(path, cls, "the status of an MLflow store")


def prepare_store(
    preset: str, figures: Sequence[FigureView] = (), *, uri: str | None = None, patience: float = 0.0
) -> StoreStatus:
    """Create the store and the MLflow experiment ``certified-unlearning/<preset>`` in it, if they do not exist.

    Call this once before jobs are started in parallel. A new SQLite store breaks if several processes use it for the
    first time at once. If several processes create the same MLflow experiment at once, the runs of these processes
    are not stored in this experiment.

    Args:
        preset: Name of the preset.
        figures: Experiments for which MLflow's page gets a view with charts.
        uri: Address of the store; by default MLFLOW_TRACKING_URI, or ``sqlite:///mlflow.db`` if that is not set.
        patience: Number of seconds during which a server that does not answer is asked again.

    Returns:
        The status of the store. A store that does not answer is not an error.
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
    """Return the web address of an MLflow experiment's table of sweep points."""
    server = display(uri).rstrip("/") if uri.startswith(_SERVERS) else LOCAL_PAGE
    return f"{server}/{address(experiment_id)}"


def tracking_uri(uri: str | None = None) -> str:
    """Return the store's address: the argument, or MLFLOW_TRACKING_URI, or a local SQLite file."""
    return uri or os.environ.get("MLFLOW_TRACKING_URI") or DEFAULT_URI


def display(uri: str) -> str:
    """Return an address without user name and password."""
    return re.sub(r"://[^/\s]*@", "://", uri)


def client(uri: str) -> "MlflowClient":
    """Load MLflow, which takes seconds, and return a client of the store."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient

    # Errors that these loggers would print as stack traces arrive here as exceptions, and become one sentence.
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    return MlflowClient(tracking_uri=uri)


def failures() -> tuple[type[Exception], ...]:
    """Return the exceptions that a failing store raises; call this after `client` has loaded MLflow."""
    from mlflow.exceptions import MlflowException

    return MlflowException, requests.RequestException, sqlalchemy.exc.SQLAlchemyError


def why_unreachable(uri: str, patience: float = 0.0) -> str | None:
    """Return the reason why a store cannot be used, or None if it can be used. MLflow is not loaded.

    A server is asked at least once. It is asked again until ``patience`` seconds have passed, after longer and longer
    pauses, and with more and more time to answer. Errors that waiting cannot fix, such as a file that is not a
    database, are reported at once.
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
    """Ask once, and wait at most ``seconds`` for the answer."""
    answer: list[str | None] = []
    # A thread is needed because neither a name look-up nor a server that sends byte by byte obeys a time limit.
    thread = threading.Thread(target=lambda: answer.append(_probe(uri, seconds)), daemon=True)
    thread.start()
    thread.join(seconds)
    return answer[0] if answer else f"no answer within {seconds:g} s"


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, without the passwords in its addresses."""
    return display((str(error).strip() or type(error).__name__).splitlines()[0].rstrip("."))


def _probe(uri: str, seconds: float) -> str | None:
    if uri.startswith(_SERVERS):
        return _probe_server(uri, seconds)
    if uri.startswith(_DATABASES):
        return _probe_database(uri)
    return None  # MLflow supports more kinds of stores, and reports itself what is wrong with one.


def _probe_server(uri: str, seconds: float) -> str | None:
    try:
        response = requests.get(f"{uri.rstrip('/')}/health", timeout=seconds)
    except requests.exceptions.SSLError:
        return None  # The server exists; MLflow has its own settings for certificates.
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
        # A server decides on its own where it stores artifacts.
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
    """The place for the files of runs.

    MLflow writes the place of a run's files into a database as an absolute path. For files that a server serves,
    however, it writes only the path below the server's own directory. This class also uses such a path, and puts the
    files into the directory from which ``mlflow ui`` serves by default. Therefore, the database and the files can be
    moved together.

    Attributes:
        client: Client of the store.
    """

    def __init__(self, client: "MlflowClient", uri: str, root: Path) -> None:
        self.client = client
        self._root = root if uri.startswith(_DATABASES) else None

    def log(self, run: "Run", files: Mapping[str, bytes]) -> None:
        """Log a run's files, which are given by name."""
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
    """Return the warning that something was not tracked, as one sentence that says what to do."""
    return (
        f"MLflow at {display(uri)} is not available ({reason}), so tracking is left out and no result is lost; "
        "run `unlearn track --sync` when MLflow is back"
    )
