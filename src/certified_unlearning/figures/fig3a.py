"""Figure 3a: accuracy against target epsilon, one step of Langevin unlearning beside Descent-to-Delete."""

import pandas as pd
from matplotlib.figure import Figure

from certified_unlearning.figures import style as shared
from certified_unlearning.parameters import FigureStyle


def draw(summary: pd.DataFrame, style: FigureStyle) -> Figure:
    """Draw the summary of ``fig3a`` (see `summaries.summarise`)."""
    with shared.theme(style):
        figure = shared.new_figure(style)
        axes = figure.subplots()
        look = shared.looks(summary, style)
        swept = summary[summary["variant"] != "noiseless"]
        shared.draw_lines(axes, swept, look, x="epsilon_target", y="accuracy_mean")
        shared.draw_levels(axes, summary[summary["variant"] == "noiseless"], look)
        shared.sweep_axis(axes, swept["epsilon_target"], "Target epsilon")
        shared.accuracy_axis(axes)
        shared.finish(figure, summary, f"Accuracy after removing {shared.records(summary['records_removed'].max())}")
    return figure
