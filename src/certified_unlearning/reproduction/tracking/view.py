"""The content of MLflow's page for a preset: a description in words, and saved views with columns and charts."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from certified_unlearning.reproduction.experiment import Experiment

KIND_TAG = "kind"
"""Tag that distinguishes runs of one sweep point (``run``), rows of tables (``row``) and parents (``experiment``)."""
ORDER_TAG = "order"
"""Tag by which the saved view is sorted: the mechanism's place in its experiment, the experiment, the point's name."""
VIEW = "sweep-points"
"""Key of the saved view of all sweep points; the key of a figure's view is the figure's name."""

_COLUMNS = {
    "tags.`figure`": 75,
    "metrics.`epsilon_target`": 108,
    "metrics.`K`": 55,
    "metrics.`accuracy`": 75,
    "metrics.`epsilon`": 90,
    "tags.`mechanism`": 110,
    "tags.`accountant`": 100,
    "metrics.`sigma`": 110,
}
"""Columns in order, with their widths. The first four fit next to the names when MLflow's assistant is open."""
_FIRST_COLUMNS = {"attributes.`Run Name`": 205}
_LAST_COLUMNS = {"duration": 90, "runDateAndNestInfo": 105}
"""Columns that the page always shows; the page puts the date, `runDateAndNestInfo`, after the name."""
_CHARTS = (("epsilon", "accuracy"), ("epsilon", "K"))
"""Pairs (x, y) of columns whose scatter plots come first."""
_CHARTS_SECTION = "Sweep points"
_FOLDED_SECTIONS = ("Model metrics", "curve", "request")
"""Sections that the page adds by itself, with a chart for each metric. They are folded, because presets have hundreds
of numbers.
"""
_METRICS = {"accuracy_mean": "accuracy", "unlearning_steps": "K"}
"""Metrics whose names differ from those of the columns that experiments show."""
_LINKED = 20
_CHARTED = 6
"""Largest number of charts in a view. `_LINKED` is the largest number of figures to which the description links. Both
are limited because a tag holds only 5,000 characters.
"""
_ALONG_A_STREAM = {"accumulated_steps": ("request/accumulated_K", "request/accuracy")}
"""Metrics with a value for each request of a stream; the key is the column that experiments on streams show."""


class FigureView(BaseModel):
    """The information about an experiment that a saved view needs.

    Attributes:
        name: Name of the experiment.
        label: Place in the paper; the experiment's name if it is not in the paper.
        title: Place in the paper, and what the experiment shows.
        x: Swept column.
        y: Columns that are shown against ``x``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    label: str
    title: str
    x: str = ""
    y: tuple[str, ...] = ()

    @classmethod
    def of(cls, experiment: Experiment) -> "FigureView":
        """Return the view of an experiment that mechanisms run."""
        return cls(
            name=experiment.name,
            label=experiment.source or experiment.name,
            title=experiment.title,
            x=experiment.x,
            y=tuple(experiment.y),
        )


def address(experiment_id: str, view: str = VIEW, *, charts: bool = False) -> str:
    """Return the part of a saved view's address from ``#`` on.

    If ``charts`` is true, the page at this address shows charts next to a list of runs. Otherwise, the page shows the
    table.
    """
    mode = "&compareRunsMode=CHART" if charts else ""  # By default, the page shows the table.
    return f"#/experiments/{experiment_id}/runs?workflowType=machine_learning{mode}&viewStateShareKey={view}"


def experiment_tags(preset: str, experiment_id: str, figures: Sequence[FigureView] = ()) -> dict[str, str]:
    """Return the tags of a preset's MLflow experiment: its kind, its description, and the saved views."""
    views = {VIEW: ("All sweep points", _state())}
    views |= {each.name: (each.title, _state(each)) for each in figures}
    # The menu sorts the views by time, newest first.
    times = range(len(views), 0, -1)
    return {
        # Otherwise, the page asks every visitor whether this is about language models.
        "mlflow.experimentKind": "custom_model_development",
        "mlflow.note.content": _description(preset, experiment_id, figures),
    } | {
        f"mlflow.sharedViewState.{key}": json.dumps(
            {"name": name, "createdAt": time, "updatedAt": time, "state": json.dumps(state)}
        )
        for (key, (name, state)), time in zip(views.items(), times, strict=True)
    }


def _description(preset: str, experiment_id: str, figures: Sequence[FigureView]) -> str:
    def charts(view: str) -> str:
        return address(experiment_id, view, charts=True)

    of_each = ", ".join(f"[{each.label}]({charts(each.name)})" for each in figures[:_LINKED])
    return (
        # The page folds all lines except the first.
        f"Preset `{preset}`: [table of sweep points]({address(experiment_id)}), charts of "
        f"{of_each or f'[all]({charts(VIEW)})'}.\n\n"
        "A parent run is one figure or table of a paper. Its description names a sweep point, and its metrics are the "
        "metrics of this point. Below a parent run is a run for each sweep point: one mechanism, one accountant, one "
        "epsilon or sigma, all trials.\n\n"
        "`epsilon_target` is the target, and `epsilon` is the certified number (in a stream of requests, the largest). "
        "`K` is the number of steps that answer all requests. `accuracy` is the mean over trials on test records after "
        "the last request. `accountant` is the analysis that gives epsilon. `majority` is the accuracy of guessing the "
        "most frequent class."
    )


def _state(figure: FigureView | None = None) -> dict[str, Any]:
    query, own, lines, points = f"tags.`{KIND_TAG}` = 'run'", _COLUMNS, [], list(_CHARTS)
    if figure is not None:
        query += f" and tags.`figure` = '{figure.name}'"
        # The swept column comes first.
        own = {"tags.`figure`": 75, **({f"metrics.`{figure.x}`": 110} if figure.x else {}), **_COLUMNS}
        lines = [metric for y in figure.y for metric in _ALONG_A_STREAM.get(y, ())]
        swept = [(figure.x, _METRICS.get(y, y)) for y in figure.y if y not in _ALONG_A_STREAM]
        points = list(dict.fromkeys([*swept, *_CHARTS]))
    columns = _FIRST_COLUMNS | own | _LAST_COLUMNS
    return {
        "searchFilter": query,
        "orderByKey": f"tags.`{ORDER_TAG}`",  # With any order but the page's own, the list is flat.
        "orderByAsc": True,
        "selectedColumns": [*own, "attributes.`Source`"],
        "columnOrder": list(columns),
        "columnWidths": columns,
        "runsHiddenMode": "SHOW_ALL",  # Otherwise, charts show only the first ten runs.
        "compareRunCharts": [*map(_lines, lines), *(_scatter(x, y) for x, y in points)][:_CHARTED],
        "compareRunSections": [
            _section(_CHARTS_SECTION, shown=True),
            *(_section(name, shown=False) for name in _FOLDED_SECTIONS),
        ],
        "isAccordionReordered": True,  # Otherwise, the page sorts the sections by name.
    }


def _scatter(x: str, y: str) -> Mapping[str, Any]:
    return {
        "type": "SCATTER",
        "uuid": f"{y}-against-{x}",
        "displayName": f"{y} against {x}",
        "metricSectionId": _CHARTS_SECTION,
        "runsCountToCompare": 1000,
        "xaxis": {"key": x, "type": "METRIC"},
        "yaxis": {"key": y, "type": "METRIC"},
        "deleted": False,
        "isGenerated": False,
    }


def _lines(metric: str) -> Mapping[str, Any]:
    """Return a chart with a line for each run: a metric of a stream against the number of records removed so far."""
    return {
        "type": "LINE",
        "uuid": f"{metric}-along-a-stream",
        "metricSectionId": _CHARTS_SECTION,
        "runsCountToCompare": 1000,
        "metricKey": metric,
        "selectedMetricKeys": [metric],
        "xAxisKey": "metric",
        "selectedXAxisMetricKey": "request/records_removed",
        "useGlobalXaxisKey": False,
        "useGlobalLineSmoothing": False,
        "lineSmoothness": 0,
        "xAxisScaleType": "linear",
        "scaleType": "linear",
        "deleted": False,
        "isGenerated": False,
    }


def _section(name: str, *, shown: bool) -> Mapping[str, Any]:
    # There is one column, because a chart of half the width is unreadable when MLflow's assistant is open, as it is at
    # first.
    return {"uuid": name, "name": name, "display": shown, "isReordered": True, "deleted": False, "columns": 1}
