"""The engine on the flattened weights of softmax regression: noise, projection, checkpoints."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from certified_unlearning.engine import descent, randomness
from certified_unlearning.engine.checkpoint import Checkpoint
from certified_unlearning.engine.descent import DescentPhase
from certified_unlearning.engine.objectives.softmax import accuracy
from tests.engine.test_softmax import CLASSES, EXACT, STEP_SIZE, TRIALS, D, objective, problem, reference_step
from tests.support.killing import Killed, Killer


def run(todo: list[DescentPhase], **options: object) -> descent.DescentResult:
    features, labels, weights = problem()
    replacements = torch.tensor([4, 1]), features[[5, 6]], (labels[[4, 1]] + 1) % CLASSES
    target = objective(features, labels, replacements=replacements, rows_at_once=11)
    return descent.run(
        target, weights, todo, step_size=STEP_SIZE, measure=lambda w: accuracy(w, features, labels), **options
    )


def phases(steps: int = 40, sigma: float = 0.2) -> list[DescentPhase]:
    def phase(name: str, removed: int) -> DescentPhase:
        keys = [randomness.address("softmax", name, trial) for trial in range(TRIALS)]
        return DescentPhase(
            removed=removed, steps=[steps] * TRIALS, sigma=[sigma] * TRIALS, keys=keys, measure_at=[7, 33]
        )

    return [phase("learning", 0), phase("unlearning", 2)]


def test_the_engine_takes_the_noisy_projected_steps_of_the_definition() -> None:
    features, labels, weights = problem()
    radius, steps = 0.5, 3
    todo = replace(phases(steps)[0], measure_at=[])
    noise = torch.empty(TRIALS, randomness.BLOCK_STEPS, CLASSES * D, dtype=torch.float64)
    randomness.fill_block(noise, todo.keys, 0)
    expected = weights
    for step in range(steps):
        expected = reference_step(features, labels, expected) + math.sqrt(2 * STEP_SIZE) * 0.2 * noise[:, step]
        expected = expected * (radius / expected.norm(dim=1, keepdim=True)).clamp(max=1)
    actual = run([todo], radius=radius).weights
    torch.testing.assert_close(actual, expected, **EXACT)
    assert float(actual.norm(dim=1).max()) <= radius * (1 + 1e-12)
    assert float((actual - run([todo]).weights).norm()) > 0.1


def test_an_interrupted_run_ends_with_the_same_bits(tmp_path) -> None:
    undisturbed = run(phases())

    for after in range(2, 9):
        checkpoint = Checkpoint(tmp_path / f"{after}.checkpoint", "key", every_seconds=0)
        with pytest.raises(Killed):
            run(phases(), progress=Killer(after), checkpoint=checkpoint)
        resumed = run(phases(), checkpoint=checkpoint)
        assert torch.equal(resumed.weights, undisturbed.weights)
        assert np.array_equal(resumed.published, undisturbed.published)
        assert all(np.array_equal(resumed.curve[where], undisturbed.curve[where]) for where in undisturbed.curve)


def test_trials_with_their_own_steps_equal_trials_run_alone() -> None:
    steps = [5, 0, 20]
    todo = replace(phases()[1], steps=steps, measure_at=[])
    mixed = run([todo]).weights
    for trial, count in enumerate(steps):
        alone = run([replace(todo, steps=[count] * TRIALS)]).weights
        torch.testing.assert_close(mixed[trial], alone[trial], **EXACT)
