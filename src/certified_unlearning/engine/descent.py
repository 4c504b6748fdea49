"""The loop of projected noisy gradient descent: it runs one phase after another for a batch of trials.

A step is ``w <- Proj(w - step_size * grad f(w) + sqrt(2 step_size) sigma xi)`` with ``xi ~ N(0, I)``. So the noise of a
step has standard deviation ``sqrt(2 step_size) * sigma``, not ``sigma`` (Langevin unlearning, equations 1 and 2). This
module has no notion of privacy or of data sets: it runs phases and measures trials.
"""

import bisect
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from certified_unlearning.engine import randomness
from certified_unlearning.engine.checkpoint import Checkpoint
from certified_unlearning.engine.phase import DescentPhase as DescentPhase
from certified_unlearning.engine.progress import Progress
from certified_unlearning.errors import AssumptionError

Array = npt.NDArray[np.float64]


class Objective(Protocol):
    """Interface of a loss that the descent loop can use."""

    n: int
    d: int

    def remove(self, count: int) -> None:
        """Change the objective to that of the data after the first ``count`` removals."""

    def descend(self, weights: Tensor, step_size: float) -> None:
        """Take one gradient step for all trials, in place."""


class CyclicObjective(Objective, Protocol):
    """Interface of a loss whose steps use one mini-batch after another."""

    def seek(self, step: int) -> None:
        """Continue at step ``step`` of the cycle; steps are counted from 0."""

    def noisy_steps(self, weights: Tensor, step_size: float, noise_std: float, *, key: int, steps: range) -> int:
        """Apply the first few of the given noisy steps of one trial, and return their number, possibly 0."""


@dataclass
class DescentResult:
    """Result of a run: weights and measures.

    Attributes:
        weights: Final weights, shape ``(trials, d)``.
        published: One array for each finished phase, of shape ``(publications,)`` or ``(publications, measures)``:
            measures of the weights that the phase published.
        curve: Measures during phases, by ``(phase, step)``; NaN for trials that had finished before that step.
        seconds: Wall time, including the time before every resumption.
    """

    weights: Tensor
    published: list[Array] = field(default_factory=list)
    curve: dict[tuple[int, int], Array] = field(default_factory=dict)
    seconds: float = 0.0


def run(
    objective: Objective | CyclicObjective,
    start: Tensor,
    phases: Sequence[DescentPhase],
    *,
    step_size: float,
    measure: Callable[[Tensor], Tensor] | None = None,
    judge: Callable[[Tensor], Tensor] | None = None,
    radius: float | None = None,
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
) -> DescentResult:
    """Run all phases for a batch of trials.

    Trials may differ in their number of steps and in sigma. The random numbers of a trial depend only on the trial's
    own keys. However, matrix products of different sizes may round differently.

    Args:
        objective: The loss; its ``remove`` is called at the start of each phase.
        start: Starting weights, shape ``(trials, d)``; not changed.
        phases: Phases to run, in order.
        step_size: Step size of all phases, ``eta``.
        measure: Function from weights, shape ``(trials, d)``, to one number for each trial; None to measure nothing.
        judge: Function that maps published weights to their measures. Both the weights and the measures have one row
            for each publication. The default is ``measure``.
        radius: Radius of the ball onto which every step projects; None for no projection.
        progress: Function that receives the work done, in trial steps.
        checkpoint: Checkpoint in which the state is saved regularly. A later run with the same checkpoint continues
            from the saved state, and gives bit-identical results.

    Returns:
        The final weights and the measures.

    Raises:
        AssumptionError: PyTorch is set to multiply float32 matrices with fewer bits than `core.rounding` assumes.
    """
    _require_full_precision(start.dtype)
    judge = judge or measure
    state, first_phase, first_step = _resume(start, checkpoint)
    if progress is not None:
        progress.skip(_work_before(phases, first_phase, first_step))
    clock = time.monotonic()

    def save(phase: int, step: int, *, force: bool = False) -> None:
        nonlocal clock
        now = time.monotonic()
        state.seconds, clock = state.seconds + now - clock, now
        if checkpoint is not None and (force or checkpoint.is_due()):
            checkpoint.save(
                {"weights": state.weights, "published": _stack(state.published), **_pack(state.curve)},
                {"phase": phase, "step": step, "seconds": state.seconds},
            )

    for number in range(first_phase, len(phases)):
        phase = phases[number]
        objective.remove(phase.removed)
        _run_phase(objective, state, phase, number, first_step, step_size, radius, measure, progress, save)
        first_step = 0
        published = state.weights
        if phase.publication_sigma:
            published = publish(state.weights, phase)
        if judge is not None:
            state.published.append(_measured(judge, published))
        if phase.feeds_back:
            state.weights = published
        save(number + 1, 0, force=number + 1 == len(phases))
    if state.weights.is_inference():
        state.weights = state.weights.clone()  # This is a copy, so it may be changed in place anywhere.
    return state


def _require_full_precision(dtype: torch.dtype) -> None:
    if dtype != torch.float32:
        return
    try:
        precision = torch.get_float32_matmul_precision()
    except RuntimeError:  # The setting applies to one device or library only, so it has no single name.
        precision = "mixed"
    if precision != "highest":
        raise AssumptionError(
            f"PyTorch multiplies float32 matrices with precision {precision!r}, but guarantees assume the rounding "
            "errors of 'highest'; call torch.set_float32_matmul_precision('highest'), or use dtype float64"
        )


@torch.inference_mode()  # This saves a sixth of the time of a step with few numbers.
def _run_phase(
    objective: Objective | CyclicObjective,
    state: DescentResult,
    phase: DescentPhase,
    number: int,
    first_step: int,
    step_size: float,
    radius: float | None,
    measure: Callable[[Tensor], Tensor] | None,
    progress: Progress | None,
    save: Callable[..., None],
) -> None:
    # The longest trials come first, so that the trials that still run are always a leading, contiguous slice.
    order = sorted(range(len(phase.steps)), key=lambda trial: -phase.steps[trial])
    steps = [phase.steps[trial] for trial in order]
    keys = [phase.keys[trial] for trial in order]
    sigma = [phase.sigma[trial] for trial in order]
    inverse = None
    if order != list(range(len(order))):
        inverse = torch.as_tensor(np.argsort(order), device=state.weights.device)  # This is copied to a GPU only once.
    weights = state.weights if inverse is None else state.weights[order]
    noise_std = [math.sqrt(2 * step_size) * each for each in sigma]
    measure_at = set(phase.measure_at)
    stops = sorted({*steps, *measure_at})

    step = first_step
    alone: CyclicObjective | None = None
    if phase.place is not None:
        cyclic = cast(CyclicObjective, objective)
        cyclic.seek(phase.place + step)
        alone = cyclic if len(steps) == 1 and radius is None else None
    scale, noise, filled = None, None, range(0)
    while step < steps[0]:
        active = bisect.bisect_left(steps, -step, key=lambda each: -each)
        running = weights[:active]
        stop = next(stop for stop in stops if stop > step)
        taken = 0
        if alone is not None:
            taken = alone.noisy_steps(running, step_size, noise_std[0], key=keys[0], steps=range(step, stop))
        end = step + taken
        if not taken:
            block, offset = divmod(step, randomness.BLOCK_STEPS)
            end = min(step - offset + randomness.BLOCK_STEPS, stop)
            if scale is None:
                scale = weights.new_tensor(noise_std)[:, None]
            scaled = scale[:active]
            if any(sigma) and block not in filled:
                if noise is None:
                    noise = _room_for_noise(weights, step, steps[0])
                randomness.fill_blocks(noise[:active], keys[:active], block)
                filled = range(block, block + noise.shape[1])
            drawn: Sequence[Tensor | None] = (None,) * (end - step)
            if noise is not None:
                drawn = noise[:active, block - filled.start, offset : offset + end - step].unbind(1)
            for numbers in drawn:
                objective.descend(running, step_size)
                if numbers is not None:
                    running.addcmul_(numbers, scaled)
                if radius is not None:
                    project(running, radius)
        if progress is not None:
            progress.advance((end - step) * active)
        step = end
        if measure is not None and step in measure_at:
            values = np.full(len(order), np.nan)
            with torch.inference_mode(False):
                values[order[:active]] = _measured(measure, running)
            state.curve[number, step] = values
        state.weights = weights if inverse is None else weights[inverse]
        save(number, step)


def _room_for_noise(weights: Tensor, first: int, last: int) -> Tensor:
    """Return memory for the blocks of noise that are drawn together; it is no larger than the given steps need."""
    trials, dimension = weights.shape
    most = max(1, randomness.NUMBERS_AT_ONCE // (trials * randomness.BLOCK_STEPS * dimension))
    needed = -(-last // randomness.BLOCK_STEPS) - first // randomness.BLOCK_STEPS
    return weights.new_empty(trials, min(most, needed), randomness.BLOCK_STEPS, dimension)


def publish(weights: Tensor, phase: DescentPhase) -> Tensor:
    """Return the publications at the end of a phase: its trials' weights, shape ``(trials, d)``, with fresh noise."""
    copies = len(phase.publication_keys) // len(phase.publication_sigma)
    scale = torch.tensor(phase.publication_sigma, dtype=torch.float64).to(weights)[:, None]
    noise = randomness.normal_rows(phase.publication_keys, weights)
    return torch.addcmul(weights.repeat_interleave(copies, dim=0), noise, scale.repeat_interleave(copies, dim=0))


def project(weights: Tensor, radius: float) -> None:
    """Project every trial's weights onto a ball around 0, in place; the weights have shape ``(trials, d)``."""
    norms = torch.linalg.vector_norm(weights, dim=1, keepdim=True)
    weights.mul_((radius / norms).clamp_(max=1.0))


def _measured(measure: Callable[[Tensor], Tensor], weights: Tensor) -> Array:
    return measure(weights).cpu().numpy().astype(np.float64)


def _work_before(phases: Sequence[DescentPhase], phase: int, step: int) -> int:
    finished = sum(sum(earlier.steps) for earlier in phases[:phase])
    if phase == len(phases):
        return finished
    return finished + sum(min(step, steps) for steps in phases[phase].steps)


def _resume(start: Tensor, checkpoint: Checkpoint | None) -> tuple[DescentResult, int, int]:
    saved = checkpoint.load() if checkpoint is not None else None
    if saved is None:
        return DescentResult(weights=start.clone()), 0, 0
    tensors, position = saved
    curve = {}
    for name, values in tensors.items():
        if name.startswith("curve/"):
            _, phase, step = name.split("/")
            curve[int(phase), int(step)] = values.numpy()
    state = DescentResult(
        weights=tensors["weights"].to(start.device),
        published=list(tensors["published"].numpy()),
        curve=curve,
        seconds=float(position["seconds"]),
    )
    return state, int(position["phase"]), int(position["step"])


def _stack(published: Sequence[Array]) -> Tensor:
    return torch.from_numpy(np.stack(published)) if published else torch.empty(0, 0, dtype=torch.float64)


def _pack(curve: dict[tuple[int, int], Array]) -> dict[str, Tensor]:
    return {f"curve/{phase}/{step}": torch.from_numpy(values) for (phase, step), values in curve.items()}
