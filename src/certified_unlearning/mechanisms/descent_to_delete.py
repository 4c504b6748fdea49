"""Descent-to-Delete (Neel, Roth, Sharifi-Malvajerdi 2021): plain gradient descent, Gaussian noise on publication.

``secret-state`` (their Theorem 9) keeps the noiseless weights and goes on from them; ``published-state`` (their
Theorem 28) keeps nothing but what it published.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from certified_unlearning.engine.phase import Phase
from certified_unlearning.mechanisms.batch import Batch
from certified_unlearning.mechanisms.mechanism import Mechanism
from certified_unlearning.mechanisms.run import Run
from certified_unlearning.mechanisms.settings import Settings

if TYPE_CHECKING:
    from torch import Tensor


def phases(settings: Settings, runs: Sequence[Run], measure_at: Sequence[Sequence[int]]) -> list[Phase]:
    """Return learning and one phase for each request; the runs share variant and removed records.

    Learning is deterministic, so it takes one trial a run. With secret state so do the requests, and the trials are
    independent publications; without, each trial goes on from its own publication.

    Args:
        settings: The plan's settings.
        runs: Runs of one variant with the same ``records_removed`` request by request.
        measure_at: A list of the steps of learning at which the (noiseless) weights are measured.
    """
    feeds_back = runs[0].variant == "published-state"
    learner = Batch(settings, runs, trials=1)
    unlearner = Batch(settings, runs, trials=settings.trials if feeds_back else 1)

    def phase(name: str, batch: Batch, removed: int, steps: Sequence[int], measured: Sequence[int]) -> Phase:
        return Phase(
            removed=removed,
            steps=batch.spread(steps),
            sigma=[0.0] * (len(runs) * batch.trials),
            keys=[0] * (len(runs) * batch.trials),
            publication_sigma=batch.spread([run.sigma for run in runs]),
            publication_keys=learner.keys(f"{name}-publication", trials=settings.trials),
            feeds_back=feeds_back,
            measure_at=measured,
        )

    learning = phase("learning", learner, 0, [run.learning_steps for run in runs], measure_at[0])
    return [learning] + [
        phase(
            f"request-{number + 1}",
            unlearner,
            request.records_removed,
            [run.requests[number].unlearning_steps for run in runs],
            (),
        )
        for number, request in enumerate(runs[0].requests)
    ]


def _start(settings: Settings, runs: Sequence[Run], like: "Tensor") -> "Tensor":
    return like.new_zeros(len(runs), like.shape[1])


DESCENT_TO_DELETE = Mechanism(
    "descent-to-delete",
    "Descent-to-Delete",
    _start,
    phases,
    answers=1,
    states={"secret-state": "secret state", "published-state": "state published"},
)
