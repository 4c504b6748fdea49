"""`unlearn plan private`."""

import json
import sys

import pytest
from typer.testing import CliRunner

from certified_unlearning.accounting.core.conversion import epsilon_from_mu
from certified_unlearning.accounting.private.learners import NoisyDescent, OutputPerturbation
from certified_unlearning.accounting.private.losses import LinearProblem, ScalarLoss
from certified_unlearning.accounting.private.phased import PhasedDescent
from certified_unlearning.accounting.private.sampled import SampledDescent
from certified_unlearning.accounting.private.sampled_spider import SampledSpider
from certified_unlearning.accounting.private.spider import SpiderBoost
from certified_unlearning.cli import app
from certified_unlearning.errors import AssumptionError, ParameterError

GIVEN = ["--n", "10000", "--features", "50", "--epsilon", "1", "--delta", "1e-6", "--radius", "5"]


def plan(*arguments):
    result = CliRunner().invoke(app, ["plan", "private", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_methods_are_planned_as_the_estimators_plan_them():
    found = {each["method"]: each for each in json.loads(plan(*GIVEN, "--json"))}
    assert list(found) == ["noisy-gradient-descent", "output-perturbation", "phased-descent", "sampled-descent"]
    problem = LinearProblem(n=10_000, features=50, row_norm=1.0, loss=ScalarLoss(name="logistic"), radius=5.0)
    assert found["noisy-gradient-descent"]["sigma"] == NoisyDescent.plan(problem, epsilon=1, delta=1e-6).sigma
    assert found["output-perturbation"]["sigma"] == OutputPerturbation.plan(problem, epsilon=1, delta=1e-6).sigma
    phased = PhasedDescent.plan(problem, epsilon=1, delta=1e-6)
    assert found["phased-descent"]["sigma"] == phased.phases[0].sigma
    assert found["phased-descent"]["steps"] == 10_000 - phased.unused
    assert {each["relation"] for each in found.values()} == {"replace-one"}


def test_several_deletions_are_covered_by_about_as_many_times_the_noise():
    one, ten = (json.loads(plan(*GIVEN, *more, "--json"))[0] for more in ((), ("--records", "10")))
    assert ten["sigma"] == pytest.approx(10 * one["sigma"], rel=1e-6)
    assert 0.999999 <= ten["epsilon"] <= 1
    assert ten["epsilon_one"] == pytest.approx(epsilon_from_mu(ten["mu"], 1e-6), rel=1e-9)
    halved = json.loads(plan(*GIVEN, "--relation", "add-remove", "--json"))[0]
    assert halved["sigma"] == pytest.approx(one["sigma"] / 2, rel=1e-6)


def test_many_columns_are_embedded_and_the_neuron_has_no_minimiser():
    wide = json.loads(plan(*[each if each != "50" else "5000" for each in GIVEN], "--loss", "squared", "--json"))
    assert [each["method"] for each in wide][:3] == ["noisy-gradient-descent", "output-perturbation", "embedding"]
    assert wide[2]["columns"] < 500
    assert [each["method"] for each in json.loads(plan(*GIVEN, "--loss", "tanh", "--json"))] == [
        "noisy-gradient-descent",
        "sampled-descent",
    ]


def test_the_table_names_its_relation():
    printed = " ".join(plan(*GIVEN, "--records", "3", "--loss", "absolute").split())
    assert "Relation replace-one. Each model covers 3 deleted records without further work" in printed
    assert "…" not in printed


def test_methods_for_stationary_points_are_planned():
    found = {each["method"]: each for each in json.loads(plan(*GIVEN, "--goal", "gradient", "--steps", "60", "--json"))}
    assert list(found) == ["spider-boost", "tree-spider", "recursive-regularisation", "sampled-spider"]
    loss = ScalarLoss(name="logistic")
    problem = LinearProblem(n=10_000, features=50, row_norm=1.0, loss=loss, radius=5.0)
    spider = SpiderBoost.plan(problem, epsilon=1, delta=1e-6, gap=loss.at_zero**2, steps=60)
    assert found["spider-boost"]["sigma"] == spider.sigma_gradient
    assert found["spider-boost"]["gradient"] == spider.stationarity_bound(loss.at_zero**2)
    sampled = SampledSpider.plan(problem, epsilon=1, delta=1e-6, gap=loss.at_zero**2, steps=60)
    assert found["sampled-spider"]["sigma"] == sampled.sigma_gradient
    assert found["sampled-spider"]["gradient"] == sampled.stationarity_bound(loss.at_zero**2)
    assert all(1 - 1e-3 < each["epsilon"] <= 1 + 1e-9 for each in found.values())
    assert all(each["epsilon"] > 1 - 1e-6 for each in found.values() if each["mu"] is not None)
    squared = json.loads(plan(*GIVEN, "--goal", "gradient", "--loss", "squared", "--steps", "60", "--json"))
    assert [each["method"] for each in squared] == ["recursive-regularisation"]
    tanh = json.loads(plan(*GIVEN, "--goal", "gradient", "--loss", "tanh", "--steps", "60", "--json"))
    assert [each["method"] for each in tanh] == ["spider-boost", "tree-spider", "sampled-spider"]
    printed = " ".join(plan(*GIVEN, "--goal", "gradient", "--steps", "60").split())
    assert "Gradient is an upper bound on the root of the mean squared gradient" in printed


def test_batches_of_sampled_descent_are_as_large_as_asked():
    usual, large = (json.loads(plan(*GIVEN, *more, "--json"))[-1] for more in ((), ("--batch-size", "1000")))
    share = SampledDescent.plan(
        LinearProblem(n=10_000, features=50, row_norm=1.0, loss=ScalarLoss(name="logistic"), radius=5.0),
        epsilon=1,
        delta=1e-6,
        steps=1000,
        share=0.1,
        step_size=1.0,
    )
    assert large["sigma"] == pytest.approx(share.sigma, rel=1e-9)
    assert (usual["mu"], usual["steps"]) == (None, 1000)
    assert large["sigma"] != usual["sigma"]


def test_several_deletions_under_poisson_batches_are_covered_by_what_is_enough_for_one():
    found = json.loads(plan(*GIVEN, "--records", "10", "--json"))[-1]
    assert found["method"] == "sampled-descent"
    assert 0.999 < found["epsilon"] <= 1 + 1e-9
    assert 10 * found["epsilon_one"] < found["epsilon"]  # At the same delta, group privacy takes more than its share.


@pytest.mark.parametrize("goal", ["loss", "gradient"])
def test_without_dp_accounting_one_sentence_names_the_extra(goal, monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    printed = " ".join(plan(*GIVEN, "--goal", goal, "--steps", "60").split())
    named = "sampled-descent" if goal == "loss" else "sampled-spider"
    assert printed.endswith(
        f"{named} is left out: Poisson batches need the package dp-accounting, which is not installed: install the "
        "extra `private`."
    )
    assert "Methods whose names" not in printed


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([*GIVEN, "--goal", "speed"], "--goal must be one of"),
        (["--n", "100"], "--features, --epsilon, --radius"),
        ([*GIVEN, "--loss", "hinge"], "--loss must be one of"),
        ([*GIVEN, "--relation", "remove"], "--relation must be one of"),
        ([*GIVEN, "--records", "0"], "--records"),
        ([*GIVEN[:-4], "--delta", "few", "--radius", "1"], "--delta"),
        ([*GIVEN, "--records", "10001"], "--records must be from 1 to --n = 10000, got 10001"),
        ([*GIVEN, "--delta", "1e-4", "--records", "10000"], "smaller --delta"),
        ([*GIVEN, "--n", "0", "--delta", "1/n"], "--n must be a whole number, at least 2, got 0"),
        ([*GIVEN, "--n", "1" + 400 * "0"], "--n must be at most 1,000,000,000,000,000, got a number of 401 digits"),
        ([*GIVEN, "--steps", "1" + 400 * "0"], "--steps must be at most 1,000,000,000,000,000"),
        ([*GIVEN, "--features", "1" + 400 * "0"], "--features must be at most 1,000,000,000,000,000"),
        (
            [*GIVEN, "--radius", "1e300", "--loss", "squared", "--goal", "gradient"],
            "float64 cannot plan with numbers so large or so small",
        ),
        ([*GIVEN, "--features", "0"], "--features must be a whole number, at least 1"),
        ([*GIVEN, "--batch-size", "10001"], "--batch-size must be from 1 to --n = 10000, got 10001"),
        ([*GIVEN, "--steps", "1"], "--steps must be a whole number, at least 2"),
        ([*GIVEN, "--radius", "0"], "--radius must be a finite number above 0"),
    ],
)
def test_what_makes_no_sense_is_named(arguments, named):
    with pytest.raises(ParameterError, match=named):
        plan(*arguments)


def test_flags_without_a_command_are_answered_by_its_names():
    result = CliRunner().invoke(app, ["plan", "--n", "100"])
    assert isinstance(result.exception, ParameterError)
    assert str(result.exception) == (
        "name what to plan before --n: `unlearn plan removal --n ...`, or one of deletion, exact, private instead of "
        "removal"
    )


def test_under_add_remove_nothing_is_said_of_records_that_are_replaced():
    # Replacing one moves twice as far: at this noise its epsilon is above what is printed.
    found = json.loads(plan(*GIVEN, "--relation", "add-remove", "--json"))[0]
    assert epsilon_from_mu(2 * found["mu"], 1e-6) > 2 * found["epsilon"]
    printed = " ".join(plan(*GIVEN, "--relation", "add-remove").split())
    assert "replaced by any others" not in printed
    assert "left out, not replaced (their places stay empty" in printed
    assert "replaced by any others" in " ".join(plan(*GIVEN).split())


@pytest.mark.parametrize("changed", [{"--epsilon": "700"}, {"--delta": "1e-300"}])
def test_nothing_is_planned_where_nothing_would_be_guaranteed(changed):
    given = GIVEN + [part for pair in changed.items() for part in pair]
    with pytest.raises(AssumptionError, match="nothing is guaranteed"):
        plan(*given)


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "inf"])
def test_an_epsilon_that_makes_no_sense_is_named(epsilon):
    with pytest.raises(ParameterError, match="--epsilon must be a finite number above 0"):
        plan(*GIVEN, "--epsilon", epsilon)
