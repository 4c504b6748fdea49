"""Log entries: result files are converted to names, numbers and artifacts, without MLflow."""

import functools
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from matplotlib.colors import to_hex

from certified_unlearning.files import content_key
from certified_unlearning.mechanisms.run import ExperimentPlan, Run
from certified_unlearning.reproduction import summaries
from certified_unlearning.reproduction.declared import mechanism_name
from certified_unlearning.reproduction.experiment import Experiment
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures.looks import row_look
from certified_unlearning.reproduction.layout import Layout, certificate_file
from certified_unlearning.reproduction.rows import CURVE_ROWS, RUN_ROWS, concatenate, names, read_table
from certified_unlearning.reproduction.tracking import words
from certified_unlearning.reproduction.tracking.view import KIND_TAG, ORDER_TAG

_STYLE = FigureStyle(context="paper", palette="colorblind", width_inches=3.4, height_inches=2.7, dots_per_inch=300)
"""Only the palette of this style is used, so that a method has the same colour as in figures."""


@dataclass(frozen=True)
class Metric:
    """One number of a run; ``step`` is a request or an iteration, if there are several values."""

    name: str
    value: float
    step: int = 0


@dataclass(frozen=True)
class Dataset:
    """The data set of a run.

    Attributes:
        name: Name of the data set.
        sha256: SHA-256 of its content.
        path: Path of the prepared file.
        n: Number of training records.
        d: Number of features.
    """

    name: str
    sha256: str
    path: str
    n: int
    d: int


@dataclass(frozen=True)
class Origin:
    """The origin of a run's numbers.

    Attributes:
        source: Module that declares the experiment.
        code_version: Version of the code, as recorded in the rows.
        seconds: Simulation time, which is the duration of the run.
        ended: Time when the results were written, in seconds since 1970; it is not part of a run's content.
    """

    source: str
    code_version: str
    seconds: float
    ended: float


@dataclass(frozen=True)
class Entry:
    """Everything that is logged as one MLflow run.

    Attributes:
        key: Content key by which the run is found again; equal inputs have equal keys.
        name: Readable name.
        description: Description in sentences (Markdown).
        origin: Origin of the numbers, including the time when the numbers were written.
        params: Constants.
        tags: Searchable labels.
        metrics: Numbers.
        files: Artifacts: file name to content.
        dataset: Data set of the run; None if it used none.
        accuracies: Accuracy of each trial after the last request, for the histogram; empty for a parent run.
        color: Colour of the run's points in charts, as ``#rrggbb``; None for any colour.
    """

    key: str
    name: str
    description: str
    origin: Origin
    params: Mapping[str, Any]
    tags: Mapping[str, str]
    dataset: Dataset | None
    metrics: tuple[Metric, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    accuracies: tuple[float, ...] = ()
    color: str | None = None

    @functools.cached_property
    def digest(self) -> str:
        """Digest of everything that is logged; if the digest is unchanged, no update is needed."""
        return content_key(
            {
                "name": self.name,
                "description": self.description,
                "origin": [self.origin.source, self.origin.code_version, self.origin.seconds],
                "color": self.color,
                "params": {name: str(value) for name, value in self.params.items()},
                "tags": dict(self.tags),
                "metrics": [(metric.name, metric.value, metric.step) for metric in self.metrics],
                "files": {name: hashlib.sha256(content).hexdigest() for name, content in self.files.items()},
            }
        )


@dataclass(frozen=True)
class _Shared:
    """The plan, paths and names that the runs of an experiment share.

    ``mechanisms`` are in the experiment's order, and their names are the keys of ``ended``.
    """

    plan: ExperimentPlan
    paper: str
    source: str
    dataset: Dataset
    certificates: Path
    mechanisms: list[str]
    ended: Mapping[str, float]


def read_entries(layout: Layout, paper: str, experiment: Experiment) -> tuple[Entry, list[Entry]]:
    """Read an experiment's result files.

    Args:
        layout: Paths of the preset's results.
        paper: Name of the paper.
        experiment: Experiment with results: either the runs of mechanisms, or a table whose rows are tracked.

    Returns:
        The entry of the parent, and a list of the other entries. If mechanisms ran the experiment, the list has an
        entry for each of the plan's sweep points for which there are rows. If the experiment made a table, the list has
        an entry for each row.

    Raises:
        DataError: The plan, or a table of rows or curves, is missing or damaged.
    """
    return _of_runs(layout, paper, experiment) if experiment.mechanisms else _of_rows(layout, paper, experiment)


def has_rows(layout: Layout, paper: str, experiment: Experiment) -> bool:
    """Return whether an experiment has anything to track."""
    if experiment.mechanisms:
        own = [layout.run_rows(paper, experiment.name, each) for each in experiment.mechanisms]
        return layout.plan(paper, experiment.name).exists() and any(path.exists() for path in own)
    return experiment.tracked and layout.rows(paper, experiment.name).exists()


def _of_runs(layout: Layout, paper: str, experiment: Experiment) -> tuple[Entry, list[Entry]]:
    name = experiment.name
    plan_path = layout.plan(paper, name)
    plan = ExperimentPlan.read(plan_path)
    ran = [each for each in experiment.mechanisms if layout.run_rows(paper, name, each).exists()]
    ran = ran or list(experiment.mechanisms)
    paths = [layout.run_rows(paper, name, each) for each in ran]
    rows = concatenate(paths, RUN_ROWS)
    curves = concatenate([layout.curves(paper, name, each) for each in ran], CURVE_ROWS)
    rows_of, curve_of = dict(list(rows.groupby("run_key"))), dict(list(curves.groupby("run_key")))
    keys = {plan.key(run): run for run in plan.runs}
    ended = {mechanism_name(each): path.stat().st_mtime for each, path in zip(ran, paths, strict=True)}
    shared = _Shared(
        plan,
        paper,
        _module(experiment),
        _dataset(plan, layout),
        layout.certificates(paper, name),
        [mechanism_name(each) for each in experiment.mechanisms],
        ended,
    )
    points = [
        _sweep_point(shared, run, rows_of[key], curve_of.get(key, curves.iloc[:0]))
        for key, run in keys.items()
        if key in rows_of
    ]
    return _parent_of_runs(layout, shared, experiment, rows, points), points


def _parent_of_runs(
    layout: Layout, shared: _Shared, experiment: Experiment, rows: pd.DataFrame, points: list[Entry]
) -> Entry:
    """Return the parent's entry, with the headline numbers of the sweep point that represents the experiment."""
    plan, name = shared.plan, experiment.name
    speaks = summaries.standard_point(summaries.summarise(rows, name))
    by_name = {point.name: point for point in points}
    headline = () if speaks is None else by_name[speaks["point"]].metrics
    source = experiment.sources.get(plan.settings.dataset, experiment.source)
    return Entry(
        key=content_key(sorted(plan.key(run) for run in plan.runs)),
        name=f"{source or name}: {experiment.caption.title}",
        description=words.experiment(experiment, None if speaks is None else str(speaks["point"])),
        origin=Origin(
            shared.source,
            _distinct(rows["code_version"]),
            sum(point.origin.seconds for point in points),
            max(shared.ended.values()),
        ),
        params={**_settings(plan), "sweep_points": len(plan.runs)},
        tags={**_tags(plan.preset, shared.paper, name), KIND_TAG: "experiment"},
        metrics=(
            *(each for each in headline if "/" not in each.name and each.name != "seconds"),
            Metric("seconds", sum(point.origin.seconds for point in points)),
        ),
        dataset=shared.dataset,
        files=_existing({"plan.json": layout.plan(shared.paper, name), **_figure(layout, shared.paper, name)}),
    )


def _of_rows(layout: Layout, paper: str, experiment: Experiment) -> tuple[Entry, list[Entry]]:
    """Return an entry for each row; points and constants become params, measures and costs become metrics."""
    path = layout.rows(paper, experiment.name)
    rows = read_table(path, experiment.rows)
    ended = path.stat().st_mtime
    tags = _tags(layout.preset, paper, experiment.name)
    constants = names(experiment.rows, "constant")
    shared = [name for name in constants if len(set(rows[name])) == 1]
    entries = [_row_entry(row, experiment, tags, ended) for _, row in rows.iterrows()]
    seconds = sum(entry.origin.seconds for entry in entries)
    parent = Entry(
        key=content_key([experiment.name, layout.preset]),
        name=experiment.title,
        description=words.experiment(experiment, None),
        origin=Origin(_module(experiment), _distinct(rows.get("code_version")), seconds, ended),
        params={**{name: rows[name].iloc[0] for name in shared}, "rows": len(rows)},
        tags={**tags, KIND_TAG: "experiment"},
        metrics=(Metric("rows", len(rows)), *_flags(rows, experiment), Metric("seconds", seconds)),
        dataset=None,
        files=_existing(_figure(layout, paper, experiment.name)),
    )
    return parent, entries


def _flags(rows: pd.DataFrame, experiment: Experiment) -> Iterable[Metric]:
    """Yield the number of rows with each flag, to summarise a table whose measures are not numbers."""
    for name in names(experiment.rows, "measure"):
        if pa.types.is_boolean(experiment.rows.field(name).type):
            yield Metric(f"rows_{name}", int(rows[name].sum()))


def _row_entry(row: "pd.Series[Any]", experiment: Experiment, tags: Mapping[str, str], ended: float) -> Entry:
    points = [name for name in names(experiment.rows, "point") if name != "experiment"]
    named = {name: row[name] for name in points}
    numbers = [name for name in names(experiment.rows, "measure", "cost") if pd.notna(row[name])]
    seconds = float(row["seconds"]) if "seconds" in numbers else 0.0
    return Entry(
        key=content_key([*tags.values(), *map(str, named.values())]),
        name=" on ".join(map(str, named.values())),
        description=f"A row of {experiment.title}: {', '.join(f'{name} {value}' for name, value in named.items())}.",
        origin=Origin(_module(experiment), str(row.get("code_version", "")), seconds, ended),
        params={**named, **{name: row[name] for name in names(experiment.rows, "constant", "origin")}},
        tags={**tags, KIND_TAG: "row", **{name: str(value) for name, value in named.items()}},
        dataset=None,
        metrics=tuple(Metric(name, float(row[name])) for name in numbers),
    )


def _tags(preset: str, paper: str, experiment: str) -> dict[str, str]:
    return {"figure": experiment, "paper": paper, "preset": preset}


def _module(experiment: Experiment) -> str:
    return experiment.reference.partition(":")[0]


def _distinct(column: "pd.Series[str] | None") -> str:
    """Return the values of a column, separated by commas; empty if there is no such column."""
    return "" if column is None else ", ".join(sorted(column.unique()))


def _figure(layout: Layout, paper: str, name: str) -> dict[str, Path]:
    return {f"{name}.{kind}": layout.figure(paper, name, kind) for kind in ("png", "pdf")}


def _sweep_point(shared: _Shared, run: Run, rows: pd.DataFrame, curve: pd.DataFrame) -> Entry:
    plan = shared.plan
    key = plan.key(run)
    requests = summaries.summarise(rows, run.experiment)
    last = requests.iloc[-1]
    trials = rows[["request", "records_removed", "trial", "accuracy"]].sort_values(["request", "trial"])
    first = rows.iloc[0]
    seconds = float(first["seconds"])
    return Entry(
        key=key,
        name=run.point,
        description=words.sweep_point(run, last, len(requests)),
        origin=Origin(shared.source, str(first["code_version"]), seconds, shared.ended[run.mechanism]),
        params={
            **_settings(plan),
            **run.model_dump(mode="json", exclude={"requests", "constants", "method", "member", "point"}),
            "requests": len(requests),
            "records_removed": int(last["records_removed"]),
            "device": first["device"],
            "code_version": first["code_version"],
        },
        tags={
            **_tags(plan.preset, shared.paper, run.experiment),
            KIND_TAG: "run",
            # This is sorted as text. Experiments first name their subject, and then what they compare it with.
            ORDER_TAG: f"{shared.mechanisms.index(run.mechanism):02d} {shared.paper} {run.experiment} {run.point}",
            "mechanism": run.mechanism,
            "variant": run.variant,
            "accountant": run.accountant,
            "guarantee": run.guarantee,
        },
        dataset=shared.dataset,
        metrics=(
            *_headline(requests, seconds=seconds),
            *(_by_request(requests) if len(requests) > 1 else ()),
            *_along(curve),
        ),
        files={
            "accuracies.csv": trials.to_csv(index=False, lineterminator="\n").encode(),
            **_existing({"certificate.json": shared.certificates / certificate_file(run)}),
        },
        accuracies=tuple(trials.loc[trials["request"] == trials["request"].max(), "accuracy"]),
        color=to_hex(row_look(last, _STYLE).color),
    )


def _headline(requests: pd.DataFrame, seconds: float) -> Iterable[Metric]:
    """Yield the numbers of a whole run.

    Examples are the largest epsilon, the number of steps of all requests, and the accuracy after the last request.
    """
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
        **{measure: last[f"{measure}_mean"] for measure in summaries.MEASURES if measure != "accuracy"},
        "majority": last["majority"],
        "seconds": seconds,
    }
    return (Metric(name, float(value)) for name, value in values.items() if pd.notna(value))


def _by_request(requests: pd.DataFrame) -> Iterable[Metric]:
    """Yield the cost and the result of each request in a stream, with the request's number as the step."""
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
    """Yield the learning curve, with one value for each step.

    A phase without steps ends where the previous phase ended.
    """
    points = curve.drop_duplicates("step", keep="last").sort_values("step")
    for name, column in (("curve/accuracy", "accuracy_mean"), ("curve/accuracy_std", "accuracy_std")):
        for step, value in zip(points["step"], points[column], strict=True):
            yield Metric(name, float(value), int(step))


def _settings(plan: ExperimentPlan) -> dict[str, Any]:
    """Return the settings that all runs of a plan share; for a rule such as ``1/n``, the resulting number."""
    settings = plan.settings.model_dump(mode="json", exclude={"device", "accountants"})
    return {**settings, **plan.constants.model_dump(mode="json"), "features": plan.features}


def _dataset(plan: ExperimentPlan, layout: Layout) -> Dataset:
    constants = plan.constants
    return Dataset(plan.settings.dataset, str(constants.data_sha256), str(layout.data), n=constants.n, d=constants.d)


def _existing(paths: Mapping[str, Path]) -> dict[str, bytes]:
    return {name: path.read_bytes() for name, path in paths.items() if path.exists()}
