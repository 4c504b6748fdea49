"""The figure of certified shares against k, with a panel for each case."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from certified_unlearning.papers.gradient_certificates.figures.lines import DASHED, draw_shares, looks_of_levels
from certified_unlearning.papers.gradient_certificates.names import title_of
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.looks import GREY, Look, entries, spread_entry


def draw(rows: pd.DataFrame, style: FigureStyle) -> Figure:
    """Plot rows of `tables.shares.shares_table`: a line for each gamma and bounding method."""
    names = list(dict.fromkeys(rows["case"]))
    with shared.theme(style):
        figure = shared.new_figure(style, columns=2)
        across = min(3, len(names))
        down = -(-len(names) // across)
        figure.set_figheight((0.3 + 0.7 * down) * style.height_inches)
        panels = figure.subplots(down, across, squeeze=False, sharey=True).ravel()
        for axes in panels[len(names) :]:
            axes.remove()
        looks = looks_of_levels(rows["gamma"], style)
        for axes, name in zip(panels, names, strict=False):
            own = rows[rows["case"] == name]
            _lines(axes, own, looks)
            axes.set_title(_title(own), fontsize="small")
            axes.set_xlabel("Records k of every batch")
        for axes in panels[: len(names) : across]:
            axes.set_ylabel("Certified predictions")
        key = entries({f"γ = {gamma:g}": look for gamma, look in looks.items()})
        if "published" in set(rows["bounds"]):
            key["bounded as published"] = Look(GREY, dashes=DASHED).line_entry()
        shared.finish(figure, "Predictions that k records cannot change", key | spread_entry(rows["trials"].iloc[0]))
    return figure


def _lines(axes: Axes, rows: pd.DataFrame, looks: dict[Any, Look]) -> None:
    for (gamma, bounds), line in rows.groupby(["gamma", "bounds"], sort=True):
        look = looks[gamma]
        draw_shares(axes, line, look if bounds == "tighter" else Look(look.color, "", DASHED), x="k")
    axes.set_ylim(-0.02, 1.02)


def _title(rows: pd.DataFrame) -> str:
    first = rows.iloc[0]
    layers = f"{first['hidden']} units" if first["hidden"] else "no hidden units"
    return f"{title_of(str(first['data']))}, {first['mode']}\n{layers}, {first['updates']} updates"
