"""What the results of one preset hold, read when a claim asks for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from certified_unlearning.experiments.model import Plan
from certified_unlearning.files import read_json
from certified_unlearning.parameters import Common
from certified_unlearning.results import ATTACK_SCHEMA, RECORD_SCHEMA, RISK_SCHEMA, read_table
from certified_unlearning.summaries import summarise

PRESETS = {
    "digits": "digits",
    "mnist-3-vs-8": "mnist",
    "adult": "adult",
    "cifar10-cat-vs-ship": "cifar10-cat-vs-ship",
    "cifar10": "cifar10",
}
"""The preset that makes results on a data set."""


class MissingEvidence(Exception):
    """A claim cannot be judged; the message says what is missing and how to get it."""


@dataclass(frozen=True)
class Evidence:
    """The results of one preset.

    Its properties raise `MissingEvidence` where a file is missing and `errors.DataError` where one is damaged.

    Attributes:
        preset: The preset's name.
        directory: Where its results lie.
    """

    preset: str
    directory: Path

    @classmethod
    def read(cls, results: Path, preset: str) -> "Evidence":
        """Return the evidence in ``results / preset``; what is missing there makes itself felt when it is used."""
        return cls(preset, Path(results) / preset)

    @property
    def remedy(self) -> str:
        """How to get what is missing."""
        return f"run `snakemake --config preset={self.preset}`"

    @cached_property
    def data(self) -> dict[str, Any]:
        """The summary of the prepared data set."""
        path = self._present("data.json")
        summary: dict[str, Any] = read_json(path, keys=("name", "features", "n", "n_test", "d", "largest_eigenvalue"))
        return summary

    @property
    def dataset(self) -> str:
        """The data set's name."""
        return str(self.data["name"])

    @cached_property
    def plans(self) -> tuple[Plan, ...]:
        """The plans of all experiments."""
        paths = sorted((self.directory / "plans").glob("*.json"))
        if not paths:
            raise MissingEvidence(f"{self.directory / 'plans'} holds no plan; {self.remedy}")
        return tuple(Plan.read(path) for path in paths)

    @property
    def settings(self) -> Common:
        """What the preset's experiments share."""
        return self.plans[0].settings

    @cached_property
    def attacks(self) -> pd.DataFrame:
        """The attacks on deletion, which depend on no data set."""
        return read_table(self._present("deletion/attacks.parquet"), ATTACK_SCHEMA)

    @cached_property
    def risks(self) -> pd.DataFrame:
        """The excess risk along streams of deletions, which depends on no preset."""
        return read_table(self._present("deletion/risk.parquet"), RISK_SCHEMA)

    @cached_property
    def records(self) -> pd.DataFrame:
        """All records: every trial of every request of every planned run is among them."""
        records = read_table(self._present("records.parquet"), RECORD_SCHEMA)
        trials = records.groupby(["run_key", "request"]).size().to_dict()
        for plan in self.plans:
            for run in plan.runs:
                key = plan.key(run)
                for number in range(1, len(run.requests) + 1):
                    if trials.get((key, number), 0) != plan.settings.trials:
                        raise MissingEvidence(
                            f"{self.directory / 'records.parquet'} lacks trials of request {number} of a planned run: "
                            f"{run.experiment}, {run.mechanism} ({run.accountant}), epsilon = {run.epsilon_target:g}, "
                            f"sigma = {run.sigma:g}, {run.requests[-1].records_removed} records; {self.remedy}"
                        )
        return records

    def summary(self, experiment: str) -> pd.DataFrame:
        """Return `summaries.summarise` of one experiment's records."""
        if experiment not in self._summaries:
            raise MissingEvidence(
                f"{self.directory / 'records.parquet'} holds no experiment {experiment}; {self.remedy}"
            )
        return self._summaries[experiment]

    @cached_property
    def _summaries(self) -> dict[str, pd.DataFrame]:
        return {experiment: summarise(self.records, experiment) for experiment in self.records["experiment"].unique()}

    def _present(self, name: str) -> Path:
        path = self.directory / name
        if not path.exists():
            raise MissingEvidence(f"{path} is missing; {self.remedy}")
        return path


def results_on(evidence: Sequence[Evidence], dataset: str) -> Evidence:
    """Return the first evidence that is of a data set.

    Raises:
        MissingEvidence: There is none.
    """
    for each in evidence:
        if (each.directory / "data.json").exists() and each.dataset == dataset:
            return each
    raise MissingEvidence(f"no results on {dataset}; run `snakemake --config preset={PRESETS[dataset]}`")


def of_features(evidence: Evidence, features: str | None) -> Evidence:
    """Return the evidence, which must be on features of this title (as its data summary names them) if one is given.

    Raises:
        MissingEvidence: It is on others.
    """
    present = evidence.data["features"]
    if features and features not in present:
        raise MissingEvidence(
            f"the paper's number is on features {features}, the results in preset {evidence.preset} are on {present}; "
            "run with features: resnet18 and ImageNet's weights"
        )
    return evidence


def some(evidence: Sequence[Evidence]) -> Sequence[Evidence]:
    """Return the evidence, which must not be empty.

    Raises:
        MissingEvidence: It is.
    """
    if not evidence:
        raise MissingEvidence("no results; run `snakemake --cores all`")
    return evidence
