"""How lines look: hue and marker tell the method, dashes its member (K, I, S, epsilon), broad pale lines retraining."""

from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import pandas as pd
import seaborn as sns
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D

from certified_unlearning.errors import ParameterError
from certified_unlearning.parameters import FigureStyle
from certified_unlearning.summaries import member, method

_METHODS = {
    "Descent-to-Delete (printed)": (5, 1.0, "v", 1.1),
    "Descent-to-Delete (tightened)": (5, 0.5, "^", 0.85),
    "Langevin (lsi)": (9, 1.0, "o", 1.4),
    "Langevin (lsi-tight)": (0, 1.0, "D", 0.9),
    "Langevin (shifted)": (3, 1.0, "s", 0.65),
}
"""Place in the palette, darkened by, marker, its size. Chosen from the palette ``colorblind`` so that all are far apart
in every kind of colour blindness. Later ones are drawn over earlier ones, and smaller: none hides another."""
_DASHES = (
    "-",
    (0, (5, 1.5)),
    (0, (1.5, 1.2)),
    (0, (6, 1.5, 1.5, 1.5)),
    (0, (6, 1.2, 1.5, 1.2, 1.5, 1.2)),
    (0, (10, 2)),
)
GREY = (0.45, 0.45, 0.45)
_PALE_GREY = (0.78, 0.78, 0.78)
BLACK = (0.1, 0.1, 0.1)
_RETRAINING = "Retraining, noisy"


@dataclass(frozen=True)
class Look:
    """How one line is drawn.

    Attributes:
        color: Red, green and blue.
        marker: The shape at a data point, empty for none.
        dashes: Matplotlib's line style.
        size: Width of the line in units of the context's.
        marker_size: Width of the marker in units of the context's.
        layer: Lines of a higher layer are drawn over those of a lower one.
    """

    color: Any
    marker: str = ""
    dashes: Any = "-"
    size: float = 1.0
    marker_size: float = 1.0
    layer: int = 0

    def line(self) -> dict[str, Any]:
        """Return the properties of a Matplotlib line."""
        return {
            "color": self.color,
            "marker": self.marker,
            "markersize": self.marker_size * mpl.rcParams["lines.markersize"],
            "markeredgecolor": "w",
            "markeredgewidth": 0.75,
            "linestyle": self.dashes,
            "linewidth": self.size * mpl.rcParams["lines.linewidth"],
            "zorder": 2 + 0.1 * self.layer,
        }

    def area(self) -> dict[str, Any]:
        """Return the properties of a Matplotlib band; its thin edge shows where bands overlap."""
        return {
            "facecolor": to_rgba(self.color, 0.12),
            "edgecolor": to_rgba(self.color, 0.4),
            "linewidth": 0.4 * mpl.rcParams["lines.linewidth"],
        }


def colours(style: FigureStyle, count: int) -> list[Any]:
    """Return the first colours of the style's palette.

    Raises:
        ParameterError: The palette is not one seaborn knows.
    """
    try:
        return list(sns.color_palette(style.palette, count))
    except ValueError as error:
        raise ParameterError(
            f"figures.palette is {style.palette!r}, but must be a seaborn palette such as colorblind"
        ) from error


def pale(hue: tuple[float, ...]) -> tuple[float, ...]:
    """Return a colour half way to white."""
    return tuple(0.5 + 0.5 * channel for channel in hue)


def method_look(name: str, style: FigureStyle, *, dashes: Any = "-") -> Look:
    """Return the look of a method (`summaries.method`), the same in every figure.

    Unlearning aims to be where retraining with the same noise is: a broad, pale line that stays visible below.

    Raises:
        ParameterError: The palette is not one seaborn knows.
    """
    if name == "Retraining, noiseless":
        return Look(BLACK, size=0.6)
    if name == _RETRAINING:
        return Look(_PALE_GREY, size=2.5)
    place, shade, marker, marker_size = _METHODS[name.replace(_RETRAINING, "Langevin")]
    hue = tuple(shade * channel for channel in colours(style, 10)[place])
    if name.startswith(_RETRAINING):
        return Look(pale(hue), size=2.5)
    return Look(hue, marker, dashes, marker_size=marker_size, layer=1 + list(_METHODS).index(name))


def looks(summary: pd.DataFrame, style: FigureStyle) -> dict[str, Look]:
    """Return the look of every label of a summary.

    Raises:
        ParameterError: The palette is not one seaborn knows.
    """
    members = _members(summary)
    return {
        name: method_look(method(row), style, dashes=_dashes(member(row), members))
        for name, row in _first_rows(summary).items()
    }


def key(summary: pd.DataFrame, style: FigureStyle) -> tuple[dict[str, Line2D], dict[str, Line2D]]:
    """Return the legend of a summary: a line for each method, and one for each member where there are several.

    Retraining with the noise of each accountant is one entry: it lies below the line of its accountant.
    """
    methods = {}
    for row in _first_rows(summary).values():
        name = method(row)
        name = _RETRAINING if name.startswith(_RETRAINING) else name
        methods[name] = Line2D([], [], **method_look(name, style).line())
    members = _members(summary)
    dashes = {
        text: Line2D([], [], **Look(GREY, dashes=_dashes(text, members)).line())
        for text in members
        if len(_alike(text, members)) > 1
    }
    return methods, dashes


def _dashes(text: str, members: list[str]) -> Any:
    return _DASHES[_alike(text, members).index(text) % len(_DASHES)] if text else "-"


def _alike(text: str, members: list[str]) -> list[str]:
    """Return the members that share the letter (K, I, S or e) of this one."""
    return [other for other in members if other[0] == text[0]]


def _first_rows(summary: pd.DataFrame) -> dict[str, Any]:
    first = summary.drop_duplicates("label")
    return {str(row["label"]): row for _, row in first.iterrows()}


def _members(summary: pd.DataFrame) -> list[str]:
    """Return the members of all methods by letter, smallest first."""
    found = {member(row) for row in _first_rows(summary).values()} - {""}
    return sorted(found, key=lambda text: (text[0], float(text.rpartition(" ")[2])))
