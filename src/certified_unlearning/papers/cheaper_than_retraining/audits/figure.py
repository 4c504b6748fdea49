"""The figure of the audits: certified upper bounds next to measured lower bounds."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedFormatter, FixedLocator

from certified_unlearning.accounting.auditing.shown import SHOWN
from certified_unlearning.papers.cheaper_than_retraining.audits.names import ONE_RUN, TWO_LAWS, UNCERTIFIED
from certified_unlearning.papers.cheaper_than_retraining.audits.page import NAMES
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.looks import BLACK, GREY, colours
from certified_unlearning.reproduction.figures.wording import number
from certified_unlearning.reproduction.summaries import Row

Color = str | tuple[float, float, float]
_HEIGHT_OF_A_ROW = 0.14
"""The height of a row of the figure, in inches."""
LABELS = {
    "certified": "certified at most",
    "measured": f"measured at least ({1 - SHOWN:.0%} confidence)",
    "violated": "measured: more than is claimed",
    "before": "measured before unlearning (right: if within the axis)",
    "computed": "computed for these records",
    "estimated": "estimate, no bound",
}


def draw(rows: pd.DataFrame, style: FigureStyle) -> Figure:
    """Plot rows of `table.audit_table` in two panels: one for audits in one run, one for audits of two distributions.

    Raises:
        DataError: A row names an unknown system.
    """
    rows = rows[rows["skipped"] == ""]
    kinds = {kind: rows[rows["kind"] == kind] for kind in (ONE_RUN, TWO_LAWS)}
    for kind, own in kinds.items():
        shared.require_lines(own["system"], NAMES[kind], f"the rows of audit ({kind}) contain")
    with shared.theme(style):
        figure = shared.new_figure(style, columns=2)
        figure.set_figheight(1.2 + _HEIGHT_OF_A_ROW * max(map(len, kinds.values())))
        left, right = figure.subplots(1, 2)
        marks = _marks(style)
        _panel(left, kinds[ONE_RUN], "epsilon", marks)
        _panel(right, kinds[TWO_LAWS], "mu", marks)
        left.set_xlabel("ε of all removed canaries")
        left.set_title("One run each: which canaries were removed?")
        right.set_xlabel("μ of one removed record")
        right.set_title(f"{_trials(kinds[TWO_LAWS])} models of each law")
        shared.finish(
            figure,
            "How much models still reveal about removed records",
            {LABELS[name]: mark for name, mark in marks.items()},
        )
    return figure


def _panel(axes: Axes, rows: pd.DataFrame, name: str, marks: dict[str, Line2D]) -> None:
    """Draw one row of marks for each audit, and a horizontal line between uncertified practices and other systems."""
    for place, (_, row) in enumerate(rows.iterrows()):
        measured, certified = row[f"{name}_measured"], row[name]
        found = "violated" if row["violated"] else "measured"
        if pd.notna(certified):
            axes.plot([measured, certified], [place, place], color=GREY, linewidth=1, zorder=1.5)
            _mark(axes, marks["certified"], certified, place)
        for which, value in (
            ("before", row[f"{name}_before"]),
            ("computed", row["mu_computed"]),
            ("estimated", row["mu_estimated"]),
            (found, measured),
        ):
            if pd.notna(value):
                _mark(axes, marks[which], max(0.0, value), place)
    apart = int(rows["system"].isin(UNCERTIFIED).sum())
    if 0 < apart < len(rows):
        axes.axhline(apart - 0.5, color=GREY, linewidth=0.6)
    axes.yaxis.set_major_locator(FixedLocator(range(len(rows))))
    axes.yaxis.set_major_formatter(FixedFormatter([_named(row) for _, row in rows.iterrows()]))
    axes.tick_params(axis="y", labelsize="xx-small", length=2)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    # Many models before a removal often distinguish the distributions without any error. A mark for this ``mu`` would
    # dwarf the other marks.
    shown = [name, f"{name}_measured"] if name == "mu" else [name, f"{name}_measured", f"{name}_before"]
    most = float(np.nanmax([1.0, *rows[shown].to_numpy(dtype=float).ravel()]))
    axes.set_xlim(-0.04 * most, 1.1 * most)


def _named(row: Row) -> str:
    name = NAMES[row["kind"]][row["system"]]
    if row["kind"] == TWO_LAWS:
        return f"{name}, ε = {number(row['target'])}"
    return f"{name}, n = {row['n']:,}"


def _trials(rows: pd.DataFrame) -> str:
    return "Many" if rows.empty else f"{rows['trials'].max():,}"


def _mark(axes: Axes, mark: Line2D, value: float, place: int) -> None:
    axes.plot(
        [value], [place], linestyle="none", marker=mark.get_marker(), markersize=mark.get_markersize(),
        color=mark.get_color(), markerfacecolor=mark.get_markerfacecolor(), zorder=mark.get_zorder(),
    )  # fmt: skip


def _marks(style: FigureStyle) -> dict[str, Line2D]:
    """Return the marks, which differ in shape as well as in colour."""
    blue, _, _, vermilion, *_ = colours(style, 6)

    def mark(marker: str, color: Color, size: float, layer: float, face: Color | None = None) -> Line2D:
        return Line2D(
            [], [], linestyle="none", marker=marker, markersize=size, color=color, zorder=layer,
            markerfacecolor=color if face is None else face,
        )  # fmt: skip

    return {
        "certified": mark("|", BLACK, 8, 2.2),
        "measured": mark("o", blue, 4.5, 2.5),
        "violated": mark("s", vermilion, 4.5, 2.5),
        "before": mark("o", GREY, 7.5, 2, "none"),
        "computed": mark("D", BLACK, 3, 2.4, "none"),
        "estimated": mark("x", blue, 4, 2.3),
    }
