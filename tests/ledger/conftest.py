"""A model directory to spoil, made once and copied for every test; and the program, called as a function."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from certified_unlearning.cli import app
from certified_unlearning.errors import UnlearningError
from tests.ledger.tables import make_model, write_table

Unlearn = Callable[..., Result]


@dataclass(frozen=True)
class Original:
    """The model that tests copy, and the table that it was made from."""

    path: Path
    data: Path
    table: pd.DataFrame


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Original:
    root = tmp_path_factory.mktemp("ledger")
    table = write_table(root / "people.csv")
    make_model(root / "model", root / "people.csv")
    return Original(root / "model", root / "people.csv", table)


@pytest.fixture
def model(original: Original, tmp_path: Path) -> Path:
    """A copy of the model directory."""
    return Path(shutil.copytree(original.path, tmp_path / "model"))


class Forks:
    """The process of `forking`."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.ledger.forking"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )

    def start(self, do: str, path: Path, **job: object) -> None:
        """Begin a job."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": do, "path": str(path), **job}) + "\n")
        self.process.stdin.flush()

    def status(self) -> int:
        """Return the exit status of the job's process: 0, 1 after an error, or -9 when it was killed."""
        assert self.process.stdout is not None
        return int(self.process.stdout.readline())

    def __call__(self, do: str, path: Path, **job: object) -> int:
        """Do a job; return its exit status."""
        self.start(do, path, **job)
        return self.status()

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


@pytest.fixture(scope="session")
def fork() -> Iterator[Forks]:
    forks = Forks()
    yield forks
    forks.end()


@pytest.fixture(scope="session")
def another_fork() -> Iterator[Forks]:
    forks = Forks()
    yield forks
    forks.end()


@pytest.fixture
def unlearn() -> Unlearn:
    """The program; an error that it would print is raised."""

    def run(*arguments: object) -> Result:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        if isinstance(result.exception, UnlearningError):
            raise result.exception
        return result

    return run
