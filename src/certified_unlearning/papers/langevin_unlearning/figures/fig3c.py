"""Figure 3c: unlearning steps, initial epsilon and accuracy against the noise scale sigma."""

import pandas as pd
from matplotlib.figure import Figure

from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.looks import key, looks
from certified_unlearning.reproduction.figures.wording import number


def draw(summary: pd.DataFrame, style: FigureStyle) -> Figure:
    """Draw the summary of ``fig3c`` (see `reproduction.summaries.summarise`)."""
    with shared.theme(style):
        figure = shared.new_figure(style, columns=2)
        steps, initial, accuracy = figure.subplots(1, 3)
        look = looks(summary, style)
        langevin = summary[summary["mechanism"] == "langevin"]
        swept = summary[summary["sigma"] > 0]
        shared.draw_lines(steps, langevin, look, x="sigma", y="unlearning_steps")
        shared.draw_lines(initial, langevin, look, x="sigma", y="initial_epsilon")
        shared.draw_lines(accuracy, swept, look, x="sigma", y="accuracy_mean")
        shared.draw_levels(accuracy, summary[summary["sigma"] == 0], look)
        shared.steps_axis(steps, "Unlearning steps K")
        shared.epsilon_axis(initial, "Initial ε")
        shared.accuracy_axis(accuracy)
        shared.majority_line(accuracy, summary)
        for axes in (steps, initial, accuracy):
            shared.sweep_axis(axes, swept["sigma"], "Noise scale σ")
        removed = shared.records(summary["records_removed"].max())
        epsilon = langevin["epsilon_target"].iloc[0]
        title = f"Removing {removed} at once, ε = {number(epsilon)}"
        shared.finish(figure, shared.about(summary, title), *key(summary, style))
    return figure
