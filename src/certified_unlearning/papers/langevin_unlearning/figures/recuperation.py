"""Privacy recuperation: certified epsilon against unlearning steps, for every accountant, and the exact value."""

import pandas as pd
from matplotlib.figure import Figure

from certified_unlearning.accounting.langevin.accountants import ACCOUNTANTS
from certified_unlearning.errors import DataError
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures import wording
from certified_unlearning.reproduction.figures.looks import BLACK, Look, accountant_look
from certified_unlearning.reproduction.figures.wording import number

_EXACT = "exact on quadratics"
_LEAST_EPSILON = 0.01
"""The smallest shown epsilon: smaller values can hardly be distinguished from 0, and a logarithmic axis has no 0."""


def draw(bounds: pd.DataFrame, style: FigureStyle) -> Figure:
    """Plot rows of ``recuperation`` (see `rows.BOUND_ROWS`), with the exact value as a dashed line on top of all lines.

    Raises:
        DataError: A row names an unknown bound.
    """
    with shared.theme(style):
        figure = shared.new_figure(style)
        axes = figure.subplots()
        for bound, rows in bounds.groupby("bound", sort=False):
            shared.draw_line(axes, rows, _look(str(bound), style), x="steps", y="epsilon", label=str(bound))
        shared.steps_axis(axes, "Unlearning steps K", which="x")
        least = max(_LEAST_EPSILON, bounds["epsilon"].min())
        axes.set_ylim(0.8 * least, 1.5 * bounds["epsilon"].max())
        shared.epsilon_axis(axes, "Certified ε")
        row = bounds.iloc[0]
        title = (
            f"Privacy recuperation, {shared.records(row['records_removed'])} at once\n"
            f"n = {row['n']:,}, σ = {number(row['sigma'])}, δ = {number(row['delta'], 3)}"
        )
        key = {
            wording.bound(name) if name in ACCOUNTANTS else name: line for name, line in shared.handles(axes).items()
        }
        shared.finish(figure, title, key)
    return figure


def _look(bound: str, style: FigureStyle) -> Look:
    if bound == _EXACT:
        return Look(BLACK, dashes=(0, (2, 1.5)), size=0.8, layer=9)
    if bound in ACCOUNTANTS:
        return accountant_look(ACCOUNTANTS[bound], style)
    raise DataError(f"the bounds of recuperation hold {bound!r}, which has no line")
