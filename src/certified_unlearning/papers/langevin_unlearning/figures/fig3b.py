"""Figure 3b: accumulated unlearning steps, and accuracy, against the number of removed records, request by request."""

from dataclasses import replace

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from certified_unlearning.papers.langevin_unlearning.captions import ANEW
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import line_ends
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.looks import Look, key, looks
from certified_unlearning.reproduction.figures.wording import number


def draw(summary: pd.DataFrame, style: FigureStyle) -> Figure:
    """Draw the summary of ``fig3b`` (see `reproduction.summaries.summarise`).

    The figure has a column of panels for each number of records per request, so that no panel has more than one line
    for each method. The title of a column names the methods that were run with that number. Descent-to-Delete, which
    removes one record per request, is repeated as a thin line for comparison. Retraining happens once, after the last
    request; its accuracy is drawn as a horizontal line.
    """
    with shared.theme(style):
        figure = shared.new_figure(style, columns=2)
        look = looks(summary, style, dashed=False)
        thin = {label: replace(one, marker="", size=0.6, layer=-1) for label, one in look.items()}
        again = summary["mechanism"].isin(ANEW)
        streams = summary[~again]
        descent = streams[streams["mechanism"] == "descent-to-delete"]
        groups = {
            f"S = {size}\n{', '.join(_names(rows))}": rows for size, rows in streams.groupby("records_per_request")
        }
        steps, accuracies = shared.steps_above_accuracies(figure, list(groups))
        for above, below, rows in zip(steps, accuracies, groups.values(), strict=True):
            shared.draw_lines(above, rows, look, x="records_removed", y="accumulated_steps")
            shared.draw_lines(
                above, descent[~descent["label"].isin(rows["label"])], thin, x="records_removed", y="accumulated_steps"
            )
            _write_totals(above, rows, look)
            shared.draw_lines(below, rows, look, x="records_removed", y="accuracy_mean")
            shared.draw_levels(below, summary[again], look)
            below.set_xlabel("Records removed")
        shared.steps_axis(steps[0], "Accumulated steps")
        shared.accuracy_axis(accuracies[0])
        for below in accuracies:
            shared.majority_line(below, summary)
        shared.label_outer([*steps, *accuracies])
        last = float(summary["records_removed"].max())
        accuracies[0].set_xlim(-0.05 * last, 1.05 * last)
        removed = shared.records(summary["records_removed"].max())
        title = f"Removing {removed}, S at a time, ε = {number(streams['epsilon_target'].iloc[0])}"
        shared.finish(figure, shared.about(summary, title), *key(summary, style, dashed=False))
    return figure


def _names(rows: pd.DataFrame) -> list[str]:
    """Return the names of methods, without the accountants in parentheses."""
    return list(dict.fromkeys(method.partition(" (")[0] for method in rows["method"]))


def _write_totals(axes: Axes, rows: pd.DataFrame, look: dict[str, Look]) -> None:
    """Write the total number of steps of each stream at the end of its line."""
    for label, stream in rows.groupby("label", sort=False):
        total = stream["accumulated_steps"].max()
        line_ends.label(axes, (stream["records_removed"].max(), total), number(total), look[str(label)].color)
