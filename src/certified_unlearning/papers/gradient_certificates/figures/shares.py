"""Figure of certified shares against k, a panel for each case."""

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from certified_unlearning.papers.gradient_certificates.names import title_of
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.looks import GREY, Look, colours

DASHED = (0, (4, 2))
MARKERS = "osD^vPX"


def draw(rows: pd.DataFrame, style: FigureStyle) -> Figure:
    """Draw rows of `tables.shares.shares_table`: a line for each gamma and way of bounding."""
    names = list(dict.fromkeys(rows["case"]))
    with shared.theme(style):
        figure = shared.new_figure(style, columns=2)
        across = min(3, len(names))
        down = -(-len(names) // across)
        figure.set_figheight((0.3 + 0.7 * down) * style.height_inches)
        panels = figure.subplots(down, across, squeeze=False, sharey=True).ravel()
        for axes in panels[len(names) :]:
            axes.remove()
        levels = sorted({*rows["gamma"]})
        hues = dict(zip(levels, colours(style, len(levels)), strict=True))
        for axes, name in zip(panels, names, strict=False):
            own = rows[rows["case"] == name]
            _lines(axes, own, {gamma: (hues[gamma], MARKERS[levels.index(gamma) % len(MARKERS)]) for gamma in levels})
            axes.set_title(_title(own), fontsize="small")
            axes.set_xlabel("Records k of every batch")
        for axes in panels[: len(names) : across]:
            axes.set_ylabel("Certified predictions")
        key: dict[str, Artist] = {
            f"γ = {gamma:g}": Line2D([], [], **Look(hues[gamma], MARKERS[place % len(MARKERS)]).line())
            for place, gamma in enumerate(levels)
        }
        if "published" in set(rows["bounds"]):
            key["bounded as published"] = Line2D([], [], **Look(GREY, dashes=DASHED).line())
        key[f"± 1 standard deviation of {int(rows['trials'].iloc[0])} trials"] = Patch(**Look(GREY).area())
        shared.finish(figure, "Predictions that k records cannot change", key)
    return figure


def _lines(axes: Axes, rows: pd.DataFrame, hues: dict[float, tuple[object, str]]) -> None:
    for (_, bounds), line in rows.groupby(["gamma", "bounds"], sort=True):
        own = line.sort_values("k")
        hue, marker = hues[float(own["gamma"].iloc[0])]
        look = Look(hue, marker if bounds == "tighter" else "", "-" if bounds == "tighter" else DASHED)
        axes.plot(own["k"], own["share"], **look.line())
        low, high = own["share"] - own["share_std"], own["share"] + own["share_std"]
        axes.fill_between(own["k"], np.clip(low, 0, 1), np.clip(high, 0, 1), **look.area())
    axes.set_ylim(-0.02, 1.02)


def _title(rows: pd.DataFrame) -> str:
    first = rows.iloc[0]
    layers = f"{first['hidden']} units" if first["hidden"] else "no hidden units"
    return f"{title_of(str(first['data']))}, {first['mode']}\n{layers}, {first['updates']} updates"
