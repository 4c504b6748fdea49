"""Figure 3b: accumulated unlearning steps, and accuracy, against records removed, request by request."""

import pandas as pd
from matplotlib.figure import Figure

from certified_unlearning.papers.langevin_unlearning.captions import ANEW
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.looks import key, looks


def draw(summary: pd.DataFrame, style: FigureStyle) -> Figure:
    """Draw the summary of ``fig3b`` (see `reproduction.summaries.summarise`).

    Accuracy has one panel for each number of records per request: lines of different ones would hide each other.
    Learning anew is done once, after the last request; its accuracy is drawn as a level.
    """
    with shared.theme(style):
        figure = shared.new_figure(style, columns=2)
        look = looks(summary, style)
        again = summary["mechanism"].isin(ANEW)
        streams = summary[~again]
        groups = {f"S = {size}": rows for size, rows in streams.groupby("records_per_request")}
        steps, panels = shared.steps_beside_accuracies(figure, list(groups))
        shared.draw_lines(steps, streams, look, x="records_removed", y="accumulated_steps")
        for axes, rows in zip(panels, groups.values(), strict=True):
            shared.draw_lines(axes, rows, look, x="records_removed", y="accuracy_mean")
            shared.draw_levels(axes, summary[again], look)
        shared.steps_axis(steps, "Accumulated steps")
        shared.accuracy_axis(panels[0])
        for axes in figure.axes:
            axes.set_xlabel("Records removed")
        shared.label_outer(panels)
        removed = shared.records(summary["records_removed"].max())
        epsilon = streams["epsilon_target"].iloc[0]
        title = f"Removing {removed}, S at a time, epsilon = {epsilon:g}"
        shared.finish(figure, shared.about(summary, title), *key(summary, style))
    return figure
