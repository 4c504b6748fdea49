"""Mini-batch Langevin unlearning: noisy gradient descent on one mini-batch after another, in learning and unlearning.

Records are dealt into batches once (`engine.minibatch`); a removed record's loss becomes 0, or another's, in its place,
and unlearning carries on with the cycle. Only the noisy weights are kept: there is no secret state.

Source: the dynamics are those of Chien, Wang, Chen, Li, *Certified machine unlearning via noisy stochastic gradient
descent* (NeurIPS 2024); the accounting is `accounting.cyclic`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from certified_unlearning.engine.phase import Phase
from certified_unlearning.mechanisms import langevin
from certified_unlearning.mechanisms.batch import TrialBatch
from certified_unlearning.mechanisms.mechanism import Mechanism

if TYPE_CHECKING:
    from torch import Tensor


def start(batch: TrialBatch, like: "Tensor") -> "Tensor":
    """Return the origin for every trial."""
    return like.new_zeros(len(batch.runs) * batch.trials, like.shape[1])


def learning_phase(batch: TrialBatch, measure_at: Sequence[int] = ()) -> Phase:
    """Return the phase that learns one model for each run and trial, from the first batch of the cycle on."""
    return replace(langevin.learning_phase(batch, measure_at), keys=batch.keys("learning"), place=0)


def request_phase(batch: TrialBatch, number: int, measure_at: Sequence[int] = ()) -> Phase:
    """Return the phase that answers a request, counted from 0, of runs that are all at one place of the cycle."""
    (place,) = {
        run.learning_steps + sum(request.unlearning_steps for request in run.requests[:number]) for run in batch.runs
    }
    return replace(langevin.request_phase(batch, number, measure_at), place=place)


def phases(batch: TrialBatch, measure_at: Sequence[Sequence[int]]) -> list[Phase]:
    """Return learning and one phase for each request.

    Args:
        batch: Runs with the same removals, and the same steps up to the last request.
        measure_at: A list of the steps of learning at which trials are measured.
    """
    requests = range(len(batch.runs[0].requests))
    return [learning_phase(batch, measure_at[0]), *(request_phase(batch, number) for number in requests)]


MINIBATCH_LANGEVIN = Mechanism("minibatch-langevin", "Mini-batch Langevin", start, phases, answers=1)
