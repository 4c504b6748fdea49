"""7.3: SpiderBoost on Poisson batches with G = H = L_0 = 1, its constant by relation and accountant, and its errors."""

import math
from dataclasses import replace

import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.rdp import rdp_privacy_accountant

from certified_unlearning.accounting.private.learners import ROUNDING_SHARE
from certified_unlearning.accounting.private.losses import LinearProblem, ScalarLoss
from certified_unlearning.accounting.private.sampled import NoisySums, SampledGuarantee
from certified_unlearning.accounting.private.sampled_spider import SampledSpider
from certified_unlearning.errors import ParameterError

WIDE = {"n": 10**5, "d": 100, "steps": 37419, "batch": 517, "period": 193}
NARROW = {"n": 10**4, "d": 10, "steps": 8062, "batch": 112, "period": 89}


def spider(constant: float, *, n: int, d: int, steps: int, batch: int, period: int) -> SampledSpider:
    """A Huber loss of width 1 has G = H = 1."""
    problem = LinearProblem(n=n, features=d, row_norm=1.0, loss=ScalarLoss(name="huber", width=1.0), radius=1.0)
    scale = constant * math.sqrt(math.log(1e6))
    return SampledSpider(
        problem=problem,
        steps=steps,
        period=period,
        batch=batch,
        step_size=0.5,
        sigma_gradient=scale * max(1 / n, math.sqrt(steps / period) / n),
        sigma_difference=scale * max(1 / batch, math.sqrt(steps) / n),
    )


@pytest.mark.parametrize(
    ("size", "constant", "errors", "longest"),
    [
        (WIDE, 3.213, (2.765e-4, 0.05530), 18),
        (NARROW, 3.210, (1.289e-3, 0.1237), 8),
        (WIDE, 1.61305, (6.96943e-5, 0.0153852), 64),
        (NARROW, 1.61253, (3.25414e-4, 0.0378904), 26),
    ],
)
def test_errors_of_gradients_and_differences_and_the_period_that_they_allow(size, constant, errors, longest):
    plan = spider(constant, **size)
    digits = {"rel": 6e-4 if constant > 3 else 5e-6}
    assert (plan.gradient_error, plan.difference_error) == pytest.approx(errors, **digits)
    assert math.floor(1 / plan.difference_error) == longest
    assert math.isinf(plan.stationarity_bound(1.0))  # With the period of Theorem 42, which is longer (E21).
    if constant < 2:
        bound = replace(plan, period=1).stationarity_bound(1.0)
        assert bound == pytest.approx({100: 0.0436498, 10: 0.0941622}[size["d"]], rel=5e-6)


@pytest.mark.parametrize(("size", "expected"), [(WIDE, 0.01438), (NARROW, 0.0667475)])
def test_far_points_have_the_noise_of_two_gradients(size, expected):
    plan = spider(1.0, **size)
    assert plan.farthest * plan.sigma_difference == pytest.approx(expected, rel=5e-6)


def parts(constant: float, size: dict[str, int]) -> list[NoisySums]:
    """As 6.4 counts: one gradient more than resets, without a share for rounding."""
    plan = spider(constant, **size)
    gradients = size["steps"] // size["period"] + 1
    return [
        NoisySums(multiplier=size["n"] * plan.sigma_gradient, share=1.0, times=gradients),
        NoisySums(
            multiplier=size["batch"] * plan.sigma_difference, share=plan.share, times=size["steps"] + 1 - gradients
        ),
    ]


@pytest.mark.parametrize(("constant", "relation"), [(1.61253, "add-remove"), (3.210, "replace-one")])
def test_the_constant_by_relation(constant, relation):
    """The wide size is in `test_sampled`."""
    assert SampledGuarantee(sums=parts(constant, NARROW), relation=relation).epsilon(1e-6) == pytest.approx(1, abs=2e-3)


def test_the_constant_by_group_privacy_from_add_remove_is_hardly_larger():
    delta = 1e-6 / (1 + math.exp(0.5))
    found = SampledGuarantee(sums=parts(3.222, NARROW), relation="add-remove").epsilon(delta)
    assert found == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize(
    ("size", "constant", "epsilon"), [(WIDE, 1.72829, 1.0), (NARROW, 1.72856, 1.0), (WIDE, 2.0, 0.85461)]
)
def test_the_constant_by_renyi_divergences(size, constant, epsilon):
    accountant = rdp_privacy_accountant.RdpAccountant()
    for multiplier, share, times in parts(constant, size):
        event = GaussianDpEvent(multiplier)
        accountant.compose(SelfComposedDpEvent(event if share == 1 else PoissonSampledDpEvent(share, event), times))
    assert accountant.get_epsilon(1e-6) == pytest.approx(epsilon, rel=0.01)


def test_sums_are_counted_as_they_are_published():
    """The share of rounding is in the multipliers, and twice the bound under replace-one is the accountant's."""
    plan = spider(3.21, **NARROW)
    gradient, difference = plan.sums
    expected = parts(3.21, NARROW)
    assert gradient.multiplier * (1 + ROUNDING_SHARE) == pytest.approx(expected[0].multiplier, rel=1e-9)
    assert difference.multiplier * (1 + ROUNDING_SHARE) == pytest.approx(expected[1].multiplier, rel=1e-9)
    assert (gradient.times, difference.times) == (plan.gradients, plan.differences) == (91, 8062 - 91)
    other = replace(plan, problem=replace(plan.problem, relation="add-remove"))
    assert other.sums[0].multiplier == pytest.approx(gradient.multiplier, rel=1e-12)


@pytest.mark.parametrize(
    ("sums", "relation", "named"),
    [
        ([NoisySums(1.0, 1.0, 0)], "replace-one", "a noisy sum"),
        ([NoisySums(1.0, 1.0, 1)], "remove", "relation"),
        ([NoisySums(0.0, 1.0, 1)], "replace-one", "multiplier"),
    ],
)
def test_what_makes_no_sense_is_named(sums, relation, named):
    with pytest.raises(ParameterError, match=named):
        SampledGuarantee(sums=sums, relation=relation).epsilon(1e-6)


def test_a_plan_is_found_where_much_noise_leaves_an_epsilon_of_0():
    problem = LinearProblem(n=10_000, features=5, row_norm=1.0, loss=ScalarLoss(name="tanh"), radius=1.0)
    plan = SampledSpider.plan(problem, epsilon=0.001, delta=0.01, gap=1.0, steps=20)
    assert 0 < plan.epsilon(0.01) <= 0.001
