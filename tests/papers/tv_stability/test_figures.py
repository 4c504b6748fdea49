"""The figure of deletions: every system has its line, in panels that can be read, whatever data there are."""

import pandas as pd
import pytest

from certified_unlearning.errors import DataError
from certified_unlearning.papers.tv_stability.figures import draw_deletions
from certified_unlearning.papers.tv_stability.names import PANELS, SYSTEMS
from certified_unlearning.reproduction.figure_style import FigureStyle

STYLE = FigureStyle(context="paper", palette="colorblind", width_inches=3.4, height_inches=2.7, dots_per_inch=50)


def rows(*data: str, systems: tuple[str, ...] = tuple(SYSTEMS)) -> pd.DataFrame:
    """Three settings of each system, each dearer and better than the one before."""
    return pd.DataFrame(
        [
            {
                "data": name,
                "system": system,
                "gradients": 10.0 ** (number + 1),
                "gradients_error": 1.0,
                "accuracy": 0.8 + 0.05 * number,
                "accuracy_error": 0.01,
                "validation_accuracy": 0.8 + 0.05 * number,
            }
            for name in data
            for system in systems
            for number in range(3)
        ]
    )


def test_panels_have_all_systems_and_no_more_than_five_lines_each() -> None:
    assert {system for panel in PANELS.values() for system in panel} == set(SYSTEMS)
    assert max(map(len, PANELS.values())) <= 5
    assert all(panel[0] == "retraining" for panel in PANELS.values())


@pytest.mark.parametrize("data", [("digits",), ("mnist-3-vs-8", "adult")])
def test_every_system_is_drawn_once_a_panel_and_named_once(data: tuple[str, ...]) -> None:
    figure = draw_deletions(rows(*data), STYLE)
    assert len(figure.axes) == len(data) * len(PANELS)
    for axes, systems in zip(figure.axes, list(PANELS.values()) * len(data), strict=True):
        assert len(axes.containers) == len(systems)
        assert axes.get_xscale() == "log"
    (legend,) = figure.legends
    # Columns of unequal length are filled up by empty entries.
    assert sorted(filter(None, (text.get_text() for text in legend.get_texts()))) == sorted(SYSTEMS.values())


def test_a_system_that_was_not_run_has_no_entry() -> None:
    figure = draw_deletions(rows("digits", systems=("retraining", "dual-averaging")), STYLE)
    (legend,) = figure.legends
    assert len(legend.get_texts()) == 2


def test_an_unknown_system_is_refused() -> None:
    with pytest.raises(DataError, match="the rows of deletions contain the system 'magic', which has no line"):
        draw_deletions(rows("digits", systems=("retraining", "magic")), STYLE)
