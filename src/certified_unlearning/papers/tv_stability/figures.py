"""The figures of exact unlearning: accuracy against a deletion's cost, and results of a stream against its noise."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter

from certified_unlearning.papers.tv_stability.names import PANELS, SYSTEMS
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.looks import BLACK, DASHED, DOTTED, GREY, Look, colours, entries
from certified_unlearning.reproduction.figures.wording import title_of

LEAST_GAIN = 0.003
"""The least gain in validation accuracy for which a costlier setting is shown.

This gain is about as large as the variation between runs.
"""
_BARS = {"elinewidth": 0.8, "capsize": 2}


def draw_deletions(rows: pd.DataFrame, style: FigureStyle) -> Figure:
    """Plot rows of `deletions.deletions_table`: three panels for each data set (`PANELS`), with each system's frontier.

    Raises:
        DataError: A row names an unknown system.
    """
    shared.require_lines(rows["system"], SYSTEMS, "the rows of deletions contain the system")
    looks = _looks(style)
    names = list(dict.fromkeys(rows["data"]))
    with shared.theme(style):
        figure = shared.new_figure(style, columns=2)
        figure.set_figheight((0.45 + 0.95 * len(names)) * style.height_inches)
        panels = figure.subplots(len(names), len(PANELS), squeeze=False, sharex="row", sharey="row")
        for of_data, name in zip(panels, names, strict=True):
            for axes, (kind, systems) in zip(of_data, PANELS.items(), strict=True):
                axes.set_xscale("log")
                axes.xaxis.set_major_locator(LogLocator(numticks=3))  # The panels are narrow.
                axes.xaxis.set_minor_locator(LogLocator(numticks=12))
                axes.xaxis.set_minor_formatter(NullFormatter())
                for system in systems:
                    own = frontier(rows[(rows["data"] == name) & (rows["system"] == system)])
                    if not own.empty:
                        bars = {"xerr": 2 * own["gradients_error"], "yerr": 2 * own["accuracy_error"], **_BARS}
                        axes.errorbar(own["gradients"], own["accuracy"], **bars, **looks[system].line())
                axes.set_title(kind if kind != next(iter(PANELS)) else f"{title_of(name)}: {kind}")
            shared.accuracy_axis(of_data[0])
        for axes in panels[-1]:
            axes.set_xlabel("Gradients of a deletion")
        shown = [system for system in looks if system in set(rows["system"])]
        key = entries({SYSTEMS[system]: looks[system] for system in shown})
        shared.finish(figure, "Exact unlearning: accuracy against the cost of a deletion", key)
    return figure


def frontier(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the settings of one system that are better on validation records than all cheaper ones, cheapest first."""
    chosen, best = [], float("-inf")
    for index, row in rows.sort_values(["gradients", "validation_accuracy"], ascending=[True, False]).iterrows():
        if row["validation_accuracy"] >= best + LEAST_GAIN:
            chosen.append(index)
            best = row["validation_accuracy"]
    return rows.loc[chosen]


def draw_edits(rows: pd.DataFrame, style: FigureStyle) -> Figure:
    """Plot rows of `edits.edits_table`: the recomputed work, and the accuracy, against sigma."""
    rows = rows.sort_values("sigma")
    blue, orange, green = colours(style, 3)
    steps, edits = int(rows["steps"].iloc[0]), int(rows["edits"].iloc[0])
    with shared.theme(style):
        figure = shared.new_figure(style, columns=2)
        cost, accuracy = figure.subplots(1, 2)
        unstable, again, key = Look(blue, "o"), Look(orange, "s", DASHED), {}
        for y, scale, look, label in (
            ("unstable_edits", 1, unstable, "Edits with a recomputation"),
            ("iterations_run_again", steps, again, "Recomputed iterations, in runs"),
        ):
            bars = {"yerr": 2 * rows[f"{y}_std"] / scale, **_BARS}
            cost.errorbar(rows["sigma"], rows[y] / scale, **bars, **look.line())
            key[label] = look.line_entry()
        dotted: dict[str, Any] = {"color": BLACK, "linestyle": DOTTED, "linewidth": 1}
        cost.axhline(rows["expected_without_noise"].iloc[0], **dotted)
        key["Expected at σ = 0"] = Line2D([], [], **dotted)
        cost.set(xlabel="Noise σ of a mean gradient", ylabel=f"Of {edits} edits", ylim=(0, None))
        look = Look(green, "D")
        bars = {"yerr": 2 * rows["accuracy_std"], **_BARS}
        accuracy.errorbar(rows["sigma"], rows["accuracy"], **bars, **look.line())
        accuracy.set_xlabel("Noise σ of a mean gradient")
        shared.accuracy_axis(accuracy)
        shared.finish(figure, f"A stream of edits, {title_of(str(rows['data'].iloc[0]))}", key)
    return figure


def _looks(style: FigureStyle) -> dict[str, Look]:
    blue, orange, green, vermilion, purple = colours(style, 5)
    looks = {
        "retraining": Look(BLACK, "s", marker_size=0.7),
        "sisa": Look(GREY, "D", DASHED, marker_size=0.7),
        "subsample-gd": Look(blue, "o"),
        "noisy-sgd": Look(vermilion, "v", layer=2),
        "accelerated-noisy-sgd": Look(orange, "^", DASHED),
        "quantized-sgd": Look(green, "P", layer=1),
        "full-batches": Look(green, "p", DOTTED),
        "frank-wolfe": Look(orange, "<"),
        "dual-averaging": Look(blue, ">", DASHED, layer=1),
        "projected-dual-averaging": Look(vermilion, "h", DOTTED),
        "langevin": Look(purple, "X", DOTTED),
    }
    assert list(looks) == list(SYSTEMS)
    return looks
