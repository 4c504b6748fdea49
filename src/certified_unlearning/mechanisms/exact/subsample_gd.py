"""Plain mini-batch descent, in which only the batches are random (Algorithms 19 and 20).

A deletion finds the first batch with the record and runs again from there. Earlier batches already have the right
distribution. An inserted record joins each batch with the probability that a fresh batch would contain it.
`LeanSubsampleDescent` stores batches and models only.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from certified_unlearning.engine.exact.couplings import first_uses
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.mechanisms.exact.descent import ExactDescent
from certified_unlearning.mechanisms.exact.trajectory import Descent, Trajectory
from certified_unlearning.mechanisms.exact.work import Work


@dataclass(frozen=True, kw_only=True)
class SubsampleGd(Descent):
    """The constants of plain descent."""

    @property
    def keeps_randomness(self) -> bool:
        """False: an iteration draws nothing but its batch."""
        return False

    def randomness(self, gradients: Tensor, draws: Draws) -> Tensor:
        """Return an empty tensor, shape ``(k, 0)``."""
        return gradients[:, :0]

    def directions(self, gradients: Tensor, randomness: Tensor) -> Tensor:
        """Return the gradients."""
        return gradients

    def couple(self, randomness: Tensor, old: Tensor, new: Tensor, draws: Draws) -> tuple[Tensor, Tensor]:
        """Reject every change: a changed batch changes the following iterates."""
        return randomness, torch.zeros(len(old), dtype=torch.bool, device=old.device)

    def rejection(self, randomness: Tensor, old: Tensor, change: Tensor) -> Tensor:
        """Return 1: a changed batch changes the following iterates."""
        return old.new_ones(len(old))


class SubsampleDescent(ExactDescent[SubsampleGd]):
    """A learner and editor of trajectories that stores all iterates."""

    def delete(self, state: Trajectory[SubsampleGd], record: int, draws: Draws) -> Work:
        """Delete a record: run again from the first iteration that used it, including this iteration."""
        self._edit_alive(state, [record], [], draws.device)
        work = Work.none(state.trials)
        starts = first_uses(state.batches, record)
        work.recomputations += (starts < self.settings.steps).cpu()
        self._run_again(state, starts, draws, work)
        return work
