"""Plain mini-batch descent that stores its batches and its model, but no iterates: ``O(T m + d)`` numbers per trial.

Other values are computed from the batches when needed (Algorithms 19 and 20, space-saving).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from certified_unlearning.accounting.core.checks import require_count
from certified_unlearning.engine.exact.alive import Alive
from certified_unlearning.engine.exact.couplings import edited_batches, first_uses
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.gradients import RecordGradients
from certified_unlearning.mechanisms.exact.descent import (
    check_batches,
    edit_ids,
    require_more_than_a_batch,
    require_rows,
    require_same_settings,
)
from certified_unlearning.mechanisms.exact.invariants import require_close
from certified_unlearning.mechanisms.exact.subsample_gd import SubsampleGd
from certified_unlearning.mechanisms.exact.work import Work


@dataclass
class LeanTrajectory:
    """The stored state.

    After an edit, the state has the distribution of learning on the edited records.

    Attributes:
        settings: The constants with which the trajectory was learned.
        alive: The present records.
        batches: The members of each batch in ascending order, shape ``(trials, T, m)``, int64.
        weights: The models, which are the means of all ``T + 1`` iterates, shape ``(trials, d)``.
    """

    settings: SubsampleGd
    alive: Alive
    batches: Tensor
    weights: Tensor

    @property
    def trials(self) -> int:
        """Number of independent runs."""
        return len(self.batches)

    def model(self) -> Tensor:
        """Return the models, shape ``(trials, d)``."""
        return self.weights.clone()

    def tensors(self) -> dict[str, Tensor]:
        """Return everything except the settings, by name.

        Ids are ascending, so their order reveals nothing.
        """
        return {
            "alive": self.alive.ids.sort().values,
            "next_id": torch.tensor(self.alive.next_id),
            "batches": self.batches,
            "weights": self.weights,
        }

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], settings: SubsampleGd) -> Self:
        """Return the state from the tensors that `tensors` returned."""
        alive = Alive(tensors["alive"], next_id=int(tensors["next_id"]))
        return cls(settings, alive, tensors["batches"].clone(), tensors["weights"].clone())


class LeanSubsampleDescent:
    """A learner and editor of trajectories.

    Attributes:
        settings: The constants.
        records: The records. Rows may be added to them, and an id is the position of a row.
    """

    def __init__(self, settings: SubsampleGd, records: RecordGradients) -> None:
        """Store constants and records.

        Nothing is computed yet.
        """
        self.settings = settings
        self.records = records

    def learn(self, ids: Tensor, draws: Draws, *, trials: int = 1) -> LeanTrajectory:
        """Run all iterations on some records; see `ExactDescent.learn`."""
        require_count(least=1, trials=trials)
        alive = Alive(ids.to(draws.device))
        require_rows(self.records, alive.next_id)
        require_more_than_a_batch(len(alive), self.settings.batch_size)
        batches = self._fresh_batches(alive, trials, draws, iterations=self.settings.steps)
        return LeanTrajectory(self.settings, alive, batches, self._model(batches))

    def delete(self, state: LeanTrajectory, record: int, draws: Draws) -> Work:
        """Delete a record: every trial that used it learns anew. Raises the same errors as `ExactDescent.edit`."""
        self._edit_ids(state, [record], [], draws)
        used = (first_uses(state.batches, record) < self.settings.steps).nonzero()[:, 0]
        fresh = self._fresh_batches(state.alive, len(used), draws, iterations=self.settings.steps)
        return self._learn_again(state, used, fresh)

    def insert(self, state: LeanTrajectory, record: int, draws: Draws) -> Work:
        """Insert a record.

        In each trial, all batches before the first batch with the inserted record stay the same. Raises the same errors
        as `ExactDescent.edit`.
        """
        removed, inserted = self._edit_ids(state, [], [record], draws)
        changes = edited_batches(state.batches, state.alive, removed, inserted, draws)
        trials, counts = torch.unique_consecutive(changes.trials, return_counts=True)
        joined = counts.cumsum(0) - counts  # The position of each trial's first change: the first batch that is joined.
        steps = changes.steps[joined]
        batches = state.batches[trials]
        batches[torch.arange(len(trials), device=steps.device), steps] = changes.members[joined]
        first = min([*(steps + 1).tolist(), self.settings.steps])
        later = torch.arange(first, self.settings.steps, device=steps.device) > steps[:, None]
        fresh = self._fresh_batches(state.alive, len(trials), draws, iterations=self.settings.steps - first)
        batches[:, first:] = torch.where(later[:, :, None], fresh, batches[:, first:])
        return self._learn_again(state, trials, batches)

    def check(self, state: LeanTrajectory, *, tolerance: float = 1e-9) -> None:
        """Recompute the models from the batches, and compare them; see `ExactDescent.check`."""
        require_same_settings(state.settings, self.settings)
        require_more_than_a_batch(len(state.alive), self.settings.batch_size)
        check_batches(state.batches, state.alive)
        require_close("models", state.weights, self._model(state.batches), tolerance)

    def _edit_ids(
        self, state: LeanTrajectory, removed: list[int], inserted: list[int], draws: Draws
    ) -> tuple[Tensor, Tensor]:
        require_same_settings(state.settings, self.settings)
        require_rows(self.records, max(inserted, default=-1) + 1)
        return edit_ids(state.alive, removed, inserted, self.settings.batch_size, draws.device)

    def _fresh_batches(self, alive: Alive, trials: int, draws: Draws, *, iterations: int) -> Tensor:
        """Return independent uniform batches, shape ``(trials, iterations, m)``."""
        return draws.subsets(alive.ids, self.settings.batch_size, trials, iterations).sort(dim=-1).values

    def _learn_again(self, state: LeanTrajectory, trials: Tensor, batches: Tensor) -> Work:
        """Store new batches of some trials, and the models that follow from them."""
        state.batches[trials] = batches
        state.weights[trials] = self._model(batches)
        work = Work.none(state.trials)
        trials, steps = trials.cpu(), self.settings.steps
        work.recomputations[trials] = 1
        work.iterations_run_again[trials] = steps
        work.gradients[trials] = steps * self.settings.batch_size
        return work

    def _model(self, batches: Tensor) -> Tensor:
        """Return the mean of each trial's iterates, including the start at 0, given the trial's batches."""
        weights = torch.zeros(len(batches), self.records.dimension, dtype=torch.float64, device=batches.device)
        total = weights
        for step in range(self.settings.steps):
            gradients = self.records.sums(weights, batches[:, step]) / self.settings.batch_size
            weights = self.settings.moved(weights, gradients)
            total = total + weights
        return total / (self.settings.steps + 1)
