"""Langevin unlearning: learn with projected noisy gradient descent, unlearn by going on with it on the new data.

Source: Chien, Wang, Chen, Li, Langevin unlearning (NeurIPS 2024), eq. 1 and 2. Only the noisy weights are kept:
there is no secret state.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from certified_unlearning.accounting.langevin.learning_start import starting_std
from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.phase import Phase
from certified_unlearning.mechanisms.batch import Batch
from certified_unlearning.mechanisms.mechanism import Mechanism
from certified_unlearning.mechanisms.run import Run
from certified_unlearning.mechanisms.settings import Settings

if TYPE_CHECKING:
    from torch import Tensor


def starting_weights(
    keys: Sequence[int], sigma: Sequence[float], *, mean: float, strong_convexity: float, like: "Tensor"
) -> "Tensor":
    """Draw ``w_0 ~ N(mean * ones, C_LSI I)`` for each trial (paper, section 5).

    Args:
        keys: Each trial's address.
        sigma: Each trial's noise scale.
        mean: The mean of every coordinate.
        strong_convexity: ``m``.
        like: A tensor ``(anything, d)`` whose dtype and device the weights take.

    Returns:
        Shape ``(trials, d)``.
    """
    from certified_unlearning.engine import randomness  # Not at the top: plans need no torch.

    std = [starting_std(sigma=value, strong_convexity=strong_convexity) for value in sigma]
    shape = like.new_empty(len(keys), like.shape[1])
    return mean + like.new_tensor(std)[:, None] * randomness.normal_rows(keys, shape)


def starting_weights_of(batch: Batch, keys: Sequence[int], like: "Tensor") -> "Tensor":
    """Draw the start of every trial of a batch, whose addresses are ``keys``; see `starting_weights`."""
    return starting_weights(
        keys,
        batch.spread([run.sigma for run in batch.runs]),
        mean=batch.settings.start,
        strong_convexity=batch.runs[0].constants.strong_convexity,
        like=like,
    )


def learning_keys(settings: Settings, runs: Sequence[Run], phase: str) -> list[int]:
    """Return the addresses of learning: they depend on sigma, not on the experiment, which only unlearns later."""
    return [
        address(settings.seed, settings.dataset, "langevin", run.sigma, trial, phase)
        for run in runs
        for trial in range(settings.trials)
    ]


def learning_phase(settings: Settings, runs: Sequence[Run], measure_at: Sequence[int]) -> Phase:
    """Return the phase that learns one model for each run (give runs with distinct sigma) and trial."""
    batch = Batch(settings, runs, settings.trials)
    return Phase(
        removed=0,
        steps=batch.spread([run.learning_steps for run in runs]),
        sigma=batch.spread([run.sigma for run in runs]),
        keys=learning_keys(settings, runs, "learning"),
        measure_at=measure_at,
    )


def unlearning_phases(settings: Settings, runs: Sequence[Run], measure_at: Sequence[Sequence[int]]) -> list[Phase]:
    """Return one phase for each request of the runs, which all remove the same records.

    Args:
        settings: The plan's settings.
        runs: Runs with the same ``records_removed`` request by request.
        measure_at: For each request the steps at which trials are measured on the way.
    """
    batch = Batch(settings, runs, settings.trials)
    return [
        Phase(
            removed=runs[0].requests[number].records_removed,
            steps=batch.spread([run.requests[number].unlearning_steps for run in runs]),
            sigma=batch.spread([run.sigma for run in runs]),
            keys=batch.keys(f"request-{number + 1}"),
            measure_at=measure_at[number],
        )
        for number in range(len(runs[0].requests))
    ]


def _start(settings: Settings, runs: Sequence[Run], like: "Tensor") -> "Tensor":
    return starting_weights_of(Batch(settings, runs, settings.trials), learning_keys(settings, runs, "start"), like)


LANGEVIN = Mechanism("langevin", "Langevin", _start, unlearning_phases, learning=learning_phase)
