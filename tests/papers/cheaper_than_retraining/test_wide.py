"""Experiment `wide`: its rows, that its checks of bounds can fail, its figure and its table."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import issparse

from certified_unlearning.engine.compiled import gradient as compiled
from certified_unlearning.engine.objectives.float64 import LogisticRegression64, SoftmaxRegression64
from certified_unlearning.errors import DataError
from certified_unlearning.mechanisms import newton_removal
from certified_unlearning.papers import parameters
from certified_unlearning.papers.cheaper_than_retraining.counting import counted
from certified_unlearning.papers.cheaper_than_retraining.paper import PAPER
from certified_unlearning.papers.cheaper_than_retraining.wide import measured
from certified_unlearning.papers.cheaper_than_retraining.wide.experiment import WIDE, WIDE_ROWS
from certified_unlearning.papers.cheaper_than_retraining.wide.figure import draw
from certified_unlearning.papers.cheaper_than_retraining.wide.measured import wide_table
from certified_unlearning.papers.cheaper_than_retraining.wide.names import SYSTEMS, title_of
from certified_unlearning.papers.cheaper_than_retraining.wide.page import page
from certified_unlearning.papers.cheaper_than_retraining.wide.sweep import WideTable
from certified_unlearning.papers.cheaper_than_retraining.wide.tables import made
from certified_unlearning.reproduction.claims.model import load_claims
from certified_unlearning.reproduction.claims.registry import measures
from certified_unlearning.reproduction.claims.verdicts import evaluate
from certified_unlearning.reproduction.rows import names, read_table, write_table
from tests.support.planning import ROOT, sweep_of

STYLE = parameters.load(ROOT / "params.yaml").figures
CLAIMS = [
    each for each in load_claims(PAPER.claims, measures(PAPER.measures)) if each.claim.measure.startswith("wide_")
]
TWO = WideTable(rows="embeddings", n=6000, features=128, classes=2, strength=100, tolerance=1e-6)
SEVERAL = WideTable(rows="embeddings", n=400, features=8, classes=3, strength=100, tolerance=1e-6)
USUAL = {system: name for system, name in SYSTEMS.items() if system != "one-vs-rest"}
BOTH = SEVERAL.model_copy(update={"one_vs_rest": True})
TEXTS = WideTable(rows="words", n=400, features=500, classes=3, strength=400, tolerance=1e-6)


@pytest.fixture(scope="module")
def wide():
    """The table of the preset smoke, to be read only."""
    return wide_table(sweep_of("smoke", "wide"))


def small(*tables, **changes):
    return sweep_of("smoke", "wide", **{"tables": list(tables), "requests": 2, "refits_every": 1} | changes)


class Results:
    def __init__(self, table):
        self._table = table

    def has_table(self, experiment):
        return experiment == "wide"

    def table(self, experiment):
        return self._table


def judged(table):
    return {verdict.id: verdict.verdict for verdict in evaluate(CLAIMS, [Results(table)])}


# Rows.


def test_every_table_has_a_row_of_every_model_and_rows_survive_the_disk(wide, tmp_path):
    assert len(wide) == len(sweep_of("smoke", "wide").tables) * len(USUAL)
    assert not wide[list(names(WIDE_ROWS, "point"))].duplicated().any()
    write_table(tmp_path / "rows.parquet", wide, WIDE_ROWS)
    assert len(read_table(tmp_path / "rows.parquet", WIDE.rows)) == len(wide)


def test_everything_but_seconds_and_memory_comes_out_again():
    first, second = (wide_table(small(SEVERAL, TEXTS)) for _ in range(2))
    same = list(names(WIDE_ROWS, "point", "constant", "measure"))
    assert first[same].equals(second[same])


@pytest.mark.parametrize("table", [TWO, SEVERAL, TEXTS], ids=lambda table: table.name)
def test_records_have_norm_1_and_come_out_again(table):
    data, again = (made(table, seed=2) for _ in range(2))
    rows = data.rows.toarray() if issparse(data.rows) else data.rows.astype(float)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-6)
    assert rows.shape == (table.n, table.features)
    assert np.array_equal(rows, again.rows.toarray() if issparse(again.rows) else again.rows)
    assert np.array_equal(data.test_labels, again.test_labels)
    assert set(data.labels) == set(data.test_labels) == set(range(table.classes))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"tables": [TWO, TWO]}, "tables contains the same table twice"),
        ({"refits_every": 3}, "refits_every must be at most requests, 2, got 3"),
        (
            {"records": 101},
            "tables contains a table of 400 records, but 2 requests of 101 would remove more than half of them",
        ),
    ],
)
def test_settings_that_do_not_go_together_are_refused(changes, told):
    assert small(SEVERAL, **changes).check() == told
    assert small(SEVERAL).check() is None


# Counts and checks.


def test_compiled_passes_and_hessians_are_counted(monkeypatch):
    read, original = [], compiled._logistic_gradient

    def gradient(rows, *others, **named):
        read.append(len(rows))
        return original(rows, *others, **named)

    monkeypatch.setattr(compiled, "_logistic_gradient", gradient)
    with counted() as readings:
        data = made(TWO, seed=1)
        model = measured.CertifiedLogisticRegression(C=TWO.strength / TWO.n, fit_intercept=False)
        model.fit(data.rows, data.labels)
        readings.take()
        read.clear()
        for first in range(0, 400, 10):
            model.unlearn(range(first, first + 10))
        assert model.certificate_.passes > 0
        assert not model.certificate_.unscheduled_reads
        assert readings.take() == sum(read) > 0


@pytest.mark.parametrize(("kind", "classes"), [(LogisticRegression64, 2), (SoftmaxRegression64, 3)])
def test_each_evaluation_is_one_reading_and_so_is_each_product(kind, classes):
    rows = np.eye(5)
    loss = kind(rows, np.array([1.0, -1, 1, 1, -1]) if classes == 2 else np.arange(5) % 3, 5, 0.1, classes)
    with counted() as readings:
        at = np.zeros(loss.dimension)
        loss.value(at), loss.gradient(at)
        assert readings.take() == 10
        product = loss.hessian_at(at)
        product(at), product(at)
        assert readings.take() == 15
        loss.sample(2).gradient(at)
        assert readings.take() == 3


@pytest.mark.parametrize("table", [SEVERAL, TEXTS, TWO], ids=lambda table: table.name)
def test_the_gradient_that_checks_bounds_vanishes_where_scikit_learn_minimises(table):
    data, left = made(table, seed=3), np.arange(table.n) % 7 > 0
    model = measured.LogisticRegression(C=table.strength / table.n, fit_intercept=False, tol=1e-4, max_iter=1000)
    weights = measured._minimiser(model, data.rows[left].astype(float), data.labels[left])
    assert np.linalg.norm(measured._gradient(table, data, left, weights)) < 1e-9
    assert np.linalg.norm(measured._gradient(table, data, ~left, weights)) > 1e-3


def test_the_claims_about_bounds_hold_and_a_removal_of_half_of_each_record_breaks_them(wide, monkeypatch):
    assert set(judged(wide).values()) == {"reproduced"}
    original = newton_removal.removed_gradient
    monkeypatch.setattr(newton_removal, "removed_gradient", lambda *given, **named: original(*given, **named) / 2)
    verdicts = judged(wide_table(small(TWO)))
    assert (verdicts["cost-wide-gradient"], verdicts["cost-wide-distance"]) == ("contradicted", "contradicted")


@pytest.mark.parametrize(
    ("claim", "system", "column", "factor"),
    [
        ("cost-wide-warm-is-no-removal", "lbfgs-warm", "distance_share", 1e-3),
        ("cost-wide-reads-less-than-from-zero", "certified", "passes", 100),
        ("cost-wide-reads-less-than-warm", "certified", "passes", 100),
        ("cost-wide-several-classes-read-less-than-warm", "certified", "passes", 10),
        ("cost-wide-accuracy", "certified", "accuracy", 0.98),
    ],
)
def test_a_planted_fault_turns_the_verdict(wide, claim, system, column, factor):
    faulty = wide.copy()
    faulty.loc[faulty["system"] == system, column] *= factor
    assert judged(faulty)[claim] == "contradicted"


def test_without_a_minimiser_no_distance_is_judged(wide):
    verdicts = judged(wide.assign(distance_share=np.nan))
    assert {name for name, verdict in verdicts.items() if verdict == "not run"} == {
        "cost-wide-distance",
        "cost-wide-warm-is-no-removal",
    }


# Figure and table.


def test_the_figure_has_a_mark_for_each_model_and_table_in_both_panels(wide):
    figure = draw(wide, STYLE)
    for axes, column in zip(figure.axes, ("seconds", "distance_share"), strict=True):
        marks = {line.get_label(): line for line in axes.get_lines()}
        for system, title in USUAL.items():
            own = wide.loc[wide["system"] == system, column]
            np.testing.assert_allclose(np.asarray(marks[title].get_xdata(), float), own.astype(float))
    assert "Timings on this machine: " in figure.get_suptitle()
    with pytest.raises(DataError, match="'other', which has no line"):
        draw(wide.replace({"system": {"certified": "other"}}), STYLE)


def test_the_table_names_a_refit_that_moves_nothing_and_compares_with_the_certified_mean(wide):
    still = wide.copy()
    still.loc[still["system"] == "lbfgs-warm", "answers_that_moved"] = 0
    text = page(still).markdown("Wide")
    assert text.count("scikit-learn warm, tolerance 0.0001: moves nothing | ") == 4
    assert "moves nothing" not in page(wide.assign(answers_that_moved=1)).markdown("Wide")
    first = wide[wide["n"] == 6000].iloc[:4].set_index("system")
    ratio = first.loc["lbfgs-cold", "seconds"] / first.loc["certified", "seconds"]
    (line,) = [each for each in text.splitlines() if each.startswith("| scikit-learn from zero")][:1]
    assert f" | {ratio:.2g} | " in line
    assert f"### {title_of(wide.iloc[0])}, 3 MB" in text
    assert pd.isna(first.loc["lbfgs-cold", "gradient_share"])


def test_models_of_each_class_against_the_rest_are_measured_where_they_are_asked_for():
    rows = wide_table(small(BOTH)).set_index("system")
    assert {*rows.index} == {*SYSTEMS}
    # The gradient of their own objective, evaluated here by other code.
    assert 0 < rows.loc["one-vs-rest", "gradient_share"] <= 1
    assert pd.isna(rows.loc["one-vs-rest", "distance_share"])
    draw(rows.reset_index(), STYLE)


def test_one_class_against_the_rest_needs_three_classes():
    wrong = small(TWO.model_copy(update={"one_vs_rest": True})).check()
    assert wrong == "one_vs_rest needs at least three classes, but tables contains a table of 2"
