"""Figure 4: unlearning steps and accuracy (the paper's 5a) against target epsilon for groups of S."""

import pandas as pd
from matplotlib.figure import Figure

from certified_unlearning.figures import style as shared
from certified_unlearning.parameters import FigureStyle


def draw(summary: pd.DataFrame, style: FigureStyle) -> Figure:
    """Draw the summary of ``fig4`` (see `summaries.summarise`).

    Accuracy has one panel for each S: the lines of different S would hide each other.
    """
    with shared.theme(style):
        figure = shared.new_figure(style, columns=2)
        groups = list(summary.groupby("records_removed"))
        left, right = figure.subfigures(1, 2, squeeze=False)[0]
        steps = left.subplots()
        panels = right.subplots(len(groups), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        look = shared.looks(summary, style)
        langevin = summary[summary["mechanism"] == "langevin"]
        shared.draw_lines(steps, langevin, look, x="epsilon_target", y="unlearning_steps")
        shared.steps_axis(steps, "Unlearning steps K")
        for axes, (removed, rows) in zip(panels, groups, strict=True):
            retraining = rows["mechanism"] == "retraining"
            shared.draw_lines(axes, rows[~retraining], look, x="epsilon_target", y="accuracy_mean")
            shared.draw_levels(axes, rows[retraining], look)
            place = {"xycoords": "axes fraction", "ha": "left", "va": "center", "rotation": 270}
            axes.annotate(f"S = {removed}", (1.02, 0.5), fontsize="small", **place)
        shared.accuracy_axis(panels[0])  # shared by the others, so only once all are drawn
        for axes in panels:
            axes.set(xlabel="", ylabel="")
        for axes in (steps, panels[-1]):
            shared.sweep_axis(axes, langevin["epsilon_target"], "Target epsilon")
        right.supylabel("Test accuracy", fontsize=steps.yaxis.label.get_size())
        sigma = langevin["sigma"].iloc[0]
        shared.finish(figure, summary, f"Removing S records at once, sigma = {sigma:g}")
    return figure
