"""Killing learning half-way and starting again ends with the same bits as an undisturbed run."""

import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import pytest
import safetensors
import torch

from certified_unlearning.data.digits import DIGITS
from certified_unlearning.data.prepared import PreparedData
from certified_unlearning.engine import descent
from certified_unlearning.errors import DataError
from certified_unlearning.mechanisms.langevin import LANGEVIN
from certified_unlearning.mechanisms.run import ExperimentPlan
from certified_unlearning.reproduction import jobs
from certified_unlearning.reproduction.rows import CURVE_ROWS, RUN_ROWS, read_table
from tests.support.planning import make, settings_of, sweep_of
from tests.support.waiting import PATIENCE
from tests.workflow.working_tree import ROOT, WorkingTree, copy_working_tree

pytestmark = pytest.mark.workflow

LEARNING_STEPS = 40_000
"""Some six seconds of learning on the digits: a busy machine may be late with the kill."""
MECHANISMS = ("langevin", "retraining")
FIG3A = "results/smoke/langevin_unlearning/fig3a"
TARGETS = [f"{FIG3A}/{mechanism}.rows.parquet" for mechanism in MECHANISMS]
MODEL = f"{FIG3A}/langevin.learned.safetensors"
CHECKPOINT = f"{FIG3A}/langevin.learned.group-0.checkpoint"


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> WorkingTree:
    """A working tree in which slow learning is planned."""
    tree = copy_working_tree(tmp_path_factory.mktemp("planned") / "tree")
    tree.change_parameter("presets.smoke.learning_steps", lambda _: LEARNING_STEPS)
    tree.change_parameter("presets.smoke.trials", lambda _: 2)
    tree.change_parameter("presets.smoke.accountants", lambda _: ["shifted"])
    planned = tree.snakemake(f"{FIG3A}/plan.json")
    assert planned.returncode == 0, planned.stdout
    return tree


@pytest.fixture
def watched(planned: WorkingTree, tmp_path: Path) -> WorkingTree:
    """A copy whose learning saves its state so often that it can be watched."""
    tree = planned.copy(tmp_path / "watched")
    path = "src/certified_unlearning/engine/checkpoint.py"
    tree.edit(path, "every_seconds: float = 20.0", "every_seconds: float = 0.2")
    return tree


def start(tree: WorkingTree, *, heeds_ctrl_c: bool = True) -> subprocess.Popen[bytes]:
    """Start Snakemake in a process group of its own: as a terminal does, or by setsid in the background of a script."""
    command = ["snakemake", "--cores", "2", "--config", "preset=smoke", "--", *TARGETS]
    return subprocess.Popen(
        command,
        cwd=tree.root,
        env=tree.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL if heeds_ctrl_c else signal.SIG_IGN),
    )


def steps_done(checkpoint: Path) -> int:
    """Learning steps that a checkpoint holds, 0 where there is none."""
    if not checkpoint.exists():
        return 0
    with safetensors.safe_open(str(checkpoint), framework="pt") as file:
        position = file.metadata()["position"]
    return int(json.loads(position)["step"])


def kill_while_learning(process: subprocess.Popen[bytes], signal_number: int, checkpoint: Path) -> int:
    """Send a signal to a process group once learning has got further; return how far it had got at least."""
    steps = wait_while_learning(process, checkpoint)
    os.killpg(process.pid, signal_number)
    process.wait(timeout=PATIENCE)
    assert 0 < steps < LEARNING_STEPS
    return steps


def wait_while_learning(process: subprocess.Popen[bytes], checkpoint: Path) -> int:
    """Return how many steps a checkpoint holds once learning has got further."""
    before = steps_done(checkpoint)
    deadline = time.monotonic() + PATIENCE
    while (steps := steps_done(checkpoint)) <= before:
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < deadline, "it never learned"
        time.sleep(0.02)
    return steps


def running(group: int) -> list[str]:
    """Return the commands of a process group that have not ended (what nobody asks about ended stays as a zombie)."""
    listed = subprocess.run(["ps", "-e", "-o", "pgid=,stat=,args="], capture_output=True, text=True, check=True).stdout
    processes = (line.split(maxsplit=2) for line in listed.splitlines())
    return [args for pgid, stat, args in processes if int(pgid) == group and not stat.startswith("Z")]


def results_of(tree: WorkingTree) -> dict[str, pd.DataFrame]:
    directory = tree.root / FIG3A
    rows = {path.name: read_table(path, RUN_ROWS) for path in directory.glob("*.rows.parquet")}
    curves = {path.name: read_table(path, CURVE_ROWS) for path in directory.glob("*.curves.parquet")}
    return {name: table.drop(columns=["seconds", "code_version"]) for name, table in rows.items()} | curves


def test_a_pipeline_killed_twice_while_learning_ends_with_the_records_of_an_undisturbed_run(
    planned: WorkingTree, watched: WorkingTree, tmp_path: Path
) -> None:
    """Two runs of one figure, one of them in three parts, and long enough to be killed while they learn."""
    undisturbed, killed = planned.copy(tmp_path / "undisturbed"), watched
    finished = undisturbed.snakemake(*TARGETS)
    assert finished.returncode == 0, finished.stdout

    first = kill_while_learning(start(killed), signal.SIGINT, killed.root / CHECKPOINT)
    assert not (killed.root / MODEL).exists()
    assert not list(killed.results.rglob(".*")), "Ctrl-C leaves no temporary file"

    # After Ctrl-C the same command goes on; after a kill -9 Snakemake asks for --unlock first.
    second = kill_while_learning(start(killed), signal.SIGKILL, killed.root / CHECKPOINT)
    assert second > first
    assert not (killed.root / MODEL).exists()
    locked = killed.snakemake(*TARGETS)
    assert locked.returncode == 1
    assert "--unlock" in locked.stdout
    assert killed.run("snakemake", "--unlock", "--config", "preset=smoke").returncode == 0
    finished = killed.snakemake(*TARGETS)
    assert finished.returncode == 0, finished.stdout

    expected, found = results_of(undisturbed), results_of(killed)
    assert len(expected) == 2 * len(MECHANISMS)
    assert found.keys() == expected.keys()
    for name in expected:
        pd.testing.assert_frame_equal(found[name], expected[name], check_exact=True)
    assert (killed.root / MODEL).read_bytes() == (undisturbed.root / MODEL).read_bytes()
    assert not list(killed.results.rglob("[!.]*.checkpoint"))


def test_a_run_in_the_background_is_stopped_with_its_jobs_as_the_page_says(watched: WorkingTree) -> None:
    tree = watched
    process = start(tree, heeds_ctrl_c=False)
    wait_while_learning(process, tree.root / CHECKPOINT)
    page = (ROOT / "docs" / "howto" / "presets.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^kill .*$", page, re.MULTILINE)
    subprocess.run(["bash", "-c", command.replace("PID", str(process.pid))], check=True)
    process.wait(timeout=PATIENCE)
    deadline = time.monotonic() + PATIENCE
    while running(process.pid):
        assert time.monotonic() < deadline, "a job goes on"
        time.sleep(0.1)
    assert steps_done(tree.root / CHECKPOINT) < LEARNING_STEPS
    assert not (tree.root / MODEL).exists()
    assert "--unlock" not in tree.run("snakemake", "--dry-run", "--config", "preset=smoke", "--", *TARGETS).stdout


# The same for one job, where it can be seen what the second process starts from.


@dataclass
class Killed:
    """A learning job that was killed half-way.

    Attributes:
        plan: What it was learning.
        data: Its data set.
        model: The file that it did not come to write; its checkpoint lies beside it.
        undisturbed: What that file holds when nobody interferes.
    """

    plan: ExperimentPlan
    data: PreparedData
    model: Path
    undisturbed: bytes


@pytest.fixture(scope="module")
def killed_job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Killed]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    directory = tmp_path_factory.mktemp("killed")
    data = DIGITS.prepare(Path(), 1, None)
    settings = settings_of("smoke", learning_steps=10_000, trials=2, accountants=["shifted"])
    plan = make("fig3a", settings, sweep_of("smoke", "fig3a"), data.summary())
    jobs.learn(LANGEVIN, plan, data, directory / "undisturbed.safetensors")

    plan.write(directory / "plan.json")
    data.save(directory / "data.safetensors")
    model = directory / "model.safetensors"
    save_always = "Checkpoint.is_due = lambda self: True"
    imports = "from certified_unlearning.cli import main; from certified_unlearning.engine.checkpoint import Checkpoint"
    code = f"{imports}; {save_always}; main()"
    arguments = (
        f"pipeline learn langevin --plan {directory}/plan.json --data {directory}/data.safetensors --output {model}"
    )
    # As many threads as here: the rounding of matrix products depends on it.
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code, *arguments.split()]
    process = subprocess.Popen(command, env=environment, start_new_session=True)
    kill_while_learning(process, signal.SIGKILL, directory / "model.group-0.checkpoint")
    assert not model.exists()
    yield Killed(plan, data, model, (directory / "undisturbed.safetensors").read_bytes())
    torch.set_num_threads(threads)


@pytest.fixture
def killed(killed_job: Killed, tmp_path: Path) -> Killed:
    shutil.copytree(killed_job.model.parent, tmp_path / "killed")
    return replace(killed_job, model=tmp_path / "killed/model.safetensors")


@pytest.fixture
def first_steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The step at which every phase starts that is run from now on."""
    steps: list[int] = []
    run_phase = descent._run_phase
    monkeypatch.setattr(descent, "_run_phase", lambda *each: (steps.append(each[4]), run_phase(*each)))
    return steps


def test_a_killed_job_goes_on_from_its_checkpoint(killed: Killed, first_steps: list[int]) -> None:
    jobs.learn(LANGEVIN, killed.plan, killed.data, killed.model)
    assert len(first_steps) == 1
    assert 0 < first_steps[0] < 10_000
    assert killed.model.read_bytes() == killed.undisturbed
    # A kill in the middle of a save leaves its temporary file, which has a hidden name and is never read.
    assert not list(killed.model.parent.glob("[!.]*.checkpoint"))


@pytest.mark.parametrize("forgotten", ["step", "weights"])
def test_a_resumption_that_forgets_a_part_of_the_state_is_caught(
    killed: Killed, monkeypatch: pytest.MonkeyPatch, forgotten: str
) -> None:
    resume = descent._resume

    def forgetful(start, checkpoint):
        state, phase, step = resume(start, checkpoint)
        if forgotten == "step":
            return state, phase, 0
        state.weights = start.clone()
        return state, phase, step

    monkeypatch.setattr(descent, "_resume", forgetful)
    jobs.learn(LANGEVIN, killed.plan, killed.data, killed.model)
    assert killed.model.read_bytes() != killed.undisturbed


def test_a_checkpoint_of_another_plan_is_not_used(killed: Killed, first_steps: list[int]) -> None:
    other_seed = killed.plan.settings.model_copy(update={"seed": 7})
    jobs.learn(LANGEVIN, killed.plan.model_copy(update={"settings": other_seed}), killed.data, killed.model)
    assert first_steps == [0]


def test_a_damaged_checkpoint_is_named_with_what_to_do(killed: Killed) -> None:
    checkpoint = killed.model.parent / "model.group-0.checkpoint"
    checkpoint.write_bytes(checkpoint.read_bytes()[:-1])
    with pytest.raises(DataError, match=rf"^{checkpoint} is damaged .*; delete it to start over$"):
        jobs.learn(LANGEVIN, killed.plan, killed.data, killed.model)
