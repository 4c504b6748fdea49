"""Poisson batches: constants of the specification, and what the exact laws say where batches are everything."""

import math
import sys

import pytest
from dp_accounting import NeighboringRelation
from dp_accounting.pld import privacy_loss_distribution

from certified_unlearning.accounting.core.conversion import epsilon_from_mu
from certified_unlearning.accounting.private.learners import LinearProblem
from certified_unlearning.accounting.private.losses import ScalarLoss
from certified_unlearning.accounting.private.sampled import SampledDescent, sampled_epsilon
from certified_unlearning.errors import ParameterError

PROBLEM = LinearProblem(n=10_000, features=5, row_norm=1.0, loss=ScalarLoss(name="logistic"), radius=5.0)


@pytest.mark.parametrize(("relation", "moves"), [("replace-one", 2), ("add-remove", 1)])
def test_full_batches_are_never_below_the_exact_law(relation, moves):
    found = sampled_epsilon(30.0, share=1.0, steps=100, delta=1e-6, relation=relation)
    exact = epsilon_from_mu(moves * math.sqrt(100) / 30, 1e-6)
    assert exact <= found <= 1.001 * exact


def test_replace_one_is_within_group_privacy_of_add_remove():
    """An independent bound: two changes of (epsilon / 2, delta / (1 + e^(epsilon / 2)))."""
    replaced = sampled_epsilon(2.0, share=0.01, steps=1000, delta=1e-6, relation="replace-one")
    one = sampled_epsilon(2.0, share=0.01, steps=1000, delta=1e-6 / (1 + math.exp(replaced / 2)), relation="add-remove")
    assert one < replaced <= 2 * one * 1.01


@pytest.mark.parametrize(
    ("relation", "constant"),
    [(NeighboringRelation.ADD_OR_REMOVE_ONE, 1.61305), (NeighboringRelation.REPLACE_ONE, 3.213)],
)
def test_the_constant_of_theorem_41_depends_on_the_relation(relation, constant):
    """SpiderBoost's 194 gradients and 37 226 differences of 517 of 100 000 records."""
    differences = privacy_loss_distribution.from_gaussian_mechanism(
        517 * 0.00719001 * constant, sampling_prob=517 / 10**5, neighboring_relation=relation
    ).self_compose(37226)
    gradients = privacy_loss_distribution.from_gaussian_mechanism(
        0.000517548 * 10**5 * constant, neighboring_relation=relation
    ).self_compose(194)
    assert differences.compose(gradients).get_epsilon_for_delta(1e-6) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(("constant", "epsilon"), [(1.0, 1.68885), (2.0, 0.792539)])
def test_other_constants_under_add_remove(constant, epsilon):
    relation = NeighboringRelation.ADD_OR_REMOVE_ONE
    differences = privacy_loss_distribution.from_gaussian_mechanism(
        517 * 0.00719001 * constant, sampling_prob=517 / 10**5, neighboring_relation=relation
    ).self_compose(37226)
    gradients = privacy_loss_distribution.from_gaussian_mechanism(0.000517548 * 10**5 * constant).self_compose(194)
    assert differences.compose(gradients).get_epsilon_for_delta(1e-6) == pytest.approx(epsilon, rel=0.01)


def test_a_plan_meets_its_target_with_hardly_more_noise_than_it_takes():
    plan = SampledDescent.plan(PROBLEM, epsilon=1, delta=1e-6, steps=200, share=0.02, step_size=1.0)
    assert 0.999 < plan.epsilon(1e-6) <= 1


@pytest.mark.parametrize(
    ("changes", "named"),
    [({"share": 0.0}, "share"), ({"steps": 0}, "steps"), ({"epsilon": 0.0}, "epsilon"), ({"delta": 2.0}, "delta")],
)
def test_what_makes_no_sense_is_named(changes, named):
    given = {"epsilon": 1, "delta": 1e-6, "steps": 10, "share": 0.1, "step_size": 1.0, **changes}
    with pytest.raises(ParameterError, match=named):
        SampledDescent.plan(PROBLEM, **given)


def test_without_dp_accounting_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(ParameterError, match="extra private"):
        sampled_epsilon(1.0, share=0.1, steps=1, delta=0.1, relation="add-remove")
