"""The jobs that carry out a plan with any mechanism: learning, and answering requests."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import safetensors
import torch
from safetensors.torch import load_file, save
from torch import Tensor

from certified_unlearning.data.prepared import PreparedData
from certified_unlearning.data.requests import draw_removals
from certified_unlearning.engine.descent import Array
from certified_unlearning.engine.row_shards import ALONE, RowShards
from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.files import atomic_path, content_key
from certified_unlearning.mechanisms.batch import PlannedBatch
from certified_unlearning.mechanisms.mechanism import Mechanism, Refit
from certified_unlearning.mechanisms.run import ExperimentPlan, Run
from certified_unlearning.reproduction.rows import CURVE_ROWS, RUN_ROWS, concatenate, write_table
from certified_unlearning.reproduction.simulation.job import Simulation, require_runs
from certified_unlearning.reproduction.tables import Tables, curves_by_run

CURVE_POINTS = 24
"""Number of times that test accuracy is measured in a phase, after logarithmically spaced numbers of steps."""


def learn(
    mechanism: Mechanism | Refit, plan: ExperimentPlan, data: PreparedData, output: Path, shards: RowShards = ALONE
) -> None:
    """Learn one model for each trial and each distinct sigma of a mechanism's runs, and write the weights.

    If several processes share the job, the first process writes the file.

    Raises:
        ParameterError: The mechanism has no separate learning, or several processes share a job that cannot be shared.
        DataError: ``data`` is not the data of the plan.
        StorageError: The file cannot be written.
    """
    if mechanism.learning is None:
        raise ParameterError(f"{mechanism.name} does not learn in a job of its own; `unlearn` does all the work")
    if plan.left_out is not None:
        _write_weights(output, {"weights": torch.empty(0)}, {})
        return
    simulation = Simulation(plan, mechanism.name, data, "learn", output, shards)
    runs = list({run.sigma: run for run in plan.of(mechanism.name)}.values())
    batch = PlannedBatch(runs, plan.settings.trials, plan.settings)
    phase = mechanism.learning(batch, _curve_steps(runs))
    start = mechanism.starting_weights(batch, simulation.no_weights)
    simulation.expect([[phase]])
    trajectory = simulation.run(start, [phase], of=runs[0])
    if not shards.writes:
        return
    tensors = {"weights": trajectory.weights.cpu()}
    for run, curve in zip(runs, curves_by_run(runs, [phase], trajectory, [0] * len(runs)), strict=True):
        tensors |= {f"curve/{run.sigma!r}/{step}": torch.from_numpy(values) for step, values in curve.items()}
    # There is only one entry: several would be written in random order, and equal inputs must give equal bytes.
    metadata = {"learned": json.dumps([_learning_key(mechanism, plan), [run.sigma for run in runs]])}
    _write_weights(output, tensors, metadata)
    simulation.finish()


def unlearn(
    mechanism: Mechanism,
    plan: ExperimentPlan,
    data: PreparedData,
    learned: Path | None,
    rows: Path,
    curves: Path,
    shards: RowShards = ALONE,
) -> None:
    """Answer every request in a mechanism's runs.

    Args:
        mechanism: Mechanism of the runs.
        plan: Plan of the experiment.
        data: Data set of the plan.
        learned: Weights that `learn` wrote, if the mechanism learns in a separate job.
        rows: Path for a table with one row for each run, request and trial.
        curves: Path for the table of learning curves.
        shards: The place of this process among the processes that share the job; the first process writes.

    Raises:
        DataError: ``data`` or ``learned`` does not belong to the plan.
        StorageError: A file cannot be written.
    """
    if plan.left_out is not None:
        _write_no_rows(rows, curves)
        return
    simulation = Simulation(plan, mechanism.name, data, "unlearn", rows, shards)
    weights: dict[float, Tensor] = {}
    learning_curves: dict[float, dict[int, Array]] = {}
    if mechanism.learning is not None:
        if learned is None:
            raise DataError(f"{mechanism.name} starts from weights that `learn` wrote, but no such weights were given")
        weights, learning_curves = _read_learned(learned, mechanism, plan)
    tables = Tables(plan, str(simulation.device), data.majority)
    groups = [
        PlannedBatch(runs, plan.settings.trials, plan.settings) for runs in _same_removals(plan.of(mechanism.name))
    ]
    phases = [
        mechanism.phases(batch, _request_curve_steps(batch.runs) if weights else [_curve_steps(batch.runs)])
        for batch in groups
    ]
    simulation.expect(phases)
    before, after = mechanism.parts
    for batch, group in zip(groups, phases, strict=True):
        runs = batch.runs
        if weights:
            start = torch.cat([weights[run.sigma] for run in runs]).to(simulation.device)
        else:
            start = mechanism.starting_weights(batch, simulation.no_weights)
        trajectory = simulation.run(start, group, of=runs[0])
        tables.add_models(runs, trajectory.published[mechanism.answers :], trajectory.seconds)
        first_steps = [run.learning_steps if weights else 0 for run in runs]
        for run, curve in zip(runs, curves_by_run(runs, group, trajectory, first_steps), strict=True):
            if weights:
                tables.add_curve(run, before, learning_curves[run.sigma])
                tables.add_curve(run, after, curve)
                continue
            learning = {step: values for step, values in curve.items() if step <= run.learning_steps}
            tables.add_curve(run, before, learning)
            tables.add_curve(run, after, {step: curve[step] for step in curve.keys() - learning.keys()})
    if shards.writes:
        tables.write(rows, curves)
    simulation.finish()


def refit(mechanism: Refit, plan: ExperimentPlan, data: PreparedData, rows: Path, curves: Path) -> None:
    """Answer every request in a mechanism's runs by fitting again; the arguments and errors are those of `unlearn`."""
    if plan.left_out is not None:
        _write_no_rows(rows, curves)
        return
    require_runs(plan, mechanism.name, data)
    runs = plan.of(mechanism.name)
    removals = draw_removals(
        data,
        records=max(run.requests[-1].records_removed for run in runs),
        adjacency=plan.settings.adjacency,
        seed=plan.settings.seed,
    )
    tables = Tables(plan, "cpu", data.majority)
    for run in runs:
        removed = [request.records_removed for request in run.requests]
        C = 1 / (plan.constants.n * plan.constants.strong_convexity)
        answered = mechanism.answer(data, removals, removed, C, run.variant)
        tables.add_models([run], answered.judged, answered.seconds)
    tables.write(rows, curves)


def _write_weights(output: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str]) -> None:
    content = save({name: tensor.contiguous() for name, tensor in tensors.items()}, metadata)
    with atomic_path(output) as temporary:
        temporary.write_bytes(content)


def _write_no_rows(rows: Path, curves: Path) -> None:
    """Write the empty tables of an experiment that is left out."""
    write_table(curves, concatenate([], CURVE_ROWS), CURVE_ROWS)
    write_table(rows, concatenate([], RUN_ROWS), RUN_ROWS)


def _same_removals(runs: Sequence[Run]) -> list[list[Run]]:
    """Group runs that use the same data sets in the same order, so that their trials can be one batch."""
    groups: dict[tuple[object, ...], list[Run]] = {}
    for run in runs:
        removed = tuple(request.records_removed for request in run.requests)
        # With mini-batches, the place in the cycle at which a request is answered depends on all earlier steps.
        taken = None if run.cycle is None else (run.cycle, run.learning_steps, *_steps_before_the_last(run))
        groups.setdefault((run.variant, run.radius, run.step_size, removed, taken), []).append(run)
    return list(groups.values())


def _steps_before_the_last(run: Run) -> list[int]:
    return [request.unlearning_steps for request in run.requests[:-1]]


def _curve_steps(runs: Sequence[Run]) -> list[int]:
    return _spaced(max(run.learning_steps for run in runs))


def _request_curve_steps(runs: Sequence[Run]) -> list[list[int]]:
    """Return the steps at which each request is measured; requests of a stream are measured only at their ends."""
    if len(runs[0].requests) > 1:
        return [[] for _ in runs[0].requests]
    return [_spaced(max(run.requests[0].unlearning_steps for run in runs))]


def _spaced(last: int) -> list[int]:
    if last < 1:
        return []
    return sorted({round(step) for step in np.geomspace(1, last, CURVE_POINTS)})


def _learning_key(mechanism: Mechanism, plan: ExperimentPlan) -> str:
    """Return a hash of everything on which learning depends."""
    settings = plan.settings.model_dump(mode="json", exclude={"device", "accountants"})
    learned = sorted((run.sigma, run.learning_steps, run.step_size) for run in plan.of(mechanism.name))
    return content_key([settings, plan.constants.model_dump(mode="json"), learned])


def _read_learned(
    path: Path, mechanism: Mechanism, plan: ExperimentPlan
) -> tuple[dict[float, Tensor], dict[float, dict[int, Array]]]:
    """Return the learned weights, and the learning curves, by sigma."""
    try:
        with safetensors.safe_open(str(path), framework="pt") as file:
            metadata = file.metadata() or {}
        tensors = load_file(path)
    except (OSError, safetensors.SafetensorError) as error:
        raise DataError(f"{path} cannot be read as learned weights: {error}") from error
    key, sigmas = json.loads(metadata.get("learned", '["", []]'))
    if key != _learning_key(mechanism, plan):
        raise DataError(f"{path} was learned for another plan; learn again")
    weights = dict(zip(sigmas, tensors["weights"].chunk(len(sigmas)), strict=True))
    curves: dict[float, dict[int, Array]] = {sigma: {} for sigma in sigmas}
    for name, values in tensors.items():
        if name.startswith("curve/"):
            _, sigma, step = name.split("/")
            curves[float(sigma)][int(step)] = values.numpy()
    return weights, curves
