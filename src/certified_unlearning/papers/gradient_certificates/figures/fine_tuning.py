"""The figure of fine-tuning: certified shares of the new class by k, and accuracy on this class by clipping level."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator

from certified_unlearning.papers.gradient_certificates.figures.lines import draw_shares, looks_of_levels
from certified_unlearning.papers.gradient_certificates.names import title_of
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.looks import BLACK, DOTTED, Look, colours, entries, spread_entry


def draw(rows: pd.DataFrame, style: FigureStyle) -> Figure:
    """Plot rows of `tables.fine_tuning.fine_tuning_table`."""
    first = rows.iloc[0]
    with shared.theme(style):
        looks = looks_of_levels(rows["gamma"], style, others=1)
        figure = shared.new_figure(style, columns=2)
        *panels, accuracy = figure.subplots(1, 3)
        for axes, mode in zip(panels, ("unlearning", "privacy"), strict=True):
            for gamma, look in looks.items():
                draw_shares(axes, rows[(rows["mode"] == mode) & (rows["gamma"] == gamma)], look, x="k")
            axes.set(title=mode, xlabel="Private records k", ylim=(-0.02, 1.02))
        panels[0].set_ylabel(f"Certified predictions of {first['new_class']}")
        own = rows.drop_duplicates("gamma").sort_values("gamma")
        look = Look(colours(style, len(looks) + 1)[-1], "o")
        accuracy.errorbar(own["gamma"], own["accuracy"], yerr=own["accuracy_std"], capsize=2, **look.line())
        before: dict[str, Any] = {"color": BLACK, "linestyle": DOTTED, "linewidth": 1}
        accuracy.axhline(first["accuracy_before"], **before)
        accuracy.set(xscale="log", xlabel="Clipping level γ", title="accuracy")
        accuracy.xaxis.set_major_locator(FixedLocator([*looks]))
        accuracy.xaxis.set_minor_locator(NullLocator())
        shared.accuracy_axis(accuracy)
        accuracy.set_ylabel(f"Test accuracy of {first['new_class']}")
        key = entries({f"γ = {gamma:g}": look for gamma, look in looks.items()})
        other = {"before fine-tuning": Line2D([], [], **before), **spread_entry(first["trials"])}
        shared.finish(figure, f"Fine-tuning on a new class, {title_of(str(first['data']))}", key, other)
    return figure
