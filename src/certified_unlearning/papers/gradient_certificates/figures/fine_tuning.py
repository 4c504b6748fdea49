"""Figure of fine-tuning: certified shares of the new class against k, and its accuracy against the clipping level."""

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, NullLocator

from certified_unlearning.papers.gradient_certificates.names import title_of
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.looks import BLACK, GREY, Look, colours

_MARKERS = "osD^vPX"
_DOTTED = (0, (1.5, 1.5))


def draw(rows: pd.DataFrame, style: FigureStyle) -> Figure:
    """Draw rows of `tables.fine_tuning.fine_tuning_table`."""
    levels = sorted({*rows["gamma"]})
    first = rows.iloc[0]
    with shared.theme(style):
        hues = colours(style, len(levels) + 1)
        figure = shared.new_figure(style, columns=2)
        *panels, accuracy = figure.subplots(1, 3)
        for axes, mode in zip(panels, ("unlearning", "privacy"), strict=True):
            for place, gamma in enumerate(levels):
                own = rows[(rows["mode"] == mode) & (rows["gamma"] == gamma)].sort_values("k")
                look = Look(hues[place], _MARKERS[place % len(_MARKERS)])
                axes.plot(own["k"], own["share"], **look.line())
                low, high = own["share"] - own["share_std"], own["share"] + own["share_std"]
                axes.fill_between(own["k"], np.clip(low, 0, 1), np.clip(high, 0, 1), **look.area())
            axes.set(title=mode, xlabel="Private records k", ylim=(-0.02, 1.02))
        panels[0].set_ylabel(f"Certified predictions of {first['held_back']}")
        own = rows.drop_duplicates("gamma").sort_values("gamma")
        look = Look(hues[-1], "o")
        accuracy.errorbar(own["gamma"], own["accuracy"], yerr=own["accuracy_std"], capsize=2, **look.line())
        accuracy.axhline(first["accuracy_before"], color=BLACK, linestyle=_DOTTED, linewidth=1)
        accuracy.set(xscale="log", xlabel="Clipping level γ", title="accuracy")
        accuracy.xaxis.set_major_locator(FixedLocator(levels))
        accuracy.xaxis.set_minor_locator(NullLocator())
        shared.accuracy_axis(accuracy)
        accuracy.set_ylabel(f"Test accuracy of {first['held_back']}")
        key: dict[str, Artist] = {
            f"γ = {gamma:g}": Line2D([], [], **Look(hues[place], _MARKERS[place % len(_MARKERS)]).line())
            for place, gamma in enumerate(levels)
        }
        other: dict[str, Artist] = {
            "before fine-tuning": Line2D([], [], color=BLACK, linestyle=_DOTTED, linewidth=1),
            f"± 1 standard deviation of {first['trials']} trials": Patch(**Look(GREY).area()),
        }
        shared.finish(figure, f"Fine-tuning on a new class, {title_of(str(first['data']))}", key, other)
    return figure
