"""Figure 3b: accumulated unlearning steps, and accuracy, against records removed, request by request."""

import pandas as pd
from matplotlib.figure import Figure

from certified_unlearning.figures import style as shared
from certified_unlearning.parameters import FigureStyle


def draw(summary: pd.DataFrame, style: FigureStyle) -> Figure:
    """Draw the summary of ``fig3b`` (see `summaries.summarise`).

    Retraining is done once, after the last request; its accuracy is drawn as a level.
    """
    with shared.theme(style):
        figure = shared.new_figure(style, columns=2)
        steps, accuracy = figure.subplots(1, 2)
        look = shared.looks(summary, style)
        streams = summary[summary["mechanism"] != "retraining"]
        shared.draw_lines(steps, streams, look, x="records_removed", y="accumulated_steps")
        shared.draw_lines(accuracy, streams, look, x="records_removed", y="accuracy_mean")
        shared.draw_levels(accuracy, summary[summary["mechanism"] == "retraining"], look)
        shared.steps_axis(steps, "Accumulated steps")
        shared.accuracy_axis(accuracy)
        for axes in (steps, accuracy):
            axes.set_xlabel("Records removed")
        removed = shared.records(summary["records_removed"].max())
        epsilon = streams["epsilon_target"].iloc[0]
        shared.finish(figure, summary, f"Removing {removed}, S at a time, epsilon = {epsilon:g}")
    return figure
