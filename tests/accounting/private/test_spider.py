"""SpiderBoost: vectors of the specification, the constant that replace-one needs, and its plan's own bounds."""

import math
from dataclasses import replace

import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.rdp import rdp_privacy_accountant

from certified_unlearning.accounting.core.conversion import epsilon_from_mu
from certified_unlearning.accounting.private import spider
from certified_unlearning.accounting.private.learners import ROUNDING_SHARE
from certified_unlearning.accounting.private.losses import LinearProblem, ScalarLoss
from certified_unlearning.accounting.private.releases import noise_multiplier
from certified_unlearning.accounting.private.spider import SpiderBoost, equivalent_constant, theorem_42
from certified_unlearning.errors import AssumptionError, ParameterError

UNIT = {"lipschitz": 1.0, "smoothness": 1.0, "gap": 1.0, "epsilon": 1.0, "delta": 1e-6}
PROBLEM = LinearProblem(n=5000, features=10, row_norm=1.0, loss=ScalarLoss(name="tanh"), radius=1.0)


@pytest.mark.parametrize(
    ("n", "dimension", "steps", "batch_size", "period", "rate", "cost"),
    [
        (10**5, 100, 37419, 517, 193, (0.00516958, 0.000371692), 3.87337e7),
        (10**4, 10, 8062, 112, 89, (0.0111375, 0.00117539), 1.80879e6),
    ],
)
def test_theorem_42(n, dimension, steps, batch_size, period, rate, cost):
    found = theorem_42(n=n, dimension=dimension, **UNIT)
    assert (found.steps, found.batch_size, found.period) == (steps, batch_size, period)
    assert found.rate == pytest.approx(rate, rel=5e-6)
    assert found.steps * found.batch_size + found.steps * n / found.period == pytest.approx(cost, rel=1e-5)
    scale = math.sqrt(math.log(1e6))
    sigma_1 = scale * max(1 / n, math.sqrt(steps) / (math.sqrt(period) * n))
    sigma_2 = scale * max(1 / batch_size, math.sqrt(steps) / n)
    expected = {10**5: (0.000517548, 0.00719001), 10**4: (0.00353761, 0.0333737)}[n]
    assert (sigma_1, sigma_2) == pytest.approx(expected, rel=3e-6)


def test_the_period_of_theorem_42_has_no_square_of_the_smoothness():
    found = theorem_42(n=10**5, dimension=100, **UNIT | {"smoothness": 4.0, "gap": 2.0})
    assert (found.steps, found.batch_size, found.period) == (74838, 366, 96)
    assert found.period // 16 == 6  # E21: as printed.


def test_a_period_of_millions_is_found_at_once():
    """Step by step that would take minutes."""
    problem = replace(PROBLEM, n=10**13)
    plan = SpiderBoost.plan(problem, epsilon=1, delta=1e-6, gap=1.0, steps=10**15)
    square = problem.smoothness**2
    assert plan.period > 10**6
    assert plan.period * plan.difference_error <= square
    longer = spider._calibrated(plan, plan.period + 1, 1, 1e-6)
    assert longer.period * longer.difference_error > square


def test_the_constant_under_replace_one_is_twice_that_under_add_remove():
    constant = equivalent_constant(1, 1e-6)
    assert constant == pytest.approx(3.21481, rel=3e-6)
    assert noise_multiplier(1, 1e-6) == pytest.approx(4.22468, rel=3e-6)
    # Planted: 1.61, of add-remove, for replace-one.
    assert epsilon_from_mu(constant / 1.61 / noise_multiplier(1, 1e-6), 1e-6) > 2


def test_poisson_batches_by_an_independent_accountant():
    """At c = 1, 194 gradients and 37 226 differences: RDP says 1.81581 under add-remove, so c = 1 is not private."""
    found = theorem_42(n=10**5, dimension=100, **UNIT)
    accountant = rdp_privacy_accountant.RdpAccountant()
    accountant.compose(SelfComposedDpEvent(GaussianDpEvent(0.000517548 * 10**5), 194))
    sampled = PoissonSampledDpEvent(found.batch_size / 10**5, GaussianDpEvent(found.batch_size * 0.00719001))
    accountant.compose(SelfComposedDpEvent(sampled, 37226))
    assert accountant.get_epsilon(1e-6) == pytest.approx(1.81581, rel=0.01)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_a_plan_is_within_what_was_asked_and_its_period_is_the_longest_allowed(relation):
    problem = replace(PROBLEM, relation=relation)
    plan = SpiderBoost.plan(problem, epsilon=1, delta=1e-6, gap=1.0)
    assert 1 - 1e-9 <= epsilon_from_mu(plan.mu, 1e-6) <= 1
    smoothness = problem.smoothness
    assert plan.period * plan.difference_error <= smoothness**2
    assert plan.stationarity_bound(1.0) == pytest.approx(
        math.sqrt(40 * smoothness / plan.steps + 12 * plan.gradient_error)
    )
    moves = 2 if relation == "replace-one" else 1
    multiplier = noise_multiplier(1, 1e-6) * (1 + ROUNDING_SHARE)
    assert plan.sigma_gradient == pytest.approx(
        moves * plan.gradient_bound / 5000 * multiplier * math.sqrt(2 * plan.gradients), rel=1e-9
    )
    assert plan.sigma_difference == pytest.approx(
        moves * smoothness / 5000 * multiplier * math.sqrt(2 * plan.differences), rel=1e-9
    )
    assert math.isinf(replace(plan, period=plan.steps).stationarity_bound(1.0))
    assert math.isinf(replace(plan, step_size=1.0).stationarity_bound(1.0))


@pytest.mark.parametrize(
    "planted",
    [
        lambda plan: replace(plan, sigma_difference=plan.sigma_difference / 2),
        lambda plan: replace(plan, steps=4 * plan.steps),
        lambda plan: replace(plan, period=1),  # every step a gradient, with the noise of few
    ],
)
def test_planted_faults_show_in_the_recomputed_epsilon(planted):
    plan = SpiderBoost.plan(PROBLEM, epsilon=1, delta=1e-6, gap=1.0)
    assert epsilon_from_mu(planted(plan).mu, 1e-6) > 1.2


def test_a_loss_without_a_bound_on_slopes_is_refused():
    with pytest.raises(ParameterError, match="bounded slope"):
        SpiderBoost.plan(replace(PROBLEM, loss=ScalarLoss(name="squared")), epsilon=1, delta=1e-6, gap=1.0)


@pytest.mark.parametrize("planted", [0.5, 1 / math.sqrt(2)])
def test_a_planner_that_forgets_a_factor_is_caught_by_its_own_guarantee(planted, monkeypatch):
    """Noise follows from one formula, the guarantee from another: half of the noise, or half of mu^2, is refused."""
    given = spider.mu_from_epsilon
    monkeypatch.setattr(spider, "mu_from_epsilon", lambda epsilon, delta: given(epsilon, delta) / planted)
    with pytest.raises(AssumptionError, match="planned noise gives epsilon"):
        SpiderBoost.plan(PROBLEM, epsilon=1, delta=1e-6, gap=1.0, steps=10)
