"""The figure of the experiment `batches`: certified shares by batch size, and the smallest sufficient batch sizes."""

from dataclasses import replace

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from certified_unlearning.papers.gradient_certificates.figures.lines import MODES, draw_shares, looks_of_levels
from certified_unlearning.papers.gradient_certificates.names import title_of
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.looks import BLACK, DOTTED, GREY, Look, entries, spread_entry


def draw(rows: pd.DataFrame, style: FigureStyle) -> Figure:
    """Plot rows of `tables.batches.batches_table`."""
    sizes = sorted({*rows["batch_size"]})
    looks = looks_of_levels(rows["depth"], style)
    first = rows.iloc[0]
    with shared.theme(style):
        figure = shared.new_figure(style, columns=2)
        *panels, least = figure.subplots(1, 3)
        for axes, (mode, dashes) in zip(panels, MODES.items(), strict=True):
            axes.set_xscale("log")
            for depth, look in looks.items():
                own = rows[(rows["mode"] == mode) & (rows["depth"] == depth)]
                draw_shares(axes, own, replace(look, dashes=dashes), x="batch_size")
            axes.axhline(first["wanted"], color=BLACK, linestyle=DOTTED, linewidth=1)
            axes.set(title=mode, xlabel="Records of a batch", ylim=(-0.02, 1.02))
            axes.xaxis.set_major_locator(FixedLocator(sizes[::2]))
            axes.xaxis.set_minor_locator(NullLocator())
        panels[0].set_ylabel("Certified predictions")
        for mode, dashes in MODES.items():
            found = least_batches(rows[rows["mode"] == mode])
            least.plot(found.index, found, **Look(GREY, "o" if mode == "unlearning" else "s", dashes).line())
        least.set(title="least batch", xlabel="Hidden layers", yscale="log", xlim=(-0.3, max(looks) + 0.3))
        least.xaxis.set_major_locator(MaxNLocator(integer=True))
        least.yaxis.set_major_locator(FixedLocator(sizes))
        least.yaxis.set_minor_locator(NullLocator())
        key = entries({_layers(depth): look for depth, look in looks.items()})
        other = entries({mode: Look(GREY, dashes=dashes) for mode, dashes in MODES.items()})
        title = f"One epoch on {title_of(str(first['data']))}, k = {first['k']}"
        shared.finish(figure, title, key, other | spread_entry(first["trials"]))
    return figure


def least_batches(rows: pd.DataFrame) -> "pd.Series[int]":
    """Return, for each depth, the smallest batch size of the sweep whose mean share is at least the wanted share.

    Depths without such a batch size are left out.
    """
    enough = rows[rows["share"] >= rows["wanted"]]
    return enough.groupby("depth")["batch_size"].min()


def _layers(depth: int) -> str:
    return f"{depth} hidden layer{'' if depth == 1 else 's'}"
