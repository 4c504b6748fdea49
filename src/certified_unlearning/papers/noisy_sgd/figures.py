"""The figure of Noisy SGD: epsilon against passes of unlearning, with a panel for each batch size."""

import pandas as pd
from matplotlib.figure import Figure

from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.looks import BLACK, GREY, Look, colours, entries, key, looks
from certified_unlearning.reproduction.figures.wording import member, number

_DASHES = {"worst": "-", "drawn": (0, (4, 1.5))}
_DOTS = (0, (1.2, 1.2))
_NAMES = {
    "theirs": "paper’s bound (Rényi, W∞)",
    "ours": "our bound (pooled)",
    "quadratic": "exact on quadratic losses, worst batch",
}
_PLACES = {"worst": "record in the worst batch", "drawn": "its batch is drawn"}
_LEAST_EPSILON = 0.005
"""The lower end of the epsilon axis."""


def draw(rows: pd.DataFrame, style: FigureStyle) -> Figure:
    """Plot rows of ``minibatches`` (see `minibatches.MINIBATCH_ROWS`).

    The hue shows the analysis, and the dashes show the position of the record's batch.

    Raises:
        DataError: A row names an unknown analysis or position.
    """
    shared.require_lines(rows["analysis"], _NAMES, "the table of `minibatches` contains the analysis")
    shared.require_lines(rows["position"], _DASHES, "the table of `minibatches` contains the position")
    blue, orange = colours(style, 2)
    hues = {"theirs": orange, "ours": blue, "quadratic": BLACK}
    with shared.theme(style):
        figure = shared.new_figure(style, columns=2)
        groups = list(rows.groupby("batch_size"))
        panels = shared.grid(figure, len(groups))
        for axes, (size, of_size) in zip(panels, groups, strict=True):
            for (analysis, position), line in of_size.groupby(["analysis", "position"], sort=False):
                dashes = _DOTS if analysis == "quadratic" else _DASHES[str(position)]
                look = Look(hues[str(analysis)], dashes=dashes, layer=analysis == "quadratic")
                visible = line[line["epsilon"] > 0]
                shared.draw_line(axes, visible, look, x="epochs", y="epsilon", label=f"{analysis}, {position}")
            axes.set_title(member(f"b = {size}") if size < rows["n"].iloc[0] else "b = n")
            shared.decades(axes, "x")
            axes.set_xlabel("Passes of unlearning")
        for axes in panels:
            axes.set_ylim(_LEAST_EPSILON, 1.5 * rows["epsilon"].max())
            shared.epsilon_axis(axes, "ε at δ = 1/n")
            axes.label_outer()
        row = rows.iloc[0]
        title = (
            "Noisy SGD on cyclic mini-batches, one record replaced\n"
            f"n = {row['n']:,}, σ = {number(row['sigma'])}, step size η = {number(row['step_size'], 3)}"
        )
        key = (
            {_NAMES[name]: Look(hue, dashes=_DOTS if name == "quadratic" else "-") for name, hue in hues.items()},
            {_PLACES[name]: Look(GREY, dashes=dashes) for name, dashes in _DASHES.items()},
        )
        shared.finish(figure, title, *map(entries, key))
    return figure


def draw_batch_sizes(summary: pd.DataFrame, style: FigureStyle) -> Figure:
    """Draw the summary of ``batch_sizes`` (see `reproduction.summaries.summarise`): passes, and accuracy."""
    again = summary[summary["sigma"] == 0]
    swept = summary.drop(again.index)
    batch_size = swept["member"].str.removeprefix("b = ").astype(int)
    swept = swept.assign(passes=swept["unlearning_steps"] * batch_size / swept["n"])
    with shared.theme(style):
        figure = shared.new_figure(style, columns=2)
        look = looks(summary, style)
        passes, accuracy = figure.subplots(1, 2)
        shared.draw_lines(passes, swept, look, x="epsilon_target", y="passes")
        shared.draw_lines(accuracy, swept, look, x="epsilon_target", y="accuracy_mean")
        shared.draw_levels(accuracy, again, look)
        shared.epsilon_axis(passes, "Passes over the data")
        shared.accuracy_axis(accuracy)
        for axes in (passes, accuracy):
            shared.sweep_axis(axes, swept["epsilon_target"], "Target ε")
        row = swept.iloc[0]
        title = f"Removing {shared.records(row['records_removed'])} at once, σ = {number(row['sigma'])}"
        shared.finish(figure, shared.about(summary, title), *key(summary, style))
    return figure
