"""A SLURM cluster for tests, with each node's own mount of the project; servers for tests are set up the same way.

`UNLEARNING_SCALE` names a directory with scripts that start them. Each takes `start` and `stop`; that of the cluster,
`slurm-here.sh`, also `kill-node NODE` and `start-node NODE`, and heeds `SHARED`: a folder that each node is to see
through a mount of its own.
"""

import importlib.util
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

PROFILE = ("--workflow-profile", "workflow/profiles/slurm")
WAIT = 1200


def script(name: str) -> Path:
    """Return a script that starts something for tests; skip the test where there is none."""
    named = os.environ.get("UNLEARNING_SCALE")
    if not named:
        pytest.skip(f"UNLEARNING_SCALE names no directory with {name}, which starts what this test needs")
    found = Path(named) / name
    if not found.exists():
        pytest.skip(f"{found}, which starts what this test needs, does not exist")
    return found


def require_modules(*names: str, extra: str) -> None:
    """Skip a test where a module is not installed."""
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed (the extra {extra})")


def wait_until(what: str, done: Callable[[], object], seconds: float = WAIT) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, f"{what}: not within {seconds:g} s"
        time.sleep(1)


class Job(NamedTuple):
    """A job in SLURM's queue: its number, its state, its node."""

    number: str
    state: str
    node: str


class Usage(NamedTuple):
    """What SLURM noted of a job: what was asked for, and the most memory of its steps together."""

    number: str
    state: str
    asked: str
    asked_mb: float
    used_mb: float


@dataclass(frozen=True)
class Cluster:
    """A running cluster.

    Attributes:
        script: What started it.
        shared: The folder that each node sees through a mount of its own.
    """

    script: Path
    shared: Path

    def call(self, *arguments: str) -> None:
        subprocess.run(
            [self.script, *arguments], check=True, env=os.environ | {"SHARED": str(self.shared)}, timeout=600
        )

    def jobs(self, directory: Path) -> list[Job]:
        """Return the jobs that were submitted from a directory and have not ended."""
        printed = subprocess.check_output(["squeue", "-h", "-t", "PD,R,CG", "-o", "%i|%T|%N|%Z"], text=True)
        lines = [line.split("|", 3) for line in printed.splitlines()]
        return [Job(*fields[:3]) for fields in lines if fields[3] == str(directory)]

    def used(self, directory: Path, since: str) -> list[Usage]:
        """Return what jobs of a directory asked for and used."""
        fields = "JobID,State,ReqTRES,MaxRSS,WorkDir"
        printed = subprocess.check_output(
            ["sacct", "-n", "-P", "-D", "--units=M", "-S", since, "-o", fields], text=True
        )
        found: dict[str, list[list[str]]] = {}
        for line in printed.splitlines():
            parts = line.split("|", 4)
            found.setdefault(parts[0].partition(".")[0], []).append(parts)
        return [
            Usage(number, lines[0][1], lines[0][2], _asked(lines[0][2]), sum(_megabytes(each[3]) for each in lines))
            for number, lines in found.items()
            if lines[0][4] == str(directory)
        ]


def _asked(resources: str) -> float:
    named = dict(each.partition("=")[::2] for each in resources.split(","))
    return _megabytes(named["mem"])


def _megabytes(written: str) -> float:
    return float(written.rstrip("M") or 0) if not written.endswith("G") else 1024 * float(written.rstrip("G"))


def start_cluster(shared: Path) -> Cluster:
    """Start a cluster whose nodes mount a folder; skip the test where there is no script for that."""
    found = script("slurm-here.sh")
    require_modules("snakemake_executor_plugin_slurm", extra="cluster")
    if os.geteuid() != 0:
        pytest.skip("only root can start a cluster for tests")
    cluster = Cluster(found, shared)
    cluster.call("stop")
    cluster.call("start")
    assert shutil.which("sbatch")
    return cluster
