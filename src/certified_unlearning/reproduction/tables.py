"""Conversion of trajectories to rows of records and of learning curves."""

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from certified_unlearning.engine.descent import Array, DescentPhase, DescentResult
from certified_unlearning.engine.quality import MEASURES
from certified_unlearning.mechanisms.run import ExperimentPlan, Run
from certified_unlearning.reproduction.rows import CURVE_ROWS, RUN_ROWS, fields_of_run, write_table
from certified_unlearning.version import code_version


class Tables:
    """The collected records and learning curves of one job.

    Args:
        plan: Plan of the job.
        device: Device on which the job runs.
        majority: Accuracy of always predicting the most frequent class.
    """

    def __init__(self, plan: ExperimentPlan, device: str, majority: float) -> None:
        self._plan = plan
        self._device = device
        self._majority = majority
        self._records: list[pd.DataFrame] = []
        self._curves: list[dict[str, Any]] = []

    def add_models(self, runs: Sequence[Run], judged: Sequence[Array], seconds: float) -> None:
        """Add one row for each run, request and trial.

        Args:
            runs: Runs of a group.
            judged: One array for each request. Each row contains the `quality.MEASURES` of one trial; the trials of the
                first run come first, then those of the second run, and so on. The only trial of a deterministic run
                represents all trials.
            seconds: Wall time of the group; each run gets a share proportional to its number of steps.
        """
        trials = self._plan.settings.trials
        work = np.array([_steps(run) for run in runs], dtype=np.float64)
        shares = seconds * (work / work.sum() if work.any() else np.full(len(runs), 1 / len(runs)))
        for run, share, columns in zip(runs, shares, _split(judged, len(runs)), strict=True):
            steps = list(accumulate(request.unlearning_steps for request in run.requests))
            for number, request in enumerate(run.requests):
                values = np.repeat(columns[number], trials // len(columns[number]), axis=0)
                self._records.append(
                    pd.DataFrame(
                        {
                            **self._constants(run),
                            "epsilon": request.epsilon,
                            "mu": request.mu,
                            "unlearning_steps": request.unlearning_steps,
                            "accumulated_steps": steps[number],
                            "request": number + 1,
                            "records_removed": request.records_removed,
                            "trial": np.arange(trials),
                            **dict(zip(MEASURES, values.T, strict=True)),
                            "majority": self._majority,
                            "seconds": share,
                        }
                    )
                )

    def add_curve(self, run: Run, phase: str, curve: dict[int, Array]) -> None:
        """Add a run's test accuracy by step, as an array over trials for each step."""
        key = self._plan.key(run)
        for step, values in sorted(curve.items()):
            self._curves.append(
                {
                    "run_key": key,
                    "experiment": run.experiment,
                    "mechanism": run.mechanism,
                    "variant": run.variant,
                    "phase": phase,
                    "step": step,
                    "accuracy_mean": float(values.mean()),
                    "accuracy_std": float(values.std(ddof=1)) if len(values) > 1 else 0.0,
                }
            )

    def write(self, records: Path, curves: Path) -> None:
        """Write both tables, the records last: if the file of records exists, the job is done."""
        write_table(curves, pd.DataFrame(self._curves, columns=CURVE_ROWS.names), CURVE_ROWS)
        write_table(records, pd.concat(self._records, ignore_index=True), RUN_ROWS)

    def _constants(self, run: Run) -> dict[str, Any]:
        return {
            **fields_of_run(self._plan, run, RUN_ROWS),
            "run_key": self._plan.key(run),
            "device": self._device,
            "code_version": code_version(),
        }


def curves_by_run(
    runs: Sequence[Run], phases: Sequence[DescentPhase], trajectory: DescentResult, first_steps: Sequence[int]
) -> list[dict[int, Array]]:
    """Return each run's measures by step, counted from ``first_steps`` through all phases.

    The last point of a phase is measured on the model that the phase published.
    """
    curves: list[dict[int, Array]] = [{} for _ in runs]
    offsets = list(first_steps)
    for number, phase in enumerate(phases):
        on_the_way = {step: values for (where, step), values in trajectory.curve.items() if where == number}
        trials = len(phase.steps) // len(runs)
        for index in range(len(runs)):
            for step, values in on_the_way.items():
                own = values[index * trials : (index + 1) * trials]
                if not np.isnan(own).any():
                    curves[index][offsets[index] + step] = own
            offsets[index] += phase.steps[index * trials]
            curves[index][offsets[index]] = _split([trajectory.published[number][:, 0]], len(runs))[index][0]
    return curves


def _split(values: Sequence[Array], runs: int) -> list[list[Array]]:
    """Return the parts of all arrays that belong to each run, run by run."""
    return [[np.split(each, runs)[run] for each in values] for run in range(runs)]


def _steps(run: Run) -> int:
    return run.learning_steps + sum(request.unlearning_steps for request in run.requests)
