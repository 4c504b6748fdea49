"""A working tree in which nothing has run, and one in which the smoke preset has, once for all tests."""

import fcntl
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.workflow.working_tree import WorkingTree, copy_working_tree

SPY = '''"""Note which of the project's modules a process has imported when it ends."""
import atexit, json, os, pathlib, sys

def note():
    modules = sorted(name for name in sys.modules if name.partition(".")[0] == "certified_unlearning")
    if modules and pathlib.Path(sys.argv[0]).name == "unlearn":
        noted = pathlib.Path(__file__).with_name(f"{os.getpid()}.json")
        noted.write_text(json.dumps({"command": sys.argv[1:], "modules": modules}))

atexit.register(note)
'''
"""As `sitecustomize`: Python imports it before all else."""


@dataclass(frozen=True)
class Process:
    """A job's command and the project's modules that it had imported when it ended."""

    command: list[str]
    modules: frozenset[str]


@dataclass(frozen=True)
class SmokeRun:
    """The smoke preset, run from nothing. Look, do not touch.

    Attributes:
        tree: Where it ran.
        printed: What Snakemake printed.
        processes: The jobs.
    """

    tree: WorkingTree
    printed: str
    processes: list[Process]


@pytest.fixture
def fresh_tree(tmp_path: Path) -> WorkingTree:
    """A working tree in which nothing has run yet."""
    return copy_working_tree(tmp_path / "tree")


@pytest.fixture(scope="session")
def smoke_run(tmp_path_factory: pytest.TempPathFactory) -> SmokeRun:
    """The smoke preset, run from nothing by the first process of this session that asks for it."""
    own = tmp_path_factory.getbasetemp()
    place = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "smoke"
    place.mkdir(exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "finished.json").exists():
            _run(place)
    status, printed = json.loads((place / "finished.json").read_text())
    assert status == 0, printed
    noted = [json.loads(path.read_text()) for path in (place / "spy").glob("*.json")]
    processes = [Process(each["command"], frozenset(each["modules"])) for each in noted]
    return SmokeRun(WorkingTree(place / "tree"), printed, processes)


def _run(place: Path) -> None:
    tree = copy_working_tree(place / "tree")
    spy = place / "spy" / "sitecustomize.py"
    spy.parent.mkdir(exist_ok=True)
    spy.write_text(SPY)
    tree.environment["PYTHONPATH"] += f"{os.pathsep}{spy.parent}"
    try:
        finished = tree.snakemake()
        ended = [finished.returncode, finished.stdout]
    except subprocess.TimeoutExpired as error:
        # What failed once is not begun anew by every test that needs it.
        ended = [1, str(error)]
    (place / "finished.json").write_text(json.dumps(ended))


@pytest.fixture
def smoke_tree(smoke_run: SmokeRun, tmp_path: Path) -> WorkingTree:
    """A copy of the working tree with the finished smoke run, to change at will."""
    return smoke_run.tree.copy(tmp_path / "tree")
