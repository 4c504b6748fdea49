"""The figures of the reproduction: one module each, drawn from records, privacy bounds or planned streams."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
from matplotlib.figure import Figure

from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.figures import deletion, dynamics, fig3a, fig3b, fig3c, fig4, fig5a, recuperation, smoothness
from certified_unlearning.figures.style import save
from certified_unlearning.parameters import FigureStyle
from certified_unlearning.results import ATTACK_SCHEMA, BOUND_SCHEMA, RECORD_SCHEMA, STREAM_SCHEMA
from certified_unlearning.summaries import summarise

FIGURES: dict[str, Callable[[pd.DataFrame, FigureStyle], Figure]] = {
    "fig3a": fig3a.draw,
    "fig3b": fig3b.draw,
    "fig3c": fig3c.draw,
    "fig4": fig4.draw,
    "fig5a": fig5a.draw,
}
"""Experiment -> the function that draws its summary."""

BOUND_FIGURES: dict[str, Callable[[pd.DataFrame, FigureStyle], Figure]] = {
    "recuperation": recuperation.draw,
    "dynamics1": dynamics.draw_first,
    "dynamics2": dynamics.draw_second,
}
"""Experiment without a simulation -> the function that draws its bounds."""

STREAM_FIGURES: dict[str, Callable[[pd.DataFrame, FigureStyle], Figure]] = {"smoothness": smoothness.draw}
"""Experiment without a simulation -> the function that draws its planned streams of requests."""


ATTACK_FIGURES: dict[str, Callable[[pd.DataFrame, FigureStyle], Figure]] = {"deletion": deletion.draw}
"""Experiment -> the function that draws its attacks."""


def schema(experiment: str) -> pa.Schema:
    """Return the schema of the rows that a figure is drawn from.

    Raises:
        ParameterError: There is no such figure.
    """
    if experiment in FIGURES:
        return RECORD_SCHEMA
    if experiment in BOUND_FIGURES:
        return BOUND_SCHEMA
    if experiment in STREAM_FIGURES:
        return STREAM_SCHEMA
    if experiment in ATTACK_FIGURES:
        return ATTACK_SCHEMA
    known = ", ".join([*FIGURES, *BOUND_FIGURES, *STREAM_FIGURES, *ATTACK_FIGURES])
    raise ParameterError(f"there is no figure {experiment!r}; known are {known}")


def shown(experiment: str, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the numbers that an experiment's figure shows: the summary of its records, or its rows as they are.

    Args:
        experiment: A key of `FIGURES`, `BOUND_FIGURES`, `STREAM_FIGURES` or `ATTACK_FIGURES`.
        rows: Rows that follow its `schema`; other experiments among them are left out.

    Raises:
        ParameterError: There is no such figure.
        DataError: The rows hold nothing of this experiment, or cannot be summarised.
    """
    if schema(experiment) is RECORD_SCHEMA:
        return summarise(rows, experiment)
    own = rows[rows["experiment"] == experiment]
    if own.empty:
        raise DataError(
            f"the {'attacks' if experiment in ATTACK_FIGURES else 'bounds'} hold no experiment {experiment}"
        )
    return own


def render(experiment: str, rows: pd.DataFrame, style: FigureStyle, output_stem: str | Path) -> list[Path]:
    """Draw an experiment's figure and write it as ``<output_stem>.png`` and ``<output_stem>.pdf``.

    Args:
        experiment: A key of `FIGURES`, `BOUND_FIGURES`, `STREAM_FIGURES` or `ATTACK_FIGURES`.
        rows: Rows that follow its `schema`; other experiments among them are left out.
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
    draw = {**FIGURES, **BOUND_FIGURES, **STREAM_FIGURES, **ATTACK_FIGURES}
    numbers = shown(experiment, rows)
    return save(draw[experiment](numbers, style), style, output_stem)
