"""DVC over SSH and S3, and MLflow on PostgreSQL with its registry of models, against real servers.

Skipped where `UNLEARNING_SCALE` names no scripts that start them: `make cluster` runs them. The server for S3 is
moto's, which checks paths and wiring, and no signature and no permission.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest
import safetensors.numpy

from certified_unlearning.reproduction.tracking.store import why_unreachable
from tests.ledger.tables import make_model, write_table
from tests.workflow.conftest import SmokeRun
from tests.workflow.slurm import require_modules, script, wait_until
from tests.workflow.test_cluster import tracked
from tests.workflow.test_dvc import UP_TO_DATE, Repository, jobs
from tests.workflow.working_tree import WorkingTree

pytestmark = pytest.mark.workflow

TRACKERS = 4
KILLS = 3


@pytest.fixture
def committed(smoke_run: SmokeRun, tmp_path: Path) -> Repository:
    """A repository with the results of smoke, as DVC and git have them."""
    repository = Repository(smoke_run.tree.copy(tmp_path / "repository").root)
    (repository.root / "dvc.lock").unlink(missing_ok=True)
    repository.change_parameter("preset", lambda _: "smoke")
    repository.git("init", "--quiet")
    repository.commit("the smoke preset")
    return repository


def assert_a_fresh_clone_has_nothing_to_run(repository: Repository, tmp_path: Path, settings: list[list[str]]) -> None:
    """Push, clone, pull: the results are there, and a run does nothing."""
    for setting in settings:
        repository.dvc("remote", *setting)
    repository.git("commit", "--quiet", "--all", "--message", "a remote")
    assert "pushed" in repository.dvc("push", "dvc.yaml")
    subprocess.run(["git", "clone", "--quiet", repository.root, tmp_path / "clone"], check=True)
    clone = Repository(tmp_path / "clone")
    for setting in settings:
        if "--local" in setting:  # No part of what git has.
            clone.dvc("remote", *setting)
    clone.dvc("pull", "dvc.yaml")
    brought = ("records.parquet", "metrics.json", "claims.json", "report.html", "figures/**/*", "plots/**/*")
    assert clone.digests(*brought) == repository.digests(*brought)
    repeated = clone.dvc("repro")
    assert UP_TO_DATE in repeated
    assert jobs(repeated) == set()
    assert "in sync" in clone.dvc("status", "--cloud", "dvc.yaml")


@pytest.fixture
def ssh(tmp_path: Path) -> Iterator[list[list[str]]]:
    """What `dvc remote` is told of an SSH server."""
    started = script("ssh-here.sh")
    require_modules("dvc_ssh", extra="servers")
    running = Path(os.environ.get("SSHROOT", "/var/lib/ssh-here"), "sshd.pid").exists()
    printed = subprocess.check_output([started, "start"], text=True)
    keyfile = re.search(r"keyfile (\S+)", printed)
    address = re.search(r"(ssh://\S+?:\d+)/", printed)
    assert keyfile is not None
    assert address is not None
    yield [
        ["add", "--default", "there", f"{address[1]}{tmp_path}/remote"],
        ["modify", "--local", "there", "keyfile", keyfile[1]],
    ]
    if not running:  # Otherwise nodes of a cluster may have their mounts through it.
        subprocess.run([started, "stop"], check=True)


def test_results_pushed_over_ssh_need_no_run_in_a_fresh_clone(
    ssh: list[list[str]], committed: Repository, tmp_path: Path
) -> None:
    assert_a_fresh_clone_has_nothing_to_run(committed, tmp_path, ssh)
    assert any((tmp_path / "remote").rglob("*"))


def free_port() -> int:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture
def s3() -> Iterator[list[list[str]]]:
    """What `dvc remote` is told of an S3 server with a bucket."""
    script("ssh-here.sh")  # Where servers are not asked for, this one is not started either.
    require_modules("dvc_s3", "moto", extra="servers, and moto[server]")
    import boto3

    port = free_port()
    server = Path(sys.executable).with_name("moto_server")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([server, "--port", str(port)], **quiet)  # type: ignore[call-overload]
    address = f"http://127.0.0.1:{port}"
    wait_until("the S3 server", lambda: answers(port), seconds=120)
    keys = {"aws_access_key_id": "anyone", "aws_secret_access_key": "anything", "region_name": "us-east-1"}
    boto3.client("s3", endpoint_url=address, **keys).create_bucket(Bucket="results")
    yield [
        ["add", "--default", "there", "s3://results/smoke"],
        ["modify", "there", "endpointurl", address],
        ["modify", "there", "region", "us-east-1"],
        ["modify", "--local", "there", "access_key_id", "anyone"],
        ["modify", "--local", "there", "secret_access_key", "anything"],
    ]
    process.terminate()
    process.wait(timeout=30)


def answers(port: int) -> bool:
    with closing(socket.socket()) as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0


def test_results_pushed_to_s3_need_no_run_in_a_fresh_clone(
    s3: list[list[str]], committed: Repository, tmp_path: Path
) -> None:
    assert_a_fresh_clone_has_nothing_to_run(committed, tmp_path, s3)


class TrackingServer:
    """`mlflow server` on a database, which can be killed and started again at the same address."""

    def __init__(self, database: str, directory: Path) -> None:
        self.database = database
        self.address = f"http://127.0.0.1:{free_port()}"
        self._command = [
            Path(sys.executable).with_name("mlflow"), "server", "--backend-store-uri", database, "--workers", "1",
            "--artifacts-destination", directory / "artifacts", "--port", self.address.rpartition(":")[2],
        ]  # fmt: skip
        self._log = directory / "server.log"
        self.start()

    def start(self) -> None:
        environment = {
            **os.environ,
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        }
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                self._command, env=environment, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[TrackingServer]:
    started = script("postgres-here.sh")
    require_modules("psycopg2", extra="servers")
    # A directory that the database's own user may enter.
    environment = os.environ | {"PGROOT": "/var/lib/postgresql/tests", "PORT": str(free_port())}
    subprocess.run([started, "destroy"], env=environment, check=True, capture_output=True)
    printed = subprocess.check_output([started, "start"], env=environment, text=True)
    server = TrackingServer(printed.split()[-1], tmp_path)
    yield server
    server.kill()
    subprocess.run([started, "destroy"], env=environment, check=True, capture_output=True)


def test_four_trackers_at_once_lose_no_run_though_the_server_is_killed_three_times(
    server: TrackingServer, smoke_tree: WorkingTree
) -> None:
    import psycopg2

    expected = tracked(smoke_tree)
    smoke_tree.environment["MLFLOW_TRACKING_URI"] = server.address

    def begin(*command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command,
            cwd=smoke_tree.root,
            env=smoke_tree.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def count() -> int:
        with closing(psycopg2.connect(server.database)) as database, database.cursor() as cursor:
            cursor.execute("select to_regclass('runs')")
            if cursor.fetchone() == (None,):
                return 0
            cursor.execute("select count(*) from runs where lifecycle_stage = 'active' and status = 'FINISHED'")
            return int(cursor.fetchone()[0])

    kills, process, printed = 0, begin("snakemake", "--cores", str(TRACKERS), "--config", "preset=smoke"), []
    while process is not None:
        if kills < KILLS and count() >= (kills + 1) * expected // (KILLS + 2):
            server.kill()
            kills += 1
            time.sleep(1)
            server.start()
        if process.poll() is not None:
            printed.append(" ".join(process.communicate()[0].split()))
            missing = count() < expected
            if len(printed) == 1:
                assert process.returncode == 0, printed[0]
                assert missing == ("not in MLflow: " in printed[0]), printed[0]
            assert len(printed) <= KILLS + 1, printed[-1]
            process = begin("unlearn", "track", "--sync") if missing else None
        time.sleep(0.2)
    print(f"{len(printed) - 1} times `unlearn track --sync`")
    assert kills == KILLS
    assert count() == expected
    assert tracked_twice(server.database) == 0
    check = shutil.which("pg_amcheck") or max(Path("/usr/lib/postgresql").glob("*/bin/pg_amcheck"), default=None)
    if check is not None:
        command = ["runuser", "-u", "postgres", "--", check, "--install-missing", "--heapallindexed", "mlflow"]
        port = server.database.rpartition(":")[2].partition("/")[0]
        checked = subprocess.run([*command, "--port", port], capture_output=True, text=True, cwd="/")
        assert (checked.returncode, checked.stdout) == (0, ""), checked.stderr


def tracked_twice(database: str) -> int:
    """Return how many keys more than one active run has."""
    import psycopg2

    doubles = (
        "select count(*) from (select value from tags join runs using (run_uuid) where lifecycle_stage = 'active' "
        "and key = 'certified_unlearning.run_key' group by value, experiment_id having count(*) > 1) as twice"
    )
    with closing(psycopg2.connect(database)) as connection, connection.cursor() as cursor:
        cursor.execute(doubles)
        return int(cursor.fetchone()[0])


def test_nothing_of_a_ledgers_old_weights_is_left_in_mlflow_once_they_are_deleted(
    server: TrackingServer, tmp_path: Path
) -> None:
    """`unlearn track --delete-old` deletes the files, and `mlflow gc` what PostgreSQL still says of the run."""
    model, artifacts = tmp_path / "churn", tmp_path / "artifacts"
    write_table(tmp_path / "people.csv")
    make_model(model, tmp_path / "people.csv")
    environment = os.environ | {"MLFLOW_TRACKING_URI": server.address, "MLFLOW_DISABLE_TELEMETRY": "true"}

    def run(*command: str | Path) -> str:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"
        return done.stdout

    def is_stored(weights: set[bytes]) -> bool:
        return any(weights & pieces(path.read_bytes()) for path in artifacts.rglob("*") if path.is_file())

    wait_until("the MLflow server", lambda: not why_unreachable(server.address), seconds=300)
    assert "version 1 is version 1 of the registered model churn in MLflow" in run("unlearn", "track", model)
    old = (model / "weights-1.safetensors").read_bytes()
    numbers = old[8 + int.from_bytes(old[:8], "little") :]
    assert is_stored(pieces(numbers))
    run("unlearn", "request", model, "--id", "p3")
    run("unlearn", "apply", model, "--no-quality")
    assert "which still knows records that were removed since" in run("unlearn", "status", model, "--no-quality")
    printed = run("unlearn", "track", model, "--delete-old")
    assert "version 2 is version 2 of churn in MLflow" in printed
    assert "deleted with its files: version 1" in printed
    assert not is_stored(pieces(numbers)), "also before `mlflow gc`"
    assert "which still knows" not in run("unlearn", "status", model, "--no-quality")
    run(Path(sys.executable).with_name("mlflow"), "gc", "--backend-store-uri", server.database)
    dump = dumped(server.database)
    assert sha256(old).hexdigest() in dump, "tags of a deleted version stay"
    assert "churn, version 1 of the ledger" not in dump
    assert "churn, version 2 of the ledger" in dump
    for number in safetensors.numpy.load(old)["weights"].ravel():
        assert repr(float(number)) not in dump
        assert str(number) not in dump
        assert number.tobytes().hex() not in dump.lower()
    assert b64encode(numbers).decode()[:12] not in dump
    downloaded = tmp_path / "served"
    run(
        *(Path(sys.executable).with_name("mlflow"), "artifacts", "download"),
        *("--artifact-uri", "models:/churn@current", "--dst-path", downloaded),
    )
    assert (downloaded / "weights.safetensors").read_bytes() == (model / "weights-2.safetensors").read_bytes()
    assert f"{downloaded / 'certificate.json'}: " in run("unlearn", "verify", downloaded)
    assert "no change was needed" in run("unlearn", "track", model, "--delete-old")
    run("unlearn", "verify", model)


def pieces(content: bytes, length: int = 8) -> set[bytes]:
    """Return all runs of some bytes: two numbers, which nothing else holds by chance."""
    return {content[at : at + length] for at in range(len(content) - length + 1)}


def dumped(database: str) -> str:
    """Return everything that PostgreSQL holds."""
    dump = shutil.which("pg_dump") or max(Path("/usr/lib/postgresql").glob("*/bin/pg_dump"))
    return subprocess.check_output([dump, "--data-only", database], text=True)
