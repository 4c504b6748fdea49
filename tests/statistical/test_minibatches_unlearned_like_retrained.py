"""A thousand models unlearned by mini-batches against a thousand retrained ones.

`differ` is wrong about equal laws once in 20 000 times: each of the two `not differ` below.
"""

import numpy as np
import pytest
import torch

from certified_unlearning.mechanisms.learners.minibatch import MiniBatchLearner
from tests.statistical.energy import differ

TRIALS, RECORDS, FEATURES, BATCH, REMOVED, FLIPS = 1000, 2000, 6, 250, 60, 20_000


def signed_rows(*, influential: bool) -> torch.Tensor:
    """Return rows whose last sixty, of the batch that learning uses last, are to go: as the others, or all alike."""
    generator = np.random.default_rng(0)
    rows = generator.standard_normal((RECORDS, FEATURES))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    if influential:
        rows[-REMOVED:] = np.eye(FEATURES)[0]
    return torch.tensor(rows)


def laws(*, influential: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return learned, unlearned and retrained weights of independent trials."""
    learner = MiniBatchLearner.plan(
        n=RECORDS, features=FEATURES, classes=2, regularisation=1 / (0.01 * RECORDS**2), epsilon=1.0, delta="1/n",
        batch_size=BATCH, steps=20, records=REMOVED,
    )  # fmt: skip
    labels, places = torch.zeros(RECORDS), ((RECORDS // BATCH - 1, REMOVED),)
    rows = signed_rows(influential=influential)
    without = rows.clone()
    without[-REMOVED:] = 0
    learned = learner.learn(rows, labels, keys=range(TRIALS))
    removal = learner.plan_removal([], REMOVED, places)
    assert removal.steps == 20
    unlearned = learner.unlearn(learned, without, labels, [removal], range(TRIALS))
    # The comparator: the same start and the same steps in the same order, without the removed records.
    again = learner.learn(without, labels, range(TRIALS, 2 * TRIALS))
    retrained = learner.unlearn(again, without, labels, [removal], range(TRIALS, 2 * TRIALS))
    return learned, unlearned, retrained


def test_unlearned_models_cannot_be_told_from_retrained_ones() -> None:
    _, unlearned, retrained = laws(influential=False)
    assert not differ(unlearned, retrained, seed=1, flips=FLIPS)


@pytest.mark.statistical
def test_models_that_did_not_unlearn_influential_records_are_told_apart() -> None:
    learned, unlearned, retrained = laws(influential=True)
    assert differ(learned, retrained, seed=2, flips=FLIPS)
    assert not differ(unlearned, retrained, seed=3, flips=FLIPS)
