"""Private learners: vectors of the source with its errors named, and what their plans certify."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certified_unlearning.accounting.core.conversion import epsilon_from_mu
from certified_unlearning.accounting.core.groups import group_guarantee
from certified_unlearning.accounting.private.guarantee import PrivateGuarantee
from certified_unlearning.accounting.private.learners import (
    NoisyDescent,
    OutputPerturbation,
    embedding_dimension,
    least_cost_strength,
)
from certified_unlearning.accounting.private.losses import LinearProblem, ScalarLoss
from certified_unlearning.accounting.private.releases import mu_of, noise_multiplier
from certified_unlearning.errors import AssumptionError, ParameterError
from certified_unlearning.papers.private_learning.theory.privacy import PRINTED, lemma_2

SQUARED = ScalarLoss(name="squared")
BASE = LinearProblem(n=10_000, features=100, row_norm=1.0, loss=SQUARED, radius=1.0)
ABSOLUTE = replace(BASE, loss=ScalarLoss(name="absolute", width=0.002))
LOGISTIC = replace(BASE, loss=ScalarLoss(name="logistic"), radius=3.0)
Z = 3.730631634816106


def test_theorem_8_at_the_base_case():
    bound = lemma_2(at_zero=1, smoothness=2, row_norm=1, radius=1)
    sigma = PRINTED["theorem 8"](1, 1e-5) * math.sqrt(10_000) * 2 * bound / 10_000
    assert (bound, sigma**2, sigma) == pytest.approx((6.82843, 0.429454, 0.655328), rel=2e-6)
    assert mu_of(2 * bound / 10_000, sigma=sigma, releases=10_000) == pytest.approx(0.208397, rel=3e-6)
    assert Z * math.sqrt(10_000) * 2 * bound / 10_000 == pytest.approx(0.509487, rel=3e-6)
    eta = min(1 / (math.sqrt(10_000) * max(math.sqrt(2), sigma * 10)), 1 / 8)
    assert eta == pytest.approx(0.00152595, rel=3e-6)
    printed = NoisyDescent(problem=BASE, steps=10_000, step_size=eta, sigma=sigma)
    assert printed.regret_bound == pytest.approx(0.339871, rel=3e-6)
    quiet = NoisyDescent(problem=BASE, steps=10_000, step_size=0.00707107, sigma=1e-12)
    assert quiet.regret_bound == pytest.approx(2 / math.sqrt(10_000) * math.sqrt(2) * 2.5, rel=1e-5)


def test_exact_noise_with_the_sharp_bound_is_less_than_half_of_what_theorem_8_prints():
    planned = NoisyDescent.plan(BASE, epsilon=1, delta=1e-5, steps=10_000)
    assert planned.sigma == pytest.approx(Z * math.sqrt(9_999) * 2 * 4 / 10_000, rel=1e-6)
    assert planned.sigma < 0.655328 / 2
    assert planned.releases == 9_999  # The first iterate is 0, not released.


def test_theorem_10_at_the_base_case():
    bound = 2 * math.sqrt(2) + 2  # E16, as the statement is corrected.
    strength = (bound * math.sqrt(2) * math.sqrt(math.log(1e5)) / 10_000) ** (2 / 3)
    assert strength == pytest.approx(0.0175096, rel=3e-6)
    assert 2 * bound / (strength * 10_000) == pytest.approx(0.0551518, rel=3e-6)
    assert pytest.approx(0.205751, rel=3e-6) == Z * 0.0551518
    planned = OutputPerturbation.plan(BASE, epsilon=1, delta=1e-5, strong_convexity=strength)
    assert planned.exact_sensitivity == pytest.approx(2 * 4 / (strength * 10_000), rel=1e-9)  # G sharp = 4.
    assert planned.sigma == pytest.approx(Z * planned.exact_sensitivity * (1 + 1e-3), rel=1e-5)


def test_theorem_12_at_the_base_case():
    strength = math.log(1e5) ** 0.25 / math.sqrt(10_000)
    assert strength == pytest.approx(0.0184203, rel=3e-6)
    planned = OutputPerturbation.plan(ABSOLUTE, epsilon=1, delta=1e-5, strong_convexity=strength)
    assert planned.exact_sensitivity == pytest.approx(0.0108576, rel=3e-6)
    assert planned.sigma == pytest.approx(0.0405057 * 1.001, rel=1e-5)
    printed = PRINTED["theorem 12"](1, 1e-5) * planned.exact_sensitivity
    assert printed == pytest.approx(0.0368406, rel=3e-6)
    assert strength / 2 + printed == pytest.approx(0.0460507, rel=3e-6)
    assert epsilon_from_mu(replace(planned, sigma=printed).mu, 1e-5) > 1.1  # E1.


def test_the_strength_that_costs_least():
    assert least_cost_strength(BASE, Z) == pytest.approx(2 * (Z * 4 * math.sqrt(2) / 10_000) ** (2 / 3), rel=1e-9)
    assert least_cost_strength(ABSOLUTE, Z) == pytest.approx(
        2 * math.sqrt(math.sqrt(2 / math.pi) * Z / 10_000), rel=1e-9
    )
    for problem in (BASE, ABSOLUTE, LOGISTIC, replace(BASE, relation="add-remove")):
        best = OutputPerturbation.plan(problem, epsilon=1, delta=1e-5)
        for factor in (0.9, 1.1):
            other = OutputPerturbation.plan(
                problem, epsilon=1, delta=1e-5, strong_convexity=factor * best.strong_convexity
            )
            assert best.privacy_cost <= other.privacy_cost
    assert OutputPerturbation.plan(BASE, epsilon=1, delta=1e-5).privacy_cost == pytest.approx(
        0.75 * least_cost_strength(BASE, Z), rel=2e-3
    )


def test_an_embedding_makes_rows_longer_and_the_ball_larger():
    """E2: with the bound for rows of norm 1 and the ball of radius 1, an epsilon of 1 would be 2.49."""
    inside = BASE.embedded(2506)
    assert inside.gradient_bound == pytest.approx((2 + 2 * 2 * math.sqrt(2)) * math.sqrt(2), rel=1e-9)
    assert 2 * math.sqrt(2) * math.sqrt(2) * 1 + 2 * 2 * 2 == pytest.approx(12)  # G_emb with Fact 1's constant.
    assert (2 * math.sqrt(2) * 2 * 1 + 2 * 2 * 2 * 2) == pytest.approx(21.6569, rel=1e-5)
    planned = NoisyDescent.plan(BASE, epsilon=1, delta=1e-5)
    forgotten = replace(planned, problem=replace(inside, features=BASE.features))
    assert epsilon_from_mu(forgotten.mu, 1e-5) > 2
    # As printed: Lemma 2's bound, where gradients of embedded rows of norm 2 in the ball of radius 2 reach 20.
    sigma = PRINTED["theorem 8"](1, 1e-5) * lemma_2(at_zero=1, smoothness=2, row_norm=1, radius=1)
    assert epsilon_from_mu(20 / sigma, 1e-5) == pytest.approx(2.49258, rel=1e-4)


def test_dimensions_of_an_embedding():
    wide = replace(BASE, features=10_000)
    reach = math.sqrt(2)
    assert embedding_dimension(wide, 1.0) == math.ceil((reach * 10_000 / (1 + reach)) ** (2 / 3))
    corrected = (reach * math.log(2 * 10_000 / 1e-5) * 10_000 / (1 + reach)) ** (2 / 3)
    assert corrected == pytest.approx(2506.06, rel=1e-5)
    long = 3 * reach
    assert (long * math.log(2e9) * 10_000 / (1 + long)) ** (2 / 3) == pytest.approx(3108.53, rel=1e-5)
    assert embedding_dimension(BASE, 1.0) == 100


PROBLEMS = st.builds(
    LinearProblem,
    n=st.integers(10, 10**6),
    features=st.integers(1, 2000),
    row_norm=st.floats(0.1, 3),
    radius=st.floats(0.05, 20),
    loss=st.sampled_from(
        [
            SQUARED,
            ScalarLoss(name="logistic"),
            ScalarLoss(name="huber", width=0.5),
            ScalarLoss(name="squared", target=9.0),
        ]
    ),
    relation=st.sampled_from(["replace-one", "add-remove"]),
)


@given(problem=PROBLEMS, epsilon=st.floats(0.05, 8), runs=st.integers(1, 7), steps=st.integers(2, 5000))
def test_what_is_planned_is_within_what_was_asked_and_hardly_less(problem, epsilon, runs, steps):
    for planned, slack in (
        (NoisyDescent.plan(problem, epsilon=epsilon, delta=1e-6, steps=steps, runs=runs), 1e-6),
        (OutputPerturbation.plan(problem, epsilon=epsilon, delta=1e-6, runs=runs, strong_convexity=0.1), 1e-6),
    ):
        found = epsilon_from_mu(math.sqrt(runs) * planned.mu, 1e-6)
        assert epsilon * (1 - slack) <= found <= epsilon
        assert planned.failure < 1e-100
        bound = problem.loss.ball_lipschitz(row_norm=problem.row_norm, radius=problem.radius)
        moves = 2 if problem.relation == "replace-one" else 1
        exact = moves * bound / problem.n
        if isinstance(planned, OutputPerturbation):
            exact = min(exact / 0.1, 2 * problem.radius)
        assert exact <= planned.sensitivity <= 1.011 * exact


@pytest.mark.parametrize(
    "planted",
    [
        lambda plan: replace(plan, sigma=plan.sigma / math.sqrt(plan.releases)),  # a forgotten sqrt(T)
        lambda plan: replace(plan, sigma=plan.sigma / 2),  # add-remove noise for replace-one
        lambda plan: replace(plan, sigma=plan.sigma * math.log(2) / plan.problem.gradient_bound),  # L0 for G
        lambda plan: replace(plan, problem=replace(plan.problem, n=plan.problem.n // 7)),  # n for the chunk size
        lambda plan: replace(plan, problem=replace(plan.problem, radius=2 * plan.problem.radius)),  # too small a radius
    ],
)
def test_planted_faults_show_in_the_recomputed_epsilon(planted):
    plan = NoisyDescent.plan(BASE, epsilon=1, delta=1e-5)
    assert epsilon_from_mu(plan.mu, 1e-5) <= 1
    assert epsilon_from_mu(planted(plan).mu, 1e-5) > 1.2


def test_privacy_does_not_depend_on_dimension_or_step_size():
    few = NoisyDescent.plan(replace(BASE, features=1), epsilon=1, delta=1e-5, step_size=0.01)
    many = NoisyDescent.plan(replace(BASE, features=10**5), epsilon=1, delta=1e-5, step_size=0.5)
    assert few.sigma == pytest.approx(many.sigma, rel=1e-5)


def test_the_neuron_is_no_convex_loss():
    with pytest.raises(ParameterError, match="needs a convex loss"):
        OutputPerturbation.plan(
            replace(BASE, loss=ScalarLoss(name="tanh")), epsilon=1, delta=1e-5, strong_convexity=0.1
        )


def test_too_fine_a_demand_on_float64_is_refused():
    with pytest.raises(AssumptionError, match="float64"):
        OutputPerturbation.plan(replace(BASE, n=10**9), epsilon=1, delta=1e-5, strong_convexity=1e-9)
    with pytest.raises(AssumptionError, match="float64 is too coarse"):
        NoisyDescent.plan(replace(BASE, n=10**9), epsilon=1, delta=1e-5)


# --- what a guarantee says of groups -----------------------------------------------------------------------


@given(mu=st.floats(1e-3, 1), records=st.integers(1, 30))
def test_a_group_of_gaussian_releases_has_a_multiple_of_mu_which_is_less_than_the_usual_rule(mu, records):
    guarantee = PrivateGuarantee(mu=mu)
    found = guarantee.epsilon(1e-6, records=records)
    assert found >= epsilon_from_mu(records * mu, 1e-6)
    usual, delta = group_guarantee(guarantee.epsilon(1e-6), 1e-6, edits=records)
    if delta < 1:
        assert guarantee.epsilon(delta, records=records) <= usual * (1 + 1e-9)


def test_disjoint_records_guarantee_the_maximum_and_a_group_may_lie_anywhere():
    mu = 1 / noise_multiplier(1, 1e-6)
    both = PrivateGuarantee(mu=mu, selection_epsilon=1.0)
    assert both.epsilon(1e-6) == pytest.approx(1, abs=1e-9)
    assert PrivateGuarantee(mu=mu / 10, selection_epsilon=1.0).epsilon(1e-6) == pytest.approx(1, abs=1e-9)
    for records in (2, 5, 20):
        ends = max(PrivateGuarantee(mu=mu).epsilon(1e-6, records=records), records * 1.0)
        assert both.epsilon(1e-6, records=records) >= ends


def test_how_many_deletions_a_model_covers():
    guarantee = PrivateGuarantee(mu=0.01)
    covered = guarantee.deletions(1.0, 1e-6)
    assert guarantee.epsilon(1e-6, records=covered) <= 1 < guarantee.epsilon(1e-6, records=covered + 1)
    assert PrivateGuarantee(mu=1.0).deletions(1.0, 1e-6) == 0
    with pytest.raises(ParameterError, match="mu"):
        PrivateGuarantee(mu=0.0).deletions(1.0, 1e-6)
