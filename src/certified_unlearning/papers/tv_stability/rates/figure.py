"""The figure of measured rates: how excess risk depends on records, stability and columns."""

import pandas as pd
from matplotlib.figure import Figure

from certified_unlearning.papers.tv_stability.names import RATE_PARTS
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.power_laws import draw_lines, label_panel


def draw_rates(rows: pd.DataFrame, style: FigureStyle) -> Figure:
    """Plot rows of `rates.table.rates_table`, a panel for each part: chapter 4 above, chapter 5 below.

    Raises:
        DataError: A row names an unknown part.
    """
    shared.require_lines(rows["part"], RATE_PARTS, "the rows of exact_rates hold")
    with shared.theme(style):
        figure = shared.new_figure(style, columns=4)
        figure.set_figheight(3.2 * style.height_inches)
        for axes, (name, part) in zip(figure.subplots(2, 4).ravel(), RATE_PARTS.items(), strict=True):
            own = rows[rows["part"] == name]
            draw_lines(axes, own, part, style)
            label_panel(axes, part)
        shared.finish(figure, "Excess risk of exact learners")
    return figure
