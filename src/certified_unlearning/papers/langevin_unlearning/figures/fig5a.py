"""Figure 5a: accuracy against the number of records removed at once, after unlearning and after retraining."""

import pandas as pd
from matplotlib.figure import Figure

from certified_unlearning.papers.langevin_unlearning.captions import ANEW
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.looks import key, looks
from certified_unlearning.reproduction.figures.wording import member, number


def draw(summary: pd.DataFrame, style: FigureStyle) -> Figure:
    """Draw the summary of ``fig5a`` (see `reproduction.summaries.summarise`).

    The figure has one panel for each epsilon, because the lines of different epsilons would hide each other. Retraining
    does not depend on epsilon and is the same in all panels.
    """
    with shared.theme(style):
        look = looks(summary, style, dashed=False)
        langevin = summary[summary["mechanism"] == "langevin"]
        again = summary[summary["mechanism"].isin(ANEW)]
        groups = list(langevin.groupby("epsilon_target"))
        figure = shared.new_figure(style, columns=2)
        panels = shared.grid(figure, len(groups))
        for axes, (_, rows) in zip(panels, groups, strict=True):
            shared.draw_lines(axes, again, look, x="records_removed", y="accuracy_mean")
            shared.draw_lines(axes, rows, look, x="records_removed", y="accuracy_mean")
            axes.set_title(member(rows["member"].iloc[0]))
            shared.sweep_axis(axes, summary["records_removed"], "Records removed")
        for axes in panels:
            shared.accuracy_axis(axes)
            shared.majority_line(axes, summary)
            axes.label_outer()
        title = f"Removing S records at once, σ = {number(langevin['sigma'].iloc[0])}"
        shared.finish(figure, shared.about(summary, title), *key(summary, style, dashed=False))
    return figure
