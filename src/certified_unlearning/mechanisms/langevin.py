"""Langevin unlearning: learn with projected noisy gradient descent, and unlearn by continuing it on the new data.

Source: Chien, Wang, Chen, Li, Langevin unlearning (NeurIPS 2024), eq. 1 and 2. Only the noisy weights are kept, so
there is no secret state.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from certified_unlearning.accounting.langevin.learning_start import starting_std
from certified_unlearning.engine.phase import DescentPhase
from certified_unlearning.mechanisms.batch import TrialBatch
from certified_unlearning.mechanisms.mechanism import Mechanism

if TYPE_CHECKING:
    from torch import Tensor


def starting_weights(
    keys: Sequence[int], sigma: Sequence[float], *, mean: float, strong_convexity: float, like: "Tensor"
) -> "Tensor":
    """Draw ``w_0 ~ N(mean * ones, C_LSI I)`` for each trial (paper, section 5).

    Args:
        keys: The address of each trial.
        sigma: The noise scale of each trial.
        mean: The mean of every coordinate.
        strong_convexity: Strong convexity ``m``.
        like: A tensor of shape ``(anything, d)`` with the dtype and device for the weights.

    Returns:
        The weights, shape ``(trials, d)``.
    """
    from certified_unlearning.engine import randomness  # Not at the top: plans need no torch.

    std = [starting_std(sigma=value, strong_convexity=strong_convexity) for value in sigma]
    shape = like.new_empty(len(keys), like.shape[1])
    return mean + like.new_tensor(std)[:, None] * randomness.normal_rows(keys, shape)


def starting_weights_of(batch: TrialBatch, keys: Sequence[int], like: "Tensor") -> "Tensor":
    """Draw the starting weights of every trial of a batch with the addresses ``keys``; see `starting_weights`."""
    return starting_weights(
        keys,
        batch.spread([run.sigma for run in batch.runs]),
        mean=batch.runs[0].start,
        strong_convexity=batch.runs[0].constants.strong_convexity,
        like=like,
    )


def start(batch: TrialBatch, like: "Tensor") -> "Tensor":
    """Draw the starting weights of every trial."""
    return starting_weights_of(batch, batch.learning_keys("start"), like)


def learning_phase(batch: TrialBatch, measure_at: Sequence[int] = ()) -> DescentPhase:
    """Return the phase that learns one model for each trial of each run.

    The runs must have distinct noise scales.
    """
    return DescentPhase(
        removed=0,
        steps=batch.spread([run.learning_steps for run in batch.runs]),
        sigma=batch.spread([run.sigma for run in batch.runs]),
        keys=batch.learning_keys("learning"),
        measure_at=measure_at,
    )


def request_phase(
    batch: TrialBatch, number: int, measure_at: Sequence[int] = (), *, place: int | None = None
) -> DescentPhase:
    """Return the phase that answers request ``number``; the first request has number 0.

    All runs must remove the same records.

    Args:
        batch: The runs.
        number: Number of the request.
        measure_at: Steps of the phase at which trials are measured.
        place: Position in a cycle of mini-batches at which the phase begins; None without mini-batches.
    """
    requests = [run.requests[number] for run in batch.runs]
    return DescentPhase(
        removed=requests[0].records_removed,
        steps=batch.spread([request.unlearning_steps for request in requests]),
        sigma=batch.spread([run.sigma for run in batch.runs]),
        keys=batch.keys(f"request-{number + 1}"),
        measure_at=measure_at,
        place=place,
    )


def unlearning_phases(batch: TrialBatch, measure_at: Sequence[Sequence[int]]) -> list[DescentPhase]:
    """Return one phase for each request, given the steps at which trials are measured during each request."""
    return [request_phase(batch, number, measured) for number, measured in enumerate(measure_at)]


LANGEVIN = Mechanism("langevin", "Langevin", start, unlearning_phases, learning=learning_phase)
