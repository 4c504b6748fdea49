"""The pipeline through SLURM on nodes with a mount of the project each: the same results, whatever is killed.

Skipped where `UNLEARNING_SCALE` names no scripts that start a cluster: `make cluster` runs them.
"""

import functools
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.workflow.conftest import SmokeRun
from tests.workflow.slurm import PROFILE, Cluster, Job, start_cluster, wait_until
from tests.workflow.test_interruption import CHECKPOINT, MODEL, steps_done
from tests.workflow.working_tree import WorkingTree, copy_working_tree

pytestmark = pytest.mark.workflow

SMOKE_JOBS = 20
SHARE_OF_MEMORY = 0.7
EARLY = ("--slurm-init-seconds-before-status-checks", "10")
"""The first look at jobs: the profile leaves the plug-in's 40 s, as a busy cluster likes it."""
LEARNING_STEPS = 40_000
PAUSE = 0.03
"""Seconds after each block of 16 steps: learning takes a minute and a quarter at least, however fast a node is."""
LONG_PAUSE = 0.1
"""With this, it outlives three time limits of a minute."""
LIMITS = 3


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    started = start_cluster(tmp_path_factory.mktemp("shared"))
    yield started
    started.call("stop")


@pytest.fixture(scope="module")
def planned(cluster: Cluster) -> WorkingTree:
    """A working tree on the shared folder in which learning is planned that takes minutes."""
    tree = copy_working_tree(cluster.shared / "planned")
    tree.change_parameter("presets.smoke.learning_steps", lambda _: LEARNING_STEPS)
    tree.change_parameter("presets.smoke.trials", lambda _: 2)
    tree.change_parameter("presets.smoke.accountants", lambda _: ["shifted"])
    tree.environment["OMP_NUM_THREADS"] = "1"
    made = tree.snakemake("results/smoke/langevin_unlearning/fig3a/plan.json")
    assert made.returncode == 0, made.stdout
    return tree


@pytest.fixture(scope="module")
def undisturbed(planned: WorkingTree) -> bytes:
    """What is learned on this machine when nobody interferes."""
    tree = planned.copy(planned.root.parent / "undisturbed")
    made = tree.snakemake(MODEL)
    assert made.returncode == 0, made.stdout
    return (tree.root / MODEL).read_bytes()


@pytest.fixture
def slow(planned: WorkingTree, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[WorkingTree]:
    """A copy on the shared folder that pauses while it learns, and saves its state every two seconds."""
    tree = planned.copy(planned.root.parent / tmp_path.name)
    path = "src/certified_unlearning/engine/checkpoint.py"
    said, pause = 'the last save was long enough ago."""\n', getattr(request, "param", PAUSE)
    tree.edit(path, "every_seconds: float = 20.0", "every_seconds: float = 2.0")
    tree.edit(path, said, f"{said}        time.sleep({pause})\n")
    yield tree
    for job in Cluster(Path(), Path()).jobs(tree.root):
        subprocess.run(["scancel", job.number], check=True)


def start(tree: WorkingTree, *options: str) -> subprocess.Popen[str]:
    """Start Snakemake on the cluster, for one model."""
    return subprocess.Popen(
        ["snakemake", *PROFILE, *EARLY, *options, "--config", "preset=smoke", "--", MODEL],
        cwd=tree.root,
        env=tree.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )


def learning(cluster: Cluster, tree: WorkingTree, process: subprocess.Popen[str], beyond: int = 0) -> Job:
    """Wait until a job has saved more steps than these, and return it."""
    wait_until("learning", lambda: process.poll() is not None or steps_done(tree.root / CHECKPOINT) > beyond)
    assert process.poll() is None, process.communicate()[0]
    (job,) = cluster.jobs(tree.root)
    return job


def ending(process: subprocess.Popen[str]) -> str:
    """Return what was printed up to a good end."""
    printed, _ = process.communicate(timeout=1800)
    assert process.returncode == 0, printed
    return printed


def log_of(tree: WorkingTree) -> str:
    return (tree.root / "logs/smoke/langevin_unlearning/fig3a/langevin-learn.log").read_text()


def failed_attempts(tree: WorkingTree) -> list[str]:
    """Return what each attempt that failed has printed: no later one has overwritten it."""
    return [path.read_text() for path in (tree.root / ".snakemake/slurm_logs").rglob("*.log")]


def test_smoke_on_two_nodes_has_the_tables_of_a_local_run(smoke_run: SmokeRun, cluster: Cluster) -> None:
    since = time.strftime("%Y-%m-%dT%H:%M:%S")
    tree = copy_working_tree(cluster.shared / "smoke")
    ran = tree.run("snakemake", *PROFILE, *EARLY, "--config", "preset=smoke", timeout=3000)
    assert ran.returncode == 0, ran.stdout
    # All tables and certificates; of their columns not times, keys of runs and versions of the code.
    script = "workflow/scripts/compare_results.py"
    compared = tree.run(sys.executable, script, smoke_run.tree.results, tree.results)
    assert compared.returncode == 0, compared.stdout

    jobs = cluster.used(tree.root, since)
    assert 0 < len(jobs) <= SMOKE_JOBS
    assert {job.state for job in jobs} == {"COMPLETED"}
    assert max(job.used_mb / job.asked_mb for job in jobs) <= SHARE_OF_MEMORY

    assert "not in MLflow" not in ran.stdout
    assert tracked(tree) == tracked(smoke_run.tree) > 100
    again = tree.run("snakemake", *PROFILE, "--config", "preset=smoke")
    assert "Nothing to be done" in again.stdout


def tracked(tree: WorkingTree) -> int:
    """Return how many runs a tree's MLflow has; its database is whole."""
    with closing(sqlite3.connect(tree.root / "mlflow.db")) as database:
        assert database.execute("pragma integrity_check").fetchall() == [("ok",)]
        assert database.execute("pragma foreign_key_check").fetchall() == []
        ((finished,),) = database.execute("select count(*) from runs where status = 'FINISHED'")
        ((all_runs,),) = database.execute("select count(*) from runs")
    assert finished == all_runs
    return int(finished)


def test_a_job_that_is_cancelled_goes_on_from_its_checkpoint(
    cluster: Cluster, slow: WorkingTree, undisturbed: bytes
) -> None:
    process = start(slow)
    job = learning(cluster, slow, process)
    subprocess.run(["scancel", job.number], check=True)
    ending(process)
    assert (slow.root / MODEL).read_bytes() == undisturbed
    (failed,) = failed_attempts(slow)
    assert f"JOB {job.number} ON {job.node} CANCELLED" in failed


@pytest.mark.parametrize("slow", [LONG_PAUSE], indirect=True)
def test_a_job_longer_than_three_time_limits_ends_without_anybodys_help(
    cluster: Cluster, slow: WorkingTree, undisturbed: bytes
) -> None:
    since = time.strftime("%Y-%m-%dT%H:%M:%S")
    ending(start(slow, "--set-resources", "learn:runtime=1"))
    assert (slow.root / MODEL).read_bytes() == undisturbed
    states = [job.state for job in cluster.used(slow.root, since)]
    assert states.count("TIMEOUT") >= LIMITS
    assert states[-1] == "COMPLETED"
    said = ["DUE TO TIME LIMIT" in failed for failed in failed_attempts(slow)]
    # One that ends while its node cleans up behind it may be too late without a word of it in its log.
    assert len(said) == states.count("TIMEOUT")
    assert said.count(True) >= LIMITS


def test_a_job_whose_node_crashes_goes_on_from_its_checkpoint(
    cluster: Cluster, slow: WorkingTree, undisturbed: bytes
) -> None:
    process = start(slow)
    job = learning(cluster, slow, process)
    cluster.call("kill-node", job.node)
    done = steps_done(slow.root / CHECKPOINT)
    ending(process)
    cluster.call("start-node", job.node)
    assert 0 < done < LEARNING_STEPS
    assert (slow.root / MODEL).read_bytes() == undisturbed


def test_a_restart_after_sigkill_never_has_two_jobs_for_one_output(
    cluster: Cluster, slow: WorkingTree, undisturbed: bytes
) -> None:
    process = start(slow)
    job = learning(cluster, slow, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert slow.run("snakemake", "--unlock", "--config", "preset=smoke").returncode == 0
    for how in (PROFILE, ("--cores", "2")):  # On this machine a second writer would be as bad.
        refused = slow.run("snakemake", *how, "--config", "preset=smoke", "--", MODEL)
        assert refused.returncode == 1
        assert (
            f"SLURM still has 1 job of an earlier start in this directory ({job.number}: rule_learn" in refused.stdout
        )
        assert "Traceback" not in refused.stdout
        assert [each.number for each in cluster.jobs(slow.root)] == [job.number]
    subprocess.run(["scancel", job.number], check=True)
    wait_until("the end of the job", lambda: not cluster.jobs(slow.root))
    ending(start(slow))
    assert (slow.root / MODEL).read_bytes() == undisturbed


def test_a_login_node_without_a_gpu_asks_for_one_where_the_parameters_do(
    cluster: Cluster, planned: WorkingTree
) -> None:
    since = time.strftime("%Y-%m-%dT%H:%M:%S")
    tree = planned.copy(planned.root.parent / "gpu")
    tree.change_parameter("presets.smoke.device", lambda _: "cuda")
    assert tree.run("bash", "-c", "command -v nvidia-smi").returncode == 1
    tree.run("snakemake", *PROFILE, *EARLY, "--retries", "0", "--config", "preset=smoke", "--", MODEL)
    (job,) = cluster.used(tree.root, since)
    assert "gres/gpu=1" in job.asked
    assert "cuda" in log_of(tree), "here is no device behind, and the job says so"


def test_auto_asks_the_cluster_for_no_gpu_and_says_so(cluster: Cluster, planned: WorkingTree) -> None:
    since = time.strftime("%Y-%m-%dT%H:%M:%S")
    tree = planned.copy(planned.root.parent / "auto")
    tree.change_parameter("presets.smoke.device", lambda _: "auto")
    (tree.root / "bin").mkdir()
    (tree.root / "bin" / "nvidia-smi").symlink_to("/bin/true")
    tree.environment["PATH"] = f"{tree.root}/bin:{tree.environment['PATH']}"
    ran = tree.run("snakemake", *PROFILE, *EARLY, "--config", "preset=smoke", "--", MODEL)
    assert ran.returncode == 0, ran.stdout
    assert "device: auto requests no GPU from the cluster" in ran.stdout
    (job,) = cluster.used(tree.root, since)
    assert "gres/gpu" not in job.asked
