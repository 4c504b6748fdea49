"""Tracking of experiments of Langevin unlearning, by their names."""

from pathlib import Path

from certified_unlearning.papers.langevin_unlearning.paper import PAPER
from certified_unlearning.reproduction import tracking
from certified_unlearning.reproduction.layout import Layout
from certified_unlearning.reproduction.tracking import StoreStatus, TrackResult
from certified_unlearning.reproduction.tracking.entries import Entry, read_entries
from tests.support.planning import experiment_called


def track(results: Path, experiment: str, status: StoreStatus, uri: str, patience: float = 0.0) -> TrackResult:
    """Track an experiment of the preset smoke."""
    shown, artifacts = experiment_called(experiment), results.with_name("mlartifacts")
    return tracking.track_experiment(
        Layout(results, "smoke"), PAPER.name, shown, status, uri=uri, artifact_root=artifacts, patience=patience
    )


def sync(results: Path, **keywords) -> TrackResult:
    """Track whatever is found."""
    return tracking.sync([PAPER], results, **keywords)


def entries_of(results: Path, experiment: str) -> tuple[Entry, list[Entry]]:
    """Return the entries that would be logged of an experiment of the preset smoke."""
    return read_entries(Layout(results, "smoke"), PAPER.name, experiment_called(experiment))
