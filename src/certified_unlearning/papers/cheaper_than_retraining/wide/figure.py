"""The figure of wide rows: seconds of a request, and how far from the minimiser it ends, table by table."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from certified_unlearning.papers.cheaper_than_retraining.wide.names import SYSTEMS, title_of
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.looks import BLACK, GREY, Look, colours, entries
from certified_unlearning.text import counted

HEIGHT_OF_A_TABLE = 0.32
"""Inches."""


def draw(rows: pd.DataFrame, style: FigureStyle) -> Figure:
    """Draw rows of `measured.wide_table`: a line of the page for each table, a mark for each model.

    Raises:
        DataError: A model is not known.
    """
    shared.require_lines(rows["system"], SYSTEMS, "the rows of wide hold")
    titles = rows.apply(title_of, axis=1)
    places = {title: -place for place, title in enumerate(dict.fromkeys(titles))}
    height = titles.map(places)
    looks = _looks(style)
    with shared.theme(style):
        figure = shared.new_figure(style, columns=2)
        figure.set_figheight(1.5 + HEIGHT_OF_A_TABLE * len(places))
        seconds, distance = figure.subplots(1, 2, sharey=True)
        for system, look in looks.items():
            own = rows["system"] == system
            mark = look.line() | {"linestyle": "none"}
            if system == "certified":
                seconds.hlines(
                    height[own],
                    rows.loc[own, "seconds"],
                    rows.loc[own, "seconds_largest"],
                    color=look.color,
                    linewidth=1,
                )
            seconds.plot(rows.loc[own, "seconds"], height[own], label=SYSTEMS[system], **mark)
            distance.plot(rows.loc[own, "distance_share"].astype(float), height[own], label=SYSTEMS[system], **mark)
        distance.axvline(1, color=GREY, linewidth=1)
        for axes in (seconds, distance):
            shared.decades(axes, "x")
            axes.set_ylim(-len(places) + 0.5, 0.5)
        seconds.set_yticks(np.array(list(places.values())), list(places), fontsize="x-small")
        seconds.set_xlabel("Seconds of a request")
        distance.set_xlabel("Distance to the minimiser, over the certified one")
        shared.finish(figure, _title(rows), entries({SYSTEMS[system]: look for system, look in looks.items()}))
    return figure


def _looks(style: FigureStyle) -> dict[str, Look]:
    (blue,) = colours(style, 1)
    return {
        "lbfgs-cold": Look(BLACK, "s", marker_size=0.8),
        "lbfgs-warm": Look(GREY, "o", marker_size=0.8),
        "lbfgs-warm-moving": Look(BLACK, "v", marker_size=0.8),
        "certified": Look(blue, "*", marker_size=1.4, layer=1),
    }


def _title(rows: pd.DataFrame) -> str:
    row = rows.iloc[0]
    return (
        f"{counted(int(row['requests']), 'request')} of {shared.records(int(row['records']))} on wide rows\n"
        f"Timings as of this machine: {row['machine'].partition(', scikit-learn')[0]}"
    )
