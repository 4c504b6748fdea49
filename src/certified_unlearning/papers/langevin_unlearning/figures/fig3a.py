"""Figure 3a: accuracy against target epsilon, for one step of Langevin unlearning and for Descent-to-Delete."""

import pandas as pd
from matplotlib.figure import Figure

from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.looks import key, looks
from certified_unlearning.reproduction.figures.wording import method


def draw(summary: pd.DataFrame, style: FigureStyle) -> Figure:
    """Draw the summary of ``fig3a`` (see `reproduction.summaries.summarise`).

    Langevin unlearning is drawn above retraining with the same noise. Each form of Descent-to-Delete has its own panel,
    which repeats the mean line of the tightest Langevin accountant.
    """
    with shared.theme(style):
        figure = shared.new_figure(style, columns=2)
        look = looks(summary, style)
        langevin = summary[summary["mechanism"] == "langevin"]
        descent = summary[summary["mechanism"] == "descent-to-delete"]
        noisy = summary[summary["variant"] == "noisy"]
        tightest = langevin[langevin["label"] == langevin["label"].iloc[-1]]
        forms = list(descent.groupby("accountant", sort=False))
        first, *others = figure.subplots(1, 1 + len(forms), sharey=True, squeeze=False)[0]
        shared.draw_lines(first, pd.concat([noisy, langevin]), look, x="epsilon_target", y="accuracy_mean")
        first.set_title(f"Langevin, {langevin['member'].iloc[0]}")
        for axes, (_, rows) in zip(others, forms, strict=True):
            shared.draw_lines(axes, rows, look, x="epsilon_target", y="accuracy_mean")
            shared.draw_lines(axes, tightest, look, x="epsilon_target", y="accuracy_mean", bands=False)
            axes.set_title(method(*rows[["method", "accountant"]].iloc[0]).replace(", ", ",\n"))
        for axes in (first, *others):
            shared.draw_levels(axes, summary[summary["sigma"] == 0], look)
            shared.sweep_axis(axes, langevin["epsilon_target"], "Target ε")
        shared.accuracy_axis(first)
        for axes in (first, *others):
            shared.majority_line(axes, summary)
        for axes in others:
            axes.set_ylabel("")
        removed = shared.records(summary["records_removed"].max())
        shared.finish(figure, shared.about(summary, f"Accuracy after removing {removed}"), *key(summary, style))
    return figure
