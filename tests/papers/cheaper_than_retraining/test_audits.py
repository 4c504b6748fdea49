"""The experiment `audit`: its rows, faults that it finds, its figure and its table."""

import numpy as np
import pandas as pd
import pytest

from certified_unlearning.accounting.auditing.shown import floor
from certified_unlearning.errors import DataError
from certified_unlearning.papers import parameters
from certified_unlearning.papers.cheaper_than_retraining.audits import one_run, two_laws
from certified_unlearning.papers.cheaper_than_retraining.audits.experiment import AUDIT, AUDIT_ROWS
from certified_unlearning.papers.cheaper_than_retraining.audits.figure import LABELS, draw
from certified_unlearning.papers.cheaper_than_retraining.audits.names import (
    BY_LAWS,
    CERTIFIED,
    EXACT,
    IN_ONE_RUN,
    ONE_RUN,
    TWO_LAWS,
    UNCERTIFIED,
)
from certified_unlearning.papers.cheaper_than_retraining.audits.page import page, verdict
from certified_unlearning.papers.cheaper_than_retraining.audits.table import audit_table
from certified_unlearning.papers.cheaper_than_retraining.names import SYSTEMS
from certified_unlearning.papers.cheaper_than_retraining.paper import PAPER
from certified_unlearning.papers.cheaper_than_retraining.systems import NewtonRemoval
from certified_unlearning.reproduction.figures.drawing import render
from certified_unlearning.reproduction.layout import Layout
from certified_unlearning.reproduction.rows import read_table, write_table
from certified_unlearning.reproduction.tracking.entries import read_entries
from tests.support.planning import ROOT, sweep_of

STYLE = parameters.load(ROOT / "params.yaml").figures
SWEEP = sweep_of("smoke", "audit")


def of(rows: pd.DataFrame, kind: str) -> pd.DataFrame:
    return rows[rows["kind"] == kind]


def test_every_system_that_cost_times_is_audited_and_so_is_what_people_do_without(audits):
    assert set(SYSTEMS) < set(IN_ONE_RUN) == set(one_run.SYSTEMS)
    assert set(BY_LAWS) == set(two_laws.AUDITS)
    assert not audits[["kind", "system", "n", "target"]].duplicated().any()
    own = of(audits, ONE_RUN)
    assert list(own["system"].drop_duplicates()) == list(IN_ONE_RUN)
    assert len(own) == 2 * len(UNCERTIFIED) + len(EXACT) + len(CERTIFIED)
    assert len(of(audits, TWO_LAWS)) == len(BY_LAWS)
    assert set(audits["skipped"]) == {""}


def test_rows_survive_the_disk_and_hold_both_numbers(audits, tmp_path):
    write_table(tmp_path / "rows.parquet", audits, AUDIT_ROWS)
    rows = read_table(tmp_path / "rows.parquet", AUDIT.rows)
    promised = rows["guarantee"] != "none"
    assert rows.loc[promised, ["epsilon", "epsilon_measured"]].notna().all(axis=None)
    assert rows.loc[~promised, "epsilon"].isna().all()
    assert (rows.loc[rows["guarantee"] == "exact", "epsilon"] == 0).all()
    assert of(rows, TWO_LAWS)[["mu", "mu_measured", "mu_estimated"]].notna().all(axis=None)


def test_each_row_is_a_run_of_mlflow_with_both_numbers(audits, tmp_path):
    layout = Layout(tmp_path, "smoke")
    write_table(layout.rows(PAPER.name, "audit"), audits, AUDIT_ROWS)
    parent, entries = read_entries(layout, PAPER.name, AUDIT)
    assert len({entry.key for entry in entries}) == len(entries) == len(audits)
    metrics = {entry.name: {metric.name: metric.value for metric in entry.metrics} for entry in entries}
    removal = metrics["one run on newton-removal on 1000 on 1.0"]
    assert 0.99 < removal["epsilon"] <= 1
    assert {"epsilon_measured", "epsilon_before", "mu", "violated"} < set(removal)
    assert {metric.name: metric.value for metric in parent.metrics}["rows_violated"] == audits["violated"].sum()


def test_the_same_comes_out_again_and_something_else_with_another_seed():
    again = [one_run.audited("descent-to-delete", 1000, SWEEP).runs for _ in range(2)]
    assert again[0] == again[1]
    laws = [two_laws.measured("newton-removal", 4.9, SWEEP).found.after for _ in range(2)]
    assert laws[0] == laws[1]
    other = SWEEP.model_copy(update={"seed": 124})
    assert two_laws.measured("newton-removal", 4.9, other).found.after != laws[0]


def test_where_weights_are_known_audits_show_no_more_than_what_is_computed(audits):
    """Of three systems at .05 each, whose bounds lie above with probability .0025: .0075 in all. Seeded."""
    known = audits[audits["mu_computed"].notna()]
    assert set(known["system"]) == {"descent-to-delete", "certified-refit", "newton-removal", "certified-ridge"}
    assert (known["mu_measured"] <= known["mu_computed"] + 1e-9).all()
    assert (known["mu_computed"] <= known["mu"]).all()
    descent = known[known["system"] == "descent-to-delete"].iloc[0]
    # An estimate by 1000 models has a standard deviation of .08.
    assert abs(descent["mu_estimated"] - descent["mu_computed"]) < 0.35


class Forgetful(NewtonRemoval):
    """Planted: the request is certified by another model, and the old one is kept."""

    def forget(self, gone, left):
        old = self._estimator._weights.copy()
        super().forget(gone, left)
        self._estimator._weights = old


def test_a_removal_that_keeps_the_old_weights_is_called_violated(monkeypatch):
    monkeypatch.setitem(one_run.SYSTEMS, "newton-removal", Forgetful)
    assert one_run.audited("newton-removal", 1000, SWEEP).verdict == "violated"


def test_private_learning_with_a_quarter_of_its_noise_is_called_violated(monkeypatch):
    """mu is about four times 1.7 where 2.71 is certified: 500 models tell the laws apart without fail."""
    learn = two_laws.learn

    def quieter(plan, records, keys):
        return learn(two_laws.replace(plan, sigma=plan.sigma / 4), records, keys)

    honest = two_laws.measured("private-output", 16.0, SWEEP).found
    monkeypatch.setattr(two_laws, "learn", quieter)
    assert (honest.verdict, two_laws.measured("private-output", 16.0, SWEEP).found.verdict) == (
        "nothing found",
        "violated",
    )


def test_what_cannot_run_says_why_in_its_row():
    found = audit_table(
        SWEEP.model_copy(update={"certified": [1000], "uncertified": [200], "targets": [4.9], "trials": 100})
    )
    row = found[(found["kind"] == ONE_RUN) & (found["system"] == "langevin-minibatch")].iloc[0]
    assert "too few records for mini-batches" in row["skipped"]
    assert "not run: too few records" in page(found).markdown("Audits")
    assert draw(found, STYLE).axes


def test_the_figure_shows_all_numbers_and_no_mark_by_its_colour_alone(audits):
    figure = draw(audits, STYLE)
    left, right = figure.axes
    for axes, kind, name in ((left, ONE_RUN, "epsilon"), (right, TWO_LAWS, "mu")):
        own = of(audits, kind)
        shown = {
            float(line.get_xdata()[0])
            for line in axes.get_lines()
            if line.get_marker() in ("o", "s") and line.get_markerfacecolor() != "none"
        }
        assert shown == set(own[f"{name}_measured"])
        assert len(axes.get_yticklabels()) == len(own)
        assert axes.get_xlabel()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts() if text.get_text()] == list(LABELS.values())
    handles = [handle for handle in legend.legend_handles if handle.get_marker() != "None"]
    assert len({(handle.get_marker(), handle.get_markersize()) for handle in handles}) == len(handles)


def test_the_figure_is_written_as_vectors_and_as_pixels(audits, tmp_path):
    written = render(AUDIT, audits, STYLE, tmp_path / "audit")
    assert {path.suffix for path in written} == {".png", ".pdf", ".svg"}
    assert all(path.stat().st_size > 1000 for path in written)


def test_a_system_without_a_name_is_refused(audits):
    with pytest.raises(DataError, match="'other', which has no line"):
        draw(audits.replace({"system": {"sisa": "other"}}), STYLE)


def test_the_table_rounds_outward_states_false_alarms_and_never_says_passed(audits):
    text = page(audits).markdown("Audits")
    assert "passed" not in text
    assert f"at most {1e-4 * len(audits):.2g} for any of these {len(audits)} verdicts" in text
    row = of(audits, TWO_LAWS).iloc[0]
    assert f"| {np.ceil(row['mu'] * 100) / 100:.2f} | {floor(row['mu_measured'])} |" in text
    assert {verdict(row) for _, row in audits.iterrows()} <= {"violated", "no power", "nothing found"}
