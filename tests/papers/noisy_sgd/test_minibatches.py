"""The experiment `minibatches`: rows, their order, and the figure."""

import pandas as pd
import pytest

from certified_unlearning.errors import DataError
from certified_unlearning.papers.noisy_sgd.figures import draw
from certified_unlearning.papers.noisy_sgd.minibatches import MINIBATCH_ROWS, MINIBATCHES, make, steps_up_to
from certified_unlearning.papers.noisy_sgd.sweeps import Minibatches
from certified_unlearning.reproduction.experiment import Inputs
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.rows import read_table, write_table
from certified_unlearning.reproduction.tabulation import tabulate
from tests.support.planning import settings_of, sweep_of

STYLE = FigureStyle(context="paper", palette="colorblind", width_inches=3.4, height_inches=2.7, dots_per_inch=100)


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return make(Inputs("smoke", settings_of("smoke"), sweep_of("smoke", "minibatches")))


def pivoted(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.pivot_table(index=["batch_size", "steps"], columns=["analysis", "position"], values="epsilon")


def test_rows_follow_their_schema(rows, tmp_path):
    write_table(tmp_path / "rows.parquet", rows, MINIBATCH_ROWS)
    assert len(read_table(tmp_path / "rows.parquet", MINIBATCH_ROWS)) == len(rows)


def test_every_batch_size_has_every_line_from_one_step_to_the_last_epoch(rows):
    for size, of_size in rows.groupby("batch_size"):
        lines = of_size.groupby(["analysis", "position"])
        assert set(lines.groups) == {
            ("theirs", "worst"),
            ("theirs", "drawn"),
            ("ours", "worst"),
            ("ours", "drawn"),
            ("quadratic", "worst"),
        }
        assert set(lines["steps"].min()) == {1}
        assert set(lines["steps"].max()) == {30 * (11264 // size)}
        assert (of_size["epochs"] == of_size["steps"] * size / 11264).all()


def test_exact_is_below_ours_below_theirs_and_drawn_below_worst(rows):
    table, slack = pivoted(rows), 1 + 1e-6
    assert (table["quadratic", "worst"] <= table["ours", "worst"] * slack).all()
    for position in ("worst", "drawn"):
        assert (table["ours", position] <= table["theirs", position] * slack).all()
    for analysis in ("ours", "theirs"):
        assert (table[analysis, "drawn"] <= table[analysis, "worst"] * slack).all()
    full = table.loc[11264]
    assert full["ours", "worst"].to_numpy() == pytest.approx(full["quadratic", "worst"].to_numpy(), rel=1e-6)


def test_every_line_falls(rows):
    for _, line in rows.groupby(["batch_size", "analysis", "position"]):
        assert line["epsilon"].is_monotonic_decreasing


def test_steps_are_distinct_and_reach_the_last():
    assert steps_up_to(1) == [1]
    assert steps_up_to(3) == [1, 2, 3]
    assert steps_up_to(10_560)[-1] == 10_560


def test_the_figure_has_a_panel_for_each_batch_size_and_a_line_for_each_analysis(rows):
    figure = draw(rows, STYLE)
    assert [axes.get_title() for axes in figure.axes] == ["b = 32", "b = 128", "b = 512", "b = n"]
    assert [len(axes.get_lines()) for axes in figure.axes] == [5] * 4


def test_a_line_that_is_not_known_is_refused(rows):
    with pytest.raises(DataError, match="the table of `minibatches` contains the analysis 'mine', which has no line"):
        draw(rows.replace({"analysis": {"ours": "mine"}}), STYLE)


def test_the_table_says_once_what_all_rows_share(rows):
    shown = tabulate(MINIBATCHES, rows)
    assert "sigma" in shown.columns or "sigma = 0.03" in shown.facts
    assert {"analysis", "position", "batch_size", "steps", "epsilon"} <= set(shown.columns)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"batch_size": [32, 100]}, "batch_size contains 100, which does not divide n = 11264"),
        ({"strong_convexity": 1.0}, "strong_convexity is 1.0, but must be at most smoothness = 0.261264"),
    ],
)
def test_sweeps_that_make_no_sense_are_refused(changes, sentence):
    sweep = sweep_of("smoke", "minibatches").model_dump()
    assert Minibatches(**sweep).check() is None
    assert Minibatches(**sweep | changes).check() == sentence
