"""Retraining from scratch on the data without the removed records: what unlearning is measured against."""

from collections.abc import Sequence

from certified_unlearning.dynamics import Phase
from certified_unlearning.experiments.model import Run
from certified_unlearning.mechanisms.batch import Batch
from certified_unlearning.parameters import Common


def retraining_phase(settings: Common, runs: Sequence[Run], measure_at: Sequence[int]) -> Phase:
    """Return the phase that retrains every run: by the learner's dynamics (noisy), or by plain gradient descent.

    Args:
        settings: The plan's settings.
        runs: Runs of one variant that remove the same records.
        measure_at: Steps at which trials are measured on the way.
    """
    batch = _batch(settings, runs)
    return Phase(
        removed=runs[0].requests[-1].records_removed,
        steps=batch.spread([run.learning_steps for run in runs]),
        sigma=batch.spread([run.sigma for run in runs]),
        keys=batch.keys("retraining"),
        measure_at=measure_at,
    )


def starting_keys(settings: Common, runs: Sequence[Run]) -> list[int]:
    """Return the addresses of the starting points."""
    return _batch(settings, runs).keys("start")


def _batch(settings: Common, runs: Sequence[Run]) -> Batch:
    # Without noise every trial is the same: one will do.
    return Batch(settings, runs, settings.trials if runs[0].variant == "noisy" else 1)
