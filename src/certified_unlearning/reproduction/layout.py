"""The paths of a preset's results. Only this module and the workflow's rules define them."""

import re
from dataclasses import dataclass
from pathlib import Path

from certified_unlearning.mechanisms.run import Run
from certified_unlearning.reproduction.declared import mechanism_name

_IN_WORDS = {"K": "steps", "I": "steps", "S": "records-per-request", "b": "batch-size"}
"""Symbols in the names of points, for readers who have not read the paper."""


def certificate_file(run: Run) -> str:
    """Return the name of a run's certificate file: the run's point in words, which is unique within its experiment.

    ``Langevin (lsi), K = 1, epsilon = 0.5`` is certified by ``langevin-lsi_steps=1_epsilon=0.5.json``.
    """
    words = []
    for part in run.point.split(", "):
        symbol, equals, value = part.partition(" = ")
        words.append(re.sub(r"[^\w.=+-]+", "-", f"{_IN_WORDS.get(symbol, symbol)}{equals.strip()}{value}").strip("-"))
    return f"{'_'.join(words).lower()}.json"


@dataclass(frozen=True)
class Layout:
    """The results of one preset.

    ``<paper>/<experiment>/`` has what was run. Figures, and the numbers that they show, have directories of their own,
    for DVC holds each of the two as one.

    Attributes:
        results: The directory of all results.
        preset: The preset's name.
    """

    results: Path
    preset: str

    @property
    def directory(self) -> Path:
        """Everything of the preset."""
        return self.results / self.preset

    @property
    def summary(self) -> Path:
        """The summary of the prepared data set."""
        return self.directory / "data.json"

    @property
    def data(self) -> Path:
        """The prepared data set."""
        return self.directory / "data.safetensors"

    @property
    def records(self) -> Path:
        """The rows of all runs of all papers."""
        return self.directory / "records.parquet"

    def of(self, paper: str, experiment: str) -> Path:
        """Return the directory of an experiment's results."""
        return self.directory / paper / experiment

    def plan(self, paper: str, experiment: str) -> Path:
        """Its plan."""
        return self.of(paper, experiment) / "plan.json"

    def rows(self, paper: str, experiment: str) -> Path:
        """The rows of an experiment that is a table."""
        return self.of(paper, experiment) / "rows.parquet"

    def run_rows(self, paper: str, experiment: str, mechanism: str) -> Path:
        """The rows of a mechanism's runs."""
        return self.of(paper, experiment) / f"{mechanism_name(mechanism)}.rows.parquet"

    def curves(self, paper: str, experiment: str, mechanism: str) -> Path:
        """The learning curves of a mechanism's runs."""
        return self.of(paper, experiment) / f"{mechanism_name(mechanism)}.curves.parquet"

    def certificates(self, paper: str, experiment: str) -> Path:
        """The certificates of an experiment's runs."""
        return self.of(paper, experiment) / "certificates"

    def figure(self, paper: str, experiment: str, kind: str) -> Path:
        """An experiment's figure: ``png``, ``pdf`` or ``svg``."""
        return self.directory / "figures" / paper / f"{experiment}.{kind}"

    def numbers(self, paper: str, experiment: str) -> Path:
        """The numbers that an experiment shows."""
        return self.directory / "plots" / paper / f"{experiment}.csv"

    @property
    def tracking_store(self) -> Path:
        """The status of MLflow's store."""
        return self.directory / "tracking" / "store.json"

    def tracked(self, paper: str, experiment: str) -> Path:
        """Return the file that says how an experiment was tracked."""
        return self.directory / "tracking" / f"{paper}-{experiment}.json"
