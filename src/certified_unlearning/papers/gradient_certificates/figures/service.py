"""The figure of streams of requests: the refused queries and the saved work of shards with budgets."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.looks import Look, colours, entries

NAMES = {"random": "at random", "one shard": "all of one shard", "in turn": "of each shard in turn"}
MARKERS = "osD"


def draw(rows: pd.DataFrame, style: FigureStyle) -> Figure:
    """Plot rows of `tables.service.service_table`: a line for each stream."""
    streams = list(dict.fromkeys(rows["stream"]))
    with shared.theme(style):
        figure = shared.new_figure(style, columns=2)
        refused, saved = figure.subplots(1, 2)
        looks = {
            stream: Look(hue, MARKERS[place % len(MARKERS)])
            for place, (stream, hue) in enumerate(zip(streams, colours(style, len(streams)), strict=True))
        }
        for stream, look in looks.items():
            own = rows[rows["stream"] == stream].sort_values("budget")
            _line(refused, own, "refused", look)
            _line(saved, own.dropna(subset=["against_sisa"]), "against_sisa", look)
        refused.set_ylabel("Queries without an answer")
        refused.set_ylim(bottom=0)
        saved.set_ylabel("Gradients, SISA / ours")
        if rows["against_sisa"].notna().any():
            saved.set_yscale("log")
        for axes in (refused, saved):
            axes.set_xlabel("Budget of a shard")
            axes.set_xscale("log", base=2)
            axes.set_xticks(sorted({*rows["budget"]}), labels=[str(each) for each in sorted({*rows["budget"]})])
        key = entries({NAMES.get(stream, stream): look for stream, look in looks.items()})
        shared.finish(figure, "Deletion requests to shards with budgets", key)
    return figure


def _line(axes: Axes, rows: pd.DataFrame, column: str, look: Look) -> None:
    axes.plot(rows["budget"], rows[column], **look.line())
    axes.errorbar(rows["budget"], rows[column], yerr=rows[f"{column}_std"], color=look.color, fmt="none", capsize=2)
