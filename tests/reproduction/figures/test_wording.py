"""Words and numbers are written alike in all figures."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, MultipleLocator

from certified_unlearning.accounting.accountants import ACCOUNTANTS
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import line_ends
from certified_unlearning.reproduction.figures.wording import Numbers, bound, fixed, greek, member, method, number
from tests.reproduction.figures.figure_reading import BOUND_FIGURES, FIGURES, draw

Simulated = Callable[[int], pd.DataFrame]


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0, "0"),
        (-0.0, "0"),
        (1, "1"),
        (1437, "1,437"),
        (26529.0, "26,529"),
        (1e6, "1,000,000"),
        (1e7, "10⁷"),
        (0.03, "0.03"),
        (0.1 + 0.2, "0.3"),
        (-0.25, "−0.25"),
        (1e-4, "0.0001"),
        (1e-5, "10⁻⁵"),
        (8.345852e-5, "8.34585 × 10⁻⁵"),
        (-2e-12, "−2 × 10⁻¹²"),
    ],
)
def test_a_number_is_written(value: float, written: str) -> None:
    assert number(value) == written


def test_a_number_is_written_with_fewer_digits_where_they_are_asked_for() -> None:
    assert (number(8.345852e-5, 3), number(3.8317, 3), number(0.000695894, 3)) == ("8.35 × 10⁻⁵", "3.83", "0.000696")
    assert (fixed(0.2, 4), fixed(-0.0004, 3), fixed(12345.678, 1)) == ("0.2000", "0.000", "12,345.7")


def test_only_whole_words_become_greek_letters() -> None:
    assert greek("epsilon = 0.5, sigma = 1, deltas, alphabet, lambda") == "ε = 0.5, σ = 1, deltas, alphabet, λ"
    assert (member("epsilon = 0.5"), member("b = 1437"), member("")) == ("ε = 0.5", "b = 1,437", "")


def test_a_method_is_named_after_whose_bound_it_is_where_its_accountant_says_so() -> None:
    assert method("Langevin (lsi)", "lsi") == "Langevin, paper’s bound (lsi)"
    assert method("Retraining, noisy", "none") == "Retraining, noisy"
    assert method("Langevin (mine)", "mine") == "Langevin (mine)"


def test_whose_bound_it_is_agrees_with_where_its_analysis_comes_from() -> None:
    for name, each in ACCOUNTANTS.items():
        derived_here = each.source == "derived"
        assert bound(name).startswith("our bound") == (derived_here and name != "lsi-tight")
        assert bound(name).startswith(("paper’s bound (", "its theorem (")) == (not derived_here)


def ticks(step: float, low: float, high: float, scale: str = "linear") -> list[str]:
    axes = Figure().subplots()
    axes.set(yscale=scale, ylim=(low, high))
    if scale == "linear":
        axes.yaxis.set_major_locator(MultipleLocator(step))
    axes.yaxis.set_major_formatter(Numbers())
    inside = [low <= value <= high for value in axes.yaxis.get_majorticklocs()]
    labels = axes.yaxis.get_major_formatter().format_ticks(axes.yaxis.get_majorticklocs())
    return [label for label, shown in zip(labels, inside, strict=True) if shown]


def test_ticks_of_a_linear_axis_have_the_same_decimals_and_those_of_a_logarithmic_one_their_own() -> None:
    assert ticks(0.05, 0.8, 0.95) == ["0.80", "0.85", "0.90", "0.95"]
    assert ticks(5000, 0, 10_000) == ["0", "5,000", "10,000"]
    assert ticks(0.1, -0.21, 0.11) == ["−0.2", "−0.1", "0.0", "0.1"]
    assert ticks(1e-5, 0, 2.1e-5) == ["0", "10⁻⁵", "2 × 10⁻⁵"]
    assert ticks(0, 0.01, 1000, "log") == ["0.01", "0.1", "1", "10", "100", "1,000"]


def texts(figure: Figure) -> list[str]:
    """Everything that is written on a figure, but for the labels of ticks."""
    axes = [[each.get_title(), each.get_xlabel(), each.get_ylabel()] for each in figure.axes]
    legends = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    return [figure.get_suptitle(), *np.ravel(axes), *legends]


def test_powers_of_ten_that_would_touch_below_a_panel_are_written_as_powers() -> None:
    axes = Figure().subplots()
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(Numbers())
    written = axes.xaxis.get_major_formatter().format_ticks([1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8])
    assert written == ["10²", "10³", "10⁴", "10⁵", "10⁶", "10⁷", "10⁸"]
    assert axes.xaxis.get_major_formatter().format_ticks([1e2, 1e3, 1e4]) == ["100", "1,000", "10,000"]


@pytest.mark.parametrize("experiment", [*FIGURES, *BOUND_FIGURES, "smoothness"])
def test_every_figure_writes_greek_letters_and_all_ticks_alike(
    experiment: str,
    simulated: Simulated,
    bounds: dict[str, pd.DataFrame],
    streams: pd.DataFrame,
    style: FigureStyle,
) -> None:
    rows = bounds.get(experiment, streams if experiment == "smoothness" else simulated(5))
    figure = draw(experiment, rows, style)
    for text in texts(figure):
        assert greek(text) == text
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            assert isinstance(axis.get_major_formatter(), Numbers | FixedFormatter)


def test_texts_at_the_ends_of_lines_keep_their_order_and_do_not_cover_each_other() -> None:
    figure = Figure(dpi=100)
    axes = figure.subplots()
    axes.set(xlim=(0, 1), ylim=(0, 1))
    heights = {"far": 0.1, "second": 0.5, "first": 0.499, "third": 0.505}
    for text, height in heights.items():
        line_ends.label(axes, (1, height), text, "k")
    figure.draw_without_rendering()
    line_ends.move_apart(axes)
    boxes = {text.get_text(): text.get_window_extent() for text in axes.texts}
    order = sorted(boxes, key=lambda name: boxes[name].y0)
    assert order == ["far", "first", "second", "third"]
    for lower, upper in pairwise(order):
        assert boxes[lower].y1 <= boxes[upper].y0
    assert next(text for text in axes.texts if text.get_text() == "far").xyann[1] == 0
    middle = np.mean([boxes[name].y0 + boxes[name].height / 2 for name in ("first", "second", "third")])
    wanted = axes.transData.transform((1, np.mean([0.499, 0.5, 0.505])))[1]
    assert middle == pytest.approx(wanted, abs=1)
