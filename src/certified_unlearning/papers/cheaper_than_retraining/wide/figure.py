"""The figure of wide rows: seconds of a request, and its final distance from the minimiser, for each table."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator

from certified_unlearning.papers.cheaper_than_retraining.wide.names import SYSTEMS, title_of
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.looks import BLACK, GREY, Look, colours, entries
from certified_unlearning.text import counted

HEIGHT_OF_A_TABLE = 0.38
"""The height of a table in the figure, in inches."""


def draw(rows: pd.DataFrame, style: FigureStyle) -> Figure:
    """Plot rows of `measured.wide_table`: a row of marks for each table, with one mark for each model.

    Raises:
        DataError: A row names an unknown model.
    """
    shared.require_lines(rows["system"], SYSTEMS, "the rows of wide contain")
    titles = rows.apply(title_of, axis=1)
    places = {title: -place for place, title in enumerate(dict.fromkeys(titles))}
    height = titles.map(places)
    looks = {system: look for system, look in _looks(style).items() if (rows["system"] == system).any()}
    with shared.theme(style):
        figure = shared.new_figure(style, columns=2)
        figure.set_figheight(1.5 + HEIGHT_OF_A_TABLE * len(places))
        seconds, distance = figure.subplots(1, 2, sharey=True)
        for system, look in looks.items():
            own = rows["system"] == system
            if system == "certified":
                largest = rows.loc[own, "seconds_largest"]
                seconds.hlines(height[own], rows.loc[own, "seconds"], largest, color=look.color, linewidth=1, zorder=1)
            seconds.plot(rows.loc[own, "seconds"], height[own], label=SYSTEMS[system], **look.line())
            shares = rows.loc[own, "distance_share"].astype(float)
            distance.plot(shares, height[own], label=SYSTEMS[system], **look.line())
        distance.axvline(1, color=GREY, linewidth=1, zorder=1)
        seconds.set_xscale("log")
        shared.decades(distance, "x")
        seconds.set_ylim(-len(places) + 0.5, 0.5)
        seconds.yaxis.set_major_locator(FixedLocator(list(places.values())))
        # The name is on two lines, so that the panels have room.
        seconds.yaxis.set_major_formatter(FixedFormatter([title.replace(" like", "\nlike") for title in places]))
        seconds.tick_params(axis="y", labelsize="x-small")
        seconds.set_xlabel("Seconds of a request")
        distance.set_xlabel("Distance / certified distance")
        shared.finish(figure, _title(rows), entries({SYSTEMS[system]: look for system, look in looks.items()}))
    return figure


def _looks(style: FigureStyle) -> dict[str, Look]:
    blue, green = colours(style, 2)
    return {
        "lbfgs-cold": Look(BLACK, "s", "none", marker_size=0.9),
        "lbfgs-warm": Look(GREY, "o", "none", marker_size=0.9),
        "lbfgs-warm-moving": Look(BLACK, "v", "none", marker_size=1.0),
        "certified": Look(blue, "*", "none", marker_size=1.6, layer=1),
        "one-vs-rest": Look(green, "P", "none", marker_size=1.1, layer=1),
    }


def _title(rows: pd.DataFrame) -> str:
    row = rows.iloc[0]
    return (
        f"{counted(int(row['requests']), 'request')} of {shared.records(int(row['records']))} on wide rows\n"
        f"Timings on this machine: {row['machine'].partition(', scikit-learn')[0]}"
    )
