"""What MLflow's page shows of a preset: a description in words, and a saved view with columns and charts."""

import json
from collections.abc import Mapping
from typing import Any

KIND_TAG = "kind"
"""Tag that tells runs of one sweep point (``run``) and rows of tables (``row``) from parents (``experiment``)."""
ORDER_TAG = "order"
"""Tag by which the saved view sorts: the mechanism's place in its experiment, the experiment, the point's name."""
VIEW = "sweep-points"
"""The saved view's key."""

_COLUMNS = {
    "tags.`figure`": 90,
    "metrics.`epsilon_target`": 110,
    "metrics.`epsilon`": 90,
    "metrics.`K`": 70,
    "metrics.`accuracy`": 90,
    "tags.`mechanism`": 110,
    "tags.`accountant`": 100,
    "metrics.`sigma`": 110,
}
"""Columns in their order, with their widths."""
_FIRST_COLUMNS = {"attributes.`Run Name`": 250}
_LAST_COLUMNS = {"duration": 90, "runDateAndNestInfo": 150}
"""Columns that the page always has."""
_CHARTS = (("epsilon", "accuracy"), ("epsilon", "K"))
"""Scatter plots that stand first: x and y."""
_CHARTS_SECTION = "Accuracy and K against epsilon"
_FOLDED_SECTIONS = ("Model metrics", "curve", "request")
"""Sections of a chart for each metric, which the page adds by itself: closed, for a preset has hundreds of numbers."""


def address(experiment_id: str, *, charts: bool = False) -> str:
    """Return where the saved view is, from ``#`` on: the table, or the charts beside a list of the runs."""
    mode = "CHART" if charts else "TABLE"
    query = f"workflowType=machine_learning&compareRunsMode={mode}&viewStateShareKey={VIEW}"
    return f"#/experiments/{experiment_id}/runs?{query}"


def experiment_tags(preset: str, experiment_id: str) -> dict[str, str]:
    """Return what is set on a preset's MLflow experiment: its kind, its description, the saved view."""
    view = {"name": "Sweep points", "createdAt": 0, "updatedAt": 0, "state": json.dumps(_state())}
    return {
        # Else the page asks everyone whether this is about language models.
        "mlflow.experimentKind": "custom_model_development",
        "mlflow.note.content": _description(preset, experiment_id),
        f"mlflow.sharedViewState.{VIEW}": json.dumps(view),
    }


def _description(preset: str, experiment_id: str) -> str:
    charts, table = address(experiment_id, charts=True), address(experiment_id)
    return (
        # The page folds all but the first line.
        f"Certified unlearning, preset `{preset}`: [charts of accuracy and K against epsilon]({charts}), "
        f"[table of all sweep points]({table}).\n\n"
        "A parent run is one figure or table of a paper; its metrics are those of one sweep point, which its "
        "description names. Below it is a run for each sweep point: one mechanism, one accountant, one epsilon or "
        "sigma, all trials.\n\n"
        "`epsilon_target` is the target, and `epsilon` the certified number, the largest of a stream of requests. `K` "
        "counts the steps that answer all requests. `accuracy` is the mean over trials on test records after the last "
        "request. `accountant` is the analysis that gives epsilon. `majority` is the accuracy of guessing the most "
        "frequent class."
    )


def _state() -> dict[str, Any]:
    columns = _FIRST_COLUMNS | _COLUMNS | _LAST_COLUMNS
    return {
        "searchFilter": f"tags.`{KIND_TAG}` = 'run'",
        "orderByKey": f"tags.`{ORDER_TAG}`",  # any order but the page's own makes a flat list
        "orderByAsc": True,
        "selectedColumns": [*_COLUMNS, "attributes.`Source`"],
        "columnOrder": list(columns),
        "columnWidths": columns,
        "runsHiddenMode": "SHOW_ALL",  # otherwise charts show the first ten runs
        "compareRunCharts": [_scatter(x, y) for x, y in _CHARTS],
        "compareRunSections": [
            _section(_CHARTS_SECTION, shown=True),
            *(_section(name, shown=False) for name in _FOLDED_SECTIONS),
        ],
        "isAccordionReordered": True,  # otherwise the page sorts the sections by their names
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


def _section(name: str, *, shown: bool) -> Mapping[str, Any]:
    return {"uuid": name, "name": name, "display": shown, "isReordered": True, "deleted": False, "columns": 2}
