"""What every plan says of itself: constants that rebuild it, and words with nothing left to fill in."""

from dataclasses import replace

import pytest

from certified_unlearning.accounting.private import PLANS, plan_of
from certified_unlearning.accounting.private.learners import NoisyDescent, OutputPerturbation
from certified_unlearning.accounting.private.losses import LinearProblem, ScalarLoss
from certified_unlearning.accounting.private.phased import PhasedDescent
from certified_unlearning.accounting.private.plan import PrivatePlan
from certified_unlearning.accounting.private.recursive import RecursiveRegularisation
from certified_unlearning.accounting.private.sampled import SampledDescent
from certified_unlearning.accounting.private.sampled_spider import SampledSpider
from certified_unlearning.accounting.private.searches import Boosting, GridSearch
from certified_unlearning.accounting.private.spider import SpiderBoost
from certified_unlearning.accounting.private.tree_spider import TreeSpider
from certified_unlearning.certificate.private.statement import words
from certified_unlearning.errors import ParameterError

ASKED = {"epsilon": 1.0, "delta": 1e-6}
PROBLEM = LinearProblem(n=10_000, features=50, row_norm=1.0, loss=ScalarLoss(name="logistic"), radius=2.0)
EXAMPLES: list[PrivatePlan] = [
    NoisyDescent.plan(PROBLEM, **ASKED, steps=100),
    OutputPerturbation.plan(PROBLEM, **ASKED),
    SpiderBoost.plan(PROBLEM, **ASKED, gap=0.7, steps=60),
    TreeSpider.plan(PROBLEM, **ASKED),
    RecursiveRegularisation.plan(PROBLEM, **ASKED, steps=60),
    PhasedDescent.plan(PROBLEM, **ASKED),
    SampledDescent(problem=PROBLEM, steps=20, share=0.02, clip=1.0, multiplier=4.0, step_size=0.5),
    SampledSpider(
        problem=PROBLEM, steps=40, period=6, batch=500, step_size=2.0, sigma_gradient=0.004, sigma_difference=0.016
    ),
]
SELECTED = [
    GridSearch.plan(PROBLEM, (1.0, 2.0), lambda problem, runs: OutputPerturbation.plan(problem, **ASKED), epsilon=1),
    Boosting.plan(PROBLEM, lambda problem, runs: NoisyDescent.plan(problem, **ASKED, steps=9), epsilon=1),
]


def test_every_plan_is_listed_by_its_name() -> None:
    assert {name: type(plan) for plan in EXAMPLES for name in [plan.name]} == PLANS


@pytest.mark.parametrize("plan", [*EXAMPLES, *SELECTED], ids=lambda plan: f"{plan.selection} {plan.mechanism}")
def test_a_plan_is_rebuilt_from_its_constants(plan: PrivatePlan) -> None:
    constants = plan.constants()
    again = plan_of(constants)
    assert type(again) is type(plan)
    assert (constants.n, again.failure) == (10_000, plan.failure)
    # What is divided and multiplied again may have another last digit.
    assert again.noise_resolution == pytest.approx(plan.noise_resolution, rel=1e-12)
    assert replace(again.constants(), runs=()) == replace(constants, runs=())


@pytest.mark.parametrize("plan", EXAMPLES, ids=lambda plan: plan.name)
def test_runs_with_the_constants_of_another_plan_are_refused(plan: PrivatePlan) -> None:
    other = next(each for each in EXAMPLES if each.run_constants is not plan.run_constants)
    with pytest.raises(ParameterError, match=f"{plan.name} has no run with the constants"):
        plan_of(replace(plan.constants(), runs=other.constants().runs))


@pytest.mark.parametrize("plan", [*EXAMPLES, *SELECTED], ids=lambda plan: f"{plan.selection} {plan.mechanism}")
def test_words_have_nothing_left_to_fill_in(plan: PrivatePlan) -> None:
    said = words(plan, embedded=False, noise_source="seed", dataset="own", features="given")
    assert "{" not in str(said["sampling"])
    assert (getattr(plan, "share", None) is None) == ("probability" not in said["sampling"])


def test_a_tree_cannot_be_selected_from() -> None:
    tree = next(plan for plan in EXAMPLES if plan.name == "tree-spider").constants()
    with pytest.raises(ParameterError, match="tree-spider is none of noisy-gradient-descent, output-perturbation"):
        plan_of(replace(tree, selection="boosting"))
