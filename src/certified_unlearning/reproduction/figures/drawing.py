"""Drawing an experiment's figure from its rows, and computing the numbers that the figure shows."""

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.reproduction import declared
from certified_unlearning.reproduction.experiment import Experiment
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures.style import new_figure, save
from certified_unlearning.reproduction.summaries import summarise


def shown(experiment: Experiment, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the numbers that an experiment shows: the summary of its runs, or its rows as they are.

    Raises:
        DataError: There are no rows, or they cannot be summarised.
    """
    if experiment.mechanisms:
        return summarise(rows, experiment.name)
    own = rows[rows["experiment"] == experiment.name] if "experiment" in rows else rows
    if own.empty:
        raise DataError(f"there are no rows of {experiment.name}")
    return own


def render_left_out(experiment: Experiment, style: FigureStyle, output_stem: str | Path) -> list[Path]:
    """Write a figure which says that the experiment was left out; the arguments and errors are those of `render`."""
    figure = new_figure(style)
    figure.text(0.5, 0.5, f"{experiment.name} is left out:\nits plan.json says why", ha="center", va="center")
    return save(figure, style, output_stem)


def render(experiment: Experiment, rows: pd.DataFrame, style: FigureStyle, output_stem: str | Path) -> list[Path]:
    """Draw an experiment's figure and write it as ``<output_stem>.png``, ``.pdf`` and ``.svg``.

    Args:
        experiment: The experiment.
        rows: Rows with the experiment's columns.
        style: Context, palette, size and resolution. The width is that of one column of a page; a figure with several
            panels spans two columns. The height does not include the legend.
        output_stem: Path of the files without suffix.

    Returns:
        The paths of the three files.

    Raises:
        ParameterError: The experiment has no figure, or the palette is unknown.
        DataError: There are no rows, or they cannot be summarised or drawn.
        StorageError: A file cannot be written.
    """
    if experiment.draw is None:
        raise ParameterError(f"{experiment.name} has no figure")
    figure: Figure = declared.function(experiment.draw)(shown(experiment, rows), style)
    return save(figure, style, output_stem)
