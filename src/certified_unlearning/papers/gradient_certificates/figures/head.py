"""The figure of a head on fixed features: certified shares against k, and accuracy with its bounds against epochs."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from certified_unlearning.papers.gradient_certificates.figures.lines import DASHED
from certified_unlearning.papers.gradient_certificates.names import title_of
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.looks import BLACK, Look, colours, entries


def draw(rows: pd.DataFrame, style: FigureStyle) -> Figure:
    """Plot rows of `tables.head.head_table`."""
    ks = sorted({*rows["k"]})
    first, last = rows.iloc[0], rows["epochs"].max()
    with shared.theme(style):
        unlearning, privacy, *hues = colours(style, 2 + len(ks))
        looks = {"unlearning": Look(unlearning, "o"), "privacy": Look(privacy, "s", DASHED)}
        figure = shared.new_figure(style, columns=2)
        shares, along = figure.subplots(1, 2)
        for mode, look in looks.items():
            own = rows[(rows["mode"] == mode) & (rows["epochs"] == last)].sort_values("k")
            shares.errorbar(own["k"], own["share"], yerr=own["share_std"], capsize=2, **look.line())
        shares.set(xlabel="Records k of every batch", ylabel="Certified predictions", ylim=(-0.02, 1.02))
        shares.xaxis.set_major_locator(MaxNLocator(integer=True))
        # The widest band is drawn below the others.
        for k, hue in sorted(zip(ks, hues, strict=True), reverse=True):
            own = rows[(rows["mode"] == "unlearning") & (rows["k"] == k)].sort_values("epochs")
            along.fill_between(own["epochs"], own["least_accuracy"], own["largest_accuracy"], **Look(hue).area())
        own = rows[(rows["mode"] == "unlearning") & (rows["k"] == ks[0])].sort_values("epochs")
        bars = {"yerr": own["accuracy_std"], "capsize": 2}
        along.errorbar(own["epochs"], own["accuracy"], **bars, **Look(BLACK, "D").line())
        along.set(xlabel="Epochs")
        along.xaxis.set_major_locator(MaxNLocator(integer=True))
        shared.accuracy_axis(along)
        bands = entries({"accuracy": Look(BLACK, "D")})
        bands |= {f"bounds for k = {k}": Look(hue).band_entry() for k, hue in zip(ks, hues, strict=True)}
        title = f"A head on fixed features, {title_of(str(first['data']))}, {first['trials']} trials"
        shared.finish(figure, title, entries(looks), bands)
    return figure
