"""The common style of all figures: theme, lines with their bands, axes, title, legend and files."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import matplotlib.style
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.scale import SymmetricalLogScale
from matplotlib.ticker import FixedFormatter, FixedLocator, LogFormatterSciNotation, LogLocator, NullLocator

from certified_unlearning.errors import DataError
from certified_unlearning.files import atomic_path
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import line_ends
from certified_unlearning.reproduction.figures.looks import Look
from certified_unlearning.reproduction.figures.wording import Numbers, number, title_of
from certified_unlearning.text import counted

_LEAST_ACCURACY_SPAN = 0.02
"""Smallest height of an accuracy axis, so that the noise of a few test records does not look like an effect."""


@contextmanager
def theme(style: FigureStyle) -> Iterator[None]:
    """Apply the shared theme inside the block, independently of the user's Matplotlib settings.

    Both drawing *and* saving must happen in the block: Matplotlib creates some artists (ticks) only when it saves.
    """
    settings = {
        **sns.plotting_context(style.context),
        **sns.axes_style("ticks"),
        "font.family": "DejaVu Sans",  # This font comes with Matplotlib, so it is the same on every machine.
        "axes.titlesize": "small",
        "figure.titlesize": "medium",
        "figure.labelsize": "medium",
        "axes.grid": True,
        "grid.color": "0.9",
        "legend.frameon": False,
        "legend.fontsize": "small",
        "pdf.fonttype": 42,
        "svg.hashsalt": "certified-unlearning",  # Without this, the names of the SVG's parts are random.
    }
    with matplotlib.style.context(["default", settings]):
        yield


def new_figure(style: FigureStyle, *, columns: int = 1) -> Figure:
    """Return an empty figure that spans several columns of the style's width and is not registered in pyplot."""
    figure = Figure(figsize=(columns * style.width_inches, style.height_inches), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


_TITLE_LINE = 0.25
"""Height of one more line in a panel's title, in inches; the figure grows by it, so that the panels keep their
height.
"""


def steps_above_accuracies(figure: Figure, names: Sequence[str]) -> tuple[list[Axes], list[Axes]]:
    """Return a panel of steps above a panel of accuracies for each name; the panels of a row share the y axis.

    The figure becomes wider with more than five panels side by side, and higher if a name has several lines.
    """
    width, height = figure.get_size_inches()
    more_lines = max(name.count("\n") for name in names)
    figure.set_size_inches(max(1.0, len(names) / 5) * width, 1.5 * height + _TITLE_LINE * more_lines)
    steps, accuracies = figure.subplots(
        2, len(names), sharex=True, sharey="row", squeeze=False, height_ratios=(1.25, 1)
    )
    for axes, name in zip(steps, names, strict=True):
        axes.set_title(name)
    return list(steps), list(accuracies)


def grid(figure: Figure, count: int) -> list[Axes]:
    """Return panels with shared axes, at most four in a row; the figure becomes taller with more rows."""
    rows = -(-count // 4)
    figure.set_figheight((1 + rows) / 2 * figure.get_figheight())
    panels = figure.subplots(rows, -(-count // rows), sharex=True, sharey=True, squeeze=False).ravel()
    for axes in panels[count:]:
        axes.remove()
    return list(panels[:count])


def label_outer(panels: Sequence[Axes]) -> None:
    """Remove the labels of shared axes, except at the outer edges."""
    for axes in panels:
        axes.label_outer()


def draw_lines(
    axes: Axes, summary: pd.DataFrame, look: Mapping[str, Look], *, x: str, y: str, bands: bool = True
) -> None:
    """Draw one line for each label; ``accuracy_mean`` also gets a band of one standard deviation."""
    for label, rows in summary.groupby("label", sort=False):
        one = look[str(label)]
        draw_line(axes, rows, one, x=x, y=y, label=str(label))
        if bands and y == "accuracy_mean":
            rows = rows.sort_values(x)
            axes.fill_between(rows[x], *band(rows), **one.area())


def draw_line(axes: Axes, rows: pd.DataFrame, look: Look, *, x: str, y: str, label: str) -> None:
    """Draw one line, with at most seven markers, however many points it has."""
    line = {"label": label, "markevery": -(-len(rows) // 7), **look.line()}
    sns.lineplot(rows, x=x, y=y, estimator=None, ax=axes, legend=False, **line)


def draw_levels(axes: Axes, summary: pd.DataFrame, look: Mapping[str, Look]) -> None:
    """Draw each row's mean accuracy as a horizontal line across the panel, with a band of one standard deviation."""
    for (_, row), lower, upper in zip(summary.iterrows(), *band(summary), strict=True):
        one = look[row["label"]]
        axes.axhline(row["accuracy_mean"], label=row["label"], **one.line())
        axes.axhspan(lower, upper, **one.area())


def band(summary: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean accuracy minus and plus one standard deviation, limited to [0, 1]."""
    mean, std = summary["accuracy_mean"].to_numpy(), summary["accuracy_std"].to_numpy()
    return np.clip(mean - std, 0.0, 1.0), np.clip(mean + std, 0.0, 1.0)


def accuracy_axis(axes: Axes) -> None:
    """Label a panel's accuracy axis; call this function after everything is drawn."""
    bottom, top = axes.get_ylim()
    missing = max(0.0, _LEAST_ACCURACY_SPAN - (top - bottom)) / 2
    axes.set_ylim(max(bottom - missing, -0.02), min(top + missing, 1.02))
    axes.set_ylabel("Test accuracy")


MAJORITY = "majority"


def majority_line(axes: Axes, summary: pd.DataFrame) -> None:
    """Draw the accuracy of guessing, unless all accuracies are above it; call this function after everything is drawn.

    If all accuracies are below the accuracy of guessing, the axis ends above the line of guessing, to show that
    guessing is better.
    """
    guessed, (bottom, top) = float(summary["majority"].iloc[0]), axes.get_ylim()
    if guessed >= bottom:
        axes.set_ylim(top=max(top, guessed + 0.12 * (guessed - bottom)))
        axes.axhline(guessed, color="0.6", linewidth=0.6, linestyle=(0, (6, 3)), zorder=1.5, label=MAJORITY)
        axes.annotate(
            MAJORITY, (1, guessed), xycoords=("axes fraction", "data"), xytext=(0, 1), textcoords="offset points",
            ha="right", va="bottom", fontsize="x-small", color="0.45",
        )  # fmt: skip


def steps_axis(axes: Axes, name: str, *, which: Literal["x", "y"] = "y") -> None:
    """Make an axis of step counts linear from 0 to 1, and logarithmic above, so that 0 is visible next to thousands.

    The axis begins at 0 if any count is below 2, and includes the steps of all panels that share it. Call this function
    after everything is drawn.
    """
    axis, shared = (axes.yaxis, axes.get_shared_y_axes()) if which == "y" else (axes.xaxis, axes.get_shared_x_axes())
    limits = [getattr(each.dataLim, f"interval{which}") for each in shared.get_siblings(axes)]
    least, largest = np.min(limits), max(1.0, np.max(limits))
    decades = 10.0 ** np.arange(np.ceil(np.log10(largest)) + 1)
    ticks = decades if largest > 200 else np.outer(decades, (1, 2, 5)).ravel()
    scale = SymmetricalLogScale(axis, linthresh=1, linscale=0.4)
    bottom = -0.4 if least < 2 else 0.6 * least
    axes.set(**{f"{which}scale": scale, f"{which}lim": (bottom, 1.4 * largest), f"{which}label": name})
    axis.set_major_locator(FixedLocator([0.0, *ticks]))
    axis.set_minor_locator(NullLocator())


def epsilon_axis(axes: Axes, name: str) -> None:
    """Make the y axis a logarithmic axis of epsilon."""
    axes.set_ylabel(name)
    axes.set_yscale("log")
    _few_numbers(axes.yaxis)


def _few_numbers(axis: Axis) -> None:
    """Label a logarithmic axis at powers of ten, or at 1, 2 and 5 of each decade if it is shorter than two decades."""
    bottom, top = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if top < 100 * bottom else (1,)))
    axis.set_minor_locator(NullLocator())


def decades(axes: Axes, which: Literal["x", "y"]) -> None:
    """Make an axis logarithmic, with ticks at powers of ten: at all of them if there is room."""
    axes.set(**{f"{which}scale": "log"})
    axis = axes.yaxis if which == "y" else axes.xaxis
    # Labels of an x axis are side by side, and those of a y axis are one above the other.
    axis.set_major_locator(LogLocator(subs=(1,), numticks=12 if which == "y" else 7))
    axis.set_minor_locator(NullLocator())


def sweep_axis(axes: Axes, values: pd.Series, name: str) -> None:
    """Make the x axis logarithmic, with a tick at every swept value, labelled if there is room.

    The ends and powers of ten are labelled first. Call this function after everything is drawn, because seaborn rounds
    positions on an axis that is already logarithmic.
    """
    swept = np.sort(values.unique())
    axes.set_xscale("log")
    length = np.log(swept[-1] / swept[0])

    def fit(one: float, other: float) -> bool:
        """Return whether both labels fit; the width of a character is about a fortieth of a panel's width."""
        characters = (len(number(one)) + len(number(other))) / 2 + 1
        return bool(abs(np.log(one / other)) >= length * max(1 / 8, characters / 40))

    labelled: list[float] = []
    for value in sorted(swept, key=lambda one: (one not in swept[[0, -1]], np.log10(one) % 1 != 0, one)):
        if all(fit(value, other) for other in labelled):
            labelled.append(value)
    axes.xaxis.set_major_locator(FixedLocator(list(swept)))
    axes.xaxis.set_major_formatter(FixedFormatter([number(value) if value in labelled else "" for value in swept]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(name)


def about(summary: pd.DataFrame, what: str) -> str:
    """Return a title: what was done, the data set, and n."""
    row = summary.iloc[0]
    return f"{what}\n{title_of(row['dataset'])}, n = {row['n']:,}"


def require_lines(found: Iterable[str], known: Collection[str], what: str) -> None:
    """Raise an error if a figure has no line for a name in the rows.

    Args:
        found: Names in the rows.
        known: Names for which the figure has lines.
        what: Beginning of the message, such as ``the rows of deletions contain the system``.

    Raises:
        DataError: A name in the rows has no line.
    """
    unknown = sorted(set(found) - set(known))
    if unknown:
        raise DataError(f"{what} {unknown[0]!r}, which has no line")


def handles(axes: Axes) -> dict[str, Line2D]:
    """Return the lines of a panel, keyed by their labels."""
    return {str(line.get_label()): line for line in axes.get_lines()}


def finish(figure: Figure, title: str, *key: Mapping[str, Artist]) -> None:
    """Add the title and a legend, and format all numbers in the same way.

    The legend is below all panels, and the figure becomes taller to make room for it.

    Args:
        figure: Figure with everything drawn.
        title: Title of the figure.
        key: Groups of legend entries. Each group begins a new column, and only the largest may have several columns.
            The legend has as few rows as its width allows. None if texts at the ends of lines name the lines.
    """
    figure.suptitle(title)
    for axes in figure.axes:
        sns.despine(ax=axes)
        axes.set_axisbelow(True)
        for axis in (axes.xaxis, axes.yaxis):
            if isinstance(axis.get_minor_formatter(), LogFormatterSciNotation) and axis.get_minor_ticks():
                _few_numbers(axis)
            if not isinstance(axis.get_major_formatter(), FixedFormatter):
                axis.set_major_formatter(Numbers())
    _add_legend(figure, key)
    figure.draw_without_rendering()  # From here on, the positions of the lines' ends on the page are known.
    for axes in figure.axes:
        line_ends.move_apart(axes)


def _add_legend(figure: Figure, key: Sequence[Mapping[str, Artist]]) -> None:
    if not any(key):
        return
    groups = [list(group.items()) for group in key if group]
    *others, most = sorted(map(len, groups))
    for rows in range(max(others, default=1), most + 1):
        entries = [entry for group in groups for entry in _filled(group, rows)]
        names, lines = zip(*entries, strict=True)
        legend = figure.legend(lines, names, loc="outside lower center", ncols=len(entries) // rows, handlelength=3)
        size = legend.get_window_extent()
        if size.width <= figure.bbox.width:
            break
        legend.remove()
    figure.set_figheight(figure.get_figheight() + size.height / figure.dpi)


def _filled(group: list[tuple[str, Artist]], rows: int) -> list[tuple[str, Artist]]:
    """Add invisible entries to a group of legend entries so that it fills whole columns, and return the new group."""
    return group + [("", Line2D([], [], linestyle="none"))] * (-len(group) % rows)


def save(figure: Figure, style: FigureStyle, output_stem: str | Path) -> list[Path]:
    """Write ``<stem>.png``, ``<stem>.pdf`` and ``<stem>.svg`` atomically; equal figures give equal bytes.

    Raises:
        StorageError: A file cannot be written.
    """
    paths = [Path(f"{output_stem}.{kind}") for kind in ("png", "pdf", "svg")]
    metadata: dict[str, dict[str, Any]] = {
        ".png": {"Software": None},
        ".pdf": {"CreationDate": None},
        ".svg": {"Date": None},
    }
    with theme(style):
        for path in paths:
            with atomic_path(path) as temporary:
                figure.savefig(temporary, dpi=style.dots_per_inch, metadata=metadata[path.suffix])
    return paths


def records(count: int) -> str:
    """Return ``1 record``, ``2 records``, ... for use in a title."""
    return counted(count, "record")
