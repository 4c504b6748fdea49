"""Figures of private learning: errors against what is swept, with fitted slopes."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from certified_unlearning.papers.private_learning.fits import cells, fitted, interval
from certified_unlearning.papers.private_learning.names import PARTS, RISK_PARTS, Part
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.looks import BLACK, Look, colours

_MARKERS = "os^DvP"
_DOTTED = (0, (1.5, 1.5))
_IN_A_ROW = 3


def draw_risk(rows: pd.DataFrame, style: FigureStyle) -> Figure:
    """Draw rows of `runs.risk.risk_table`, a panel for each part."""
    return _panels(rows, RISK_PARTS, style, "Excess risk of private linear models")


def slope_text(name: str, rows: pd.DataFrame, *, x: str, theory: float | None) -> str:
    """Return a line's name with its slope, the interval of that, and what theory states."""
    fit = fitted(rows, x=x)
    stated = "" if theory is None else f" [{_signed(theory)}]"
    return f"{name}: {_signed(fit.slope)} ({_signed(fit.low)} to {_signed(fit.high)}){stated}"


def _panels(rows: pd.DataFrame, parts: Sequence[str], style: FigureStyle, title: str) -> Figure:
    present = [name for name in parts if name in set(rows["part"])]
    height = -(-len(present) // _IN_A_ROW)
    with shared.theme(style):
        figure = shared.new_figure(style, columns=3)
        figure.set_figheight(height * 1.25 * style.height_inches)
        panels = figure.subplots(height, _IN_A_ROW, squeeze=False).ravel()
        for axes, name in zip(panels, present, strict=False):
            _draw_part(axes, rows[rows["part"] == name], PARTS[name], style)
        for axes in panels[len(present) :]:
            axes.remove()
        shared.finish(figure, title)
    return figure


def _draw_part(axes: Axes, rows: pd.DataFrame, part: Part, style: FigureStyle) -> None:
    lines = list(rows.groupby(["method", *(["epsilon"] if len(set(rows["epsilon"])) > 1 else [])], sort=False))
    for (which, own), hue, marker in zip(lines, colours(style, len(lines)), _MARKERS, strict=False):
        name = str(which[0]) + (f", ε = {which[1]:g}" if len(which) > 1 else "")
        across, trials = cells(own, x=part.x)
        found = np.array([interval(each) for each in trials]).T
        theory = part.slopes.get(str(which[0]))
        label = name if theory is None else slope_text(name, own, x=part.x, theory=theory)
        bars = np.maximum([found[0] - found[1], found[2] - found[0]], 0)
        axes.errorbar(across, found[0], yerr=bars, elinewidth=0.8, capsize=2, label=label, **Look(hue, marker).line())
    zero = rows["at_zero"].dropna()
    if len(zero):
        axes.axhline(float(zero.median()), color=BLACK, linestyle=_DOTTED, linewidth=1)
    axes.set(xscale="log", yscale="log", xlabel=part.across, ylabel=part.up)
    axes.set_title(part.title)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), fontsize="xx-small", ncols=1)


def _signed(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")
