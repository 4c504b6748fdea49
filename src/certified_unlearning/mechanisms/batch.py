"""Batches of runs: the trials of all runs form one batch, run by run, and each trial has its own address."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeVar, cast

from certified_unlearning.engine.addresses import address
from certified_unlearning.mechanisms.run import Run
from certified_unlearning.mechanisms.settings import Settings

Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class TrialBatch(ABC):
    """The runs of one mechanism, with their number of trials.

    Attributes:
        runs: The runs, which all use the same data sets.
        trials: Number of trials of each run; 1 if a run is deterministic.
    """

    runs: Sequence[Run]
    trials: int

    def spread(self, values: Sequence[Number]) -> list[Number]:
        """Return the runs' values, each repeated for every trial of its run."""
        return [value for value in values for _ in range(self.trials)]

    def with_trials(self, trials: int) -> Self:
        """Return the same runs with the given number of trials."""
        return replace(self, trials=trials)

    @abstractmethod
    def keys(self, phase: str) -> list[int]:
        """Return, for every trial, the address of its noise in a phase of its own run."""

    @abstractmethod
    def learning_keys(self, phase: str) -> list[int]:
        """Return, for every trial, the address of its learning noise.

        Runs with the same sigma share addresses.
        """


@dataclass(frozen=True)
class PlannedBatch(TrialBatch):
    """Runs of a plan. Addresses follow from the seed and the run, so a trial can be repeated.

    Attributes:
        settings: The plan's settings, which contain the seed and the name of the data set.
    """

    settings: Settings

    def keys(self, phase: str) -> list[int]:
        """Return, for every trial, the address of its noise in a phase of its own run."""
        return [
            address(
                self.settings.seed,
                self.settings.dataset,
                run.mechanism,
                run.experiment,
                run.variant,
                run.epsilon_target,
                run.sigma,
                cast(int, run.records_per_request),  # In a plan, all requests have the same size.
                run.requests[-1].records_removed,
                run.requests[0].unlearning_steps,
                trial,
                phase,
            )
            for run in self.runs
            for trial in range(self.trials)
        ]

    def learning_keys(self, phase: str) -> list[int]:
        """Return, for every trial, the address of its learning noise.

        The address depends on sigma, not on the experiment.
        """
        return [
            address(self.settings.seed, self.settings.dataset, "langevin", run.sigma, trial, phase)
            for run in self.runs
            for trial in range(self.trials)
        ]


@dataclass(frozen=True)
class OwnBatch(TrialBatch):
    """One run on a user's own data. Addresses follow from keys that are drawn for each call and not stored.

    Attributes:
        secrets: A key for each trial; with the key, the trial's noise could be subtracted. Empty if no noise is drawn.
    """

    secrets: Sequence[int] = ()

    def keys(self, phase: str) -> list[int]:
        """Return, for every trial, the address of its noise in a phase; zeros if no noise is drawn."""
        if not self.secrets:
            return [0] * self.trials
        return [own_key(key, phase) for key in self.secrets]

    def learning_keys(self, phase: str) -> list[int]:
        """Return `keys`, because no other run shares the learned model."""
        return self.keys(phase)


def own_key(secret: int, phase: str) -> int:
    """Return the address of a trial's noise in a phase, given the trial's key; for runs on a user's own data."""
    # These names must not change: every version makes the same model from a seed.
    return address(str(secret), _own_name(phase))


def _own_name(phase: str) -> str:
    number = phase.removeprefix("request-").removesuffix("-publication")
    if phase.endswith("-publication"):
        return f"publication-{0 if number == 'learning' else number}"
    return phase if number == phase else f"removal-{number}"
