"""Figure of certified shares against the size of batches, and of the least batch that certifies enough."""

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from certified_unlearning.papers.gradient_certificates.names import title_of
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.looks import BLACK, GREY, Look, colours

MODES = {"unlearning": "-", "privacy": (0, (4, 2))}
_MARKERS = "osD^vPX"
_DOTTED = (0, (1.5, 1.5))


def draw(rows: pd.DataFrame, style: FigureStyle) -> Figure:
    """Draw rows of `tables.batches.batches_table`."""
    depths, sizes = sorted({*rows["depth"]}), sorted({*rows["batch_size"]})
    hues = dict(zip(depths, colours(style, len(depths)), strict=True))
    first = rows.iloc[0]
    with shared.theme(style):
        figure = shared.new_figure(style, columns=2)
        *panels, least = figure.subplots(1, 3)
        for axes, (mode, dashes) in zip(panels, MODES.items(), strict=True):
            axes.set_xscale("log")
            for place, depth in enumerate(depths):
                own = rows[(rows["mode"] == mode) & (rows["depth"] == depth)].sort_values("batch_size")
                look = Look(hues[depth], _MARKERS[place % len(_MARKERS)], dashes)
                axes.plot(own["batch_size"], own["share"], **look.line())
                low, high = own["share"] - own["share_std"], own["share"] + own["share_std"]
                axes.fill_between(own["batch_size"], np.clip(low, 0, 1), np.clip(high, 0, 1), **look.area())
            axes.axhline(first["wanted"], color=BLACK, linestyle=_DOTTED, linewidth=1)
            axes.set(title=mode, xlabel="Records of a batch", ylim=(-0.02, 1.02))
            axes.xaxis.set_major_locator(FixedLocator(sizes[::2]))
            axes.xaxis.set_minor_locator(NullLocator())
        panels[0].set_ylabel("Certified predictions")
        for mode, dashes in MODES.items():
            found = least_batches(rows[rows["mode"] == mode])
            least.plot(found.index, found, **Look(GREY, "o" if mode == "unlearning" else "s", dashes).line())
        least.set(title="least batch", xlabel="Hidden layers", yscale="log", xlim=(-0.3, max(depths) + 0.3))
        least.xaxis.set_major_locator(MaxNLocator(integer=True))
        least.yaxis.set_major_locator(FixedLocator(sizes))
        least.yaxis.set_minor_locator(NullLocator())
        key: dict[str, Artist] = {
            _layers(depth): Line2D([], [], **Look(hues[depth], _MARKERS[place % len(_MARKERS)]).line())
            for place, depth in enumerate(depths)
        }
        other: dict[str, Artist] = {
            mode: Line2D([], [], **Look(GREY, dashes=dashes).line()) for mode, dashes in MODES.items()
        }
        other[f"± 1 standard deviation of {first['trials']} trials"] = Patch(**Look(GREY).area())
        shared.finish(figure, f"One epoch on {title_of(str(first['data']))}, k = {first['k']}", key, other)
    return figure


def least_batches(rows: pd.DataFrame) -> "pd.Series[int]":
    """Return, for each depth that has one, the least batch of the sweep whose mean share is what is wanted."""
    enough = rows[rows["share"] >= rows["wanted"]]
    return enough.groupby("depth")["batch_size"].min()


def _layers(depth: int) -> str:
    return f"{depth} hidden layer{'' if depth == 1 else 's'}"
