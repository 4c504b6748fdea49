"""The figure of attacks on deletion by mechanism, with the measured advantage as colour and number."""

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from certified_unlearning.errors import DataError
from certified_unlearning.papers.forget_unlearning.names import ATTACKS, MECHANISMS
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.looks import BLACK, colours
from certified_unlearning.reproduction.figures.wording import fixed

_ATTACKS = {
    "sum": "sum and\nsign",
    "median": "median",
    "counting": "counting,\nprinted",
    "counting-repaired": "counting,\nrepaired",
    "copied-then-averaged": "copy, then\naverage\nreleases",
    "written-key": "write the\npublished\nkey",
    "encode-then-delete": "after {}\nrelease:\nencode, then\ndelete",
    "encode-after-looks": "after {}\nreleases:\nencode, then\ndelete",
    "fixed-requests": "the same,\nrequests\nfixed",
    "fixed-then-averaged": "fixed, later\nreleases\naveraged",
}
_MECHANISMS = {
    "noisy-gradient-deletion": "Noisy-gradient deletion",
    "langevin": "Langevin unlearning",
    "published-state": "Descent-to-Delete,\npublished state",
    "secret-state": "Descent-to-Delete,\nsecret state",
    "retraining": "Retraining",
    "own": "Construction of\nthe attack",
    "constant": "Constant model",
}
# Advantages of at least this value are written in white.
_WHITE_FROM = 0.6


def draw(attacks: pd.DataFrame, style: FigureStyle) -> Figure:
    """Plot rows of ``deletion`` (see `experiments.ATTACK_ROWS`), with one cell for each attack and mechanism.

    Raises:
        DataError: An attack or a mechanism is unknown, or a cell occurs twice.
    """
    _check(attacks)
    columns = [name for name in ATTACKS if name in set(attacks["attack"])]
    rows = [name for name in MECHANISMS if name in set(attacks["mechanism"])]
    with shared.theme(style):
        figure = shared.new_figure(style, columns=2)
        figure.set_figwidth(max(figure.get_figwidth(), 1.35 + 0.72 * len(columns)))
        figure.set_figheight(1.45 + 0.44 * len(rows))
        axes = figure.subplots()
        axes.grid(False)
        grid = attacks.pivot_table("advantage", index="mechanism", columns="attack").reindex(rows, columns=columns)
        image = axes.imshow(grid.clip(0, 1), cmap=_shades(style), vmin=0, vmax=1, aspect="auto")
        for cell in attacks.to_dict("records"):
            _write(axes, columns.index(cell["attack"]), rows.index(cell["mechanism"]), cell)
        for row, column in zip(*grid.isna().to_numpy().nonzero(), strict=True):
            axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor="0.96", edgecolor="none"))
        seen = attacks.groupby("attack")["observed"].max()
        names = [_ATTACKS[name].format(seen[name]) for name in columns]
        axes.set_xticks(range(len(columns)), names, fontsize="x-small")
        axes.set_yticks(range(len(rows)), [_MECHANISMS[name] for name in rows], fontsize="small")
        axes.tick_params(length=0, labeltop=True, labelbottom=False)
        _lines_between_cells(axes, len(rows), len(columns))
        bar = figure.colorbar(image, ax=axes, fraction=0.02, pad=0.01)
        bar.set_label("Measured advantage", fontsize="small")
        bar.ax.tick_params(labelsize="x-small")
        bar.outline.set_visible(False)
        figure.suptitle("What leaks to whom: the advantage of guessing what a deleted record was")
        count = int(attacks["interactions"].iloc[0])
        figure.supxlabel(
            f"{count:,} interactions under each hypothesis. Small print: the exact 95 % confidence interval.\n"
            "▲: more than the published certificate promises for requests fixed in advance. "
            "Grey: the attack does not apply.",
            fontsize="x-small",
        )
    return figure


def _shades(style: FigureStyle) -> LinearSegmentedColormap:
    """Return shades of one hue from pale to dark.

    Lightness alone shows the value, so colour-blind readers see it, too.
    """
    (hue,) = colours(style, 1)
    palest, darkest = (0.94 + 0.06 * np.array(hue), 0.5 * np.array(hue))
    return LinearSegmentedColormap.from_list("advantage", [(0.0, palest), (0.7, hue), (1.0, darkest)])


def _write(axes: Axes, column: int, row: int, cell: dict[Hashable, Any]) -> None:
    advantage, low, high = (float(cell[name]) for name in ("advantage", "low", "high"))
    colour = "w" if advantage > _WHITE_FROM else BLACK
    shown = fixed(advantage, 3) + (" ▲" if cell["promise_broken"] else "")
    axes.text(column, row - 0.12, shown, color=colour, ha="center", va="center", fontsize="small")
    interval = f"{fixed(low, 3)} to {fixed(high, 3)}"
    axes.text(column, row + 0.26, interval, color=colour, ha="center", va="center", fontsize=5)


def _lines_between_cells(axes: Axes, rows: int, columns: int) -> None:
    for spine in axes.spines.values():
        spine.set_visible(False)
    for row in range(1, rows):
        axes.axhline(row - 0.5, color="w", linewidth=1.5)
    for column in range(1, columns):
        axes.axvline(column - 0.5, color="w", linewidth=1.5)


def _check(attacks: pd.DataFrame) -> None:
    for name, known in (("attack", _ATTACKS), ("mechanism", _MECHANISMS)):
        unknown = sorted(set(attacks[name]) - set(known))
        if unknown:
            raise DataError(f"the rows of `deletion` contain the {name} {unknown[0]!r}, which the figure does not know")
    if attacks.duplicated(["attack", "mechanism"]).any():
        raise DataError("the rows of `deletion` contain the same attack on the same mechanism twice")
