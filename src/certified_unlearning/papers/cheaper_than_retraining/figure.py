"""The figure of the experiment `cost`: the time and the accuracy of requests against the number of records."""

import pandas as pd
from matplotlib.figure import Figure

from certified_unlearning.errors import DataError
from certified_unlearning.papers.cheaper_than_retraining.names import SPECTRA, SYSTEMS
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import line_ends
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.looks import BLACK, DASHED, DOTTED, GREY, Look, colours
from certified_unlearning.reproduction.figures.wording import number

PREFERRED_RECORDS = 10
"""The number of records per request in the figure, if requests of this size were timed."""


def draw(rows: pd.DataFrame, style: FigureStyle) -> Figure:
    """Plot rows of `measured.cost_table` for one kind of synthetic rows and one number of records per request.

    A legend of a dozen lines is hard to match with the lines; therefore, each line is named at its end.

    Raises:
        DataError: A row names an unknown system, or no row is on synthetic data.
    """
    shown, records = chosen(rows)
    looks = _looks(style)
    with shared.theme(style):
        figure = shared.new_figure(style, columns=2)
        figure.set_figheight(1.25 * style.height_inches)
        accuracy, seconds = figure.subplots(1, 2)
        for axes, y in ((accuracy, "accuracy"), (seconds, "seconds")):
            axes.set_xscale("log")
            for system, look in looks.items():
                own = shown[shown["system"] == system].sort_values("n")
                if own.empty:
                    continue
                axes.plot(own["n"], own[y], label=SYSTEMS[system], **look.line())
                if y == "seconds":
                    axes.fill_between(own["n"], own["seconds_low"], own["seconds_high"], **look.area())
                    end = own.iloc[-1]
                    line_ends.label(axes, (end["n"], end["seconds"]), SYSTEMS[system], look.color, leader=True)
        shared.decades(seconds, "y")
        seconds.set_ylabel("Seconds of a request")
        shared.accuracy_axis(accuracy)
        for axes in (seconds, accuracy):
            shared.decades(axes, "x")
            axes.set_xlabel("Number of records n")
        shared.finish(figure, _title(shown, records))
    return figure


def chosen(rows: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Return the rows for the figure, and the number of records per request in these rows.

    Raises:
        DataError: A row names an unknown system, or no row is on synthetic data.
    """
    shared.require_lines(rows["system"], SYSTEMS, f"the rows of {rows['experiment'].iloc[0]} contain")
    made = rows[rows["data"].isin(SPECTRA) & rows["seconds"].notna()]
    if made.empty:
        raise DataError(f"the rows of {rows['experiment'].iloc[0]} contain nothing on synthetic data")
    own = made[made["data"] == made["data"].iloc[0]]
    numbers = sorted(set(own["records"]), key=lambda number: (number != PREFERRED_RECORDS, number))
    return own[own["records"] == numbers[0]], int(numbers[0])


def _looks(style: FigureStyle) -> dict[str, Look]:
    blue, orange, green, vermilion, purple, brown = colours(style, 6)
    return {
        "lbfgs-cold": Look(BLACK, "s", marker_size=0.7, layer=1),
        "lbfgs-warm": Look(BLACK, "o", DASHED, marker_size=0.7, layer=1),
        "lbfgs-warm-exact": Look(BLACK, "v", DOTTED, marker_size=0.7, layer=1),
        "newton-cholesky-cold": Look(GREY, "D", marker_size=0.6),
        "newton-cholesky-warm": Look(GREY, "d", DASHED, marker_size=0.8),
        "sgd": Look(GREY, "<", DOTTED, marker_size=0.7),
        "sisa": Look(brown, "p", DASHED, marker_size=0.9, layer=2),
        "langevin-full": Look(vermilion, "^", marker_size=0.9, layer=2),
        "langevin-minibatch": Look(orange, "P", marker_size=0.9, layer=2),
        "descent-to-delete": Look(purple, "X", marker_size=0.9, layer=2),
        "certified-refit": Look(green, "h", marker_size=0.9, layer=2),
        "newton-removal": Look(blue, "*", marker_size=1.2, layer=3),
    }


def _title(rows: pd.DataFrame, records: int) -> str:
    row = rows.iloc[0]
    return (
        f"A request of {shared.records(records)} on {SPECTRA[row['data']]}, d = {row['d']}, "
        f"C n = {number(row['strength'])}\n"
        f"Timings on this machine: {row['machine'].partition(', scikit-learn')[0]}; medians, quartiles shaded"
    )
