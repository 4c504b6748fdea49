"""Fig. 3b's steps under every rule for the smoothness L: accounting only, nothing was simulated."""

import pandas as pd
from matplotlib.figure import Figure

from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.looks import key, looks


def draw(streams: pd.DataFrame, style: FigureStyle) -> Figure:
    """Draw streams of requests (see `smoothness.ROWS`): a panel for each rule, which names L.

    The axis of steps is linear, as the paper's is: a quarter less would hardly show on a logarithmic one.
    """
    with shared.theme(style):
        figure = shared.new_figure(style, columns=2)
        figure.set_figheight(1.3 * style.height_inches)
        streams = streams.rename(columns={"line": "label"})
        look = looks(streams, style)
        groups = list(streams.groupby("smoothness", sort=False))
        panels = shared.grid(figure, len(groups))
        most = streams["accumulated_steps"].max()
        for axes, (rule, rows) in zip(panels, groups, strict=True):
            shared.draw_lines(axes, rows, look, x="records_removed", y="accumulated_steps")
            axes.set_title(f"{rule}: L = {rows['smoothness_constant'].iloc[0]:.4f}\n{_standing(rows)}")
            axes.set(xlabel="Records removed", ylabel="Accumulated steps", ylim=(-0.03 * most, 1.03 * most))
            axes.yaxis.set_major_formatter("{x:,.0f}")
            axes.label_outer()
        langevin = streams[streams["mechanism"] == "langevin"].iloc[0]
        epsilon, sigma = langevin["epsilon_target"], langevin["sigma"]
        removed = streams["records_removed"].max()
        title = f"Removing {shared.records(removed)}, S at a time, epsilon = {epsilon:g}, sigma = {sigma:g}"
        shared.finish(figure, shared.about(streams, title), *key(streams, style))
    return figure


def _standing(rows: pd.DataFrame) -> str:
    """Return what a rule's L is worth."""
    return "heuristic, no guarantee" if "heuristic" in set(rows["guarantee"]) else "holds after every removal"
