"""The figure of planned streams shows the table's steps: a panel for each rule for the smoothness."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from certified_unlearning.errors import DataError
from certified_unlearning.papers.langevin_unlearning.smoothness import ROWS, SMOOTHNESS
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures.drawing import render, shown
from certified_unlearning.reproduction.rows import read_table, write_table
from tests.reproduction.figures import figure_reading
from tests.reproduction.figures.figure_reading import check_layout, in_legend, legend, lines

RULES = ("bound", "spectral", "spectral-with-margin")
DESCENT = {
    "Descent-to-Delete (printed), S = 1, state published": ("descent-to-delete N.2", 1),
    "Descent-to-Delete (tightened), S = 1, state published": ("descent-to-delete shifted", 1),
}
LANGEVIN = {
    f"Langevin ({accountant}), S = {size}": (accountant, size)
    for accountant in ("lsi", "lsi-tight", "shifted")
    for size in (5, 10, 20)
}


def draw(streams: pd.DataFrame, style: FigureStyle) -> Figure:
    return figure_reading.draw("smoothness", streams, style)


def check_lines(figure: Figure, streams: pd.DataFrame) -> None:
    rules = [axes.get_title().split(":")[0] for axes in figure.axes[:3]]
    assert tuple(sorted(rules)) == RULES
    for axes, (group, rule) in zip(figure.axes, product((5, 10, 20), rules), strict=True):
        found = lines(axes)
        of_size = {label: line for label, line in LANGEVIN.items() if line[1] == group}
        assert set(found) == {*of_size, *DESCENT}
        for label, (accountant, size) in (of_size | DESCENT).items():
            rows = streams[
                (streams["smoothness"] == rule)
                & (streams["accountant"] == accountant)
                & (streams["records_per_request"] == size)
            ]
            assert len(rows) == 100 // size
            np.testing.assert_array_equal(found[label], (rows["records_removed"], rows["accumulated_steps"]), label)


def test_every_rule_has_a_panel_with_the_steps_of_every_stream(streams: pd.DataFrame, style: FigureStyle) -> None:
    check_lines(draw(streams, style), streams)


def test_swapped_rules_are_noticed(streams: pd.DataFrame, style: FigureStyle) -> None:
    swapped = streams.replace({"smoothness": {"bound": "spectral", "spectral": "bound"}})
    with pytest.raises(AssertionError, match=r"Langevin \(lsi\)"):
        check_lines(draw(swapped, style), streams)


def test_each_panel_names_its_rule_its_smoothness_and_what_it_is_worth(
    streams: pd.DataFrame, style: FigureStyle
) -> None:
    figure = draw(streams, style)
    assert [axes.get_title() for axes in figure.axes[:3]] == [
        "bound: L = 0.2620\nholds after every removal",
        "spectral: L = 0.1947\nheuristic, no guarantee",
        "spectral-with-margin: L = 0.1968\nholds after every removal",
    ]
    expected = "Accumulated steps: removing 100 records, S at a time, ε = 1, σ = 0.03\nMNIST 3 vs 8, n = 11,982"
    assert figure.get_suptitle() == expected
    assert [axes.get_ylabel() for axes in figure.axes[::3]] == ["Steps, S = 5", "Steps, S = 10", "Steps, S = 20"]
    assert {axes.get_xlabel() for axes in figure.axes[-3:]} == {"Records removed"}
    assert {axes.get_title() for axes in figure.axes[3:]} == {""}


def test_panels_of_a_row_share_a_linear_axis_that_holds_all_steps(streams: pd.DataFrame, style: FigureStyle) -> None:
    # Descent-to-Delete takes 12,476 steps for 100 requests of one record.
    most = {5: 26_529, 10: 12_476, 20: 12_476}
    for axes, (size, _) in zip(draw(streams, style).axes, product((5, 10, 20), RULES), strict=True):
        assert axes.get_yscale() == "linear"
        assert axes.get_ylim() == pytest.approx((-0.05 * most[size], 1.05 * most[size]))


def test_the_legend_has_every_method(streams: pd.DataFrame, style: FigureStyle) -> None:
    assert list(legend(draw(streams, style))) == list(dict.fromkeys(map(in_legend, LANGEVIN | DESCENT)))


def test_nothing_overlaps_and_nothing_is_cut_off(streams: pd.DataFrame, style: FigureStyle) -> None:
    check_layout(draw(streams, style))
    check_layout(draw(streams[streams["accountant"].isin(["shifted", "descent-to-delete N.2"])], style))


def test_streams_survive_their_file_and_give_the_same_bytes(
    streams: pd.DataFrame, style: FigureStyle, tmp_path: Path
) -> None:
    write_table(tmp_path / "streams.parquet", streams, ROWS)
    first = render(SMOOTHNESS, streams, style, tmp_path / "first")
    second = render(SMOOTHNESS, read_table(tmp_path / "streams.parquet", ROWS), style, tmp_path / "second")
    assert [path.name for path in first] == ["first.png", "first.pdf", "first.svg"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_the_figure_shows_its_own_rows(streams: pd.DataFrame) -> None:
    assert SMOOTHNESS.rows is ROWS
    others = streams.assign(experiment="another")
    pd.testing.assert_frame_equal(shown(SMOOTHNESS, pd.concat([streams, others])), streams)
    with pytest.raises(DataError, match="there are no rows of smoothness"):
        shown(SMOOTHNESS, others)
