"""What all figures share: theme, a colour and marker per mechanism, bands, axes, title, legend, files."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.style
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from certified_unlearning.errors import ParameterError
from certified_unlearning.files import atomic_path
from certified_unlearning.parameters import FigureStyle

_DATASETS = {"digits": "digits even vs odd", "mnist-3-vs-8": "MNIST 3 vs 8", "adult": "Adult"}
_MARKERS = {"langevin": "o", "descent-to-delete": "s", "noisy": "^", "noiseless": ""}
_LAYERS = ("noiseless", "noisy", "descent-to-delete", "langevin")
_DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)))
_LEAST_ACCURACY_SPAN = 0.02
"""An accuracy axis shows at least this much: noise of a few test records must not look like an effect."""


@dataclass(frozen=True)
class Look:
    """How the line of one label is drawn: the mechanism sets hue and marker, the member shade and dashes.

    Attributes:
        color: Red, green and blue.
        marker: The shape at a data point, empty for none.
        linestyle: Matplotlib's line style.
        size: Width of line and marker in units of the context's.
        layer: Lines of a higher layer are drawn over those of a lower one.
    """

    color: Any
    marker: str
    linestyle: Any
    size: float
    layer: int

    def line(self) -> dict[str, Any]:
        """Return the properties of a Matplotlib line."""
        return {
            "color": self.color,
            "marker": self.marker,
            "markersize": self.size * matplotlib.rcParams["lines.markersize"],
            "markeredgecolor": "w",
            "markeredgewidth": 0.75,
            "linestyle": self.linestyle,
            "linewidth": self.size * matplotlib.rcParams["lines.linewidth"],
            "zorder": 2 + 0.1 * self.layer,
        }

    def area(self) -> dict[str, Any]:
        """Return the properties of a Matplotlib band; its thin edge shows where bands overlap."""
        return {
            "facecolor": to_rgba(self.color, 0.12),
            "edgecolor": to_rgba(self.color, 0.4),
            "linewidth": 0.4 * matplotlib.rcParams["lines.linewidth"],
        }


@contextmanager
def theme(style: FigureStyle) -> Iterator[None]:
    """Apply the shared theme inside the block, whatever a user's own matplotlib settings are.

    Drawing *and* saving belong inside: Matplotlib makes some artists (ticks) only when it saves.
    """
    settings = {
        **sns.plotting_context(style.context),
        **sns.axes_style("ticks"),
        "font.family": "DejaVu Sans",  # comes with Matplotlib: the same letters on every machine
        "axes.titlesize": "medium",
        "figure.titlesize": "medium",
        "axes.grid": True,
        "grid.color": "0.9",
        "legend.frameon": False,
        "pdf.fonttype": 42,
    }
    with matplotlib.style.context(["default", settings]):
        yield


def new_figure(style: FigureStyle, *, columns: int = 1) -> Figure:
    """Return an empty figure, unknown to pyplot, that spans so many columns of the style's width."""
    figure = Figure(figsize=(columns * style.width_inches, style.height_inches), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def looks(summary: pd.DataFrame, style: FigureStyle) -> dict[str, Look]:
    """Return the look of every label of a summary.

    A mechanism keeps its hue and marker in every figure; its members (K, I, S) go from light to dark.
    Unlearning aims to be where noisy retraining is: a broad, pale line that stays visible below.

    Raises:
        ParameterError: The palette is not one seaborn knows.
    """
    try:
        langevin, _, noisy, descent = sns.color_palette(style.palette, 4)  # the second is often pale on white
    except ValueError as error:
        raise ParameterError(
            f"figures.palette is {style.palette!r}, but must be a seaborn palette such as colorblind"
        ) from error
    grey = (0.25, 0.25, 0.25)
    hues = {
        "langevin": langevin,
        "descent-to-delete": descent,
        "noisy": _mixed(noisy, 1.0),
        "noiseless": grey,
    }
    family = summary["mechanism"].where(summary["mechanism"] != "retraining", summary["variant"])
    found: dict[str, Look] = {}
    for name, labels in summary["label"].groupby(family, sort=False):
        members = labels.unique()
        shades = _shades(hues[str(name)], len(members))
        for number, (member, shade) in enumerate(zip(members, shades, strict=True)):
            dashes = "--" if name == "noiseless" else _DASHES[number % len(_DASHES)]
            size = 2.0 if name == "noisy" else 1.0
            found[member] = Look(shade, _MARKERS[str(name)], dashes, size, _LAYERS.index(str(name)))
    return found


def _shades(hue: Any, count: int) -> Any:
    return [hue] if count == 1 else sns.blend_palette([_mixed(hue, 1.0), hue, _mixed(hue, 0.0)], count)


def _mixed(hue: Any, end: float) -> Any:
    """Return a hue moved towards white (``end`` 1) or black (0)."""
    return tuple(0.6 * channel + 0.4 * end for channel in hue)


def draw_lines(axes: Axes, summary: pd.DataFrame, look: dict[str, Look], *, x: str, y: str) -> None:
    """Draw one line for each label; for ``accuracy_mean`` with the band of one standard deviation."""
    for label, rows in summary.groupby("label", sort=False):
        one = look[str(label)]
        every = -(-len(rows) // 10)  # at most ten markers, however long the stream
        line = {"label": label, "markevery": every, **one.line()}
        sns.lineplot(rows, x=x, y=y, estimator=None, ax=axes, legend=False, **line)
        if y == "accuracy_mean":
            rows = rows.sort_values(x)
            axes.fill_between(rows[x], *band(rows), **one.area())


def draw_levels(axes: Axes, summary: pd.DataFrame, look: dict[str, Look]) -> None:
    """Draw each row's mean accuracy as a level across the panel with the band of one standard deviation."""
    across = np.linspace(0.0, 1.0, 11)  # in units of the panel's width, so that markers can sit between data
    for (_, row), lower, upper in zip(summary.iterrows(), *band(summary), strict=True):
        one = look[row["label"]]
        line = {"label": row["label"], "markevery": (1, 4), **one.line()}
        level = np.full_like(across, row["accuracy_mean"])
        axes.plot(across, level, transform=axes.get_yaxis_transform(), **line)
        axes.axhspan(lower, upper, **one.area())


def band(summary: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean accuracy minus and plus one standard deviation, inside [0, 1]."""
    mean, std = summary["accuracy_mean"].to_numpy(), summary["accuracy_std"].to_numpy()
    return np.clip(mean - std, 0.0, 1.0), np.clip(mean + std, 0.0, 1.0)


def accuracy_axis(axes: Axes) -> None:
    """Label a panel's accuracy axis; call it when everything is drawn."""
    bottom, top = axes.get_ylim()
    missing = max(0.0, _LEAST_ACCURACY_SPAN - (top - bottom)) / 2
    axes.set_ylim(max(bottom - missing, -0.02), min(top + missing, 1.02))
    axes.ticklabel_format(axis="y", useOffset=False)
    axes.set_ylabel("Test accuracy")


def steps_axis(axes: Axes, name: str) -> None:
    """Label a panel's axis of step counts."""
    axes.yaxis.set_major_locator(MaxNLocator(nbins="auto", steps=[1, 2, 5, 10], integer=True))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_ylabel(name)


def sweep_axis(axes: Axes, values: pd.Series, name: str) -> None:
    """Make the x axis logarithmic with a tick at every swept value, labelled where there is room.

    Call it when everything is drawn: on an axis that is already logarithmic seaborn rounds positions.
    """
    swept = np.sort(values.unique())
    axes.set_xscale("log")
    room = np.log(swept[-1] / swept[0]) / 8
    labelled = [swept[0]]
    for value in swept[1:]:
        if np.log(value / labelled[-1]) >= room:
            labelled.append(value)
    axes.set_xticks(swept, [f"{value:g}" if value in labelled else "" for value in swept])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(name)


def finish(figure: Figure, summary: pd.DataFrame, what: str) -> None:
    """Add the title (what was done; data set and n), and the legend below all panels in height of its own."""
    row = summary.iloc[0]
    figure.suptitle(f"{what}\n{_DATASETS.get(row['dataset'], row['dataset'])}, n = {row['n']:,}")
    for axes in figure.axes:
        sns.despine(ax=axes)
        axes.set_axisbelow(True)
    handles = {
        text: handle for axes in figure.axes for handle, text in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    for columns in range(len(handles), 0, -1):
        legend = figure.legend(
            handles.values(), handles.keys(), loc="outside lower center", ncols=columns, handlelength=3
        )
        size = legend.get_window_extent()
        if columns == 1 or size.width <= figure.bbox.width:
            break
        legend.remove()
    figure.set_figheight(figure.get_figheight() + size.height / figure.dpi)


def save(figure: Figure, style: FigureStyle, output_stem: str | Path) -> list[Path]:
    """Write ``<stem>.png`` and ``<stem>.pdf`` atomically; the same figure gives the same bytes.

    Raises:
        StorageError: A file cannot be written.
    """
    paths = [Path(f"{output_stem}.{kind}") for kind in ("png", "pdf")]
    metadata: dict[str, dict[str, Any]] = {".png": {"Software": None}, ".pdf": {"CreationDate": None}}
    with theme(style):
        for path in paths:
            with atomic_path(path) as temporary:
                figure.savefig(temporary, dpi=style.dots_per_inch, metadata=metadata[path.suffix])
    return paths


def records(count: int) -> str:
    """Return ``1 record``, ``2 records``, ... for a title."""
    return f"{count:,} record" if count == 1 else f"{count:,} records"
