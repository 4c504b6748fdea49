"""The look of lines: hue and marker show the method, and dashes distinguish the lines of one method.

The lines of one method differ in their member: a value of K, I, S or epsilon. Lines of retraining are broad and pale.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import matplotlib as mpl
import pandas as pd
import seaborn as sns
from matplotlib.artist import Artist
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from certified_unlearning.accounting.accountant import Accountant
from certified_unlearning.accounting.accountants import ACCOUNTANTS
from certified_unlearning.errors import ParameterError
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import wording

_DASHES = (
    "-",
    (0, (5, 1.5)),
    (0, (1.5, 1.2)),
    (0, (6, 1.5, 1.5, 1.5)),
    (0, (6, 1.2, 1.5, 1.2, 1.5, 1.2)),
    (0, (10, 2)),
)
_REFIT_DASHES: dict[str, Any] = {"from zero": (0, (1.2, 1.2)), "warm start": (0, (5, 1.2, 1.2, 1.2))}
GREY = (0.45, 0.45, 0.45)
_PALE_GREY = (0.78, 0.78, 0.78)
BLACK = (0.1, 0.1, 0.1)
DASHED = (0, (5, 2))
DOTTED = (0, (1.5, 1.5))


class _Marked(NamedTuple):
    """A position in the palette, a factor that darkens its colour, a marker, and the marker's relative size."""

    place: int
    shade: float
    marker: str
    marker_size: float


_OWN = {
    "lsi": _Marked(9, 1.0, "o", 1.4),
    "lsi-tight": _Marked(0, 1.0, "D", 0.9),
    "shifted": _Marked(3, 1.0, "s", 0.65),
    "descent-to-delete N.1": _Marked(5, 1.0, "v", 1.1),
    "descent-to-delete N.2": _Marked(5, 1.0, "v", 1.1),
    "descent-to-delete shifted": _Marked(5, 0.5, "^", 0.85),
    "descent-to-delete conditional": _Marked(5, 0.25, "<", 0.85),
}
"""Colours and markers of accountants, keyed by name; they are the same in every figure."""
_FREE = tuple(_Marked(place, 1.0, marker, 1.0) for place, marker in ((2, "P"), (4, "X"), (1, "p"), (8, "h")))
"""Colours and markers for accountants that are not in `_OWN`."""


@dataclass(frozen=True)
class Look:
    """The look of one line.

    Attributes:
        color: Red, green and blue components of the colour.
        marker: Marker of data points; empty for none.
        dashes: Matplotlib's line style.
        size: Line width, in units of the context's line width.
        marker_size: Marker width, in units of the context's marker width.
        layer: Layer; lines of a higher layer are drawn over those of a lower one.
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
        """Return the properties of a Matplotlib band, whose thin edge shows where bands overlap."""
        return {
            "facecolor": to_rgba(self.color, 0.12),
            "edgecolor": to_rgba(self.color, 0.4),
            "linewidth": 0.4 * mpl.rcParams["lines.linewidth"],
        }

    def line_entry(self) -> Line2D:
        """Return the legend's entry for the line."""
        return Line2D([], [], **self.line())

    def band_entry(self) -> Patch:
        """Return the legend's entry for the band."""
        return Patch(**self.area())


def colours(style: FigureStyle, count: int) -> list[Any]:
    """Return the first colours of the style's palette.

    Raises:
        ParameterError: The palette is unknown to seaborn.
    """
    try:
        return list(sns.color_palette(style.palette, count))
    except ValueError as error:
        raise ParameterError(
            f"figures.palette is {style.palette!r}, but must be a seaborn palette such as colorblind"
        ) from error


def pale(hue: tuple[float, ...]) -> tuple[float, ...]:
    """Return a colour that is half way to white."""
    return tuple(0.5 + 0.5 * channel for channel in hue)


def accountant_look(accountant: Accountant, style: FigureStyle, *, dashes: Any = "-") -> Look:
    """Return the `Look` of an accountant's lines, which is the same in every figure.

    Smaller markers are drawn over larger ones.

    Raises:
        ParameterError: The palette is unknown to seaborn.
    """
    own = _marked(accountant)
    return Look(
        _hue(own, style), own.marker, dashes, marker_size=own.marker_size, layer=1 + round(4 * (2 - own.marker_size))
    )


def row_look(row: "Mapping[str, Any] | pd.Series[Any]", style: FigureStyle, *, dashes: Any = "-") -> Look:
    """Return the look of a row's line.

    Unlearning should be close to retraining with the same noise. Therefore, the line of retraining is broad and pale,
    and remains visible behind the line of unlearning.

    Raises:
        ParameterError: The palette is unknown to seaborn.
    """
    accountant = ACCOUNTANTS.get(row["accountant"])
    if row["variant"] in _REFIT_DASHES:
        return Look(BLACK, dashes=_REFIT_DASHES[row["variant"]], size=0.8, layer=1)
    if accountant is None:
        return Look(BLACK, size=0.6) if row["sigma"] == 0 else Look(_PALE_GREY, size=2.5)
    if row["mechanism"] != accountant.mechanism:
        return Look(pale(_hue(_marked(accountant), style)), size=2.5)
    return accountant_look(accountant, style, dashes=dashes)


def _marked(accountant: Accountant) -> _Marked:
    if accountant.name in _OWN:
        return _OWN[accountant.name]
    without = [name for name in ACCOUNTANTS if name not in _OWN]
    return _FREE[without.index(accountant.name) % len(_FREE)]


def _hue(own: _Marked, style: FigureStyle) -> tuple[float, ...]:
    return tuple(own.shade * channel for channel in colours(style, 10)[own.place])


def looks(summary: pd.DataFrame, style: FigureStyle, *, dashed: bool = True) -> dict[str, Look]:
    """Return the `Look` of each line of a summary, keyed by the line's label.

    Args:
        summary: The summary that `reproduction.summaries.summarise` returns.
        style: Style of the figure, which includes the palette.
        dashed: Whether dashes distinguish a method's members. Use False if each member has its own panel.

    Raises:
        ParameterError: The palette is unknown to seaborn.
    """
    members = _members(summary)
    return {
        name: row_look(row, style, dashes=_dashes(row["member"], members) if dashed else "-")
        for name, row in _first_rows(summary).items()
    }


def key(summary: pd.DataFrame, style: FigureStyle, *, dashed: bool = True) -> tuple[dict[str, Artist], ...]:
    """Return the legend of a summary: a line for each method, and one for each member if dashes distinguish them.

    Each line of retraining is drawn behind the unlearning line of the same accountant. Therefore, one legend entry
    is enough for all lines of retraining with noise from an accountant, whatever the accountant. If there are several
    trials, one entry explains the bands.
    """
    methods: dict[str, Artist] = {}
    for row in _first_rows(summary).values():
        known = ACCOUNTANTS.get(row["accountant"])
        if known is not None and row["mechanism"] != known.mechanism:
            # This is one entry for the noise of all accountants, so it does not name an accountant.
            methods[row["method"].rpartition(" (")[0]] = Look(_PALE_GREY, size=2.5).line_entry()
        else:
            name = wording.method(row["method"], row["accountant"])
            methods[name] = row_look(row, style).line_entry()
    trials = int(summary["trials"].max()) if "trials" in summary else 1
    if trials > 1:
        methods |= spread_entry(trials)
    members = _members(summary) if dashed else []
    dashes: dict[str, Artist] = {
        wording.member(text): Look(GREY, dashes=_dashes(text, members)).line_entry()
        for text in members
        if len(_alike(text, members)) > 1
    }
    return methods, dashes


def entries(named: Mapping[str, Look]) -> dict[str, Artist]:
    """Return lines for a legend."""
    return {name: look.line_entry() for name, look in named.items()}


def spread_entry(trials: int) -> dict[str, Artist]:
    """Return the legend's entry that explains bands."""
    return {f"± 1 standard deviation of {trials:,} trials": Look(GREY).band_entry()}


def _dashes(text: str, members: list[str]) -> Any:
    return _DASHES[_alike(text, members).index(text) % len(_DASHES)] if text else "-"


def _alike(text: str, members: list[str]) -> list[str]:
    """Return the members that have the same letter (K, I, S or e) as the given member."""
    return [other for other in members if other[0] == text[0]]


def _first_rows(summary: pd.DataFrame) -> dict[str, Any]:
    first = summary.drop_duplicates("label")
    return {str(row["label"]): row for _, row in first.iterrows()}


def _members(summary: pd.DataFrame) -> list[str]:
    """Return the members of all methods, grouped by letter, smallest first."""
    found = {str(row["member"]) for row in _first_rows(summary).values()} - {""}
    return sorted(found, key=lambda text: (text[0], float(text.rpartition(" ")[2])))
