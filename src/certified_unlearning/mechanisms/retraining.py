"""Retraining from scratch on the data without the removed records: what unlearning is measured against."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from certified_unlearning.engine.phase import Phase
from certified_unlearning.mechanisms.batch import Batch
from certified_unlearning.mechanisms.langevin import starting_weights_of
from certified_unlearning.mechanisms.mechanism import Mechanism
from certified_unlearning.mechanisms.run import Run
from certified_unlearning.mechanisms.settings import Settings

if TYPE_CHECKING:
    from torch import Tensor


def phases(settings: Settings, runs: Sequence[Run], measure_at: Sequence[Sequence[int]]) -> list[Phase]:
    """Return the one phase, which retrains every run: by the learner's dynamics (noisy), or by plain gradient descent.

    Args:
        settings: The plan's settings.
        runs: Runs of one variant that remove the same records.
        measure_at: A list of the steps at which trials are measured on the way.
    """
    batch = _batch(settings, runs)
    phase = Phase(
        removed=runs[0].requests[-1].records_removed,
        steps=batch.spread([run.learning_steps for run in runs]),
        sigma=batch.spread([run.sigma for run in runs]),
        keys=batch.keys("retraining"),
        measure_at=measure_at[0],
    )
    return [phase]


def _start(settings: Settings, runs: Sequence[Run], like: "Tensor") -> "Tensor":
    batch = _batch(settings, runs)
    return starting_weights_of(batch, batch.keys("start"), like)


def _batch(settings: Settings, runs: Sequence[Run]) -> Batch:
    # Without noise every trial is the same: one will do.
    return Batch(settings, runs, settings.trials if runs[0].variant == "noisy" else 1)


RETRAINING = Mechanism("retraining", "Retraining", _start, phases, parts=("retraining", "retraining"))
