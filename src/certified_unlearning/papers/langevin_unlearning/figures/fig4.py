"""Figure 4: unlearning steps and accuracy (the paper's Figure 5a) against target epsilon, for groups of size S."""

import pandas as pd
from matplotlib.figure import Figure

from certified_unlearning.papers.langevin_unlearning.captions import ANEW
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.looks import key, looks
from certified_unlearning.reproduction.figures.wording import number


def draw(summary: pd.DataFrame, style: FigureStyle) -> Figure:
    """Draw the summary of ``fig4`` (see `reproduction.summaries.summarise`).

    The figure has a column of panels for each S, because the lines of different S would hide each other.
    """
    with shared.theme(style):
        figure = shared.new_figure(style, columns=2)
        look = looks(summary, style, dashed=False)
        langevin = summary[summary["mechanism"] == "langevin"]
        groups = {f"S = {removed}": rows for removed, rows in summary.groupby("records_removed")}
        steps, accuracies = shared.steps_above_accuracies(figure, list(groups))
        for above, below, rows in zip(steps, accuracies, groups.values(), strict=True):
            again = rows["mechanism"].isin(ANEW)
            shared.draw_lines(above, rows[~again], look, x="epsilon_target", y="unlearning_steps")
            shared.draw_lines(below, rows[~again], look, x="epsilon_target", y="accuracy_mean")
            shared.draw_levels(below, rows[again], look)
        shared.steps_axis(steps[0], "Unlearning steps K")
        shared.accuracy_axis(accuracies[0])
        for axes in accuracies:
            shared.majority_line(axes, summary)
            shared.sweep_axis(axes, langevin["epsilon_target"], "Target ε")
        shared.label_outer([*steps, *accuracies])
        title = f"Removing S records at once, σ = {number(langevin['sigma'].iloc[0])}"
        shared.finish(figure, shared.about(summary, title), *key(summary, style, dashed=False))
    return figure
