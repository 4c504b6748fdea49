"""SISA: one model per shard of the data, learned slice by slice.

An edit learns one shard again, beginning with the slice of the edited record.

Source: Bourtoule et al., *Machine unlearning* (IEEE S&P 2021). Every record gets a slice of a shard. The slice is drawn
uniformly and independently of other records. So after an edit, the places of the other records have the distribution of
a fresh run. Unlearning is exact for the model, the checkpoints and the places.
"""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from certified_unlearning.accounting.core.checks import require_count, require_positive
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.gradients import RecordGradients
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.exact.work import Work


@dataclass(frozen=True)
class Sisa:
    """The settings for learning shards.

    The settings are the same for all edits.

    Attributes:
        shards: Number of shards ``S``.
        slices: Number of slices of a shard, ``R``, each with a checkpoint. Stage ``r`` learns from the first ``r``
            slices.
        steps: Number of steps of mini-batch SGD in the last stage. Stage ``r`` has the share ``r / R`` of these steps,
            rounded up, so that all stages make the same number of passes over their records.
        batch_size: Number ``m`` of records of a step, drawn with replacement.
        step_size: Step size ``eta``.
    """

    shards: int
    slices: int
    steps: int
    batch_size: int
    step_size: float

    def __post_init__(self) -> None:
        require_count(least=1, shards=self.shards, slices=self.slices, steps=self.steps, batch_size=self.batch_size)
        require_positive(step_size=self.step_size)

    def steps_of(self, stage: int) -> int:
        """Return the number of steps of a stage.

        Stages are counted from 0.
        """
        return -(-self.steps * (stage + 1) // self.slices)

    def learn(self, records: RecordGradients, alive: Tensor, draws: Draws, *, trials: int = 1) -> "Shards":
        """Learn all shards.

        Args:
            records: The data set.
            alive: The present records, shape ``(n,)``, int64.
            draws: Fresh randomness.
            trials: Number of independent runs.
        """
        places = draws.integers(self.shards * self.slices, trials, len(alive))
        checkpoints = torch.zeros(
            trials, self.shards, self.slices + 1, records.dimension, dtype=torch.float64, device=alive.device
        )
        state = Shards(self, records, alive, places, checkpoints, Work.none(trials))
        trial, shard = torch.cartesian_prod(
            torch.arange(trials, device=alive.device), torch.arange(self.shards, device=alive.device)
        ).T
        state.learned += state.relearn(trial, shard, torch.zeros_like(shard), draws)
        return state


@dataclass
class Shards:
    """All shards of some trials, with the state that later edits need.

    Attributes:
        settings: The settings of learning.
        records: The data set.
        alive: The present records, shape ``(n,)``.
        places: Each record's shard times ``slices`` plus its slice, shape ``(trials, n)``.
        checkpoints: Each shard's weights before its first stage, which are 0, and after each stage, shape
            ``(trials, shards, slices + 1, d)``.
        learned: The cost of learning.
    """

    settings: Sisa
    records: RecordGradients
    alive: Tensor
    places: Tensor
    checkpoints: Tensor
    learned: Work

    @property
    def model(self) -> Tensor:
        """The mean of the shards' weights, shape ``(trials, d)``.

        The scores of a linear model are then the means of the shards' scores.
        """
        return self.checkpoints[:, :, -1].mean(dim=1)

    def delete(self, record: int, draws: Draws) -> Work:
        """Remove a record, and learn its shard again, beginning with the record's slice.

        Raises:
            ParameterError: The record is absent.
        """
        there = self.alive == record
        if not bool(there.any()):
            raise ParameterError(f"record {record} is not present, so it cannot be removed")
        place = self.places[:, there][:, 0]
        self.alive, self.places = self.alive[~there], self.places[:, ~there]
        return self._edited(place, draws)

    def insert(self, record: int, draws: Draws) -> Work:
        """Add a record that is in the data set, and learn its shard again, beginning with the record's slice.

        Raises:
            ParameterError: The record is already present.
        """
        if bool((self.alive == record).any()):
            raise ParameterError(f"record {record} is there already")
        place = draws.integers(self.settings.shards * self.settings.slices, len(self.places))
        self.alive = torch.cat([self.alive, self.alive.new_tensor([record])])
        self.places = torch.cat([self.places, place[:, None]], dim=1)
        return self._edited(place, draws)

    def _edited(self, place: Tensor, draws: Draws) -> Work:
        trial = torch.arange(len(place), device=place.device)
        work = self.relearn(trial, place // self.settings.slices, place % self.settings.slices, draws)
        work.recomputations += 1
        return work

    def relearn(self, trial: Tensor, shard: Tensor, first: Tensor, draws: Draws) -> Work:
        """Train some shards again, all at the same time.

        Args:
            trial: The trial of each shard, shape ``(k,)``.
            shard: The shards, shape ``(k,)``.
            first: The first stage of each shard, counted from 0, shape ``(k,)``.
            draws: Fresh randomness.
        """
        settings, work = self.settings, Work.none(len(self.places))
        # A shard's own records come first, in the order of their slices.
        later = self.places[trial] - shard[:, None] * settings.slices
        later = torch.where((later >= 0) & (later < settings.slices), later, settings.slices)
        sizes = torch.stack([(later <= stage).sum(dim=1) for stage in range(settings.slices)])
        members = self.alive[later.argsort(dim=1, stable=True)]
        for stage in range(settings.slices):
            running = (first <= stage).nonzero()[:, 0]
            size = sizes[stage, running, None]
            weights = self.checkpoints[trial[running], shard[running], stage]
            steps = settings.steps_of(stage)
            for _ in range(steps):
                drawn = draws.uniform(len(running), settings.batch_size)
                batch = members[running[:, None], (drawn * size).long()]
                # A slice without records has no effect.
                gradient = self.records.sums(weights, batch) * (size > 0)
                weights = weights - settings.step_size / settings.batch_size * gradient
            self.checkpoints[trial[running], shard[running], stage + 1] = weights
            learned = (steps * settings.batch_size * (size[:, 0] > 0)).cpu()
            work.gradients.index_add_(0, trial[running].cpu(), learned)
            work.iterations_run_again.index_add_(0, trial[running].cpu(), torch.full_like(learned, steps))
        return work

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors to store in a file: those that later edits need."""
        return {"alive": self.alive, "places": self.places, "checkpoints": self.checkpoints}

    @classmethod
    def from_tensors(cls, settings: Sisa, records: RecordGradients, tensors: dict[str, Tensor]) -> Self:
        """Return the state from the tensors that `tensors` returned.

        The cost of learning is not stored.
        """
        return cls(settings, records, **tensors, learned=Work.none(len(tensors["places"])))
