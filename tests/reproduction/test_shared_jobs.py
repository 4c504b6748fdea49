"""Jobs that several processes share: the same files for any number of them, also after some were killed."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from certified_unlearning.data.prepared import PreparedData, unit_rows
from certified_unlearning.engine.row_shards import ALONE, RowShards
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.langevin import LANGEVIN
from certified_unlearning.mechanisms.mechanism import Mechanism
from certified_unlearning.mechanisms.minibatch_langevin import MINIBATCH_LANGEVIN
from certified_unlearning.mechanisms.retraining import RETRAINING
from certified_unlearning.mechanisms.run import ExperimentPlan
from certified_unlearning.papers import parameters
from certified_unlearning.reproduction import jobs
from certified_unlearning.reproduction.rows import CURVE_ROWS, RUN_ROWS, read_table
from certified_unlearning.reproduction.simulation.job import require_shards
from tests.support.planning import make, settings_of, sweep_of
from tests.support.ranks import in_ranks
from tests.support.waiting import PATIENCE

SWEEPS: dict[str, dict[str, Any]] = {
    "fig3c": {"sigma": [0.1, 0.3], "records": 600},
    "batch_sizes": {"sigma": 0.2, "epsilon": [1.0, 5.0], "records": 3, "batch_size": [2048, 4096], "epochs": 3},
}


@pytest.fixture(scope="module")
def data() -> PreparedData:
    """Two overlapping classes, 5000 records: four blocks; two of a batch of 2048."""
    generator = np.random.default_rng(0)

    def part(count: int) -> tuple[np.ndarray, np.ndarray]:
        labels = np.where(np.arange(count) % 2, 1, -1).astype(np.int8)
        rows = generator.normal(size=(count, 6)) + 0.8 * labels[:, None] * np.array([1, 1, 0, 0, 0, 0])
        return unit_rows(rows, "test data"), labels

    return PreparedData("digits", "synthetic", *part(5000), *part(100), "none")


def plan(data: PreparedData, experiment: str = "fig3c", **changes: Any) -> ExperimentPlan:
    settings = {"trials": 4, "regularisation": 1e-3, "row_shards": True, "accountants": ["shifted"]} | changes
    return make(
        experiment,
        settings_of("smoke", **settings),
        sweep_of("smoke", experiment, **SWEEPS[experiment]),
        data.summary(),
    )


def results(
    mechanism: Mechanism, whole: ExperimentPlan, data: PreparedData, directory: Path, shards: RowShards
) -> None:
    directory.mkdir(exist_ok=True)
    learned = directory / "learned.safetensors" if mechanism.learning else None
    if learned is not None:
        jobs.learn(mechanism, whole, data, learned, shards)
    if shards.ranks > 1:
        torch.distributed.barrier()  # As Snakemake starts the second job when the first one has ended.
    jobs.unlearn(mechanism, whole, data, learned, directory / "rows.parquet", directory / "curves.parquet", shards)


def written(directory: Path) -> tuple[pd.DataFrame, pd.DataFrame, bytes]:
    rows = read_table(directory / "rows.parquet", RUN_ROWS).drop(columns=["seconds", "code_version"])
    learned = directory / "learned.safetensors"
    curves = read_table(directory / "curves.parquet", CURVE_ROWS)
    return rows, curves, learned.read_bytes() if learned.exists() else b""


@pytest.mark.parametrize(
    ("mechanism", "experiment", "dtype"),
    [
        (LANGEVIN, "fig3c", "float32"),
        (RETRAINING, "fig3c", "float64"),
        (MINIBATCH_LANGEVIN, "batch_sizes", "float32"),
    ],
    ids=["langevin", "retraining", "mini-batches"],
)
def test_jobs_of_one_and_of_two_processes_write_the_same(
    mechanism: Mechanism, experiment: str, dtype: str, data: PreparedData, tmp_path: Path
) -> None:
    whole = plan(data, experiment, dtype=dtype, learning_steps=40)
    results(mechanism, whole, data, tmp_path / "one", ALONE)
    done = in_ranks(2, lambda shards: results(mechanism, whole, data, tmp_path / "two", shards))
    assert done == [None, None]
    one, two = written(tmp_path / "one"), written(tmp_path / "two")
    for expected, found in zip(one[:2], two[:2], strict=True):
        pd.testing.assert_frame_equal(found, expected, check_exact=True)
    assert one[2] == two[2]
    assert {path.name for path in (tmp_path / "two").iterdir()} == {path.name for path in (tmp_path / "one").iterdir()}


def test_a_job_that_was_planned_for_one_process_is_not_shared(data: PreparedData, tmp_path: Path) -> None:
    whole = plan(data, row_shards=False)
    for result in in_ranks(2, lambda shards: jobs.learn(LANGEVIN, whole, data, tmp_path / "learned", shards)):
        assert isinstance(result, ParameterError)
        assert "2 processes share this job, but its plan was made for a single process, without" in str(result)
    assert not list(tmp_path.iterdir())


def test_processes_without_a_gpu_each_are_refused(data: PreparedData, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    whole, cuda = plan(data), torch.device("cuda")
    monkeypatch.setenv("LOCAL_RANK", "0")
    require_shards(whole, RowShards(0, 2), cuda)
    monkeypatch.setenv("LOCAL_RANK", "1")
    require_shards(whole, RowShards(1, 2), torch.device("cpu"))
    with pytest.raises(ParameterError, match=r"there are more processes than GPUs \(1\) on this"):
        require_shards(whole, RowShards(1, 2), cuda)


def test_what_decides_the_bits_is_part_of_what_a_run_is(data: PreparedData, tmp_path: Path) -> None:
    shared, single = plan(data), plan(data, row_shards=False)
    assert {shared.key(run) for run in shared.runs}.isdisjoint(single.key(run) for run in single.runs)
    assert "row_shards" not in single.settings.model_dump()  # Keys of before stay what they were.
    jobs.learn(LANGEVIN, single, data, tmp_path / "learned")
    with pytest.raises(Exception, match="was learned for another plan"):
        jobs.unlearn(LANGEVIN, shared, data, tmp_path / "learned", tmp_path / "rows", tmp_path / "curves")


@pytest.mark.parametrize(("processes", "shared"), [(1, False), (2, True), (64, True)])
def test_the_number_of_processes_is_no_part_of_it(processes: int, shared: bool) -> None:
    content = parameters.read_yaml("params.yaml")
    content["presets"]["smoke"]["processes"] = processes
    smoke = parameters.check(content).presets["smoke"]
    assert smoke.processes == processes
    assert smoke.settings.row_shards == shared
    assert "processes" not in smoke.settings.model_dump()


SAVE_OFTEN = """
from certified_unlearning.engine.checkpoint import Checkpoint
Checkpoint.__init__.__defaults__ = (0.05,)
"""


def children(parent: int) -> list[int]:
    command = ["ps", "-ww", "-e", "-o", "pid=,ppid=,args="]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    processes = (line.split(maxsplit=2) for line in listed.splitlines())
    return [int(pid) for pid, ppid, args in processes if int(ppid) == parent and "pipeline learn" in args]


def wait(condition: Any, what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


@pytest.mark.workflow
def test_killed_processes_end_the_run_with_one_sentence_and_the_next_start_goes_on(
    data: PreparedData, tmp_path: Path
) -> None:
    """First one of two processes is killed at a random step, then what started them.

    Two processes learn together, long enough to be killed, and again to the end.
    """
    whole = plan(data, learning_steps=6000, trials=2)
    whole.write(tmp_path / "plan.json")
    data.save(tmp_path / "data.safetensors")
    jobs.learn(LANGEVIN, whole, data, tmp_path / "undisturbed")
    (tmp_path / "sitecustomize.py").write_text(SAVE_OFTEN)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]), "OMP_NUM_THREADS": "1"}
    checkpoint = tmp_path / "learned.group-0.checkpoint"

    def start() -> subprocess.Popen[str]:
        program = "from certified_unlearning.cli import main; main()"
        files = ["--plan", "plan.json", "--data", "data.safetensors", "--output", "learned"]
        reference = "certified_unlearning.mechanisms.langevin:langevin"
        command = [sys.executable, "-c", program, "pipeline", "learn", reference, *files, "--processes", "2"]
        return subprocess.Popen(
            command, cwd=tmp_path, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def wait_for_steps(launcher: subprocess.Popen[str]) -> list[int]:
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        wait(lambda: checkpoint.exists() and checkpoint.stat().st_mtime_ns > before, "it never got further")
        time.sleep(random.uniform(0, 0.1))
        assert launcher.poll() is None, "it ended before anything could be killed"
        return children(launcher.pid)

    launcher = start()
    ranks = wait_for_steps(launcher)
    assert len(ranks) == 2
    killed = random.randrange(2)
    os.kill(ranks[killed], signal.SIGKILL)
    said, error = launcher.communicate(timeout=PATIENCE)
    assert launcher.returncode == 1
    assert error.splitlines()[-1].startswith("error: process ")
    assert error.count("error") == 1, error
    assert error.endswith(
        "of the 2 that share this run was ended by signal 9 (SIGKILL); "
        "to continue from the last checkpoint, start the run again\n"
    )
    assert said.count("$") == 1, said
    assert not (tmp_path / "learned").exists()

    launcher = start()
    ranks = wait_for_steps(launcher)
    launcher.kill()
    launcher.wait()
    wait(lambda: not any(Path(f"/proc/{rank}").exists() for rank in ranks), "processes outlive what started them")
    assert not (tmp_path / "learned").exists()

    launcher = start()
    _, error = launcher.communicate(timeout=PATIENCE)
    assert launcher.returncode == 0, error
    assert (tmp_path / "learned").read_bytes() == (tmp_path / "undisturbed").read_bytes()
    assert not checkpoint.exists()
