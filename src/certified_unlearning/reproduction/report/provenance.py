"""The origin of the results: software, data, settings, runs, and the time that they took."""

import importlib.metadata
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from certified_unlearning.files import read_json
from certified_unlearning.reproduction.layout import Layout
from certified_unlearning.reproduction.report.embedding import Download, download, required
from certified_unlearning.reproduction.report.exhibits import Shown
from certified_unlearning.version import code_version

_PACKAGES = ("numpy", "scipy", "torch", "pandas", "scikit-learn", "matplotlib", "snakemake", "dvc", "mlflow")


@dataclass(frozen=True)
class Job:
    """The runs of one mechanism in one experiment; ``time`` is their total simulation time."""

    preset: str
    experiment: str
    mechanism: str
    runs: int
    trials: int
    device: str
    dtype: str
    code_versions: str
    time: str


@dataclass(frozen=True)
class Provenance:
    """Provenance of the page's numbers.

    Attributes:
        software: Versions of packages, in the environment that wrote the page.
        data: Summary of the data set, for each preset.
        settings: Value of each setting in each preset; "" if a preset does not have the setting.
        parameters: All parameters of each preset, as a file.
        jobs: Simulation jobs.
        total_time: Total time of all jobs.
    """

    software: dict[str, str]
    data: Mapping[str, Mapping[str, Any]]
    settings: dict[str, list[str]]
    parameters: list[Download]
    jobs: list[Job]
    total_time: str


def provenance(
    results: Path,
    shown: Mapping[str, Shown],
    summaries: Mapping[str, Mapping[str, Any]],
    records: Mapping[str, pd.DataFrame],
) -> Provenance:
    """Return the provenance of the presets' results.

    Args:
        results: The directory of all results.
        shown: Experiments of each preset, with their papers.
        summaries: Summary of each preset's data set (``data.json``).
        records: Records of each preset.

    Raises:
        DataError: A plan or a table of parameters is missing or damaged.
    """
    return Provenance(
        software=_software(),
        data=summaries,
        settings=_settings(results, shown),
        parameters=[
            download(results / preset / "parameters.html", f"{preset}-parameters.html", "parameter_table")
            for preset in records
        ],
        jobs=[job for preset, rows in records.items() for job in _jobs(preset, rows)],
        total_time=_time(sum(_seconds(rows) for rows in records.values())),
    )


def _software() -> dict[str, str]:
    versions = {"certified-unlearning": code_version(), "Python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "not installed here"
    return versions


def _settings(results: Path, shown: Mapping[str, Shown]) -> dict[str, list[str]]:
    plans = {
        preset: [Layout(results, preset).plan(paper.name, each.name) for paper, each in experiments if each.mechanisms]
        for preset, experiments in shown.items()
    }
    settings = [read_json(required(own[0], "plan"), ("settings",))["settings"] if own else {} for own in plans.values()]
    keys = dict.fromkeys(key for each in settings for key in each)
    return {key: [_setting(each.get(key, "")) for each in settings] for key in keys}


def _setting(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _jobs(preset: str, records: pd.DataFrame) -> list[Job]:
    return [
        Job(
            preset=preset,
            experiment=str(experiment),
            mechanism=str(mechanism),
            runs=rows["run_key"].nunique(),
            trials=rows["trial"].nunique(),
            device=_distinct(rows["device"]),
            dtype=_distinct(rows["dtype"]),
            code_versions=_distinct(rows["code_version"]),
            time=_time(_seconds(rows)),
        )
        for (experiment, mechanism), rows in records.groupby(["experiment", "mechanism"], sort=True)
    ]


def _distinct(column: "pd.Series[str]") -> str:
    return ", ".join(sorted(column.unique()))


def _seconds(records: pd.DataFrame) -> float:
    """Return the simulation time; every row of a run contains the run's share of the time of its job."""
    return float(records.groupby("run_key")["seconds"].first().sum())


def _time(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
