"""Descents that edit as they should not: after a rejection, in a coupling, in an order."""

from typing import Any

import torch
from torch import Tensor

from certified_unlearning.engine.exact.couplings import BatchChanges, cells
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.mechanisms.exact.descent import ExactDescent
from certified_unlearning.mechanisms.exact.noisy_sgd import NoisySgd
from certified_unlearning.mechanisms.exact.quantized_sgd import QuantizedSgd
from certified_unlearning.mechanisms.exact.subsample_gd import SubsampleDescent, SubsampleGd
from certified_unlearning.mechanisms.exact.trajectory import Trajectory
from certified_unlearning.mechanisms.exact.work import Work


class RelearningOnOldData(ExactDescent[NoisySgd]):
    """Recomputes with batches of the records before the edit."""

    def _run_again(self, state: Trajectory[NoisySgd], starts: Tensor, draws: Draws, work: Work) -> None:
        edited_set, state.alive = state.alive, self.before
        super()._run_again(state, starts, draws, work)
        state.alive = edited_set

    def edit(self, state: Trajectory[NoisySgd], removed: Any, inserted: Any, draws: Draws) -> Work:
        self.before = type(state.alive)(state.alive.ids, next_id=state.alive.next_id)
        return super().edit(state, removed, inserted, draws)


class Redirecting(ExactDescent[NoisySgd]):
    """After a rejection, steps from elsewhere or without projection."""

    def _examine(self, state: Trajectory[NoisySgd], changes: BatchChanges, draws: Draws, work: Work) -> Tensor:
        starts = super()._examine(state, changes, draws, work)
        rows = work.recomputations.nonzero()[:, 0]
        steps = starts[rows] - 1
        state.weights[rows, steps + 1] = self.wrong(state, rows, steps, state.randomness[rows, steps])
        return starts


class WithoutProjection(Redirecting):
    """Algorithm 10 as printed, the extrapolated point restored."""

    def wrong(self, state: Trajectory[NoisySgd], rows: Tensor, steps: Tensor, noisy: Tensor) -> Tensor:
        return state.points(rows, steps) - self.settings.step_size * noisy


class WithoutExtrapolation(Redirecting):
    """Algorithm 10 as printed, the projection restored: ``w`` for ``y``."""

    def wrong(self, state: Trajectory[NoisySgd], rows: Tensor, steps: Tensor, noisy: Tensor) -> Tensor:
        return self.settings.moved(state.weights[rows, steps], noisy)


class LastFirst(ExactDescent[NoisySgd]):
    """Looks at the iterations of an edit from the last to the first, and stops at the first rejection."""

    def _examine(self, state: Trajectory[NoisySgd], changes: BatchChanges, draws: Draws, work: Work) -> Tensor:
        order = (changes.trials * self.settings.steps - changes.steps).argsort(stable=True)
        fields = ("trials", "steps", "members", "leaving", "entering", "changed")
        swapped = BatchChanges(*(getattr(changes, name)[order] for name in fields))
        return super()._examine(state, swapped, draws, work)


class FromTheStart(ExactDescent[QuantizedSgd]):
    """After a failed test, everything anew."""

    def _run_again(self, state: Trajectory[QuantizedSgd], starts: Tensor, draws: Draws, work: Work) -> None:
        super()._run_again(state, torch.where(work.recomputations > 0, 0, starts), draws, work)


class FreshIteration(ExactDescent[QuantizedSgd]):
    """After a failed test, a fresh batch and a fresh offset from there on."""

    def _run_again(self, state: Trajectory[QuantizedSgd], starts: Tensor, draws: Draws, work: Work) -> None:
        super()._run_again(state, starts - (work.recomputations > 0).long(), draws, work)


def with_fresh_offset(
    settings: QuantizedSgd, offsets: Tensor, old: Tensor, new: Tensor, draws: Draws
) -> tuple[Tensor, Tensor]:
    """After a failed test, a fresh offset for the same batch."""
    stays = (cells(old, settings.quantum, offsets) == cells(new, settings.quantum, offsets)).all(dim=-1)
    return torch.where(stays[:, None], offsets, draws.uniform(*offsets.shape) - 0.5), stays


def never_leaving(
    settings: QuantizedSgd, offsets: Tensor, old: Tensor, new: Tensor, draws: Draws
) -> tuple[Tensor, Tensor]:
    """Every cell is kept."""
    return offsets, torch.ones(len(old), dtype=torch.bool)


class BatchDrawnAnew(SubsampleDescent):
    """An insertion draws the batch that the new record may join anew, instead of a member leaving for it."""

    def insert(self, state: Trajectory[SubsampleGd], record: int, draws: Draws) -> Work:
        self._edit_alive(state, [], [record], draws.device)
        joins = draws.uniform(state.trials, self.settings.steps) < self.settings.batch_size / len(state.alive)
        starts = torch.where(joins.any(dim=1), joins.int().argmax(dim=1), self.settings.steps)
        work = Work.none(state.trials)
        self._run_again(state, starts, draws, work)
        return work
