"""The figures of the reproduction: one module each, drawn from summaries of records."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from certified_unlearning.errors import ParameterError
from certified_unlearning.figures import fig3a, fig3b, fig3c, fig4
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


def render(experiment: str, records: pd.DataFrame, style: FigureStyle, output_stem: str | Path) -> list[Path]:
    """Draw an experiment's figure and write it as ``<output_stem>.png`` and ``<output_stem>.pdf``.

    Args:
        experiment: A key of `FIGURES`.
        records: Rows that follow `results.RECORD_SCHEMA`; other experiments among them are left out.
        style: Context, palette, size and resolution. The width is that of one column of a page; figures with
            several panels span two columns. The height is that without the legend.
        output_stem: The path without its suffix.

    Returns:
        The two paths.

    Raises:
        ParameterError: There is no such figure, or the palette is unknown.
        DataError: The records hold nothing of this experiment, or cannot be summarised.
        StorageError: A file cannot be written.
    """
    if experiment not in FIGURES:
        raise ParameterError(f"there is no figure {experiment!r}; known are {', '.join(FIGURES)}")
    figure = FIGURES[experiment](summarise(records, experiment), style)
    return save(figure, style, output_stem)
