"""A ledger's versions in MLflow's registry: recorded first, sent once, moved and deleted after a removal."""

import os
import shutil
import socket
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from certified_unlearning.errors import DataError, ParameterError, TrackingError, UnlearningError
from certified_unlearning.ledger import requests
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.copies.exports import export, withdraw
from certified_unlearning.ledger.directory import ModelDirectory, file_sha256
from certified_unlearning.ledger.log.replay import replay
from certified_unlearning.ledger.log.setting import set_log
from certified_unlearning.ledger.store import Ledger
from certified_unlearning.ledger.verification import verify
from certified_unlearning.reproduction.tracking import models
from certified_unlearning.reproduction.tracking.models import RegisteredModel
from tests.ledger.conftest import Unlearn
from tests.ledger.tables import make_model

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"  # before any test loads MLflow

TABLES = ("runs", "metrics", "params", "tags", "experiments", "registered_models", "model_versions",
          "model_version_tags", "registered_model_aliases", "registered_model_tags")  # fmt: skip


class Store:
    """MLflow in a SQLite file, with the files beside it."""

    def __init__(self, root: Path) -> None:
        self.database = root / "mlflow.db"
        self.address = f"sqlite:///{self.database}"
        self.files = root / "mlartifacts"

    @property
    def client(self) -> Any:
        from mlflow import MlflowClient

        return MlflowClient(self.address)

    def versions(self, name: str = "churn") -> dict[str, dict[str, str]]:
        """The tags of each version, by its number in MLflow."""
        return {str(each.version): each.tags for each in self.client.search_model_versions(f"name = '{name}'")}

    def current(self, name: str = "churn") -> str:
        return str(self.client.get_model_version_by_alias(name, "current").version)

    def contents(self, number: str, name: str = "churn") -> dict[str, bytes]:
        """The files of a version."""
        source = self.client.get_model_version(name, number).source
        return {
            path.name: path.read_bytes() for path in (self.files / source.removeprefix("mlflow-artifacts:/")).iterdir()
        }

    def runs(self) -> dict[str, list[str]]:
        """The names of the runs, by their stage."""
        found: dict[str, list[str]] = {"active": [], "deleted": []}
        with closing(sqlite3.connect(self.database)) as connection:
            for name, stage in connection.execute("select name, lifecycle_stage from runs order by start_time"):
                found[stage].append(name)
        return found

    def rows(self) -> dict[str, list[Any]]:
        """Everything in the tables that tracking writes to."""
        with closing(sqlite3.connect(self.database)) as connection:
            return {table: sorted(connection.execute(f"select * from {table}"), key=str) for table in TABLES}

    def holds(self, content: bytes) -> bool:
        """Whether any file holds these bytes."""
        return any(content in path.read_bytes() for path in self.files.rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("registry"))
    store.client.search_experiments()
    return store


@pytest.fixture
def store(empty_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    (tmp_path / "store").mkdir()
    shutil.copy(empty_store.database, tmp_path / "store")
    found = Store(tmp_path / "store")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", found.address)
    return found


@pytest.fixture
def churn(model: Path) -> Path:
    """The model directory, with the name of the registered model."""
    return model.rename(model.with_name("churn"))


@pytest.fixture
def track(store: Store, unlearn: Unlearn) -> Callable[..., str]:
    def run(path: Path, *options: str) -> str:
        result = unlearn("track", path, *options)
        assert result.exit_code == 0, result.output
        return str(result.stdout)

    return run


Track = Callable[..., str]


def remove(path: Path, *identifiers: str) -> None:
    requests.request(path, list(identifiers))
    apply(path)


def weights(path: Path) -> bytes:
    """The numbers of the current version's weights as the file holds them."""
    content = ModelDirectory(path).weights(requests.status(path).state.current.version).read_bytes()
    return content[8 + int.from_bytes(content[:8], "little") :]


def outdated(path: Path) -> dict[int, bool]:
    found = requests.status(path)
    return {each.version: each.is_outdated(found.state) for each in found.copies}


def events(path: Path) -> int:
    with Ledger.opened(ModelDirectory(path).ledger, read_only=True) as ledger:
        return len(ledger.verify_chain())


def test_a_version_holds_what_export_writes_and_says_what_its_certificate_states(
    churn: Path, store: Store, track: Track, tmp_path: Path
) -> None:
    printed = track(churn)
    assert (
        f"version 1 is version 1 of the registered model churn in MLflow ({store.address}), and the alias `current` "
        "points to it" in printed
    )
    assert store.current() == "1"
    export(churn, to=tmp_path / "served")
    assert store.contents("1") == {path.name: path.read_bytes() for path in (tmp_path / "served").iterdir()}
    (tags,) = store.versions().values()
    assert tags["weights_sha256"] == file_sha256(ModelDirectory(churn).weights(1))
    assert (tags["ledger_version"], tags["kind"]) == ("1", "steps")
    assert "epsilon" not in tags, "nothing was removed yet"
    remove(churn, "p3")
    track(churn)
    certified = requests.status(churn).state.current
    tags = store.versions()["2"]
    assert float(tags["epsilon"]) == certified.epsilon
    assert float(tags["delta"]) == certified.stated.whole_delta
    assert 0.5 < float(tags["right_guesses"]) < 1
    run = store.client.get_run(store.client.get_model_version("churn", "2").run_id)
    assert run.data.metrics["epsilon"] == certified.epsilon
    assert run.info.status == "FINISHED"
    assert "At most " in store.client.get_model_version("churn", "2").description
    verify(churn)


def test_tracking_twice_changes_nothing(churn: Path, store: Store, track: Track) -> None:
    track(churn)
    before, recorded = store.rows(), events(churn)
    assert "no change was needed" in track(churn)
    assert store.rows() == before
    assert events(churn) == recorded
    remove(churn, "p3")
    track(churn, "--delete-old")
    before, recorded = store.rows(), events(churn)
    assert "deleted" not in track(churn, "--delete-old")
    assert store.rows() == before
    assert events(churn) == recorded


def test_after_a_removal_the_alias_moves_and_old_versions_are_marked_then_deleted(
    churn: Path, store: Store, track: Track, unlearn: Unlearn
) -> None:
    track(churn)
    old = weights(churn)
    remove(churn, "p3")
    assert outdated(churn) == {1: True}
    printed = unlearn("status", churn, "--no-quality").stdout
    assert f"copy 'mlflow: churn at {store.address}, version 1': version 1, which still knows records" in printed
    assert f"`unlearn track {churn} --name churn --delete-old` adds version 2 and deletes this copy" in printed
    assert "marked as outdated: version 1; --delete-old deletes older versions" in track(churn)
    assert store.current() == "2"
    assert store.versions()["1"]["outdated"] == "records were removed since"
    assert store.client.get_model_version("churn", "1").description.startswith(
        "Outdated: records were removed since. V"
    )
    assert "outdated" not in store.versions()["2"]
    assert outdated(churn) == {1: True, 2: False}
    assert store.holds(old)
    assert "deleted with its files: version 1" in track(churn, "--delete-old")
    assert list(store.versions()) == ["2"]
    assert store.current() == "2"
    assert not store.holds(old)
    assert store.holds(weights(churn))
    assert store.runs() == {"active": ["churn, version 2 of the ledger"], "deleted": ["churn, version 1 of the ledger"]}
    assert outdated(churn) == {2: False}
    assert "version 1" not in unlearn("status", churn, "--no-quality").stdout.split("version 1 (")[0]
    verify(churn)


@pytest.mark.sampled
@pytest.mark.parametrize(
    "at",
    ["create_registered_model", "create_run", "log_batch", "set_terminated", "create_model_version",
     "set_registered_model_alias", "set_model_version_tag"],
)  # fmt: skip
def test_what_a_stopped_server_left_half_done_is_finished_once(
    at: str, churn: Path, store: Store, track: Track, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    def stopped(*_: object, **__: object) -> None:
        raise MlflowException("the server was stopped")

    if at == "set_model_version_tag":
        track(churn)
        remove(churn, "p3")
    with monkeypatch.context() as patched:
        patched.setattr(MlflowClient, at, stopped)
        with pytest.raises(
            TrackingError, match=f"MLflow at {store.address}: the server was stopped; .*run the command again"
        ):
            track(churn)
    assert not outdated(churn)[requests.status(churn).state.current.version], "recorded first"
    recorded = events(churn)
    track(churn)
    assert events(churn) == recorded
    versions = requests.status(churn).state.current.version
    assert len(store.versions()) == len(store.runs()["active"]) == versions
    assert store.current() == str(versions)
    assert {"weights.safetensors", "certificate.json", "columns.json"} == set(store.contents(store.current()))


@pytest.mark.sampled
@pytest.mark.parametrize("at", ["delete_model_version", "delete_run"])
def test_a_deletion_that_was_stopped_goes_on(
    at: str, churn: Path, store: Store, track: Track, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    def stopped(*_: object, **__: object) -> None:
        raise MlflowException("the server was stopped")

    track(churn)
    old = weights(churn)
    remove(churn, "p3")
    with monkeypatch.context() as patched:
        patched.setattr(MlflowClient, at, stopped)
        with pytest.raises(TrackingError, match="older versions may still be there; run the command again"):
            track(churn, "--delete-old")
    assert outdated(churn) == {1: True, 2: False}
    assert not store.holds(old), "weights go first"
    track(churn, "--delete-old")
    assert list(store.versions()) == ["2"]
    assert len(store.runs()["active"]) == 1
    assert outdated(churn) == {2: False}


def test_a_copy_whose_files_were_not_deleted_stays_recorded(
    churn: Path, track: Track, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow.store.artifact.local_artifact_repo import LocalArtifactRepository

    track(churn)
    remove(churn, "p3")
    monkeypatch.setattr(LocalArtifactRepository, "delete_artifacts", lambda *_: None)
    with pytest.raises(TrackingError, match=r"did not delete the files of run .*, which hold an old model: delete"):
        track(churn, "--delete-old")
    assert outdated(churn) == {1: True, 2: False}


def test_files_that_are_not_kept_are_no_version(churn: Path, store: Store, track: Track, monkeypatch: Any) -> None:
    from mlflow.store.artifact.local_artifact_repo import LocalArtifactRepository

    monkeypatch.setattr(LocalArtifactRepository, "log_artifacts", lambda *_: None)
    with pytest.raises(TrackingError, match="does not keep the files that it is sent"):
        track(churn)
    assert store.versions() == {}


@pytest.mark.exhaustive
def test_files_that_somebody_spoilt_are_sent_again(churn: Path, store: Store, track: Track) -> None:
    track(churn)
    due = store.contents("1")
    (spoilt,) = store.files.rglob("weights.safetensors")
    spoilt.write_bytes(b"others")
    assert "no change was needed" not in track(churn)
    assert store.contents("1") == due
    spoilt.unlink()
    track(churn)
    assert store.contents("1") == due
    assert list(store.versions()) == ["1"]


@pytest.mark.exhaustive
def test_files_of_a_version_that_somebody_deleted_on_the_page_are_deleted(
    churn: Path, store: Store, track: Track
) -> None:
    track(churn)
    old, run = weights(churn), store.client.get_model_version("churn", "1").run_id
    store.client.delete_model_version("churn", "1")
    store.client.delete_run(run)
    remove(churn, "p3")
    track(churn)
    assert store.holds(old)
    track(churn, "--delete-old")
    assert not store.holds(old)
    assert outdated(churn) == {2: False}


@pytest.mark.exhaustive
def test_files_are_deleted_where_the_registered_model_got_another_name_or_its_runs_are_gone(
    churn: Path, store: Store, track: Track
) -> None:
    track(churn)
    old = weights(churn)
    store.client.rename_registered_model("churn", "retention")
    remove(churn, "p3")
    assert "deleted with its files: version 1" in track(churn, "--name", "retention", "--delete-old")
    assert not store.holds(old)
    assert store.current("retention") == "2"
    remove(churn, "p4")
    with closing(sqlite3.connect(store.database)) as connection, connection:  # as `mlflow gc` does
        connection.execute(
            "delete from runs where run_uuid = ?", (store.client.get_model_version("retention", "2").run_id,)
        )
    track(churn, "--name", "retention", "--delete-old")
    assert list(store.versions("retention")) == ["3"]


def test_a_registered_model_that_is_not_this_ledgers_is_refused(
    churn: Path, store: Store, track: Track, original: Any, tmp_path: Path
) -> None:
    store.client.create_registered_model("theirs")
    store.client.create_model_version("theirs", "s3://somewhere")
    with pytest.raises(TrackingError, match="has a registered model 'theirs' that is not this ledger's; choose"):
        track(churn, "--name", "theirs")
    track(churn)
    make_model(tmp_path / "another", original.data)
    recorded = events(tmp_path / "another")
    with pytest.raises(TrackingError, match="has a registered model 'churn' that is not this ledger's"):
        track(tmp_path / "another", "--name", "churn", "--delete-old")
    assert events(tmp_path / "another") == recorded
    assert list(store.versions()) == list(store.versions("theirs")) == ["1"]
    track(tmp_path / "another")
    assert store.current("another") == "1"


def test_a_directory_that_is_behind_the_registry_is_refused(
    churn: Path, store: Store, track: Track, tmp_path: Path
) -> None:
    backup = Path(shutil.copytree(churn, tmp_path / "backup"))
    remove(churn, "p3")
    track(churn, "--delete-old")
    recorded = events(backup)
    with pytest.raises(
        TrackingError, match=r"version 1 of churn in MLflow is version 2 of this ledger, but the direct"
    ):
        track(backup, "--name", "churn", "--delete-old")
    remove(backup, "p4")
    with pytest.raises(TrackingError, match=r"version 1 of churn in MLflow is version 2 of this ledger with other wei"):
        track(backup, "--name", "churn", "--delete-old")
    assert events(backup) == recorded + 3
    assert store.current() == "1"
    store.client.delete_model_version("churn", "1")
    track(backup, "--name", "churn", "--delete-old")
    assert store.holds(weights(backup))
    assert not store.holds(weights(churn))


def test_a_directory_that_was_replayed_after_a_restore_is_tracked_again_and_lost_versions_are_deleted(
    churn: Path, store: Store, track: Track, tmp_path: Path
) -> None:
    set_log(churn, tmp_path / "log")
    backup = Path(shutil.copytree(churn, tmp_path / "backup"))
    remove(churn, "p3")
    track(churn)
    lost = weights(churn)
    shutil.rmtree(churn)
    backup.rename(churn)
    with pytest.raises(DataError, match=r"is behind its log .*brings it up to date"):
        track(churn, "--delete-old")
    replay(churn, tmp_path / "log")
    assert list(outdated(churn).values()) == [True]
    track(churn)
    assert store.current() == "2"
    assert store.versions()["1"]["outdated"] == "records were removed since"
    track(churn, "--delete-old")
    assert list(store.versions()) == ["2"]
    assert not store.holds(lost)
    assert store.holds(weights(churn))
    assert list(outdated(churn).values()) == [False]
    verify(churn)


def test_a_tag_that_somebody_changed_is_one_sentence(churn: Path, store: Store, track: Track) -> None:
    track(churn)
    store.client.set_model_version_tag("churn", "1", "ledger_version", "one")
    with pytest.raises(
        TrackingError, match="version 1 of churn in MLflow has the tag ledger_version = 'one', but this"
    ):
        track(churn)


def test_nothing_is_recorded_where_nothing_can_be_sent(
    churn: Path, store: Store, track: Track, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "PATIENCE_SECONDS", 0)
    recorded = events(churn)
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://me:secret@127.0.0.1:{port}")
    with pytest.raises(TrackingError) as refused:
        track(churn)
    assert str(refused.value) == (
        f"MLflow at http://127.0.0.1:{port} is not available (it does not accept connections); nothing was recorded "
        "and nothing was sent: run the command again when MLflow is back"
    )
    for uri in ("postgresql://mlflow@127.0.0.1/mlflow", "sqlite://", "databricks", "file:///srv/mlruns"):
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
        with pytest.raises(ParameterError, match="MLFLOW_TRACKING_URI must be the address of an MLflow server"):
            track(churn)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store.address)
    for name in ("", "a/b", "a:b", ".a", "a'b", "ä", "x" * 201):
        with pytest.raises(ParameterError, match="--name must consist of 1 to 200 characters"):
            RegisteredModel(name, "owner", store.address, churn)
    ModelDirectory(churn).weights(1).write_bytes(b"others")
    with pytest.raises(UnlearningError, match="was tampered with: it is not the model that the ledger recorded"):
        track(churn)
    with pytest.raises(DataError, match="is not a model directory"):
        track(churn.parent)
    assert events(churn) == recorded
    assert store.versions() == {}


def test_the_address_must_be_named(churn: Path, track: Track, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    with pytest.raises(ParameterError, match="MLFLOW_TRACKING_URI is not set: it must be the address of an MLflow"):
        track(churn)


def test_weights_on_their_way_lie_within_the_directory_and_not_for_long(
    churn: Path, track: Track, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What a killed process leaves there, the next one deletes."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "elsewhere"))
    seen = []
    made = tempfile.TemporaryDirectory
    monkeypatch.setattr(tempfile, "TemporaryDirectory", lambda **asked: seen.append(asked["dir"]) or made(**asked))
    (churn / ".track").mkdir()
    (churn / ".track" / "weights.safetensors").write_bytes(b"old")
    assert [path.name for path in verify(churn).strangers] == ["weights.safetensors"]
    track(churn)
    assert set(seen) == {churn / ".track"}
    assert not (churn / ".track").exists()
    assert list((tmp_path / "elsewhere").rglob("weights*")) == []
    assert verify(churn).strangers == ()


def test_only_files_of_a_version_are_deleted_wherever_a_server_says_that_they_lie(
    churn: Path, store: Store, track: Track, tmp_path: Path
) -> None:
    track(churn)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis").write_text("years of work")
    with closing(sqlite3.connect(store.database)) as connection, connection:
        connection.execute("update runs set artifact_uri = ?", (str(tmp_path / "mine"),))
    remove(churn, "p3")
    track(churn, "--delete-old")
    assert (tmp_path / "mine" / "thesis").read_text() == "years of work"


def test_secret_weights_are_not_sent(churn: Path, store: Store, track: Track, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests.status(churn).state.current.certificate, "publishes_weights", False)
    with pytest.raises(
        ParameterError, match="this model must not be copied: its weights are secret, and its certificate"
    ):
        track(churn)
    assert store.versions() == {}
    assert requests.status(churn).copies == []


@pytest.mark.exhaustive
def test_a_copy_that_was_withdrawn_is_recorded_again(churn: Path, store: Store, track: Track) -> None:
    track(churn)
    withdraw(churn, f"mlflow: churn at {store.address}, version 1")
    assert outdated(churn) == {}
    track(churn)
    assert outdated(churn) == {1: False}
    assert list(store.versions()) == ["1"]


def test_track_is_for_one_of_two(churn: Path, unlearn: Unlearn) -> None:
    for arguments in (["track"], ["track", churn, "--sync"], ["track", "--name", "churn"]):
        with pytest.raises(ParameterError, match="give MODEL_DIR or --sync: `unlearn track MODEL_DIR` sends"):
            unlearn(*arguments)
    with pytest.raises(ParameterError, match="--name and --delete-old are for a model directory"):
        unlearn("track", "--sync", "--delete-old")
