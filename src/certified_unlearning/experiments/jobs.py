"""The jobs that carry out a plan: learn, unlearn, retrain, descend."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import safetensors
import torch
from safetensors.torch import load_file, save
from torch import Tensor

from certified_unlearning.data.prepared import PreparedData
from certified_unlearning.dynamics import Array
from certified_unlearning.errors import DataError
from certified_unlearning.experiments.model import Plan, Run
from certified_unlearning.experiments.simulation import Simulation
from certified_unlearning.experiments.tables import Tables, curves_by_run
from certified_unlearning.files import atomic_path, content_key
from certified_unlearning.mechanisms import descent_to_delete, langevin, retraining

CURVE_POINTS = 24
"""Steps of a phase at which test accuracy is measured, logarithmically spaced."""


def learn(plan: Plan, data: PreparedData, output: Path) -> None:
    """Learn one model for each distinct sigma of the plan's Langevin runs and each trial; write the weights.

    Raises:
        DataError: ``data`` is not what the plan was made for.
        StorageError: The file cannot be written.
    """
    simulation = Simulation(plan, "langevin", data, "learn", output)
    runs = list({run.sigma: run for run in plan.of("langevin")}.values())
    phase = langevin.learning_phase(plan.settings, runs, _curve_steps(runs))
    start = langevin.starting_weights(
        langevin.learning_keys(plan.settings, runs, "start"),
        phase.sigma,
        mean=plan.settings.start,
        strong_convexity=plan.constants.strong_convexity,
        like=simulation.no_weights,
    )
    simulation.expect([[phase]])
    trajectory = simulation.run(start, [phase], step_size=runs[0].step_size, radius=runs[0].radius)
    tensors = {"weights": trajectory.weights.cpu()}
    for run, curve in zip(runs, curves_by_run(runs, [phase], trajectory, [0] * len(runs)), strict=True):
        tensors |= {f"curve/{run.sigma!r}/{step}": torch.from_numpy(values) for step, values in curve.items()}
    # One entry only: several are written in random order, and equal inputs shall give equal bytes.
    metadata = {"learned": json.dumps([_learning_key(plan), [run.sigma for run in runs]])}
    content = save({name: tensor.contiguous() for name, tensor in tensors.items()}, metadata)
    with atomic_path(output) as temporary:
        temporary.write_bytes(content)
    simulation.finish()


def unlearn(plan: Plan, data: PreparedData, learned: Path, records: Path, curves: Path) -> None:
    """Answer every request of the plan's Langevin runs, starting from the learned weights.

    Raises:
        DataError: ``data`` or ``learned`` is not what the plan was made for.
        StorageError: A file cannot be written.
    """
    simulation = Simulation(plan, "langevin", data, "unlearn", records)
    weights, learning_curves = _read_learned(learned, plan)
    tables = Tables(plan, str(simulation.device))
    groups = _same_removals(plan.of("langevin"))
    phases = [langevin.unlearning_phases(plan.settings, runs, _request_curve_steps(runs)) for runs in groups]
    simulation.expect(phases)
    for runs, group in zip(groups, phases, strict=True):
        start = torch.cat([weights[run.sigma] for run in runs]).to(simulation.device)
        trajectory = simulation.run(start, group, step_size=runs[0].step_size, radius=runs[0].radius)
        tables.add_accuracies(runs, trajectory.published, trajectory.seconds)
        learned_steps = [run.learning_steps for run in runs]
        for run, curve in zip(runs, curves_by_run(runs, group, trajectory, learned_steps), strict=True):
            tables.add_curve(run, "learning", learning_curves[run.sigma])
            tables.add_curve(run, "unlearning", curve)
    tables.write(records, curves)
    simulation.finish()


def retrain(plan: Plan, data: PreparedData, records: Path, curves: Path) -> None:
    """Retrain from scratch on the data without the removed records, with the learner's noise and without any.

    Raises:
        DataError: ``data`` is not what the plan was made for.
        StorageError: A file cannot be written.
    """
    simulation = Simulation(plan, "retraining", data, "retrain", records)
    tables = Tables(plan, str(simulation.device))
    groups = _same_removals(plan.of("retraining"))
    phases = [retraining.retraining_phase(plan.settings, runs, _curve_steps(runs)) for runs in groups]
    simulation.expect([[phase] for phase in phases])
    for runs, phase in zip(groups, phases, strict=True):
        start = langevin.starting_weights(
            retraining.starting_keys(plan.settings, runs),
            phase.sigma,
            mean=plan.settings.start,
            strong_convexity=plan.constants.strong_convexity,
            like=simulation.no_weights,
        )
        trajectory = simulation.run(start, [phase], step_size=runs[0].step_size, radius=runs[0].radius)
        tables.add_accuracies(runs, trajectory.published, trajectory.seconds)
        for run, curve in zip(runs, curves_by_run(runs, [phase], trajectory, [0] * len(runs)), strict=True):
            tables.add_curve(run, "retraining", curve)
    tables.write(records, curves)
    simulation.finish()


def descend(plan: Plan, data: PreparedData, records: Path, curves: Path) -> None:
    """Run Descent-to-Delete: learn without noise from the origin, then answer every request.

    Raises:
        DataError: ``data`` is not what the plan was made for.
        StorageError: A file cannot be written.
    """
    simulation = Simulation(plan, "descent-to-delete", data, "descend", records)
    tables = Tables(plan, str(simulation.device))
    groups = _same_removals(plan.of("descent-to-delete"))
    phases = [descent_to_delete.phases(plan.settings, runs, _curve_steps(runs)) for runs in groups]
    simulation.expect(phases)
    for runs, group in zip(groups, phases, strict=True):
        start = simulation.no_weights.new_zeros(len(runs), plan.constants.d)
        trajectory = simulation.run(start, group, step_size=runs[0].step_size, radius=runs[0].radius)
        tables.add_accuracies(runs, trajectory.published[1:], trajectory.seconds)
        for run, curve in zip(runs, curves_by_run(runs, group, trajectory, [0] * len(runs)), strict=True):
            learning = {step: values for step, values in curve.items() if step <= run.learning_steps}
            tables.add_curve(run, "learning", learning)
            tables.add_curve(run, "unlearning", {step: curve[step] for step in curve.keys() - learning.keys()})
    tables.write(records, curves)
    simulation.finish()


def _same_removals(runs: Sequence[Run]) -> list[list[Run]]:
    """Group runs that pass through the same data sets in the same way: their trials can be one batch."""
    groups: dict[tuple[object, ...], list[Run]] = {}
    for run in runs:
        removed = tuple(request.records_removed for request in run.requests)
        groups.setdefault((run.variant, run.radius, run.step_size, removed), []).append(run)
    return list(groups.values())


def _curve_steps(runs: Sequence[Run]) -> list[int]:
    return _spaced(max(run.learning_steps for run in runs))


def _request_curve_steps(runs: Sequence[Run]) -> list[list[int]]:
    """Return where to measure on the way: inside a single request; of a stream the requests' ends are enough."""
    if len(runs[0].requests) > 1:
        return [[] for _ in runs[0].requests]
    return [_spaced(max(run.requests[0].unlearning_steps for run in runs))]


def _spaced(last: int) -> list[int]:
    if last < 1:
        return []
    return sorted({round(step) for step in np.geomspace(1, last, CURVE_POINTS)})


def _learning_key(plan: Plan) -> str:
    """Return the content key of all that learning depends on."""
    settings = plan.settings.model_dump(mode="json", exclude={"device"})
    learned = sorted((run.sigma, run.learning_steps, run.step_size) for run in plan.of("langevin"))
    return content_key([settings, plan.constants.model_dump(mode="json"), learned])


def _read_learned(path: Path, plan: Plan) -> tuple[dict[float, Tensor], dict[float, dict[int, Array]]]:
    """Return the learned weights and the learning curves by sigma."""
    try:
        with safetensors.safe_open(str(path), framework="pt") as file:
            metadata = file.metadata() or {}
        tensors = load_file(path)
    except (OSError, safetensors.SafetensorError) as error:
        raise DataError(f"{path} cannot be read as learned weights: {error}") from error
    key, sigmas = json.loads(metadata.get("learned", '["", []]'))
    if key != _learning_key(plan):
        raise DataError(f"{path} was learned for another plan; learn again")
    weights = dict(zip(sigmas, tensors["weights"].chunk(len(sigmas)), strict=True))
    curves: dict[float, dict[int, Array]] = {sigma: {} for sigma in sigmas}
    for name, values in tensors.items():
        if name.startswith("curve/"):
            _, sigma, step = name.split("/")
            curves[float(sigma)][int(step)] = values.numpy()
    return weights, curves
