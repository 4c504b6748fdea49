"""Unlearned ridge regressions against retrained ones, many of them at the edge of the ball.

The false alarms are those of `differ`: one in a million.
"""

import numpy as np
import pytest
import torch

from certified_unlearning.mechanisms.learners.history import Removal
from certified_unlearning.mechanisms.learners.langevin import LangevinLearner
from tests.statistical.energy import differ

TRIALS = 400
RECORDS = 300
REMOVED = 60


def rows_and_targets(*, influential: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Return records of which the first are to go: like the others, or all alike and against the grain."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((RECORDS, 3))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    targets = np.clip(rows @ [0.9, -0.3, 0.1] + 0.1 * rng.standard_normal(RECORDS), -1, 1)
    if influential:
        rows[:REMOVED], targets[:REMOVED] = [1, 0, 0], -1
    return torch.tensor(rows, dtype=torch.float32), torch.tensor(targets, dtype=torch.float32)


def laws(*, influential: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, float]:
    """Return learned, unlearned and retrained weights of independent trials, and the radius of the ball."""
    rows, targets = rows_and_targets(influential=influential)
    learner = LangevinLearner.plan(
        n=RECORDS, features=3, classes=1, target_range=(-1.0, 1.0), regularisation=0.2 / RECORDS, epsilon=1.0,
        delta="1/n", steps=12, records=REMOVED, learning_steps=60,
    )  # fmt: skip
    removal = learner.plan_removal([], REMOVED)
    assert removal.steps == 12
    learned = learner.learn(rows, targets, keys=range(TRIALS))
    unlearned = learner.unlearn(learned, rows[REMOVED:], targets[REMOVED:], [removal], range(TRIALS))
    # The comparator of `shifted`: the same start, as many steps in all, the removed records' losses 0 from the start.
    without, all_steps = rows.clone(), Removal(REMOVED, learner.learning_steps + removal.steps)
    without[:REMOVED] = 0
    start = learner.model_copy(update={"learning_steps": 0}).learn(without, targets, range(TRIALS, 2 * TRIALS))
    retrained = learner.unlearn(start, without, targets, [all_steps], range(TRIALS, 2 * TRIALS))
    radius = learner.run([], dataset="own", features="given", data_digest=None).radius
    assert radius is not None
    return learned, unlearned, retrained, radius


def test_unlearned_models_cannot_be_told_from_retrained_ones_though_the_ball_is_reached() -> None:
    _, unlearned, retrained, radius = laws(influential=False)
    assert (unlearned.norm(dim=1) > 0.999 * radius).float().mean() > 0.05
    assert unlearned.norm(dim=1).max() <= radius * (1 + 1e-6)
    assert not differ(unlearned, retrained, seed=1)


@pytest.mark.statistical
def test_models_that_did_not_unlearn_influential_records_are_told_apart() -> None:
    learned, unlearned, retrained, _ = laws(influential=True)
    assert differ(learned, retrained, seed=2)
    assert not differ(unlearned, retrained, seed=3)
