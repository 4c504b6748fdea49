"""Cyclic mini-batches against the formula, step by step; what is read, resumed and replaced."""

import math

import numpy as np
import pytest
import torch
from scipy.special import expit, softmax

from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.guarantees import as_computed
from certified_unlearning.engine import descent, minibatch
from certified_unlearning.engine.checkpoint import Checkpoint
from certified_unlearning.engine.minibatch import CyclicObjective, dealt_order
from certified_unlearning.engine.objectives.rows import StreamedRows
from certified_unlearning.engine.phase import DescentPhase
from certified_unlearning.errors import ParameterError

N, FEATURES, BATCH, STRENGTH, STEP = 23, 4, 6, 0.1, 1.5
GENERATOR = np.random.default_rng(5)
ROWS = GENERATOR.standard_normal((N, FEATURES))
ROWS /= 1.01 * np.linalg.norm(ROWS, axis=1, keepdims=True)
SIGNS = GENERATOR.choice([-1.0, 1.0], N)
CLASSES = GENERATOR.integers(3, size=N)


class Source:
    """Rows in a file, as far as the engine can see; it notes what is read."""

    def __init__(self, rows):
        self._rows, self.shape, self.read = rows.astype(np.float32), rows.shape, []

    def read_into(self, out, start):
        out[:] = self._rows[start : start + len(out)]
        self.read.append((start, len(out)))


def objective(classes, rows=None, **options):
    if classes == 2:
        made = torch.tensor(-SIGNS[:, None] * ROWS) if rows is None else rows
        labels = torch.zeros(N)
    else:
        made, labels = torch.tensor(ROWS) if rows is None else rows, torch.tensor(CLASSES)
    return CyclicObjective(made, labels, classes=classes, batch_size=BATCH, strong_convexity=STRENGTH, **options)


def gradient(weights, batch, classes, rows=ROWS, signs=SIGNS, labels=CLASSES):
    """The definition, for one trial."""
    where = slice(batch * BATCH, min((batch + 1) * BATCH, N))
    if classes == 2:
        coefficients = -signs[where] * expit(-signs[where] * (rows[where] @ weights))
        return coefficients @ rows[where] / BATCH + STRENGTH * weights
    by_class = weights.reshape(classes, -1)
    derivatives = softmax(rows[where] @ by_class.T, axis=1) - np.eye(classes)[labels[where]]
    return (derivatives.T @ rows[where] / BATCH).ravel() + STRENGTH * weights


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("at_once", [1 << 17, 2 * FEATURES])
def test_steps_take_one_batch_after_another_and_divide_by_its_size(classes, at_once, monkeypatch):
    monkeypatch.setattr(minibatch, "NUMBERS_AT_ONCE", at_once)
    loss = objective(classes)
    assert (loss.batches, loss.n, loss.d) == (4, N, FEATURES if classes == 2 else 3 * FEATURES)
    expected = GENERATOR.standard_normal((3, loss.d))
    weights = torch.tensor(expected)
    loss.seek(6)
    for batch in (2, 3, 0, 1, 2):
        loss.descend(weights, STEP)
        expected = np.array([each - STEP * gradient(each, batch, classes) for each in expected])
        np.testing.assert_allclose(weights.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("streamed", [False, True])
def test_removed_records_are_replaced_in_their_places(classes, streamed):
    given = ROWS if classes > 2 else -SIGNS[:, None] * ROWS
    rows = given.astype(np.float32).astype(np.float64)
    indices, others = torch.tensor([1, 20]), torch.tensor([[0.0] * FEATURES, [0.5] * FEATURES]).double()
    replaced = rows.copy()
    replaced[[1, 20]] = others
    labels = CLASSES.copy()
    labels[[1, 20]] = [0, 2]
    new_labels = torch.tensor([0, 2]) if classes > 2 else torch.zeros(2)
    placed = (
        StreamedRows(Source(rows), dtype=torch.float64, device=torch.device("cpu")) if streamed else torch.tensor(rows)
    )
    loss = objective(classes, placed, replacements=(indices, others, new_labels))
    ones = -np.ones(N)  # Rows are signed already.
    for count, (data, known) in {0: (rows, CLASSES), 2: (replaced, labels)}.items():
        loss.remove(count)
        for batch in (0, 3):
            weights = torch.full((1, loss.d), 0.3, dtype=torch.float64)
            loss.seek(batch)
            loss.descend(weights, STEP)
            start = np.full(loss.d, 0.3)
            expected = start - STEP * gradient(start, batch, classes, data, ones, known)
            np.testing.assert_allclose(weights[0].numpy(), expected, rtol=1e-10)


def test_a_row_of_zeros_is_no_record():
    rows = -SIGNS[:, None] * ROWS
    rows[7] = 0
    weights, expected = torch.ones(1, FEATURES, dtype=torch.float64), np.ones(FEATURES)
    loss = objective(2, torch.tensor(rows))
    loss.seek(1)
    loss.descend(weights, STEP)
    kept = np.array([index for index in range(BATCH, 2 * BATCH) if index != 7])
    coefficients = -SIGNS[kept] * expit(-SIGNS[kept] * (ROWS[kept] @ expected))
    expected = expected - STEP * (coefficients @ ROWS[kept] / BATCH + STRENGTH * expected)
    np.testing.assert_allclose(weights[0].numpy(), expected, rtol=1e-12)


def phases(place=0):
    keys = [11, 12]
    return [
        DescentPhase(0, [40, 40], [0.1, 0.1], keys, place=place),
        DescentPhase(0, [7, 25], [0.1, 0.1], [13, 14], place=place + 40),
    ]


def run(todo, *, checkpoint=None, progress=None):
    start = torch.zeros(2, FEATURES, dtype=torch.float64)
    return descent.run(
        objective(2),
        start,
        todo,
        step_size=STEP,
        measure=lambda rows: rows[:, 0],
        checkpoint=checkpoint,
        progress=progress,
    ).weights


class Killer:
    """Progress that dies once so many steps are done."""

    def __init__(self, after):
        self.left = after

    def skip(self, steps):
        self.left = self.left

    def advance(self, steps):
        self.left -= steps
        if self.left < 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("after", [20, 60, 85, 100])
def test_a_killed_run_goes_on_at_its_place_with_the_same_bits(tmp_path, after):
    undisturbed = run(phases())
    checkpoint = Checkpoint(tmp_path / "state", "key", every_seconds=0.0)
    with pytest.raises(KeyboardInterrupt):
        run(phases(), checkpoint=checkpoint, progress=Killer(after))
    assert torch.equal(run(phases(), checkpoint=checkpoint), undisturbed)
    assert not torch.equal(run(phases(place=1)), undisturbed)


def test_a_request_reads_its_batches_and_nothing_else():
    source = Source(-SIGNS[:, None] * ROWS)
    rows = StreamedRows(source, dtype=torch.float64, device=torch.device("cpu"))
    todo = DescentPhase(0, [3], [0.1], [1], place=41)
    start = torch.zeros(1, FEATURES, dtype=torch.float64)
    descent.run(objective(2, rows), start, [todo], step_size=STEP, measure=lambda rows: rows[:, 0])
    assert source.read == [(6, 6), (12, 6), (18, 5)]


def test_records_are_dealt_by_their_numbers_alone():
    order = dealt_order(1000, key=3)
    assert sorted(order) == list(range(1000))
    assert (order == dealt_order(1000, key=3)).all()
    assert (order != dealt_order(1000, key=4)).any()
    # Neighbours are parted: 999 pairs, of which 2 in 1000 stay together on average; 12 or more once in 300 000 times.
    assert (np.abs(np.diff(order)) == 1).sum() < 12


def test_removals_that_it_was_not_told_of_are_refused():
    with pytest.raises(ParameterError, match="without replacements, got"):
        objective(2).remove(1)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_computed_step_ends_within_the_counted_rounding_of_the_exact_one(classes, dtype):
    """Against 64 bits of mantissa; the bound is for weights up to M / m long and more."""
    constants = Problem(BATCH, STRENGTH, 1.0, 1.0 if classes == 2 else 2.0, STEP)
    dimension = FEATURES if classes == 2 else 3 * FEATURES
    bound = as_computed(constants, dimension=dimension, classes=classes, dtype=dtype, variant="least-steps").rounding
    kept = torch.tensor(-SIGNS[:, None] * ROWS if classes == 2 else ROWS).to(getattr(torch, dtype))
    exact_rows = kept.numpy().astype(np.longdouble)
    ones = -np.ones(N)  # Rows are signed already.
    largest = 0.0
    for scale in (0.1, 1.0, constants.lipschitz / STRENGTH / math.sqrt(dimension)):
        given = GENERATOR.standard_normal((200, dimension)) * scale / 3
        weights = torch.tensor(given).to(kept.dtype)
        start = weights.numpy().astype(np.longdouble)
        loss = objective(classes, kept.clone())
        loss.seek(2)
        loss.descend(weights, STEP)
        exact = np.array([each - STEP * gradient(each, 2, classes, exact_rows, ones) for each in start])
        largest = max(largest, float(np.linalg.norm(weights.numpy() - exact, axis=1).max()))
    assert 0 < largest <= bound.step_error(0.0)
    assert largest > bound.step_error(0.0) / 10_000  # The bound is about this arithmetic, not about anything.


@pytest.mark.parametrize(("rows", "features"), [(200_000, 1), (150_000, 3), (3000, 400)])
def test_large_batches_of_equal_rows_stay_within_the_counted_rounding(rows, features):
    """Equal terms of one sign are the worst for a long chain of additions; at 0 the exact step is known."""
    problem = Problem(rows, 0.01, 0.26, 1.0, 2 / 0.27)
    row = np.full(features, 0.7 / math.sqrt(features), dtype=np.float32)
    loss = CyclicObjective(
        torch.from_numpy(np.tile(row, (rows, 1))), torch.zeros(rows), classes=2, batch_size=rows, strong_convexity=0.01
    )
    weights = torch.zeros(1, features)
    loss.descend(weights, problem.step_size)
    exact = -problem.step_size * 0.5 * row.astype(np.float64)
    bound = as_computed(problem, dimension=features, classes=2, dtype="float32", variant="least-steps").rounding
    assert np.linalg.norm(weights[0].double().numpy() - exact) <= bound.step_error(0.0)
