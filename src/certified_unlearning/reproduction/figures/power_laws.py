"""Panels of errors against a swept value, on logarithmic axes, with fitted slopes and their intervals."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.looks import BLACK, DOTTED, Look, colours
from certified_unlearning.reproduction.simulation.power_laws import Part, cells, fitted, interval

MARKERS = "os^DvPX"
MOST_TICKS = 5
"""Largest number of labelled values on an axis. If there are more, only every second or third value is labelled."""


def draw_lines(axes: Axes, rows: pd.DataFrame, part: Part, style: FigureStyle) -> None:
    """Draw a part's means over trials, with bootstrap intervals: one line for each method and epsilon.

    Args:
        axes: Axes of the panel.
        rows: Rows of the part, with the column ``method``, the columns of both axes, and possibly the columns
            ``epsilon``, ``bound`` and ``at_zero``.
        part: Description of the panel's axes.
        style: Style of the figure.
    """
    if part.over_bound:
        rows = rows.assign(**{part.y: rows[part.y] / rows["bound"]})
    for method, title, own, look in _lines(rows, part, style):
        theory = part.slopes.get(method)
        label = title if theory is None else slope_text(title, own, part, theory=theory)
        across, trials = cells(own, x=part.x, y=part.y)
        found = np.array([interval(each, statistic=part.statistic) for each in trials]).T
        bars = np.maximum([found[0] - found[1], found[2] - found[0]], 0)
        axes.errorbar(across, found[0], yerr=bars, elinewidth=0.8, capsize=2, label=label, **look.line())
    zero = rows.get("at_zero", pd.Series(dtype=float)).dropna()
    if len(zero) and part.y == "error" and not part.over_bound:
        axes.axhline(float(zero.median()), color=BLACK, linestyle=DOTTED, linewidth=1)
    axes.set_yscale("log")
    values = rows[part.x].drop_duplicates().sort_values(ignore_index=True)
    shared.sweep_axis(axes, values[:: -(-len(values) // MOST_TICKS)], part.across)


def label_panel(axes: Axes, part: Part) -> None:
    """Write the title and the axis labels of a part, and its legend below the axes."""
    axes.set(xlabel=part.across, ylabel=part.up, title=part.title)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), fontsize="xx-small", ncols=1)


def slope_text(name: str, rows: pd.DataFrame, part: Part, *, theory: float) -> str:
    """Return a line's name with its slope, the slope's interval, and the theoretical slope."""
    fit = fitted(rows, x=part.x, y=part.y, statistic=part.statistic)
    return f"{name}: {_signed(fit.slope)} ({_signed(fit.low)} to {_signed(fit.high)}) [{_signed(theory)}]"


def _lines(rows: pd.DataFrame, part: Part, style: FigureStyle) -> Iterator[tuple[str, str, pd.DataFrame, Look]]:
    """Yield the method, the name, the rows and the look of each line: one line for each method and epsilon."""
    several = part.x != "epsilon" and "epsilon" in rows and len(set(rows["epsilon"])) > 1
    keys = ["method", "epsilon"] if several else ["method"]
    groups = list(rows.groupby(keys, sort=False))
    for number, (key, own) in enumerate(groups):
        method, *epsilon = key
        name = f"{method}, ε = {epsilon[0]:g}" if epsilon else str(method)
        yield str(method), name, own, Look(colours(style, len(groups))[number], MARKERS[number % len(MARKERS)])


def _signed(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")
