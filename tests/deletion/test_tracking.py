"""MLflow gets a run for each attack on each mechanism, below one for all; doing it again changes nothing."""

import pytest

from certified_unlearning import tracking
from certified_unlearning.results import ATTACK_SCHEMA, write_table
from certified_unlearning.tracking import deletion_entries


@pytest.fixture
def results(attacks, tmp_path):
    write_table(tmp_path / "results/any/deletion/attacks.parquet", attacks.iloc[:3], ATTACK_SCHEMA)
    (tmp_path / "results/any/figures").mkdir()
    (tmp_path / "results/any/figures/deletion.png").write_bytes(b"drawn")
    return tmp_path / "results/any"


def test_entries_name_attack_and_mechanism_and_hold_all_numbers(results, attacks):
    parent, entries = deletion_entries.read_entries(results)
    assert parent.files == {"deletion.png": b"drawn"}
    assert parent.params["attacks"] == 3
    assert entries[0].name == "sum on retraining"
    assert len({entry.key for entry in [parent, *entries]}) == 4
    metrics = {metric.name: metric.value for metric in entries[0].metrics}
    assert metrics["advantage"] == attacks["advantage"].iloc[0]
    assert "bound" not in metrics
    assert entries[0].tags == {"figure": "deletion", "preset": "any", "attack": "sum", "mechanism": "retraining"}


def test_attacks_are_tracked_once(results, tmp_path):
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    status = tracking.prepare_store("any", uri=uri, artifact_root=tmp_path / "artifacts")
    first = tracking.track_experiment(results, "deletion", status, uri=uri)
    again = tracking.track_experiment(results, "deletion", status, uri=uri)
    assert (first.added, first.warning) == (3, None)
    assert (again.unchanged, again.added, again.updated) == (3, 0, 0)
