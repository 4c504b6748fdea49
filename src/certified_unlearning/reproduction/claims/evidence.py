"""Evidence for a paper's claims: the results of one preset, which are read when a claim needs them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from certified_unlearning.data.sets import built_in
from certified_unlearning.files import read_json
from certified_unlearning.mechanisms.run import ExperimentPlan
from certified_unlearning.mechanisms.settings import Settings
from certified_unlearning.reproduction.experiment import Experiment
from certified_unlearning.reproduction.layout import Layout
from certified_unlearning.reproduction.paper import Paper
from certified_unlearning.reproduction.rows import RUN_ROWS, concatenate, read_table
from certified_unlearning.reproduction.summaries import summarise
from certified_unlearning.text import counted


class MissingEvidence(Exception):
    """A claim cannot be judged; the message says what is missing and how to get it."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """The results of one preset for a paper.

    The properties raise `MissingEvidence` if a file is missing, and `errors.DataError` if it is damaged.

    Attributes:
        preset: Name of the preset.
        layout: Paths of the preset's results.
        paper: The paper whose claims are judged.
    """

    preset: str
    layout: Layout
    paper: Paper

    @classmethod
    def read(cls, results: Path, preset: str, paper: Paper) -> "Evidence":
        """Return the evidence in ``results / preset``; a missing file is reported only when it is used."""
        return cls(preset, Layout(Path(results), preset), paper)

    @property
    def remedy(self) -> str:
        """What to do to get missing results."""
        return f"run `snakemake --config preset={self.preset}`"

    @cached_property
    def data(self) -> dict[str, Any]:
        """Summary of the prepared data set."""
        path = self._present(self.layout.summary)
        summary: dict[str, Any] = read_json(path, keys=("name", "features", "n", "n_test", "d", "largest_eigenvalue"))
        return summary

    @property
    def dataset(self) -> str:
        """Name of the data set."""
        return str(self.data["name"])

    @cached_property
    def plans(self) -> tuple[ExperimentPlan, ...]:
        """Plans of all experiments that have one."""
        planned = [each for each in self.paper.experiments if each.mechanisms]
        paths = [self.layout.plan(self.paper.name, each.name) for each in planned]
        read = [ExperimentPlan.read(path) for path in paths if path.exists()]
        found = [plan for plan in read if plan.left_out is None]
        if not found:
            where = self.layout.directory / self.paper.name
            raise MissingEvidence(f"{where} holds no plan; {self.remedy}")
        return tuple(found)

    @property
    def settings(self) -> Settings:
        """Settings that the preset's experiments share."""
        return self.plans[0].settings

    def has_table(self, name: str) -> bool:
        """Return whether the rows of a table experiment (an experiment without mechanisms) exist."""
        return self.layout.rows(self.paper.name, name).exists()

    def table(self, name: str) -> pd.DataFrame:
        """Return the rows of a table experiment."""
        if name not in self._tables:
            experiment = self._experiment(name)
            self._tables[name] = read_table(
                self._present(self.layout.rows(self.paper.name, experiment.name)), experiment.rows
            )
        return self._tables[name]

    @cached_property
    def _tables(self) -> dict[str, pd.DataFrame]:
        return {}

    @cached_property
    def records(self) -> pd.DataFrame:
        """All rows of runs; each planned run must have a row for every trial of every request."""
        plans = {plan.runs[0].experiment: plan for plan in self.plans}
        paths = [
            self._present(self.layout.run_rows(self.paper.name, name, mechanism))
            for name in plans
            for mechanism in self._experiment(name).mechanisms
        ]
        rows = concatenate(paths, RUN_ROWS)
        trials = rows.groupby(["run_key", "request"]).size().to_dict()
        for plan in plans.values():
            for run in plan.runs:
                key = plan.key(run)
                for number in range(1, len(run.requests) + 1):
                    if trials.get((key, number), 0) != plan.settings.trials:
                        raise MissingEvidence(
                            f"{self.layout.directory} lacks trials of request {number} of a planned run: "
                            f"{run.experiment}, {run.mechanism} ({run.accountant}), epsilon = {run.epsilon_target:g}, "
                            f"sigma = {run.sigma:g}, {counted(run.requests[-1].records_removed, 'record')}; "
                            f"{self.remedy}"
                        )
        return rows

    def summary(self, experiment: str) -> pd.DataFrame:
        """Return the result of `summaries.summarise` for one experiment's rows."""
        if experiment not in self._summaries:
            raise MissingEvidence(f"{self.layout.directory} holds no experiment {experiment}; {self.remedy}")
        return self._summaries[experiment]

    @cached_property
    def _summaries(self) -> dict[str, pd.DataFrame]:
        return {experiment: summarise(self.records, experiment) for experiment in self.records["experiment"].unique()}

    def _experiment(self, name: str) -> Experiment:
        experiment = self.paper.experiment(name)
        assert experiment is not None, f"{self.paper.name} has no experiment {name}"
        return experiment

    def _present(self, path: Path) -> Path:
        if not path.exists():
            raise MissingEvidence(f"{path} is missing; {self.remedy}")
        return path


def table_of(evidence: Sequence[Evidence], name: str) -> pd.DataFrame:
    """Return the rows of an experiment without a data set, from the first evidence that has them.

    Raises:
        MissingEvidence: No evidence has these rows.
    """
    for each in some(evidence):
        if each.has_table(name):
            return each.table(name)
    raise MissingEvidence(f"no results of {name}; run `snakemake --config preset=digits`")


def results_on(evidence: Sequence[Evidence], dataset: str) -> Evidence:
    """Return the evidence of the first preset that uses this data set.

    Raises:
        MissingEvidence: No preset of the evidence uses the data set.
    """
    for each in evidence:
        if each.layout.summary.exists() and each.dataset == dataset:
            return each
    known = built_in(dataset)
    preset = known.preset if known is not None and known.preset else dataset
    raise MissingEvidence(f"no results on {dataset}; run `snakemake --config preset={preset}`")


def of_features(evidence: Evidence, features: str | None) -> Evidence:
    """Return the evidence, after checking that the summary of its data names the given features.

    If ``features`` is None, any features are accepted.

    Raises:
        MissingEvidence: The summary names other features.
    """
    present = evidence.data["features"]
    if features and features not in present:
        raise MissingEvidence(
            f"the paper's number is for features {features}, but the results of preset {evidence.preset} are for "
            f"{present}; run a preset with `features: resnet18` and with ImageNet's weights"
        )
    return evidence


def some(evidence: Sequence[Evidence]) -> Sequence[Evidence]:
    """Return the evidence, after checking that it is not empty.

    Raises:
        MissingEvidence: The evidence is empty.
    """
    if not evidence:
        raise MissingEvidence("no results; run `snakemake --cores all`")
    return evidence
