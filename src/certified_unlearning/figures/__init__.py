"""The figures of the reproduction: one module each, drawn from summaries of records or from privacy bounds."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.figures import dynamics, fig3a, fig3b, fig3c, fig4, recuperation
from certified_unlearning.figures.style import save
from certified_unlearning.parameters import FigureStyle
from certified_unlearning.summaries import summarise

FIGURES: dict[str, Callable[[pd.DataFrame, FigureStyle], Figure]] = {
    "fig3a": fig3a.draw,
    "fig3b": fig3b.draw,
    "fig3c": fig3c.draw,
    "fig4": fig4.draw,
}
"""Experiment -> the function that draws its summary."""

BOUND_FIGURES: dict[str, Callable[[pd.DataFrame, FigureStyle], Figure]] = {
    "recuperation": recuperation.draw,
    "dynamics1": dynamics.draw_first,
    "dynamics2": dynamics.draw_second,
}
"""Experiment without a simulation -> the function that draws its bounds."""


def render(experiment: str, rows: pd.DataFrame, style: FigureStyle, output_stem: str | Path) -> list[Path]:
    """Draw an experiment's figure and write it as ``<output_stem>.png`` and ``<output_stem>.pdf``.

    Args:
        experiment: A key of `FIGURES` or of `BOUND_FIGURES`.
        rows: Records (`results.RECORD_SCHEMA`) or, for a figure of bounds, `results.BOUND_SCHEMA`; other experiments
            among them are left out.
        style: Context, palette, size and resolution. The width is that of one column of a page; figures with
            several panels span two columns. The height is that without the legend.
        output_stem: The path without its suffix.

    Returns:
        The two paths.

    Raises:
        ParameterError: There is no such figure, or the palette is unknown.
        DataError: The rows hold nothing of this experiment, or cannot be summarised or drawn.
        StorageError: A file cannot be written.
    """
    if experiment in FIGURES:
        figure = FIGURES[experiment](summarise(rows, experiment), style)
    elif experiment in BOUND_FIGURES:
        bounds = rows[rows["experiment"] == experiment]
        if bounds.empty:
            raise DataError(f"the bounds hold no experiment {experiment}")
        figure = BOUND_FIGURES[experiment](bounds, style)
    else:
        known = ", ".join([*FIGURES, *BOUND_FIGURES])
        raise ParameterError(f"there is no figure {experiment!r}; known are {known}")
    return save(figure, style, output_stem)
