"""Plans carry the numbers that the accounting gives for the paper's constants."""

from itertools import pairwise
from typing import Any

import pytest

from certified_unlearning import accounting
from certified_unlearning.accounting.descent.shifted import published_state_curve
from certified_unlearning.errors import AssumptionError, InfeasibleError, ParameterError
from certified_unlearning.mechanisms.run import ExperimentPlan, Run
from tests.support.planning import ANEW, make, settings_of, sweep_of

MNIST = {
    "n": 11_982, "d": 784, "classes": {"train": {"-1": 6131, "+1": 5851}}, "largest_eigenvalue": 0.7308741769,
    "sha256": "0" * 64, "features": "pixels",
}  # fmt: skip


def plan(
    experiment: str, *, sweep: dict[str, Any] | None = None, data: dict[str, Any] = MNIST, **settings: Any
) -> ExperimentPlan:
    swept = sweep_of("mnist", experiment, **sweep or {})
    return make(experiment, settings_of("mnist", **settings), swept, data, preset_name="mnist")


def steps(run: Run) -> int:
    return sum(request.unlearning_steps for request in run.requests)


def by(accountant: str, whole: ExperimentPlan) -> list[Run]:
    return [run for run in whole.runs if run.accountant == accountant and run.mechanism not in ANEW]


@pytest.mark.parametrize(
    ("accountant", "expected"),
    [
        ("lsi", [0.187157, 0.0936968, 0.0189265, 0.00957769, 0.00489947, 0.00208236]),
        ("lsi-tight", [0.112954, 0.0609981, 0.0142973, 0.00764811, 0.00411803, 0.00185845]),
        ("shifted", [0.065975, 0.035999, 0.008613, 0.004647, 0.002525, 0.001156]),
    ],
)
def test_figure_3a_has_the_exact_least_sigmas_of_every_accountant(accountant: str, expected: list[float]) -> None:
    sigmas = [run.sigma for run in by(accountant, plan("fig3a"))]
    # To all printed digits but for what rounding adds, which is relative to a start at 1000.
    assert sigmas == pytest.approx(expected, abs=5.1e-7, rel=3e-5)


def test_figure_3a_retrains_with_the_noise_of_every_accountant() -> None:
    whole = plan("fig3a")
    noisy = [run for run in whole.of("retraining") if run.variant == "noisy"]
    langevin = whole.of("langevin")
    assert [(run.accountant, run.sigma) for run in noisy] == [(run.accountant, run.sigma) for run in langevin]
    assert len(whole.of("retraining")) == len(noisy) + 1


@pytest.mark.parametrize("smoothness", ["bound", "spectral"])
@pytest.mark.parametrize("experiment", ["fig3a", "fig3b", "fig3c", "fig4", "fig5a"])
def test_scikit_learn_answers_what_noiseless_retraining_does_exactly_from_zero_and_without_a_guarantee_when_warm(
    experiment: str, smoothness: str
) -> None:
    whole = plan(experiment, smoothness=smoothness)
    noiseless = [run for run in whole.of("retraining") if run.variant == "noiseless"]
    refits = whole.of("scikit-learn")
    assert [run.variant for run in refits] == ["from zero", "warm start"] * len(noiseless)
    for number, run in enumerate(refits):
        retrained = noiseless[number // 2]
        exact = run.variant == "from zero"
        assert run.guarantee == ("exact" if exact else "none")
        (request,), (same,) = run.requests, retrained.requests
        assert (request.records_removed, request.unlearning_steps) == (same.records_removed, 0)
        assert (request.epsilon, request.mu) == ((0.0, 0.0) if exact else (None, None))
        assert (run.sigma, run.learning_steps, run.initial_epsilon, run.rounding_error) == (0.0, 0, None, None)
        assert (run.epsilon_target, run.extra_delta) == (retrained.epsilon_target, 0.0)
        assert run.method == run.line == f"scikit-learn, {run.variant}"
        assert run.point == retrained.point.replace("Retraining, noiseless", run.line)


def test_figure_3a_has_descent_to_delete_printed_and_tightened() -> None:
    whole = plan("fig3a", sweep={"epsilon": [1.0], "descent_steps": [1, 5]})
    printed, tightened = by("descent-to-delete N.1", whole), by("descent-to-delete shifted", whole)
    assert [run.sigma for run in printed] == pytest.approx([2.584710041, 0.4268768103], rel=1.2e-6)
    assert [run.sigma for run in tightened] == pytest.approx([0.04106849779, 0.02847704085], rel=1e-4)
    assert {run.guarantee for run in tightened} == {"upper bound"}
    assert [run.requests[0].mu for run in tightened] == pytest.approx(2 * [0.309534497407750], rel=1e-12)


def test_figure_3a_under_spectral_smoothness_has_table_2s_noise_and_is_no_guarantee() -> None:
    runs = by("descent-to-delete N.1", plan("fig3a", smoothness="spectral"))
    single = [run.sigma for run in runs if run.requests[0].unlearning_steps == 1]
    assert single == pytest.approx([36.8753, 18.4620, 3.7310, 1.8890, 0.9673, 0.4120], abs=1e-4, rel=1e-5)
    assert {run.guarantee for run in runs} == {"heuristic"}
    assert {run.guarantee for run in by("descent-to-delete N.1", plan("fig3a"))} == {"as published"}


def test_spectral_smoothness_with_a_margin_makes_room_for_every_record_that_the_experiment_removes() -> None:
    for experiment, records in (("fig3a", 1), ("fig3b", 100), ("fig3c", 100), ("fig4", 100), ("fig5a", 1000)):
        whole = plan(experiment, smoothness="spectral-with-margin")
        expected = (0.7308741769 + records / 11_982) / 4 + 0.011982
        assert whole.constants.smoothness_constant == pytest.approx(expected, rel=1e-14)
        assert {run.guarantee for run in by("lsi", whole)} == {"upper bound"}
    without = plan("fig3b", smoothness="spectral").of("langevin")
    bound = plan("fig3b").of("langevin")
    with_margin = plan("fig3b", smoothness="spectral-with-margin").of("langevin")
    for least, run, most in zip(without, with_margin, bound, strict=True):
        assert steps(least) <= steps(run) <= steps(most)
    assert steps(without[0]) < steps(with_margin[0]) < steps(bound[0])


def test_a_margin_never_lifts_smoothness_above_the_bound() -> None:
    sweep = {"records": [11_000]}
    constants = plan("fig5a", sweep=sweep, smoothness="spectral-with-margin").constants
    assert constants.smoothness_constant == plan("fig5a", sweep=sweep).constants.smoothness_constant


def test_ten_classes_have_the_papers_softmax_constants_and_a_parameter_for_every_class_and_feature() -> None:
    ten = {"train": {str(number): 5000 for number in range(10)}}
    data = MNIST | {"n": 50_000, "d": 512, "classes": ten, "largest_eigenvalue": 0.5}
    whole = plan("fig3b", data=data)
    constants = whole.constants
    assert (constants.smoothness_constant, constants.lipschitz) == pytest.approx((1.05, 2.0))
    assert (constants.d, constants.classes) == (5120, 10)
    streams = {run.records_per_request: run for run in by("lsi", whole)}
    assert [request.unlearning_steps for request in streams[20].requests] == [391, 782, 863, 927, 991]
    assert steps(streams[5]) == 20_462
    assert by("descent-to-delete N.2", whole)[0].requests[0].unlearning_steps == 130


def test_figure_3b_has_the_papers_streams() -> None:
    runs = by("lsi", plan("fig3b"))
    assert [(run.records_per_request, steps(run)) for run in runs] == [(5, 26_529), (10, 11_756), (20, 6_806)]
    assert [request.unlearning_steps for request in runs[2].requests] == [1163, 1386, 1405, 1418, 1434]
    shifted = by("shifted", plan("fig3b"))
    assert [steps(run) for run in shifted] == [245, 200, 150]
    assert [request.unlearning_steps for request in shifted[2].requests] == [26, 31, 31, 31, 31]
    spectral = plan("fig3b", smoothness="spectral")
    assert [steps(run) for run in by("lsi", spectral)] == [
        19_717,
        sum([579, 776, 806, 830, 855, 887, 926, 973, 1025, 1082]),
        5058,
    ]
    printed, tightened = spectral.of("descent-to-delete")
    assert steps(printed) == 9118
    assert steps(tightened) < steps(printed)
    assert tightened.sigma == printed.sigma


def test_the_tightened_stream_of_descent_to_delete_has_the_least_steps() -> None:
    (run,) = by("descent-to-delete shifted", plan("fig3b"))
    problem = accounting.Problem(11_982, 0.011982, 0.261982, 1, 2 / (0.261982 + 0.011982))
    target = accounting.mu_from_epsilon(1.0, 1 / 11_982)

    def worst(count: int) -> float:
        return max(
            published_state_curve(problem, sigma=run.sigma, steps_per_request=[count] * request).mu
            for request in range(1, 101)
        )

    count = run.requests[0].unlearning_steps
    assert {request.unlearning_steps for request in run.requests} == {count}
    assert worst(count) <= target < worst(count - 1)


def test_figure_3c_has_the_papers_steps_counted_from_one_or_from_zero() -> None:
    assert [steps(run) for run in by("lsi", plan("fig3c"))] == [1738, 1378, 1006, 472, 1]
    assert [steps(run) for run in by("lsi", plan("fig3c", minimum_steps=0))] == [1738, 1378, 1006, 472, 0]


def test_figures_that_share_a_sigma_retrain_once_for_it() -> None:
    noisy = [run for run in plan("fig3c").of("retraining") if run.variant == "noisy"]
    assert [run.sigma for run in noisy] == [0.05, 0.1, 0.2, 0.5, 1.0]
    assert {run.accountant for run in noisy} == {"none"}


def test_figure_4_has_the_exact_least_steps() -> None:
    whole = plan("fig4")
    expected = {
        ("lsi", 50): [3799, 1644, 705, 222],
        ("lsi", 100): [4461, 1997, 903, 327],
        ("lsi-tight", 50): [2263, 1087, 512, 178],
        ("lsi-tight", 100): [2693, 1342, 670, 271],
        ("shifted", 50): [58, 45, 32, 16],
        ("shifted", 100): [73, 60, 47, 30],
    }
    for (accountant, records), counts in expected.items():
        runs = [run for run in by(accountant, whole) if run.records_per_request == records]
        assert [steps(run) for run in runs] == counts


@pytest.mark.parametrize("experiment", ["fig3a", "fig3b", "fig3c", "fig4"])
def test_every_run_meets_its_target_and_pays_for_finite_learning(experiment: str) -> None:
    whole = plan(experiment)
    for run in whole.runs:
        if (run.mechanism, run.variant) == ("scikit-learn", "warm start"):
            assert [(run.guarantee, request.epsilon, request.mu) for request in run.requests] == [("none", None, None)]
        else:
            assert run.guarantee != "none"
            assert all(request.epsilon <= run.epsilon_target for request in run.requests)
        assert all(first.records_removed < second.records_removed for first, second in pairwise(run.requests))
        if run.mechanism == "langevin":
            if run.accountant == "shifted":
                assert run.extra_delta < 1e-20
                assert all(request.mu is not None for request in run.requests)
            else:
                assert 0 < run.extra_delta < 0.01 * whole.constants.delta
                assert all(request.mu is None for request in run.requests)
            assert run.learning_steps < 1000
    assert len({whole.key(run) for run in whole.runs}) == len(whole.runs)


def test_a_certificate_that_short_learning_would_void_is_refused() -> None:
    with pytest.raises(AssumptionError, match=r"after 100 learning steps .* would be added to delta"):
        plan("fig3c", learning_steps=100)
    assert plan("fig3c", accountants=["shifted"], learning_steps=100).of("langevin")[0].learning_steps == 100
    # Learning is as long as the largest epsilon asks for.
    far = plan("fig3a", sweep={"epsilon": [30.0]})
    assert far.runs[0].learning_steps > plan("fig3a", sweep={"epsilon": [1.0]}).runs[0].learning_steps
    with pytest.raises(InfeasibleError, match=r"learning steps"):
        plan("fig3a", sweep={"epsilon": [400.0]})
    enough = plan("fig3c", learning_steps=10_000)
    assert {run.learning_steps for run in enough.runs if run.mechanism != "scikit-learn"} == {10_000}
    assert {run.learning_steps for run in enough.of("scikit-learn")} == {0}


def test_noise_that_rounding_would_swallow_is_refused() -> None:
    with pytest.raises(
        AssumptionError, match=r"with sigma = 1e-07, rounding in float64 .* sigma = \S+ is enough"
    ) as caught:
        plan("fig4", sweep={"sigma": 1e-7})
    enough = float(str(caught.value).split("sigma = ")[-1].split()[0])
    assert plan("fig4", sweep={"sigma": enough}).runs[0].sigma == enough


def test_a_plan_takes_float64_where_float32_would_take_too_much_of_epsilon() -> None:
    assert {run.dtype for run in plan("fig3a").runs} == {"float64"}


def test_the_content_key_changes_with_the_inputs_and_not_with_the_device() -> None:
    first = plan("fig3c")
    other_device = plan("fig3c", device="cpu")
    assert first.key(first.runs[0]) == other_device.key(other_device.runs[0])
    for change in ({"seed": 5}, {"trials": 7}, {"dtype": "float64"}, {"start": 0.0}):
        changed = plan("fig3c", **change)
        assert changed.key(changed.runs[0]) != first.key(first.runs[0])


def test_a_plan_survives_its_file(tmp_path) -> None:
    whole = plan("fig3b")
    whole.write(tmp_path / "plan.json")
    assert ExperimentPlan.read(tmp_path / "plan.json") == whole


def test_zero_out_needs_half_the_noise_of_replacement() -> None:
    replaced, zeroed = plan("fig3a"), plan("fig3a", adjacency="zero-out")
    ratios = [
        other.sigma / run.sigma for run, other in zip(replaced.of("langevin"), zeroed.of("langevin"), strict=True)
    ]
    assert ratios == pytest.approx([0.5] * 18, rel=2e-5)


def test_what_no_theorem_covers_is_refused() -> None:
    with pytest.raises(AssumptionError, match=r"step_size.*1 / "):
        plan("fig3c", step_size=5.0)
    with pytest.raises(ParameterError, match=r"records must be at most n = 11982, got 20000"):
        plan("fig3c", sweep={"records": 20_000})
