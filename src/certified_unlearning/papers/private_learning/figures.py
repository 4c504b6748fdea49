"""Figures of private learning's rates: errors against what is swept, with fitted slopes and their intervals."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from certified_unlearning.papers.private_learning.fits import cells, fitted, interval
from certified_unlearning.papers.private_learning.names import GRADIENT_PARTS, PARTS, RISK_PARTS
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.looks import BLACK, DOTTED, Look, colours

_MARKERS = "os^DvP"
_IN_A_ROW = {7: 4, 4: 2}
"""Panels in a row, by how many there are."""


def draw_risk(rows: pd.DataFrame, style: FigureStyle) -> Figure:
    """Draw rows of `runs.risk.risk_table`, a panel for each part."""
    return _panels(rows, RISK_PARTS, style, "Excess risk of private linear models")


def draw_gradients(rows: pd.DataFrame, style: FigureStyle) -> Figure:
    """Draw rows of `runs.gradients.gradients_table`, a panel for each part."""
    return _panels(rows, GRADIENT_PARTS, style, "Gradients of private models")


def slope_text(name: str, rows: pd.DataFrame, part: str, *, theory: float) -> str:
    """Return a line's name with its slope, the interval of that, and what theory states."""
    fit = fitted(rows, x=PARTS[part].x, y=PARTS[part].y, statistic=PARTS[part].statistic)
    return f"{name}: {_signed(fit.slope)} ({_signed(fit.low)} to {_signed(fit.high)}) [{_signed(theory)}]"


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
            {"X5": _draw_search, "X6": _draw_tails}.get(name, _draw_lines)(axes, own, name, style)
            axes.set(xlabel=PARTS[name].across, ylabel=PARTS[name].up, title=PARTS[name].title)
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), fontsize="xx-small", ncols=1)
        for axes in panels[len(present) :]:
            axes.remove()
        shared.finish(figure, title)
    return figure


def _lines(rows: pd.DataFrame, style: FigureStyle) -> Iterator[tuple[str, str, pd.DataFrame, Look]]:
    """Yield each line's method, its name, its rows and its look: a line for each method and epsilon."""
    several = len(set(rows["epsilon"])) > 1
    groups = list(rows.groupby(["method", "epsilon"], sort=False))
    for number, ((method, epsilon), own) in enumerate(groups):
        name = f"{method}, ε = {epsilon:g}" if several else str(method)
        hue = colours(style, len(groups))[number]
        yield str(method), name, own, Look(hue, _MARKERS[number % len(_MARKERS)])


def _draw_lines(axes: Axes, rows: pd.DataFrame, name: str, style: FigureStyle) -> None:
    part = PARTS[name]
    if part.over_bound:
        rows = rows.assign(**{part.y: rows[part.y] / rows["bound"]})
    for method, title, own, look in _lines(rows, style):
        theory = part.slopes.get(method)
        label = title if theory is None else slope_text(title, own, name, theory=theory)
        across, trials = cells(own, x=part.x, y=part.y)
        found = np.array([interval(each, statistic=part.statistic) for each in trials]).T
        bars = np.maximum([found[0] - found[1], found[2] - found[0]], 0)
        axes.errorbar(across, found[0], yerr=bars, elinewidth=0.8, capsize=2, label=label, **look.line())
    zero = rows["at_zero"].dropna()
    if len(zero) and part.y == "error" and not part.over_bound:
        axes.axhline(float(zero.median()), color=BLACK, linestyle=DOTTED, linewidth=1)
    axes.set_yscale("log")
    shared.sweep_axis(axes, rows[part.x], part.across)


def _draw_search(axes: Axes, rows: pd.DataFrame, name: str, style: FigureStyle) -> None:
    """Draw medians of the search and of the best single run on all records, by the length of rows."""
    medians = rows.pivot_table(values="error", index="level", columns="method", aggfunc="median")
    best = medians.drop(columns="search").min(axis=1)
    for line, label, hue, marker in zip(
        (medians["search"], best), ("search", "best radius"), colours(style, 2), _MARKERS, strict=False
    ):
        axes.plot(line.index, line, label=label, **Look(hue, marker).line())
    axes.axhline(float(rows["at_zero"].median()), color=BLACK, linestyle=DOTTED, linewidth=1)
    axes.set_yscale("log")
    shared.sweep_axis(axes, rows["level"], PARTS[name].across)


def _draw_tails(axes: Axes, rows: pd.DataFrame, name: str, style: FigureStyle) -> None:
    """Draw the share of runs whose error is above a value."""
    for number, (method, own) in enumerate(rows.groupby("method", sort=False)):
        errors = np.sort(own["error"])
        share = 1 - np.arange(len(errors)) / len(errors)
        axes.step(errors, share, label=str(method), color=colours(style, 3)[number])
    axes.set(xscale="log", yscale="log")
    axes.set_xlim(left=float(rows["error"].quantile(0.1)))


def _signed(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")
