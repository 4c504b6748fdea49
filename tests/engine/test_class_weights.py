"""Gradient steps with weights of classes, in the engine's tensors, against the same loss in NumPy."""

import numpy as np
import pytest
import torch

from certified_unlearning.engine.minibatch import CyclicObjective
from certified_unlearning.engine.objectives.float64 import LogisticRegression64, SoftmaxRegression64
from certified_unlearning.engine.objectives.logistic import LogisticObjective
from certified_unlearning.engine.objectives.rows import StreamedRows
from certified_unlearning.engine.objectives.softmax import SoftmaxObjective

N, FEATURES, STRENGTH, STEP = 40, 5, 0.1, 0.7
DRAW = np.random.default_rng(3)
ROWS = DRAW.standard_normal((N, FEATURES))
ROWS /= np.linalg.norm(ROWS, axis=1, keepdims=True)
SHARES = {2: (0.3, 1.0), 3: (1.0, 0.2, 0.6)}
LABELS = {2: DRAW.choice([-1.0, 1.0], N), 3: DRAW.integers(3, size=N)}
GONE = np.array([4, 21, 30])
"""Records that are replaced."""
OTHERS = ROWS[[1, 2, 3]][:, ::-1].copy()


def stepped(classes, labels, weights, rows=ROWS, n=N):
    kind = LogisticRegression64 if classes == 2 else SoftmaxRegression64
    return weights - STEP * kind(rows, labels, n, STRENGTH, classes, SHARES[classes]).gradient(weights)


def other_labels(classes):
    return -LABELS[2][GONE] if classes == 2 else (LABELS[3][GONE] + 1) % 3


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_step_of_all_records_is_that_of_the_weighted_loss(classes, count, streamed):
    class Source:
        shape = ROWS.shape

        def read_into(self, out, start):
            out[:] = ROWS[start : start + len(out)]

    dtype = torch.float64
    rows = torch.tensor(ROWS)
    if streamed:
        rows = StreamedRows(Source(), dtype=dtype, device=torch.device("cpu"))
    replacements = tuple(map(torch.tensor, (GONE, OTHERS, other_labels(classes))))
    kind, more = (LogisticObjective, {}) if classes == 2 else (SoftmaxObjective, {"classes": 3})
    objective = kind(
        rows,
        torch.tensor(LABELS[classes]),
        strong_convexity=STRENGTH,
        lipschitz=1.5,
        replacements=replacements,
        rows_at_once=16,
        class_weights=SHARES[classes],
        **more,
    )
    objective.remove(3)
    objective.remove(count)
    weights = torch.tensor(DRAW.standard_normal((2, objective.d)))
    kept, labels = ROWS.copy(), LABELS[classes].copy()
    kept[GONE[:count]], labels[GONE[:count]] = OTHERS[:count], other_labels(classes)[:count]
    expected = [stepped(classes, labels, each.numpy(), kept) for each in weights]
    objective.descend(weights, STEP)
    assert weights.numpy() == pytest.approx(np.array(expected), abs=1e-6 if streamed else 1e-13)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_step_of_a_mini_batch_is_that_of_the_weighted_loss_of_its_records(classes):
    labels = LABELS[classes]
    rows = -labels[:, None] * ROWS if classes == 2 else ROWS
    objective = CyclicObjective(
        torch.tensor(rows),
        torch.tensor(labels),
        classes=classes,
        batch_size=16,
        strong_convexity=STRENGTH,
        class_weights=SHARES[classes],
    )
    weights = torch.tensor(DRAW.standard_normal((1, objective.d)))
    for first in (0, 16, 32, 0):
        some = slice(first, first + 16)
        expected = stepped(classes, labels[some], weights[0].numpy(), ROWS[some], n=16)
        objective.descend(weights, STEP)
        assert weights[0].numpy() == pytest.approx(expected, abs=1e-13)
