"""MLflow gets a run for each attack on each mechanism, below one for all; doing it again changes nothing."""

import pytest

from certified_unlearning.papers.forget_unlearning.experiments import ATTACK_ROWS, DELETION
from certified_unlearning.papers.forget_unlearning.paper import PAPER
from certified_unlearning.reproduction import tracking
from certified_unlearning.reproduction.layout import Layout
from certified_unlearning.reproduction.rows import write_table
from certified_unlearning.reproduction.tracking.entries import read_entries


@pytest.fixture
def layout(attacks, tmp_path):
    layout = Layout(tmp_path / "results", "any")
    write_table(layout.rows(PAPER.name, "deletion"), attacks.iloc[:3], ATTACK_ROWS)
    figure = layout.figure(PAPER.name, "deletion", "png")
    figure.parent.mkdir(parents=True)
    figure.write_bytes(b"drawn")
    return layout


def test_entries_name_attack_and_mechanism_and_hold_all_numbers(layout, attacks):
    parent, entries = read_entries(layout, PAPER.name, DELETION)
    assert parent.files == {"deletion.png": b"drawn"}
    assert parent.params["rows"] == 3
    headline = {metric.name: metric.value for metric in parent.metrics}
    assert headline == {
        "rows": 3,
        "rows_promise_broken": attacks["promise_broken"].iloc[:3].sum(),
        "rows_consistent": attacks["consistent"].iloc[:3].sum(),
        "seconds": pytest.approx(attacks["seconds"].iloc[:3].sum()),
    }
    assert parent.origin.source == "certified_unlearning.papers.forget_unlearning.experiments"
    assert DELETION.caption.text in parent.description
    assert (parent.params["interactions"], parent.params["seed"]) == (2500, 123)
    assert entries[0].name == "sum on retraining"
    assert len({entry.key for entry in [parent, *entries]}) == 4
    metrics = {metric.name: metric.value for metric in entries[0].metrics}
    first = attacks.iloc[0]
    assert metrics == {
        name: float(first[name])
        for name in (
            "right", "wrong", "advantage", "low", "high", "expected", "promised", "promise_broken", "consistent",
            "seconds",
        )
    }  # fmt: skip
    assert "bound" not in metrics
    params = ("secret_state", "observed", "requests", "deletion", "interactions", "seed", "code_version")
    assert entries[0].params == {name: first[name] for name in ("attack", "mechanism", *params)}
    assert entries[0].tags == {
        "figure": "deletion",
        "paper": "forget_unlearning",
        "preset": "any",
        "kind": "row",
        "attack": "sum",
        "mechanism": "retraining",
    }


def test_attacks_are_tracked_once(layout, tmp_path):
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    status = tracking.prepare_store("any", uri=uri)
    where = {"uri": uri, "artifact_root": tmp_path / "artifacts"}
    first = tracking.track_experiment(layout, PAPER.name, DELETION, status, **where)
    again = tracking.track_experiment(layout, PAPER.name, DELETION, status, **where)
    assert (first.added, first.warning) == (3, None)
    assert (again.unchanged, again.added, again.updated) == (3, 0, 0)
