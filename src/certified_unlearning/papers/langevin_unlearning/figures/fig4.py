"""Figure 4: unlearning steps and accuracy (the paper's 5a) against target epsilon for groups of S."""

import pandas as pd
from matplotlib.figure import Figure

from certified_unlearning.papers.langevin_unlearning.captions import ANEW
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.looks import key, looks


def draw(summary: pd.DataFrame, style: FigureStyle) -> Figure:
    """Draw the summary of ``fig4`` (see `reproduction.summaries.summarise`).

    Accuracy has one panel for each S: the lines of different S would hide each other.
    """
    with shared.theme(style):
        figure = shared.new_figure(style, columns=2)
        look = looks(summary, style)
        langevin = summary[summary["mechanism"] == "langevin"]
        groups = {f"S = {removed}": rows for removed, rows in summary.groupby("records_removed")}
        steps, panels = shared.steps_beside_accuracies(figure, list(groups))
        shared.draw_lines(steps, langevin, look, x="epsilon_target", y="unlearning_steps")
        for axes, rows in zip(panels, groups.values(), strict=True):
            again = rows["mechanism"].isin(ANEW)
            shared.draw_lines(axes, rows[~again], look, x="epsilon_target", y="accuracy_mean")
            shared.draw_levels(axes, rows[again], look)
        shared.steps_axis(steps, "Unlearning steps K")
        shared.accuracy_axis(panels[0])
        for axes in figure.axes:
            shared.sweep_axis(axes, langevin["epsilon_target"], "Target epsilon")
        shared.label_outer(panels)
        title = f"Removing S records at once, sigma = {langevin['sigma'].iloc[0]:g}"
        shared.finish(figure, shared.about(summary, title), *key(summary, style))
    return figure
