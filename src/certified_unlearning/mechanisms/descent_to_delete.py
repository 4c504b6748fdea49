"""Descent-to-Delete (Neel, Roth, Sharifi-Malvajerdi 2021): plain gradient descent with Gaussian noise on publication.

The variant ``secret-state`` (Theorem 9 of the paper) keeps the noiseless weights and continues from them. The variant
``published-state`` (Theorem 28 of the paper) keeps only the published weights.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from certified_unlearning.engine.phase import DescentPhase
from certified_unlearning.mechanisms.batch import TrialBatch
from certified_unlearning.mechanisms.mechanism import Mechanism

if TYPE_CHECKING:
    from torch import Tensor


def phase(batch: TrialBatch, number: int, publications: TrialBatch, measure_at: Sequence[int] = ()) -> DescentPhase:
    """Return the phase that learns (``number`` 0) or answers a request (counted from 1), with its publications.

    Args:
        batch: Runs of one variant; their requests remove the same numbers of records.
        number: Number of the phase.
        publications: The same runs, with one trial for each independent publication.
        measure_at: Steps at which the noiseless weights are measured.
    """
    runs = batch.runs
    name = f"request-{number}" if number else "learning"
    steps = [run.requests[number - 1].unlearning_steps if number else run.learning_steps for run in runs]
    return DescentPhase(
        removed=runs[0].requests[number - 1].records_removed if number else 0,
        steps=batch.spread(steps),
        sigma=[0.0] * (len(runs) * batch.trials),
        keys=[0] * (len(runs) * batch.trials),
        publication_sigma=batch.spread([run.sigma for run in runs]),
        publication_keys=publications.keys(f"{name}-publication"),
        feeds_back=runs[0].variant == "published-state",
        measure_at=measure_at,
    )


def phases(batch: TrialBatch, measure_at: Sequence[Sequence[int]]) -> list[DescentPhase]:
    """Return the phase of learning and one phase for each request.

    All runs have the same variant and remove the same records. Learning is deterministic, so it needs only one trial
    for each run. With a secret state, requests also need only one trial for each run, and the trials in ``batch`` are
    independent publications of the same secret state. Without a secret state, each trial continues from its own
    publication.

    Args:
        batch: Runs of one variant; their requests remove the same numbers of records.
        measure_at: A list whose first entry contains the steps of learning at which the noiseless weights are measured.
    """
    alone = batch.with_trials(1)
    unlearner = batch if batch.runs[0].variant == "published-state" else alone
    requests = range(1, len(batch.runs[0].requests) + 1)
    return [phase(alone, 0, batch, measure_at[0]), *(phase(unlearner, number, batch) for number in requests)]


def _start(batch: TrialBatch, like: "Tensor") -> "Tensor":
    return like.new_zeros(len(batch.runs), like.shape[1])


DESCENT_TO_DELETE = Mechanism(
    "descent-to-delete",
    "Descent-to-Delete",
    _start,
    phases,
    answers=1,
    states={"secret-state": "secret state", "published-state": "state published"},
)
