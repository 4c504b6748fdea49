"""The figures of private learning's rates: errors against the swept values, with fitted slopes and their intervals."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from certified_unlearning.papers.private_learning.names import GRADIENT_PARTS, PARTS, RISK_PARTS
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.looks import BLACK, DOTTED, Look, colours
from certified_unlearning.reproduction.figures.power_laws import MARKERS, draw_lines, label_panel

_IN_A_ROW = {8: 4, 7: 4, 4: 2}
"""The number of panels in a row; the key is the total number of panels."""


def draw_risk(rows: pd.DataFrame, style: FigureStyle) -> Figure:
    """Plot rows of `runs.risk.risk_table`, a panel for each part."""
    return _panels(rows, RISK_PARTS, style, "Excess risk of private linear models")


def draw_gradients(rows: pd.DataFrame, style: FigureStyle) -> Figure:
    """Plot rows of `runs.gradients.gradients_table`, a panel for each part."""
    return _panels(rows, GRADIENT_PARTS, style, "Gradients of private models")


def _panels(rows: pd.DataFrame, parts: Sequence[str], style: FigureStyle, title: str) -> Figure:
    present = [name for name in parts if name in set(rows["part"])]
    columns = _IN_A_ROW.get(len(present), 3)
    height = -(-len(present) // columns)
    with shared.theme(style):
        figure = shared.new_figure(style, columns=columns)
        figure.set_figheight(height * 1.35 * style.height_inches)
        panels = figure.subplots(height, columns, squeeze=False).ravel()
        for axes, name in zip(panels, present, strict=False):
            own = rows[rows["part"] == name]
            if name in _OTHERWISE:
                _OTHERWISE[name](axes, own, name, style)
            else:
                draw_lines(axes, own, PARTS[name], style)
            label_panel(axes, PARTS[name])
        for axes in panels[len(present) :]:
            axes.remove()
        shared.finish(figure, title)
    return figure


def _draw_search(axes: Axes, rows: pd.DataFrame, name: str, style: FigureStyle) -> None:
    """Plot the median errors of the search, and of the best single run on all records, against the length of rows."""
    medians = rows.pivot_table(values="error", index="level", columns="method", aggfunc="median")
    best = medians.drop(columns="search").min(axis=1)
    for line, label, hue, marker in zip(
        (medians["search"], best), ("search", "best radius"), colours(style, 2), MARKERS, strict=False
    ):
        axes.plot(line.index, line, label=label, **Look(hue, marker).line())
    axes.axhline(float(rows["at_zero"].median()), color=BLACK, linestyle=DOTTED, linewidth=1)
    axes.set_yscale("log")
    shared.sweep_axis(axes, rows["level"], PARTS[name].across)


def _draw_tails(axes: Axes, rows: pd.DataFrame, name: str, style: FigureStyle) -> None:
    """Draw the share of runs whose error exceeds a value."""
    for number, (method, own) in enumerate(rows.groupby("method", sort=False)):
        errors = np.sort(own["error"])
        share = 1 - np.arange(len(errors)) / len(errors)
        axes.step(errors, share, label=str(method), color=colours(style, 3)[number])
    axes.set(xscale="log", yscale="log")
    axes.set_xlim(left=float(rows["error"].quantile(0.1)))


_OTHERWISE = {"X5": _draw_search, "X6": _draw_tails}
"""The drawing functions of those parts whose panels do not show lines of means."""
