"""Theorems 3.2 and 3.3 beyond strong convexity: epsilon against T and against K, and its limit against sigma."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.looks import BLACK, DASHED, DOTTED, GREY, Look, colours, entries
from certified_unlearning.reproduction.figures.wording import number

_NAMES = {
    "strongly convex": "strongly convex (case 3)",
    "convex": "convex (case 2)",
    "smooth": "smooth (case 1)",
    "composition": "composition",
    "Proposition E.1": "Proposition E.1 (no guarantee)",
}
_EPSILONS = (1e-6, 1e4)
"""The range of the epsilon axis for the limits. The lines continue above this range, where nothing is promised."""


_NAMED_AT = 1e3
"""The epsilon at which the line of a limit is labelled with its radius."""


def draw(bounds: pd.DataFrame, style: FigureStyle) -> Figure:
    """Plot rows of ``beyond_convexity`` (see `beyond_convexity.ROWS`), with a panel for each part.

    Each bound has a line.

    Raises:
        DataError: A row names an unknown bound.
    """
    shared.require_lines(bounds["bound"], _NAMES, "the bounds of beyond_convexity hold")
    with shared.theme(style):
        figure = shared.new_figure(style, columns=2)
        learning, unlearning, limit = figure.subplots(1, 3)
        hues = dict(zip(_NAMES, (BLACK, *colours(style, 2), GREY, GREY), strict=True))
        # No bound overflows along T and K.
        bounds = bounds.assign(epsilon=10.0 ** bounds["log10_epsilon"].clip(upper=300))
        parts = dict(list(bounds.groupby("part", sort=False)))
        for axes, part, x in (
            (learning, parts["learning"], "learning_steps"),
            (unlearning, parts["unlearning"], "unlearning_steps"),
        ):
            for bound, rows in part.groupby("bound", sort=False):
                look = Look(hues[str(bound)], dashes=DASHED if bound == "composition" else "-")
                shared.draw_line(axes, rows.astype({x: float}), look, x=x, y="epsilon", label=str(bound))
        for axes, name in ((learning, "Learning steps T"), (unlearning, "Unlearning steps K")):
            shared.decades(axes, "x")
            axes.set_xlabel(name)
        _draw_limits(limit, parts["limit"], hues)
        for axes in (learning, unlearning, limit):
            shared.epsilon_axis(axes, "ε" if axes is learning else "")
        row, learned = bounds.iloc[0], parts["unlearning"]["learning_steps"].iloc[0]
        learning.set_title(f"before unlearning,\nσ = {number(row['sigma'])}")
        unlearning.set_title(f"from T = {number(learned)},\nσ = {number(row['sigma'])}")
        limit.set_title("before unlearning,\nT → ∞")
        title = (
            "Langevin unlearning’s bounds beyond strong convexity, one record\n"
            f"n = {row['n']:,}, L = {number(row['smoothness_constant'])}, M = {number(row['lipschitz'])}"
        )
        dashes = {"composition": DASHED, "Proposition E.1": DOTTED}
        key = {name: Look(hues[bound], dashes=dashes.get(bound, "-")) for bound, name in _NAMES.items()}
        shared.finish(figure, title, entries(key))
    return figure


def _draw_limits(axes: Axes, limits: pd.DataFrame, hues: dict[str, object]) -> None:
    """Draw the limits of epsilon against sigma.

    Next to each steep line of the convex case, a label shows the radius of the line.
    """
    for bound, rows in limits.groupby("bound", sort=False):
        look = Look(hues[str(bound)], dashes=DOTTED if bound == "Proposition E.1" else "-")
        for radius, of_radius in rows.groupby("radius", sort=False, dropna=False):
            shared.draw_line(axes, of_radius, look, x="sigma", y="epsilon", label=f"{bound}, R = {radius:g}")
            plunging = of_radius[of_radius["epsilon"] >= _NAMED_AT]
            if bound == "convex" and not plunging.empty:
                name = f" R = {number(plunging['radius'].iloc[0])}"
                axes.text(plunging["sigma"].max(), _NAMED_AT, name, ha="left", va="center", fontsize="x-small")
    shared.decades(axes, "x")
    axes.set(xlabel="Noise scale σ", ylim=_EPSILONS)
