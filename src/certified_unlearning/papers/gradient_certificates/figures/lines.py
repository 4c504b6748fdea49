"""The common parts of the figures of certified shares: lines with bands, and the hues and markers of levels."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures.looks import Look, colours

DASHED = (0, (4, 2))
MODES: dict[str, Any] = {"unlearning": "-", "privacy": DASHED}
"""The line style of each mode."""
_MARKERS = "osD^vPX"


def looks_of_levels(levels: "pd.Series[Any]", style: FigureStyle, *, others: int = 0) -> dict[Any, Look]:
    """Return a hue and a marker for each distinct level, in increasing order, and leave ``others`` hues free."""
    distinct = sorted({*levels})
    hues = colours(style, len(distinct) + others)
    return {
        level: Look(hue, _MARKERS[place % len(_MARKERS)])
        for place, (level, hue) in enumerate(zip(distinct, hues, strict=False))
    }


def draw_shares(axes: Axes, rows: pd.DataFrame, look: Look, *, x: str) -> None:
    """Draw one line of mean shares, with a band of one standard deviation, cut off at 0 and 1."""
    rows = rows.sort_values(x)
    axes.plot(rows[x], rows["share"], **look.line())
    low, high = rows["share"] - rows["share_std"], rows["share"] + rows["share_std"]
    axes.fill_between(rows[x], np.clip(low, 0, 1), np.clip(high, 0, 1), **look.area())
