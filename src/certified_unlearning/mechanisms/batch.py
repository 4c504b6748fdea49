"""Runs side by side: the trials of all runs as one batch, run by run, each trial with its own address."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

from certified_unlearning.engine.addresses import address
from certified_unlearning.mechanisms.run import Run
from certified_unlearning.mechanisms.settings import Settings

Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Batch:
    """Runs of one mechanism and the number of trials that each has.

    Attributes:
        settings: Seed and data set name.
        runs: The runs, which all go through the same data sets.
        trials: Trials of each run; 1 where a run is deterministic.
    """

    settings: Settings
    runs: Sequence[Run]
    trials: int

    def spread(self, values: Sequence[Number]) -> list[Number]:
        """Return one value a run as one value a trial."""
        return [value for value in values for _ in range(self.trials)]

    def keys(self, phase: str, *, trials: int | None = None) -> list[int]:
        """Return the address of every trial's noise in a phase that belongs to its run."""
        return [
            address(
                self.settings.seed,
                self.settings.dataset,
                run.mechanism,
                run.experiment,
                run.variant,
                run.epsilon_target,
                run.sigma,
                cast(int, run.records_per_request),  # of a plan: all requests are of one size
                run.requests[-1].records_removed,
                run.requests[0].unlearning_steps,
                trial,
                phase,
            )
            for run in self.runs
            for trial in range(self.trials if trials is None else trials)
        ]
