"""Retraining from scratch on the data without the removed records.

Unlearning is compared with retraining.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from certified_unlearning.engine.phase import DescentPhase
from certified_unlearning.mechanisms.batch import TrialBatch
from certified_unlearning.mechanisms.langevin import starting_weights_of
from certified_unlearning.mechanisms.mechanism import Mechanism

if TYPE_CHECKING:
    from torch import Tensor


def phases(batch: TrialBatch, measure_at: Sequence[Sequence[int]]) -> list[DescentPhase]:
    """Return the single phase, which retrains every run: with noise as in learning, or by plain gradient descent.

    Args:
        batch: Runs of one variant that remove the same records.
        measure_at: A list whose only entry contains the steps at which trials are measured.
    """
    batch, runs = _distinct(batch), batch.runs
    phase = DescentPhase(
        removed=runs[0].requests[-1].records_removed,
        steps=batch.spread([run.learning_steps for run in runs]),
        sigma=batch.spread([run.sigma for run in runs]),
        keys=batch.keys("retraining"),
        measure_at=measure_at[0],
    )
    return [phase]


def _start(batch: TrialBatch, like: "Tensor") -> "Tensor":
    batch = _distinct(batch)
    return starting_weights_of(batch, batch.keys("start"), like)


def _distinct(batch: TrialBatch) -> TrialBatch:
    # Without noise, all trials are equal, so one suffices.
    return batch if batch.runs[0].variant == "noisy" else batch.with_trials(1)


RETRAINING = Mechanism("retraining", "Retraining", _start, phases, parts=("retraining", "retraining"))
