"""Copies of the working tree in which the real commands run as a user runs them."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import yaml

from certified_unlearning.papers import parameters
from tests.support.waiting import PATIENCE
from tests.workflow.jobs import PAPER_OF, ROOT, Job, Name, jobs_in


class WorkingTree:
    """A directory with the project in it, and commands that run there as a user's would.

    Attributes:
        root: The directory.
        environment: Variables of the commands: this Python's commands and the directory's own package come first.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        # MLflow belongs to the directory, and no profile or data directory of the surroundings plays a part.
        foreign = ("MLFLOW_TRACKING_URI", "SNAKEMAKE_PROFILE", "UNLEARNING_DATA", "PYTHONPATH")
        self.environment = {name: value for name, value in os.environ.items() if name not in foreign}
        self.environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment["PYTHONPATH"] = str(root / "src")

    @property
    def results(self) -> Path:
        return self.root / "results" / "smoke"

    def of(self, experiment: str) -> Path:
        """Return where the results of an experiment lie."""
        return self.results / PAPER_OF[experiment] / experiment

    def copy(self, to: Path) -> Self:
        """Return a copy with the same times."""
        shutil.copytree(self.root, to, symlinks=True)
        return type(self)(to)

    def run(self, *command: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; what it prints on both streams is in ``stdout``."""
        return subprocess.run(
            [str(part) for part in command],
            **{"cwd": self.root, "env": self.environment, "text": True, "timeout": PATIENCE, **options},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def snakemake(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run Snakemake on the smoke preset."""
        return self.run("snakemake", "--cores", "2", "--config", "preset=smoke", "--", *arguments)

    def jobs_to_run(self) -> set[Name]:
        """Return every job that Snakemake would run now."""
        return {job.name for job in self.dry_run()}

    def dry_run(self, *targets: str) -> list[Job]:
        """Return what Snakemake would run now."""
        # Without `reason`, of which the profile is quiet.
        dry = self.run("snakemake", "--dry-run", "--quiet", "host", "--config", "preset=smoke", "--", *targets)
        assert dry.returncode == 0, dry.stdout
        jobs = jobs_in(dry.stdout)
        assert bool(jobs) != ("Nothing to be done" in dry.stdout), dry.stdout
        return jobs

    def change_parameter(self, key: str, change: Callable[[Any], Any]) -> None:
        """Set a key of `params.yaml`, such as ``presets.smoke.trials``, to ``change`` of its value.

        What a preset has from elsewhere is set for this preset only.
        """
        path = self.root / "params.yaml"
        content = yaml.safe_load(path.read_text())
        *parents, last = key.split(".")
        mapping = content
        for part in parents:
            mapping = mapping.setdefault(part, {})
        inherited = parents[:1] == ["presets"] and last not in mapping
        mapping[last] = change(self._inherited(*parents[1:], last) if inherited else mapping.get(last))
        path.write_text(yaml.safe_dump(content, sort_keys=False))

    def _inherited(self, preset: str, *keys: str) -> Any:
        """Return what a preset has from what it extends; None where that is nothing."""
        value: Any = parameters.as_written(parameters.load(self.root / "params.yaml").presets[preset])
        for key in keys:
            value = (value or {}).get(key)
        return value

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace the only occurrence of ``old`` in a file."""
        content = (self.root / path).read_text()
        assert content.count(old) == 1, f"{path} holds {content.count(old)} times {old!r}"
        (self.root / path).write_text(content.replace(old, new))


def copy_working_tree(to: Path) -> WorkingTree:
    """Copy what git has or would take: a fresh clone, with the changes that are not committed yet."""
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)
    return WorkingTree(to)
