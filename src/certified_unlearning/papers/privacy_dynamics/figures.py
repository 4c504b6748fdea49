"""Figures 1 and 2 of *Differential Privacy Dynamics*: Rényi divergence against steps of noisy gradient descent."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.looks import BLACK, GREY, Look, colours, entries
from certified_unlearning.reproduction.figures.wording import member, number

_NAMES_AND_DASHES = {
    "corollary-1": ("Corollary 1 (upper bound)", "-"),
    "corollary-2": ("Corollary 2 (upper bound)", "-"),
    "composition": ("Composition (upper bound)", (0, (5, 2))),
    "exact": ("Exact", (0, (1.2, 1.2))),
    "theorem-3": ("Theorem 3 (lower bound)", (0, (2.5, 1.2))),
}
_MARKERS = "os^Dv"


def draw_first(bounds: pd.DataFrame, style: FigureStyle) -> Figure:
    """Plot rows of ``dynamics1`` (see `rows.BOUND_ROWS`).

    The hue shows alpha, the marker shows lambda, and the dashes show the bound.

    Composition does not depend on lambda. Its line ends where it is far above the dynamics bounds.

    Raises:
        DataError: A row names an unknown bound.
    """
    shared.require_lines(bounds["bound"], ("corollary-1", "composition"), "the bounds of dynamics1 hold")
    with shared.theme(style):
        figure = shared.new_figure(style, columns=2)
        axes = figure.subplots()
        alphas = sorted(bounds["alpha"].unique())
        hues = dict(zip(alphas, colours(style, len(alphas)), strict=True))
        dynamics = bounds[bounds["bound"] != "composition"]
        curvatures = sorted(dynamics["strong_convexity"].unique())
        markers = {value: _MARKERS[number % len(_MARKERS)] for number, value in enumerate(curvatures)}
        for alpha, rows in bounds[bounds["bound"] == "composition"].groupby("alpha"):
            look = Look(hues[alpha], dashes=_NAMES_AND_DASHES["composition"][1], size=0.8)
            label = f"composition, alpha = {alpha:g}"
            shared.draw_line(axes, rows, look, x="steps", y="renyi", label=label)
        for (order, curvature), rows in dynamics.groupby(["alpha", "strong_convexity"]):
            look = Look(hues[order], markers[curvature], layer=1)
            label = f"corollary-1, alpha = {order:g}, lambda = {curvature:g}"
            shared.draw_line(axes, rows, look, x="steps", y="renyi", label=label)
        _divergence_axes(axes, dynamics)
        present = set(bounds["bound"])
        key = (
            {f"α = {number(alpha)}": Look(hue) for alpha, hue in hues.items()},
            {f"λ = {number(value)}": Look(GREY, marker) for value, marker in markers.items()},
            {
                name: Look(GREY, dashes=dashes)
                for bound, (name, dashes) in _NAMES_AND_DASHES.items()
                if bound in present
            },
        )
        shared.finish(figure, _title(bounds), *map(entries, key))
    return figure


def draw_second(bounds: pd.DataFrame, style: FigureStyle) -> Figure:
    """Plot rows of ``dynamics2`` (see `rows.BOUND_ROWS`): a panel for each alpha, and a line for each bound.

    Raises:
        DataError: A row names an unknown bound.
    """
    blue, orange, green = colours(style, 3)
    hues = {"corollary-2": blue, "composition": orange, "exact": BLACK, "theorem-3": green}
    shared.require_lines(bounds["bound"], hues, "the bounds of dynamics2 hold")
    with shared.theme(style):
        figure = shared.new_figure(style, columns=2)
        groups = list(bounds.groupby("alpha"))
        panels = figure.subplots(1, len(groups), sharex=True, sharey=True, squeeze=False)[0]
        for axes, (alpha, of_alpha) in zip(panels, groups, strict=True):
            for bound, rows in of_alpha.groupby("bound", sort=False):
                name, dashes = _NAMES_AND_DASHES[str(bound)]
                shared.draw_line(axes, rows, Look(hues[str(bound)], dashes=dashes), x="steps", y="renyi", label=name)
            axes.set_title(member(f"alpha = {alpha}"))
        for axes in panels:
            _divergence_axes(axes, bounds[bounds["bound"] != "composition"])
            axes.label_outer()
        shared.finish(figure, _title(bounds), shared.handles(panels[0]))
    return figure


def _divergence_axes(axes: Axes, dynamics: pd.DataFrame) -> None:
    axes.set(xlabel="Steps K", ylabel="Rényi divergence (nats)", ylim=(0, 1.25 * dynamics["renyi"].max()))


def _title(bounds: pd.DataFrame) -> str:
    row = bounds.iloc[0]
    return (
        "Noisy gradient descent, last iterate published\n"
        f"n = {row['n']:,}, σ = {number(row['sigma'])}, step size η = {number(row['step_size'])}"
    )
