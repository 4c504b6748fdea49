"""Recursive regularisation: its fixed point, the privacy of every stage, and faults that the numbers show."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from certified_unlearning.accounting.core.conversion import epsilon_from_mu
from certified_unlearning.accounting.private.losses import LinearProblem, ScalarLoss
from certified_unlearning.accounting.private.recursive import RecursiveRegularisation
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.private.noisy_descent import iterates
from certified_unlearning.mechanisms.private.recursive import found_by_stage, learn

ROWS = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]], dtype=torch.float64)
TARGETS = torch.tensor([1.0, -0.5, 0.25], dtype=torch.float64)
SQUARED = ScalarLoss(name="squared")


def logistic(n: int, d: int = 5) -> LinearProblem:
    return LinearProblem(n=n, features=d, row_norm=1.0, loss=ScalarLoss(name="logistic"), radius=2.0)


def test_without_noise_all_stages_find_the_same_and_its_gradient_is_the_regularisers():
    """7.5: strength 1/8 and four stages on the same three records; descent comes as near as its steps let it."""
    problem = LinearProblem(n=12, features=2, row_norm=1.0, loss=SQUARED, radius=1.0)
    plan = RecursiveRegularisation.plan(problem, epsilon=1, delta=1e-6, strength=0.125, steps=8000)
    assert len(plan.stages) == 4
    quiet = replace(plan, stages=tuple(replace(stage, sigma=1e-300) for stage in plan.stages))
    records = BoundedRecords(ROWS.repeat(4, 1), TARGETS.repeat(4), loss=SQUARED, row_norm=1.0)
    for found in found_by_stage(quiet, records, [0]):
        assert found[0].numpy() == pytest.approx(np.array([0.864481, -0.391218]), abs=3e-3)
    gradient = records.part(0, 3).mean_gradients(learn(quiet, records, [0]))
    assert float(gradient.norm()) == pytest.approx(0.118610, abs=3e-3)


def test_every_stage_spends_all_of_epsilon_on_its_own_chunk():
    plan = RecursiveRegularisation.plan(logistic(10_000), epsilon=1, delta=1e-6)
    epsilons = [epsilon_from_mu(stage.mu, 1e-6) for stage in plan.stages]
    assert max(epsilons) <= 1
    assert min(epsilons) > 1 - 1e-9
    assert plan.guarantee.epsilon(1e-6) == max(epsilons)
    assert len(plan.stages) * plan.problem.n + plan.unused == 10_000
    assert [stage.problem.radius for stage in plan.stages[:2]] == pytest.approx([2 * math.sqrt(2), 4])
    assert all(stage.step_size <= 1 / (stage.problem.smoothness + stage.regulariser) for stage in plan.stages)


def test_n_of_all_records_for_that_of_a_chunk_is_caught():
    """E8: noise for all records is too little by the number of stages."""
    plan = RecursiveRegularisation.plan(logistic(10_000), epsilon=1, delta=1e-6)
    stages = len(plan.stages)
    planted = replace(plan, stages=tuple(replace(stage, sigma=stage.sigma / stages) for stage in plan.stages))
    assert planted.guarantee.epsilon(1e-6) > 10


def test_chunks_are_disjoint_and_noise_is_not_shared():
    plan = RecursiveRegularisation.plan(logistic(400), epsilon=1, delta=1e-6, steps=50)
    rows = torch.randn(400, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    records = BoundedRecords(rows, rows[:, 0].sign(), loss=logistic(1).loss, row_norm=1.0)
    first = found_by_stage(plan, records, [1, 2])
    other = BoundedRecords(rows, rows[:, 0].sign(), loss=logistic(1).loss, row_norm=1.0)
    other.targets[plan.problem.n :] *= -1
    again = found_by_stage(plan, other, [1, 2])
    assert torch.equal(first[0], again[0])  # The first stage has not seen them.
    assert not torch.equal(first[1], again[1])
    assert not torch.equal(first[0][0], first[0][1])


def test_gradients_fall_with_more_records():
    """As X9: about 2 G / sqrt(n) with G = 1; a planned run is far below the start's gradient."""
    generator = torch.Generator().manual_seed(1)
    rows = torch.nn.functional.normalize(torch.randn(16_000, 5, generator=generator, dtype=torch.float64))
    labels = torch.where(torch.rand(16_000, generator=generator) < torch.sigmoid(4 * rows[:, 0]), 1.0, -1.0)
    loss = ScalarLoss(name="logistic")
    sizes = []
    for n in (1_000, 16_000):
        records = BoundedRecords(rows[:n], labels[:n], loss=loss, row_norm=1.0)
        plan = RecursiveRegularisation.plan(logistic(n), epsilon=1, delta=1e-6)
        everything = BoundedRecords(rows, labels, loss=loss, row_norm=1.0)
        sizes.append(float(everything.mean_gradients(learn(plan, records, [0, 1, 2, 3])).norm(dim=1).mean()))
    assert sizes[1] < sizes[0] / 2
    assert sizes[1] < 0.05


def test_what_makes_no_sense_is_named():
    plan = RecursiveRegularisation.plan(logistic(400), epsilon=1, delta=1e-6, steps=50)
    with pytest.raises(ParameterError, match="convex"):
        RecursiveRegularisation.plan(replace(logistic(400), loss=ScalarLoss(name="tanh")), epsilon=1, delta=1e-6)
    with pytest.raises(ParameterError, match="but there are only"):
        RecursiveRegularisation.plan(logistic(3), epsilon=1, delta=1e-6, strength=1e-6)
    with pytest.raises(ParameterError, match="regulariser of stage 1"):
        replace(plan, strength=2 * plan.strength)
    records = BoundedRecords(torch.zeros(10, 5), torch.ones(10), loss=logistic(1).loss, row_norm=1.0)
    with pytest.raises(ParameterError, match="400 records, got 10"):
        learn(plan, records, [0])
    with pytest.raises(ParameterError, match="pull"):
        next(iterates(replace(plan.stages[0], problem=logistic(10)), records, [0]))
