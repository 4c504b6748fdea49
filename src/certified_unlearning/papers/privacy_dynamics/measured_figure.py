"""The figure of the measured experiment of *Differential Privacy Dynamics*: runs, exact values and bounds."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from certified_unlearning.errors import DataError
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.looks import BLACK, Look, colours, entries
from certified_unlearning.reproduction.figures.wording import member, number

_NAMES = {
    "corollary-1": "Corollary 1 (upper bound)",
    "composition": "Composition (upper bound)",
    "exact": "Exact",
    "sampled": "Runs of the engine, joint confidence intervals",
}


def draw(bounds: pd.DataFrame, style: FigureStyle) -> Figure:
    """Plot rows of `measured.measured_table`.

    Each alpha has a panel, each bound a line, and each sampled value a bar.

    The line of composition ends where it is far above the other lines.

    Raises:
        DataError: A row names an unknown bound, or no value was sampled.
    """
    of = f"the bounds of {bounds['experiment'].iloc[0]} hold"
    shared.require_lines(bounds["bound"], _NAMES, of)
    if "sampled" not in set(bounds["bound"]):
        raise DataError(f"{of} nothing that was sampled")
    blue, orange, _, vermilion = colours(style, 4)
    looks = {
        "composition": Look(orange, dashes=(0, (5, 2))),
        "corollary-1": Look(blue),
        "exact": Look(BLACK, dashes=(0, (1.2, 1.2)), layer=1),
    }
    runs = Look(vermilion, "o", dashes="none", marker_size=0.6, layer=2)
    with shared.theme(style):
        figure = shared.new_figure(style, columns=2)
        groups = list(bounds.groupby("alpha"))
        panels = figure.subplots(1, len(groups), sharex=True, sharey=True, squeeze=False)[0]
        for axes, (alpha, of_alpha) in zip(panels, groups, strict=True):
            for bound, look in looks.items():
                rows = of_alpha[of_alpha["bound"] == bound]
                shared.draw_line(axes, rows, look, x="steps", y="renyi", label=_NAMES[bound])
            _draw_runs(axes, of_alpha[of_alpha["bound"] == "sampled"], runs)
            axes.set_title(member(f"alpha = {alpha}"))
        within = bounds[bounds["bound"] != "composition"]
        top = 1.1 * max(within["renyi"].max(), within["high"].max())
        for axes in panels:
            axes.set(xlabel="Steps K", ylabel="Rényi divergence (nats)", ylim=(0, top))
            axes.label_outer()
        key = entries({_NAMES[bound]: look for bound, look in looks.items()})
        shared.finish(figure, _title(bounds), {**key, _NAMES["sampled"]: Line2D([], [], **_points(runs))})
    return figure


def _draw_runs(axes: Axes, rows: pd.DataFrame, look: Look) -> None:
    reach = [rows["renyi"] - rows["low"], rows["high"] - rows["renyi"]]
    line = _points(look)
    axes.errorbar(
        rows["steps"],
        rows["renyi"],
        yerr=reach,
        label=_NAMES["sampled"],
        elinewidth=0.7 * line["linewidth"],
        capsize=2,
        **line,
    )


def _points(look: Look) -> dict[str, Any]:
    """Return plot properties for points that have no white edge, because a white edge would hide short bars."""
    return {**look.line(), "markeredgecolor": look.color}


def _title(bounds: pd.DataFrame) -> str:
    row = bounds.iloc[0]
    return (
        f"Noisy gradient descent, last iterate published, {row['trials']:,} runs on each data set\n"
        f"n = {row['n']:,}, λ = {number(row['strong_convexity'])}, β = {number(row['smoothness_constant'])}, "
        f"σ = {number(row['sigma'])}, step size η = {number(row['step_size'])}"
    )
