"""The figure that shows how many deletions it takes until unlearning is cheaper than a private model."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from certified_unlearning.papers.private_learning.names import SYSTEMS
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.looks import BLACK, DASHED, Look, colours, entries
from certified_unlearning.reproduction.figures.wording import title_of


def draw_groups(rows: pd.DataFrame, style: FigureStyle) -> Figure:
    """Plot rows of `runs.groups.groups_table`: a row of panels for each data set and epsilon.

    Raises:
        DataError: A row names an unknown system.
    """
    shared.require_lines(rows["system"], SYSTEMS, "the rows of `group_privacy` hold")
    looks = _looks(style)
    settings = list(dict.fromkeys(zip(rows["data"], rows["epsilon"], strict=True)))
    with shared.theme(style):
        figure = shared.new_figure(style, columns=2)
        figure.set_figheight((0.45 + 0.95 * len(settings)) * style.height_inches)
        panels = figure.subplots(len(settings), 2, squeeze=False, sharex=True)
        for (left, right), (data, epsilon) in zip(panels, settings, strict=True):
            here = rows[(rows["data"] == data) & (rows["epsilon"] == epsilon)]
            for system, look in looks.items():
                own = here[here["system"] == system].sort_values("deletions")
                if own.empty:
                    continue
                if system != "private, renewed":
                    bars = {"yerr": 2 * own["accuracy_error"], "elinewidth": 0.8, "capsize": 2}
                    left.errorbar(own["deletions"], own["accuracy"], **bars, **look.line())
                paid = own[own["gradients"] > 0]
                if system != "private":
                    right.plot(paid["deletions"], paid["gradients"], **look.line())
            left.set(xscale="log", title=f"{title_of(str(data))}, ε = {epsilon:g}")
            left.xaxis.set_minor_locator(NullLocator())
            shared.accuracy_axis(left)
            right.set(xscale="log", yscale="log", ylabel="Gradients of the request")
            right.xaxis.set_minor_locator(NullLocator())
        for axes in panels[-1]:
            axes.set_xlabel("Deleted records k")
        shown = [system for system in looks if system in set(rows["system"])]
        key = entries({SYSTEMS[system]: looks[system] for system in shown})
        shared.finish(figure, "How many deletions until it pays to unlearn", key)
    return figure


def _looks(style: FigureStyle) -> dict[str, Look]:
    blue, _, green, vermilion, purple = colours(style, 5)
    looks = {
        "private": Look(blue, "o", layer=2),
        "private, renewed": Look(blue, "o", DASHED, layer=2),
        "retraining": Look(BLACK, "s", marker_size=0.7),
        "noisy-sgd": Look(vermilion, "v"),
        "langevin": Look(purple, "X"),
        "descent-to-delete": Look(green, "D", marker_size=0.7),
    }
    assert list(looks) == list(SYSTEMS)
    return looks
