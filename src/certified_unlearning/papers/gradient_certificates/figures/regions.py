"""The figure of certified regions: the radius on the plane, with a panel for each cloud, clipping level and mode."""

import pandas as pd
import seaborn as sns
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from certified_unlearning.papers.gradient_certificates.names import title_of
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.looks import colours

MODES = ("privacy", "unlearning")
"""The modes of the rows of panels, from top to bottom."""


def draw(rows: pd.DataFrame, style: FigureStyle) -> Figure:
    """Plot rows of `tables.regions.regions_table`."""
    pairs = rows.drop_duplicates(["data", "gamma"])
    columns = list(zip(pairs["data"], pairs["gamma"], strict=True))
    levels = sorted({0, *rows["radius"]})
    # The shades have one hue from pale to dark, so that lightness alone distinguishes them.
    shades = [(1.0, 1.0, 1.0), *sns.light_palette(colours(style, 1)[0], len(levels))[1:]]
    line = colours(style, 4)[3]
    with shared.theme(style):
        figure = shared.new_figure(style, columns=2)
        figure.set_figheight(1.5 * style.height_inches)
        panels = figure.subplots(len(MODES), len(columns), squeeze=False, sharex=True, sharey=True)
        for above, mode in zip(panels, MODES, strict=True):
            for axes, (data, gamma) in zip(above, columns, strict=True):
                own = rows[(rows["data"] == data) & (rows["gamma"] == gamma) & (rows["mode"] == mode)]
                _panel(axes, own, levels, shades, line)
                if mode == MODES[0]:
                    axes.set_title(f"{title_of(str(data))}, γ = {gamma:g}", fontsize="small")
            above[0].set_ylabel(mode)
        key: dict[str, Artist] = {
            f"k = {level}" if level else "not certified": Patch(facecolor=shade, edgecolor="0.6", linewidth=0.4)
            for level, shade in zip(levels, shades, strict=True)
        }
        key["boundary of classes"] = Line2D([], [], color=line)
        shared.finish(figure, "Predictions that k records cannot change", key)
    return figure


def _panel(
    axes: Axes, rows: pd.DataFrame, levels: list[int], shades: list[tuple[float, float, float]], line: object
) -> None:
    radius = rows.pivot_table("radius", "y", "x")
    predicted = rows.pivot_table("predicted", "y", "x")
    place = {level: number for number, level in enumerate(levels)}
    axes.imshow(
        radius.map(lambda each: place[int(each)]),
        extent=(rows["x"].min(), rows["x"].max(), rows["y"].min(), rows["y"].max()),
        origin="lower",
        cmap=ListedColormap(shades),
        vmin=-0.5,
        vmax=len(levels) - 0.5,
        interpolation="nearest",
    )
    if predicted.to_numpy().min() < predicted.to_numpy().max():
        axes.contour(
            predicted.columns, predicted.index, predicted.to_numpy(), levels=[0.5], colors=[line], linewidths=1
        )
    axes.grid(visible=False)
