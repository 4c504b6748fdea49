"""Versions of one model in MLflow's registry; each has its files, is found again by its tags, and is never duplicated.

A version of a registered model consists of a run, which has the files, and of an entry in the registry, which names the
run. Neither the run nor the entry contains a pickle. If a process is killed, the next process finishes its work.
"""

import re
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy

from certified_unlearning.errors import ParameterError, StorageError, TrackingError
from certified_unlearning.reproduction.tracking import store

if TYPE_CHECKING:
    from mlflow.entities import Run
    from mlflow.entities.model_registry import ModelVersion
    from mlflow.store.artifact.artifact_repo import ArtifactRepository

ALIAS = "current"
"""The alias of the newest version."""
OWNER_TAG = "certified_unlearning.ledger"
VERSION_TAG = "ledger_version"
WEIGHTS_TAG = "weights_sha256"
OUTDATED_TAG = "outdated"
OUTDATED = "records were removed since"
EXPERIMENTS = "certified-unlearning-models"
"""Prefix of the names of MLflow experiments. The experiment ``certified-unlearning-models/churn``, for example,
contains the runs of the registered model ``churn``.
"""
PATIENCE_SECONDS = 10.0
"""Number of seconds during which a server that does not answer at first is asked again. The model directory is locked
during this time.
"""
LOCAL_FILES = "mlartifacts"
"""Directory next to a SQLite file; by default, ``mlflow ui`` serves files from this directory."""

_NAME = re.compile(r"\w[\w.-]{0,199}", re.ASCII)
_SERVED = "mlflow-artifacts:/"


@dataclass(frozen=True)
class Entry:
    """The content of the registry for one version.

    Attributes:
        version: Number of the version in its ledger.
        weights_sha256: SHA-256 of the weights file.
        files: Files of the version, by name.
        tags: Other facts about the version.
        metrics: The facts that are finite numbers, as numbers.
        description: The facts as a text for readers.
    """

    version: int
    weights_sha256: str
    files: Mapping[str, bytes]
    tags: Mapping[str, str]
    metrics: Mapping[str, float]
    description: str


@dataclass(frozen=True)
class Put:
    """The result of `RegisteredModel.put`.

    Attributes:
        number: Number of the version in MLflow.
        changed: Whether anything was written.
    """

    number: str
    changed: bool


class RegisteredModel:
    """A registered model of MLflow, for the versions of one ledger's model.

    Attributes:
        name: Name of the registered model in MLflow.
        address: Address of MLflow, without a password.
    """

    def __init__(self, name: str, owner: str, uri: str, scratch: Path) -> None:
        """Connect to MLflow, without writing anything.

        Args:
            name: Name of the registered model.
            owner: Text that identifies the ledger of the versions.
            uri: Address of the store.
            scratch: Empty directory for temporary files, which the caller deletes so that no copies remain.

        Raises:
            ParameterError: MLflow does not accept the name, or the address is neither a server nor a SQLite file.
            TrackingError: MLflow does not answer.
        """
        if not _NAME.fullmatch(name):
            raise ParameterError(
                f"--name must consist of 1 to 200 characters from A to Z, a to z, 0 to 9, _, . and -, and must not "
                f"begin with . or -, got {name[:40]!r}"
            )
        self.name = name
        self._owner = owner
        self._scratch = scratch
        self.address, self._root = _place_of(uri)
        reason = store.why_unreachable(uri, PATIENCE_SECONDS)
        if reason:
            raise TrackingError(
                f"MLflow at {self.address} is not available ({reason}); nothing was recorded and nothing was sent: "
                "run the command again when MLflow is back"
            )
        self._uri = uri
        self._client = store.client(uri)

    def require_own(self, version: int, weights_sha256: str, lost: Collection[tuple[int, str]]) -> None:
        """Raise `TrackingError` if a version cannot be registered without harm.

        Args:
            version: Current version of the ledger.
            weights_sha256: SHA-256 of the weights of this version.
            lost: Numbers and weights of versions that a restore lost. If MLflow has these versions, the ledger is not
                necessarily outdated.

        Raises:
            TrackingError: The registered model belongs to another ledger; or it has versions of this ledger that are
                later than the ledger's own versions; or MLflow does not answer.
        """
        with self._answering("nothing was recorded"):
            if not self._is_there():
                return
            tags = self._client.get_registered_model(self.name).tags
            if tags.get(OWNER_TAG) != self._owner:
                raise TrackingError(
                    f"MLflow at {self.address} has a registered model {self.name!r} that is not this ledger's; "
                    "choose another --name; nothing was recorded"
                )
            for each in self._versions():
                number, weights = self._number(each), each.tags.get(WEIGHTS_TAG, "")
                others = number == version and weights != weights_sha256
                if (number > version or others) and (number, weights) not in lost:
                    raise TrackingError(
                        f"version {each.version} of {self.name} in MLflow is version {number} of this ledger"
                        f"{' with other weights' if others else ''}, but the directory is at version {version}. The "
                        "directory is outdated, perhaps restored from a backup, and could bring back removed people. "
                        "Update it first; if it is up to date already, delete this version in MLflow. Nothing was "
                        "recorded"
                    )

    def put(self, entry: Entry) -> Put:
        """Make sure that the registry has a version with its files, and that the alias refers to it.

        Args:
            entry: Content of the version.

        Returns:
            The version's number in MLflow, and whether anything was missing.

        Raises:
            TrackingError: MLflow stops answering, or does not store what is sent.
            StorageError: Files cannot be written.
        """
        with self._answering("the copy is recorded; run the command again to finish it"):
            if not self._is_there():
                described = f"Versions of a model that can unlearn. The alias `{ALIAS}` names the newest one."
                self._client.create_registered_model(self.name, {OWNER_TAG: self._owner}, described)
            run, changed = self._put_run(entry)
            version = next((each for each in self._versions() if each.run_id == run.info.run_id), None)
            if version is None:
                version, changed = self._create_version(entry, run), True
            number = str(version.version)
            if str(self._client.get_registered_model(self.name).aliases.get(ALIAS)) != number:
                self._client.set_registered_model_alias(self.name, ALIAS, number)
                changed = True
            return Put(number, changed)

    def mark(self, is_outdated: Callable[[int, str], bool]) -> list[int]:
        """Mark the versions that were learned from records which were removed later.

        Args:
            is_outdated: Function that returns whether records were removed since a version was learned. Its arguments
                are the version's number in the ledger and the SHA-256 of the weights.

        Returns:
            Ledger numbers of the versions that were not marked before.

        Raises:
            TrackingError: MLflow stops answering.
        """
        marked = []
        with self._answering("older versions may not be marked yet; run the command again"):
            for each in self._versions():
                number = self._number(each)
                if is_outdated(number, each.tags.get(WEIGHTS_TAG, "")) and OUTDATED_TAG not in each.tags:
                    # A page that lists versions shows only the beginning of their descriptions.
                    said = f"Outdated: {OUTDATED}. {(each.description or '').removeprefix(f'Outdated: {OUTDATED}. ')}"
                    self._client.update_model_version(self.name, str(each.version), said)
                    self._client.set_model_version_tag(self.name, str(each.version), OUTDATED_TAG, OUTDATED)
                    marked.append(number)
        return sorted(marked)

    def delete_others(self, version: int, weights_sha256: str, files: Collection[str]) -> list[int]:
        """Delete all versions except one, with their files and runs, including versions that MLflow no longer lists.

        Files are deleted at once. The rest of a run is marked as deleted, and ``mlflow gc`` removes it.

        Args:
            version: Ledger number of the version to keep.
            weights_sha256: SHA-256 of the weights of this version.
            files: Names of the files that a version has.

        Returns:
            Ledger numbers of the deleted versions.

        Raises:
            TrackingError: MLflow stops answering, or files on its server cannot be deleted.
            StorageError: Files on this machine cannot be deleted.
        """
        with self._answering("older versions may still be there; run the command again"):
            versions = self._versions()
            same = (version, weights_sha256)
            old = [each for each in versions if (self._number(each), each.tags.get(WEIGHTS_TAG)) != same]
            stays = {each.run_id for each in versions if each not in old}
            # If the registered model was renamed, older runs are in the experiment with the first name.
            named = [self._run(each.run_id) for each in old if each.run_id]
            known = {run.info.run_id: run for run in [*self._runs(deleted=True), *filter(None, named)]}
            runs = [run for run_id, run in known.items() if run_id not in stays]
            for run in runs:
                self._delete_files(run, files)
            for each in old:
                self._client.delete_model_version(self.name, str(each.version))
            for run in runs:
                if run.info.lifecycle_stage == "active":
                    self._client.delete_run(run.info.run_id)
        return sorted(map(self._number, old))

    @contextmanager
    def _answering(self, consequence: str) -> Iterator[None]:
        """Replace every error of MLflow in the block by an error that also states the consequence for the user."""
        try:
            yield
        except store.failures() as error:
            raise TrackingError(f"MLflow at {self.address}: {store.first_line(error)}; {consequence}") from error
        except OSError as error:
            raise StorageError(f"cannot use MLflow's files: {error.strerror or error}; {consequence}") from error

    def _is_there(self) -> bool:
        return bool(self._client.search_registered_models(f"name = '{self.name}'"))

    def _versions(self) -> list["ModelVersion"]:
        """Return the versions of the registered model that belong to this ledger."""
        found: list[ModelVersion] = []
        token = None
        while True:
            page = self._client.search_model_versions(f"name = '{self.name}'", page_token=token)
            found += page
            token = page.token
            if not token:
                return [each for each in found if each.tags.get(OWNER_TAG) == self._owner]

    def _number(self, version: "ModelVersion") -> int:
        text = version.tags.get(VERSION_TAG, "")
        if not re.fullmatch(r"[1-9]\d{0,14}", text, re.ASCII):
            raise TrackingError(
                f"version {version.version} of {self.name} in MLflow has the tag {VERSION_TAG} = {text!r}, but "
                "this tag must be the number of a version in the ledger: somebody changed the tag"
            )
        return int(text)

    def _runs(self, *, deleted: bool = False) -> list["Run"]:
        """Return the runs with this ledger's versions; with ``deleted``, also runs that are marked as deleted."""
        from mlflow.entities import ViewType

        view = ViewType.ALL if deleted else ViewType.ACTIVE_ONLY
        mine, found = f"tags.`{OWNER_TAG}` = '{self._owner}'", list["Run"]()
        experiment, token = self._experiment_id(), None
        while True:
            page = self._client.search_runs([experiment], mine, view, max_results=1000, page_token=token)
            found += page
            token = page.token
            if not token:
                return found

    def _run(self, run_id: str) -> "Run | None":
        """Return the run with the given id; None if no such run exists, or if the run is not one of this ledger's."""
        from mlflow.exceptions import MlflowException

        try:
            run = self._client.get_run(run_id)
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            return None
        return run if run.data.tags.get(OWNER_TAG) == self._owner else None

    def _experiment_id(self) -> str:
        name = f"{EXPERIMENTS}/{self.name}"
        experiment = self._client.get_experiment_by_name(name)
        if experiment is None:
            # A server decides on its own where it stores files.
            location = None if self._root is None else f"{_SERVED}{name}"
            tags = {"mlflow.experimentKind": "custom_model_development"}
            return str(self._client.create_experiment(name, artifact_location=location, tags=tags))
        if experiment.lifecycle_stage == "deleted":
            self._client.restore_experiment(experiment.experiment_id)
        return str(experiment.experiment_id)

    def _put_run(self, entry: Entry) -> tuple["Run", bool]:
        """Make sure that exactly one run has a version's files and numbers, and return whether anything was missing."""
        from mlflow.entities import Metric

        same = {VERSION_TAG: str(entry.version), WEIGHTS_TAG: entry.weights_sha256}
        runs = [run for run in self._runs() if same.items() <= run.data.tags.items()]
        run = min(runs, key=lambda each: each.info.status != "FINISHED", default=None)
        changed = run is None or run.info.status != "FINISHED"
        if run is None:
            tags = {**entry.tags, **same, OWNER_TAG: self._owner, "mlflow.note.content": entry.description}
            name = f"{self.name}, version {entry.version} of the ledger"
            run = self._client.create_run(self._experiment_id(), tags=tags, run_name=name)
        files = self._files(run)
        if not self._holds(files, entry.files):
            changed = True
            with tempfile.TemporaryDirectory(dir=self._scratch) as directory:
                for name, content in entry.files.items():
                    (Path(directory) / name).write_bytes(content)
                files.log_artifacts(directory)  # type: ignore[no-untyped-call]
            if not self._holds(files, entry.files):
                raise TrackingError(f"MLflow at {self.address} does not keep the files that it is sent")
        if run.info.status != "FINISHED":
            # MLflow stores the same number at the same step and time only once.
            metrics = [Metric(key, value, run.info.start_time, 0) for key, value in entry.metrics.items()]
            self._client.log_batch(run.info.run_id, metrics)
            self._client.set_terminated(run.info.run_id, "FINISHED")
        return run, changed

    def _create_version(self, entry: Entry, run: "Run") -> "ModelVersion":
        tags = {**entry.tags, VERSION_TAG: str(entry.version), WEIGHTS_TAG: entry.weights_sha256}
        return self._client.create_model_version(
            self.name,
            run.info.artifact_uri,
            run.info.run_id,
            tags={**tags, OWNER_TAG: self._owner},
            description=entry.description,
        )

    def _files(self, run: "Run") -> "ArtifactRepository":
        """Return the place of a run's files."""
        from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

        place = str(run.info.artifact_uri)
        if self._root is not None and place.startswith(_SERVED):
            # No server is asked, so the files are where a server would look for them.
            place = (self._root / place.removeprefix(_SERVED)).as_uri()
        files: ArtifactRepository = get_artifact_repository(place, tracking_uri=self._uri)
        return files

    def _holds(self, files: "ArtifactRepository", due: Mapping[str, bytes]) -> bool:
        """Return whether a run has exactly these files, byte for byte."""
        if len(_listed(files, due)) < len(due):
            return False
        with tempfile.TemporaryDirectory(dir=self._scratch) as directory:
            for name in due:
                files.download_artifacts(name, directory)  # type: ignore[no-untyped-call]
            return all((Path(directory) / name).read_bytes() == content for name, content in due.items())

    def _delete_files(self, run: "Run", names: Collection[str]) -> None:
        """Delete only the files with these names, because the server determines where a run's files are."""
        files = self._files(run)
        for each in _listed(files, names):
            files.delete_artifacts(each)  # type: ignore[no-untyped-call]
        if _listed(files, names):
            raise TrackingError(
                f"MLflow at {self.address} did not delete the files of run {run.info.run_id}, which hold an old model: "
                f"delete {run.info.artifact_uri} by hand, and run the command again"
            )


def _listed(files: "ArtifactRepository", names: Collection[str]) -> list[str]:
    """Return the given names for which a run has a file."""
    return [each.path for each in files.list_artifacts() if each.path in names]


def _place_of(uri: str) -> tuple[str, Path | None]:
    """Return the address to record, and the directory of files if the store is a SQLite file."""
    if uri.startswith(("http://", "https://")):
        return store.display(uri).rstrip("/"), None
    database = sqlalchemy.make_url(uri).database if uri.startswith("sqlite") else None
    if not database or database == ":memory:":
        raise ParameterError(
            "MLFLOW_TRACKING_URI must be the address of an MLflow server (http://...) or of a SQLite file "
            f"(sqlite:///...), got {store.display(uri)!r}: other stores do not say where a model's files are"
        )
    path = Path(database).resolve()
    return f"sqlite:///{path}", path.parent / LOCAL_FILES
