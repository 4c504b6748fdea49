"""A thousand unlearned models against a thousand retrained ones, on Adult.

Of 29 304 records 6000 are enough to tell a hundred influential ones; the test's false alarms are those of `differ`.
"""

import numpy as np
import pytest
import torch

from certified_unlearning.mechanisms.learners.history import Removal
from certified_unlearning.mechanisms.learners.langevin import LangevinLearner
from tests.statistical.energy import differ
from tests.support.adult_table import adult

pytestmark = pytest.mark.statistical

TRIALS = 1000
RECORDS = 6000
REMOVED = 100


def rows_and_labels(*, influential: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Return records whose first hundred are to go: as they are, or all alike and against the grain."""
    rows, labels, _, _ = adult()
    order = np.random.default_rng(0).permutation(len(rows))[:RECORDS]
    rows, labels = rows[order], np.where(labels[order], 1, -1)
    if influential:
        rows[:REMOVED], labels[:REMOVED] = [0, 0, 0, -1, 0, 0], 1
    return torch.tensor(rows, dtype=torch.float32), torch.tensor(labels, dtype=torch.float32)


def laws(*, influential: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return learned, unlearned and retrained weights of independent trials."""
    rows, labels = rows_and_labels(influential=influential)
    learner = LangevinLearner.plan(
        n=RECORDS, features=rows.shape[1], classes=2, regularisation=1 / (0.01 * RECORDS**2), epsilon=1.0, delta="1/n",
        steps=30, records=REMOVED, learning_steps=200,
    )  # fmt: skip
    learned = learner.learn(rows, labels, keys=range(TRIALS))
    removal = learner.plan_removal([], REMOVED)
    assert removal.steps == 30
    unlearned = learner.unlearn(learned, rows[REMOVED:], labels[REMOVED:], [removal], range(TRIALS))
    # The comparator of `shifted`: the same start, as many steps in all, the removed records' losses 0 from the start.
    without, zeroed = rows.clone(), Removal(REMOVED, learner.learning_steps + removal.steps)
    without[:REMOVED] = 0
    start = learner.model_copy(update={"learning_steps": 0}).learn(without, labels, range(TRIALS, 2 * TRIALS))
    retrained = learner.unlearn(start, without, labels, [zeroed], range(TRIALS, 2 * TRIALS))
    return learned, unlearned, retrained


def test_unlearned_models_cannot_be_told_from_retrained_ones() -> None:
    _, unlearned, retrained = laws(influential=False)
    assert not differ(unlearned, retrained, seed=1)


def test_models_that_did_not_unlearn_influential_records_are_told_apart() -> None:
    """A million sign flips of a thousand pairs, twice: that is the test's rate of false alarms."""
    learned, unlearned, retrained = laws(influential=True)
    assert differ(learned, retrained, seed=2)
    assert not differ(unlearned, retrained, seed=3)


@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_the_test_tells_a_shift_from_none(shift: float) -> None:
    generator = torch.Generator().manual_seed(4)
    first, second = (torch.randn(1000, 7, generator=generator) for _ in range(2))
    second[:, 0] += shift
    assert differ(first, second, seed=5, flips=100_000) == (shift > 0)
