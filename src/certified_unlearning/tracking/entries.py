"""What is logged: result files turned into names, numbers and artifacts, without any MLflow."""

import functools
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from certified_unlearning import summaries
from certified_unlearning.experiments.model import Plan, Run
from certified_unlearning.files import content_key
from certified_unlearning.results import CURVE_SCHEMA, RECORD_SCHEMA, concatenate


@dataclass(frozen=True)
class Metric:
    """One number of a run; ``step`` is a request or an iteration where there are several."""

    name: str
    value: float
    step: int = 0


@dataclass(frozen=True)
class Dataset:
    """The data set of a run.

    Attributes:
        name: Its name.
        sha256: Digest of its content.
        path: The prepared file.
        n: Number of training records.
        d: Number of features.
    """

    name: str
    sha256: str
    path: str
    n: int
    d: int


@dataclass(frozen=True)
class Entry:
    """Everything that is logged as one MLflow run.

    Attributes:
        key: Content key by which the run is found again: equal inputs, equal keys.
        name: Human-readable name.
        params: Constants.
        tags: What to search by.
        metrics: Numbers.
        files: Artifacts: file name to content.
        dataset: The data set it used; None if none.
        accuracies: Accuracy of each trial after the last request, for the histogram; empty for a parent run.
    """

    key: str
    name: str
    params: Mapping[str, Any]
    tags: Mapping[str, str]
    dataset: Dataset | None
    metrics: tuple[Metric, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    accuracies: tuple[float, ...] = ()

    @functools.cached_property
    def digest(self) -> str:
        """Digest of all that is logged: while it stays the same there is nothing to update."""
        return content_key(
            {
                "name": self.name,
                "params": {name: str(value) for name, value in self.params.items()},
                "tags": dict(self.tags),
                "metrics": [(metric.name, metric.value, metric.step) for metric in self.metrics],
                "files": {name: hashlib.sha256(content).hexdigest() for name, content in self.files.items()},
            }
        )


def read_entries(directory: Path, experiment: str) -> tuple[Entry, list[Entry]]:
    """Read an experiment's result files.

    Args:
        directory: The preset's results, ``results/<preset>``.
        experiment: Its name, such as ``fig3a``.

    Returns:
        The parent's entry and one entry for each sweep point of the plan that has records.

    Raises:
        DataError: The plan, or a table of records or curves, is missing or damaged.
    """
    plan_path = directory / "plans" / f"{experiment}.json"
    plan = Plan.read(plan_path)
    names = [f"{experiment}-{name}.parquet" for name in dict.fromkeys(run.mechanism for run in plan.runs)]
    names = [name for name in names if (directory / "records" / name).exists()] or names
    records = concatenate([directory / "records" / name for name in names], RECORD_SCHEMA)
    curves = concatenate([directory / "curves" / name for name in names], CURVE_SCHEMA)
    rows_of, curve_of = dict(list(records.groupby("run_key"))), dict(list(curves.groupby("run_key")))
    keys = {plan.key(run): run for run in plan.runs}
    parent = Entry(
        key=content_key(sorted(keys)),
        name=experiment,
        params={**_settings(plan), "sweep_points": len(keys)},
        tags={"figure": experiment, "preset": plan.preset},
        dataset=_dataset(plan, directory),
        files=_existing(
            {
                "plan.json": plan_path,
                f"{experiment}.png": directory / "figures" / f"{experiment}.png",
                f"{experiment}.pdf": directory / "figures" / f"{experiment}.pdf",
            }
        ),
    )
    return parent, [
        _sweep_point(plan, run, rows_of[key], curve_of.get(key, curves.iloc[:0]), directory)
        for key, run in keys.items()
        if key in rows_of
    ]


def _sweep_point(plan: Plan, run: Run, rows: pd.DataFrame, curve: pd.DataFrame, directory: Path) -> Entry:
    key = plan.key(run)
    requests = summaries.summarise(rows, run.experiment)
    trials = rows[["request", "records_removed", "trial", "accuracy"]].sort_values(["request", "trial"])
    first = rows.iloc[0]
    return Entry(
        key=key,
        name=str(requests["point"].iloc[-1]),
        params={
            **_settings(plan),
            **run.model_dump(mode="json", exclude={"requests"}),
            "requests": len(requests),
            "records_removed": int(requests["records_removed"].iloc[-1]),
            "device": first["device"],
            "code_version": first["code_version"],
        },
        tags={
            "figure": run.experiment,
            "preset": plan.preset,
            "mechanism": run.mechanism,
            "variant": run.variant,
            "accountant": run.accountant,
            "guarantee": run.guarantee,
        },
        dataset=_dataset(plan, directory),
        metrics=(
            *_headline(requests, seconds=float(first["seconds"])),
            *(_by_request(requests) if len(requests) > 1 else ()),
            *_along(curve),
        ),
        files={
            "accuracies.csv": trials.to_csv(index=False, lineterminator="\n").encode(),
            **_existing({"certificate.json": directory / "certificates" / run.experiment / f"{key}.json"}),
        },
        accuracies=tuple(trials.loc[trials["request"] == trials["request"].max(), "accuracy"]),
    )


def _headline(requests: pd.DataFrame, seconds: float) -> Iterable[Metric]:
    """Yield the numbers of a whole run: the largest epsilon, all steps, the accuracy after the last request."""
    last = requests.iloc[-1]
    values = {
        "epsilon": requests["epsilon"].max(),
        "mu": requests["mu"].max(),
        "epsilon_target": last["epsilon_target"],
        "initial_epsilon": last["initial_epsilon"],
        "delta": last["delta"],
        "extra_delta": last["extra_delta"],
        "K": last["accumulated_steps"],
        "sigma": last["sigma"],
        "learning_steps": last["learning_steps"],
        "records_removed": last["records_removed"],
        "accuracy": last["accuracy_mean"],
        "accuracy_std": last["accuracy_std"],
        "seconds": seconds,
    }
    return (Metric(name, float(value)) for name, value in values.items() if pd.notna(value))


def _by_request(requests: pd.DataFrame) -> Iterable[Metric]:
    """Yield what a stream's requests cost and gave, each at its number."""
    columns = {
        "request/epsilon": "epsilon",
        "request/K": "unlearning_steps",
        "request/accumulated_K": "accumulated_steps",
        "request/records_removed": "records_removed",
        "request/accuracy": "accuracy_mean",
        "request/accuracy_std": "accuracy_std",
    }
    for name, column in columns.items():
        for number, value in zip(requests["request"], requests[column], strict=True):
            yield Metric(name, float(value), int(number))


def _along(curve: pd.DataFrame) -> Iterable[Metric]:
    """Yield the learning curve, one value a step (a phase of no steps ends where the one before it ended)."""
    points = curve.drop_duplicates("step", keep="last").sort_values("step")
    for name, column in (("curve/accuracy", "accuracy_mean"), ("curve/accuracy_std", "accuracy_std")):
        for step, value in zip(points["step"], points[column], strict=True):
            yield Metric(name, float(value), int(step))


def _settings(plan: Plan) -> dict[str, Any]:
    """Return what all runs of a plan share; where a setting says how (``1/n``), the number that came of it."""
    settings = plan.settings.model_dump(mode="json", exclude={"device"})
    return {**settings, "features": plan.features, **plan.constants.model_dump(mode="json")}


def _dataset(plan: Plan, directory: Path) -> Dataset:
    constants = plan.constants
    path = str(directory / "data.safetensors")
    return Dataset(plan.settings.dataset, constants.data_sha256, path, n=constants.n, d=constants.d)


def _existing(paths: Mapping[str, Path]) -> dict[str, bytes]:
    return {name: path.read_bytes() for name, path in paths.items() if path.exists()}
