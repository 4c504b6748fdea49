"""Phased descent: what one record moves, the condition on steps that privacy needs, and disjoint blocks."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from certified_unlearning.accounting.core.conversion import epsilon_from_mu
from certified_unlearning.accounting.private.losses import LinearProblem, ScalarLoss
from certified_unlearning.accounting.private.phased import OnePass, PhasedDescent
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.errors import AssumptionError, ParameterError
from certified_unlearning.mechanisms.private.phased import learn, one_pass

SQUARED = ScalarLoss(name="squared")
LOSSES = [SQUARED, ScalarLoss(name="logistic"), ScalarLoss(name="huber", width=0.3)]


def plan_for(loss: ScalarLoss, n: int, step_size: float, radius: float = 2.0) -> OnePass:
    problem = LinearProblem(n=n, features=2, row_norm=1.0, loss=loss, radius=radius)
    return OnePass(problem=problem, step_size=step_size, sigma=1e-300)


def end(plan: OnePass, rows: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    records = BoundedRecords(rows, targets, loss=plan.problem.loss, row_norm=1.0)
    return one_pass(plan, records, torch.zeros(1, 2, dtype=torch.float64), [0])[0]


@given(
    seed=st.integers(0, 2**31),
    loss=st.sampled_from(LOSSES),
    share=st.sampled_from([0.1, 0.9, 0.999999]),
    place=st.integers(0, 5),
)
def test_a_replaced_record_moves_the_end_by_no_more_than_stated(seed, loss, share, place):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(6, 2, generator=generator, dtype=torch.float64) * 3
    targets = torch.randn(6, generator=generator, dtype=torch.float64).sign()
    plan = plan_for(loss, 6, 0.9)
    plan = replace(plan, step_size=share * 2 / plan.problem.smoothness)
    before = end(plan, rows, targets)
    rows[place], targets[place] = -rows[place], targets[(place + 1) % 6]
    assert float((end(plan, rows, targets) - before).norm()) <= plan.sensitivity


def test_steps_that_stretch_break_the_bound_and_are_refused():
    """E39, planted: with steps of 40 / H a record moves the end by far more than 2 eta G."""
    allowed = plan_for(SQUARED, 12, 0.9, radius=1e6)
    with pytest.raises(AssumptionError, match="step_size must be at most"):
        replace(allowed, step_size=20.0)
    stretched = object.__new__(OnePass)
    stretched.__dict__.update(vars(allowed), step_size=20.0)
    rows, labels = torch.ones(12, 2, dtype=torch.float64), torch.full((12,), 0.01, dtype=torch.float64)
    other = labels.clone()
    other[0] = -0.01
    moved = float((end(stretched, rows, other) - end(stretched, rows, labels)).norm())
    first_gradients = 2 * 0.01
    assert moved > 100 * 2 * stretched.step_size * first_gradients


def test_noise_has_its_law_and_phases_their_own():
    """Kolmogorov and Smirnov, 4000 trials, wrong once in 1e6."""
    problem = LinearProblem(n=64, features=2, row_norm=1.0, loss=ScalarLoss(name="logistic"), radius=2.0)
    plan = PhasedDescent.plan(problem, epsilon=1, delta=1e-6)
    assert [phase.problem.n for phase in plan.phases] == [32, 16, 8, 4, 2, 1]
    assert plan.unused == 1
    assert 1 - 1e-9 <= plan.guarantee.epsilon(1e-6) <= 1
    sizes = np.array([phase.sigma for phase in plan.phases])
    assert sizes[:-1] / sizes[1:] == pytest.approx(4, rel=1e-3)
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(64, 2, generator=generator, dtype=torch.float64)
    records = BoundedRecords(rows, rows[:, 0].sign(), loss=problem.loss, row_norm=1.0)
    last = replace(plan.phases[0], sigma=1e-300)
    mean = one_pass(last, records.part(0, 32), torch.zeros(1, 2, dtype=torch.float64), [0])
    noisy = one_pass(plan.phases[0], records.part(0, 32), torch.zeros(4000, 2).double(), list(range(4000)))
    law = stats.norm(0, plan.phases[0].sigma)
    assert stats.kstest((noisy - mean)[:, 0].numpy(), law.cdf).pvalue > 1e-6
    assert torch.equal(learn(plan, records, [3, 4])[1:], learn(plan, records, [4]))


def test_l0_for_the_slope_is_caught():
    problem = LinearProblem(n=64, features=2, row_norm=1.0, loss=SQUARED, radius=2.0)
    plan = PhasedDescent.plan(problem, epsilon=1, delta=1e-6)
    planted = replace(plan.phases[0], sigma=plan.phases[0].sigma / problem.gradient_bound)  # A loss of 1 at 0.
    assert epsilon_from_mu(planted.mu, 1e-6) > 5


def test_what_makes_no_sense_is_named():
    problem = LinearProblem(n=64, features=2, row_norm=1.0, loss=SQUARED, radius=2.0)
    with pytest.raises(ParameterError, match="convex"):
        PhasedDescent.plan(replace(problem, loss=ScalarLoss(name="tanh")), epsilon=1, delta=1e-6)
    with pytest.raises(ParameterError, match="no phase is possible"):
        PhasedDescent.plan(replace(problem, n=1), epsilon=1, delta=1e-6)
    with pytest.raises(AssumptionError, match="step_size"):
        PhasedDescent.plan(problem, epsilon=1, delta=1e-6, step_size=100.0)
