"""The paths of a preset's results.

Only this module and the workflow's rules define these paths.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from certified_unlearning.mechanisms.run import Run
from certified_unlearning.reproduction.declared import mechanism_name

_IN_WORDS = {"K": "steps", "I": "steps", "S": "records-per-request", "b": "batch-size"}
"""Words for the symbols in the names of points, for readers who have not read the paper."""


def certificate_file(run: Run) -> str:
    """Return the name of a run's certificate file, which describes the run's point.

    The name is unique in the run's experiment. For example, ``Langevin (lsi), K = 1, epsilon = 0.5`` has the
    certificate ``langevin-lsi_steps=1_epsilon=0.5.json``.
    """
    words = []
    for part in run.point.split(", "):
        symbol, equals, value = part.partition(" = ")
        words.append(re.sub(r"[^\w.=+-]+", "-", f"{_IN_WORDS.get(symbol, symbol)}{equals.strip()}{value}").strip("-"))
    return f"{'_'.join(words).lower()}.json"


@dataclass(frozen=True)
class Layout:
    """The paths of one preset's results.

    The results of runs are in ``<paper>/<experiment>/``. Figures, and the numbers that they show, are in two
    directories of their own, because DVC stores each of these as a whole.

    Attributes:
        results: Directory of all results.
        preset: Name of the preset.
    """

    results: Path
    preset: str

    @property
    def directory(self) -> Path:
        """Directory of the preset."""
        return self.results / self.preset

    @property
    def summary(self) -> Path:
        """Summary of the prepared data set."""
        return self.directory / "data.json"

    @property
    def data(self) -> Path:
        """The prepared data set."""
        return self.directory / "data.safetensors"

    @property
    def records(self) -> Path:
        """Rows of all runs of all papers."""
        return self.directory / "records.parquet"

    def of(self, paper: str, experiment: str) -> Path:
        """Return the directory of an experiment's results."""
        return self.directory / paper / experiment

    def plan(self, paper: str, experiment: str) -> Path:
        """Return the path of an experiment's plan."""
        return self.of(paper, experiment) / "plan.json"

    def rows(self, paper: str, experiment: str) -> Path:
        """Return the path of the rows of an experiment that makes a table."""
        return self.of(paper, experiment) / "rows.parquet"

    def run_rows(self, paper: str, experiment: str, mechanism: str) -> Path:
        """Return the path of the rows of a mechanism's runs."""
        return self.of(paper, experiment) / f"{mechanism_name(mechanism)}.rows.parquet"

    def curves(self, paper: str, experiment: str, mechanism: str) -> Path:
        """Return the path of the learning curves of a mechanism's runs."""
        return self.of(paper, experiment) / f"{mechanism_name(mechanism)}.curves.parquet"

    def certificates(self, paper: str, experiment: str) -> Path:
        """Return the directory of the certificates of an experiment's runs."""
        return self.of(paper, experiment) / "certificates"

    def figure(self, paper: str, experiment: str, kind: str) -> Path:
        """Return the path of an experiment's figure, as ``png``, ``pdf`` or ``svg``."""
        return self.directory / "figures" / paper / f"{experiment}.{kind}"

    def numbers(self, paper: str, experiment: str) -> Path:
        """Return the path of the numbers that an experiment shows."""
        return self.directory / "plots" / paper / f"{experiment}.csv"

    @property
    def tracking_store(self) -> Path:
        """Status file of MLflow's store."""
        return self.directory / "tracking" / "store.json"

    def tracked(self, paper: str, experiment: str) -> Path:
        """Return the path of the file that says how an experiment was tracked."""
        return self.directory / "tracking" / f"{paper}-{experiment}.json"
