"""The figure and the table of `cost`."""

import numpy as np
import pandas as pd
import pytest

from certified_unlearning.errors import DataError
from certified_unlearning.papers import parameters
from certified_unlearning.papers.cheaper_than_retraining.experiments import COST, COST_ROWS
from certified_unlearning.papers.cheaper_than_retraining.figure import chosen, draw
from certified_unlearning.papers.cheaper_than_retraining.findings import cost as told
from certified_unlearning.papers.cheaper_than_retraining.findings import plainly
from certified_unlearning.papers.cheaper_than_retraining.names import SYSTEMS
from certified_unlearning.papers.cheaper_than_retraining.page import page
from certified_unlearning.papers.cheaper_than_retraining.paper import PAPER
from certified_unlearning.reproduction.figures.drawing import render
from certified_unlearning.reproduction.layout import Layout
from certified_unlearning.reproduction.report.exhibits import exhibits
from certified_unlearning.reproduction.rows import read_table, write_table
from certified_unlearning.reproduction.summaries import write_csv
from tests.support.planning import ROOT

STYLE = parameters.load(ROOT / "params.yaml").figures


def test_the_figure_has_a_line_a_system_in_both_panels(cost):
    accuracy, seconds = draw(cost, STYLE).axes
    shown, records = chosen(cost)
    assert records == 10
    for axes, column in ((seconds, "seconds"), (accuracy, "accuracy")):
        lines = {line.get_label(): line for line in axes.get_lines()}
        assert set(lines) == set(SYSTEMS.values())
        for system, title in SYSTEMS.items():
            own = shown[shown["system"] == system].sort_values("n")
            np.testing.assert_allclose(lines[title].get_ydata().astype(float), own[column].astype(float))
    assert (seconds.get_xscale(), seconds.get_yscale()) == ("log", "log")


def test_quartiles_are_shaded_and_no_two_lines_look_alike(cost):
    _, seconds = draw(cost, STYLE).axes
    assert len(seconds.collections) == len(SYSTEMS)
    looks = {(line.get_color(), line.get_marker(), str(line.get_linestyle())) for line in seconds.get_lines()}
    assert len({line.get_marker() for line in seconds.get_lines()}) == len(looks) == len(SYSTEMS)


def test_the_title_says_of_which_machine_timings_are(cost):
    title = draw(cost, STYLE).get_suptitle()
    assert "Timings on this machine: " in title
    assert "1 thread" in title


def test_a_system_without_a_line_is_refused_and_so_is_nothing(cost):
    with pytest.raises(DataError, match="'other', which has no line"):
        draw(cost.replace({"system": {"sgd": "other"}}), STYLE)
    with pytest.raises(DataError, match="nothing on synthetic data"):
        draw(cost[cost["data"] == "digits"], STYLE)


def test_the_table_says_machine_guarantee_and_why_something_was_not_run(cost):
    text = page(cost).markdown("Cost")
    assert "Timings on this machine" in text
    assert "n = 30,000, d = 20" in text
    assert "not run: takes too long" in text
    assert "the exact minimiser" in text
    assert text.count("| Newton removal | ") == 5 * 2


def test_the_report_shows_the_figure_and_the_table(cost, tmp_path):
    layout = Layout(tmp_path, "smoke")
    write_table(layout.rows(PAPER.name, "cost"), cost, COST_ROWS)
    write_csv(layout.numbers(PAPER.name, "cost"), cost)
    render(COST, cost, STYLE, layout.figure(PAPER.name, "cost", "png").with_suffix(""))
    runs = pd.DataFrame({"experiment": [], "code_version": []})
    (shown,) = exhibits(tmp_path, {"smoke": [(PAPER, COST)]}, {"smoke": {"name": "digits"}}, {"smoke": runs})
    assert [figure.experiment for figure in shown.figures] == ["cost"]
    (table,) = shown.tables
    assert table.table == page(read_table(layout.rows(PAPER.name, "cost"), COST_ROWS))


def test_the_sentence_is_about_the_largest_size_and_made_of_its_rows(cost):
    rows = cost[cost["skipped"] == ""]
    own = rows[(rows["n"] == rows["n"].max()) & (rows["records"] == 1) & (rows["data"] == "isotropic")]
    certified = own[own["guarantee"] == "upper bound"].sort_values("seconds")
    fastest = certified.iloc[0]
    again = own[(own["guarantee"] == "exact") & own["adaptive"]].sort_values("seconds").iloc[0]
    sentence = told(cost).replace("\N{NO-BREAK SPACE}", " ")
    assert sentence.startswith(f"Timed with {own['n'].iloc[0]:,} synthetic rows, all directions alike: a request")
    assert (
        f"takes {fastest['seconds']:.2g} s by {SYSTEMS[fastest['system']]}, the fastest certified system at ε = 1."
        in sentence
    )
    assert f"Refitting from scratch takes {again['seconds']:.2g} s ({SYSTEMS[again['system']]}), " in sentence
    slow = cost.assign(seconds=cost["seconds"].where(cost["guarantee"] != "upper bound", 100.0))
    count = len(certified)
    assert told(slow).endswith(f"Of {count} certified systems timed there, {count} are slower than fitting again.")


def test_newcomers_read_from_how_many_records_on_a_removal_pays(cost):
    run = cost[(cost["skipped"] == "") & (cost["data"] == cost["data"].iloc[0])]
    smallest, largest = run["n"].min(), run["n"].max()
    certified = run["guarantee"] == "upper bound"
    pays = run.assign(seconds=1.0).assign(seconds=lambda rows: rows["seconds"].mask(certified, 0.25))
    assert plainly(pays).replace("\N{NO-BREAK SPACE}", " ").endswith("Fitting again with scikit-learn takes 1 s.")
    late = pays.assign(seconds=pays["seconds"].mask(certified & (run["n"] == smallest), 2.0))
    following = run.loc[run["n"] > smallest, "n"].min()
    assert plainly(late).endswith(f"; a removal is faster with {following:,} or more records.")
    never = pays.assign(seconds=pays["seconds"].mask(certified & (run["n"] == largest), 2.0))
    assert "a removal is faster" not in plainly(never)
