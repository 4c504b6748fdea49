"""The state that a descent stores so that it can unlearn: every iteration of every trial.

A trajectory reveals when each record was used, and contains gradients without noise. It must be as secret as the
records. Exactness is a statement about a single trajectory, not about a pair. So after an edit, all older copies and
all information about the edit's draws and cost must be deleted.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

import torch
from torch import Tensor

from certified_unlearning.accounting.core.checks import require_count, require_positive
from certified_unlearning.engine.exact.alive import Alive
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.exact.balls import project


@dataclass(frozen=True, kw_only=True)
class Descent(ABC):
    """The constants of a projected mini-batch descent from 0.

    The constants must stay the same in every edit, because the distribution of trajectories depends on them.

    Attributes:
        steps: Number of iterations, ``T``.
        batch_size: Batch size ``m``, always below the number of records. A batch is a uniform subset without
            replacement.
        step_size: Step size ``eta``.
        radius: Radius of the ball around 0 onto which models are projected; None if there is no projection.
    """

    steps: int
    batch_size: int
    step_size: float
    radius: float | None = None

    def __post_init__(self) -> None:
        require_count(least=1, steps=self.steps, batch_size=self.batch_size)
        require_positive(step_size=self.step_size)
        if self.radius is not None:
            require_positive(radius=self.radius)

    @property
    def accelerated(self) -> bool:
        """Whether gradients are computed at Nesterov's extrapolated points; if so, the last iterate is the model."""
        return False

    @property
    def keeps_randomness(self) -> bool:
        """Whether an iteration draws randomness in addition to its batch."""
        return True

    @abstractmethod
    def randomness(self, gradients: Tensor, draws: Draws) -> Tensor:
        """Draw the randomness that iterations store in addition to the batch, shape ``(k, d)``."""

    @abstractmethod
    def directions(self, gradients: Tensor, randomness: Tensor) -> Tensor:
        """Return the directions of iterations, which depend on the batches' gradients and the stored randomness."""

    @abstractmethod
    def couple(self, randomness: Tensor, old: Tensor, new: Tensor, draws: Draws) -> tuple[Tensor, Tensor]:
        """Turn randomness that was stored for old gradients into randomness for new gradients.

        Args:
            randomness: The stored randomness, shape ``(k, d)``.
            old: The gradients for which this randomness was drawn, shape ``(k, d)``.
            new: The gradients after the edit, shape ``(k, d)``.
            draws: Fresh randomness.

        Returns:
            The new randomness, and whether each direction stayed the same, shape ``(k,)``. A changed direction counts
            as a rejection.
        """

    @abstractmethod
    def rejection(self, randomness: Tensor, old: Tensor, change: Tensor) -> Tensor:
        """Return the probability that each direction changes when its gradient changes, shape ``(k,)``.

        The probability is conditional on the stored randomness.
        """

    def moved(self, points: Tensor, directions: Tensor) -> Tensor:
        """Return the points after one projected step along the directions, shape ``(k, d)``."""
        return project(torch.add(points, directions, alpha=-self.step_size), self.radius)


SettingsT = TypeVar("SettingsT", bound=Descent)


@dataclass
class Trajectory(Generic[SettingsT]):
    """The state of learning.

    After an edit, the state has the distribution of learning on the edited records.

    Attributes:
        settings: The constants with which the trajectory was learned.
        alive: The present records.
        batches: The members of each batch, shape ``(trials, T, m)``, int64. They are ascending, so their order reveals
            nothing.
        weights: The iterates, beginning with the start, shape ``(trials, T + 1, d)``.
        gradients: The mean gradients of the batches, shape ``(trials, T, d)``.
        randomness: The stored randomness, shape ``(trials, T, d)``, or ``(trials, T, 0)`` if only batches are drawn.
            Noisy descent stores its noisy gradients, quantized descent its offsets.
    """

    settings: SettingsT
    alive: Alive
    batches: Tensor
    weights: Tensor
    gradients: Tensor
    randomness: Tensor

    @classmethod
    def start(cls, settings: SettingsT, alive: Alive, trials: int, dimension: int, device: torch.device) -> Self:
        """Return a trajectory at 0 whose iterations have not been run yet.

        Raises:
            ParameterError: The trajectory does not fit in memory.
        """

        def zeros(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
            try:
                return torch.zeros(trials, *shape, dtype=dtype, device=device)
            except (RuntimeError, TypeError) as error:
                raise ParameterError(
                    f"{settings.steps:,} steps with batches of {settings.batch_size:,} and {dimension:,} weights are "
                    "all kept, and do not fit in memory: take fewer steps"
                ) from error

        steps = settings.steps
        return cls(
            settings,
            alive,
            batches=zeros(steps, settings.batch_size, dtype=torch.int64),
            weights=zeros(steps + 1, dimension),
            gradients=zeros(steps, dimension),
            randomness=zeros(steps, dimension if settings.keeps_randomness else 0),
        )

    @property
    def trials(self) -> int:
        """Number of independent runs."""
        return len(self.batches)

    def model(self) -> Tensor:
        """Return the models, shape ``(trials, d)``.

        A model is the mean of all ``T + 1`` iterates; in accelerated descent, it is the last iterate.
        """
        return self.weights[:, -1].clone() if self.settings.accelerated else self.weights.mean(dim=1)

    def points(self, trials: Tensor, steps: Tensor) -> Tensor:
        """Return the points at which gradients are computed, shape ``(k, d)``.

        They are given by ``k`` pairs of a trial and an iteration, counted from 0.
        """
        weights = self.weights[trials, steps]
        if not self.settings.accelerated:
            return weights
        before = self.weights[trials, (steps - 1).clamp(min=0)]
        return weights + (steps.double() / (steps + 3))[:, None] * (weights - before)

    def tensors(self) -> dict[str, Tensor]:
        """Return everything except the settings, by name.

        Ids are ascending, so their order reveals nothing.
        """
        return {
            "alive": self.alive.ids.sort().values,
            "next_id": torch.tensor(self.alive.next_id),
            "batches": self.batches,
            "weights": self.weights,
            "gradients": self.gradients,
            "randomness": self.randomness,
        }

    def least_tensors(self) -> dict[str, Tensor]:
        """Return the tensors that cannot be computed from the records and the other tensors.

        See `ExactDescent.restored`.
        """
        stored = self.tensors()
        return {name: stored[name] for name in ("alive", "next_id", "batches", "randomness")}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], settings: SettingsT) -> Self:
        """Return the trajectory with these `tensors`.

        `ExactDescent.check` checks that they fit the records.
        """
        alive = Alive(tensors["alive"], next_id=int(tensors["next_id"]))
        names = ("batches", "weights", "gradients", "randomness")
        return cls(settings, alive, **{name: tensors[name].clone() for name in names})
