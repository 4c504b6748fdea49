"""DP-SGD: who is in a batch, clipping, noise, and that it learns."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from scipy import stats

from certified_unlearning.accounting.private.losses import LinearProblem, ScalarLoss
from certified_unlearning.accounting.private.sampled import SampledDescent
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.mechanisms.private.sampled_descent import learn

LINEAR = ScalarLoss(name="huber", width=1.0, target=1e6)
"""Far from targets a linear loss: its slope is -1 everywhere."""


def linear(**changes: float) -> SampledDescent:
    problem = LinearProblem(n=50, features=1, row_norm=1.0, loss=LINEAR, radius=1e5)
    given = {"steps": 1, "share": 0.3, "clip": 1.0, "multiplier": 1e-300, "step_size": 15.0}
    return SampledDescent(problem=problem, **given | changes)  # type: ignore[arg-type]


RECORDS = BoundedRecords(torch.ones(50, 1), torch.full((50,), 1e6), loss=LINEAR, row_norm=1.0)


def test_batches_have_the_binomial_law_of_independent_records():
    """Chi-squared of 5000 batches; wrong once in 1e6. The sum is divided by the constant 15, not by a batch's size."""
    sizes = learn(linear(), RECORDS, list(range(5000)))[:, 0]
    assert torch.equal(sizes, sizes.round())
    bins = [0, 10, 12, 14, 15, 16, 18, 20, 51]
    counts = [int(((sizes >= low) & (sizes < high)).sum()) for low, high in pairwise(bins)]
    law = stats.binom(50, 0.3)
    expected = [5000 * (law.cdf(high - 1) - law.cdf(low - 1)) for low, high in pairwise(bins)]
    assert stats.chisquare(counts, expected, sum_check=False).pvalue > 1e-6


def test_batches_of_steps_are_independent():
    """The variance of the sum of 20 batches; wrong once in 1e6."""
    sums = learn(linear(steps=20), RECORDS, list(range(1000)))[:, 0]
    ratio = float(sums.var()) / (20 * 50 * 0.3 * 0.7)
    assert abs(ratio - 1) < 4.9 * math.sqrt(2 / 1000)


def test_gradients_are_clipped_one_by_one_and_noise_is_in_units_of_the_clip():
    clipped = learn(linear(clip=0.25, share=1.0, step_size=50.0), RECORDS, [0])
    assert float(clipped) == pytest.approx(0.25 * 50)
    noisy = learn(linear(clip=0.25, share=1.0, step_size=50.0, multiplier=8.0), RECORDS, list(range(4000)))[:, 0]
    assert float(noisy.std()) == pytest.approx(2.0, rel=4.9 / math.sqrt(8000))


def test_it_learns():
    generator = torch.Generator().manual_seed(0)
    rows = torch.nn.functional.normalize(torch.randn(3000, 5, generator=generator, dtype=torch.float64))
    logistic = ScalarLoss(name="logistic")
    records = BoundedRecords(rows, rows[:, 0].sign(), loss=logistic, row_norm=1.0)
    problem = LinearProblem(n=3000, features=5, row_norm=1.0, loss=logistic, radius=8.0)
    plan = SampledDescent(problem=problem, steps=100, share=0.05, clip=1.0, multiplier=2.8, step_size=4.0)
    models = learn(plan, records, [1, 2, 3])
    assert float(((models @ rows.T).sign() == records.targets).double().mean()) > 0.85
    alone = learn(plan, records, [2])
    assert torch.equal(models[1:2], alone)
    assert not torch.equal(learn(replace(plan, multiplier=1e-300), records, [2]), alone)
