"""Plans carry the numbers that the accounting gives for the paper's constants."""

from itertools import pairwise
from typing import Any

import pytest

from certified_unlearning import parameters
from certified_unlearning.errors import AssumptionError, ParameterError
from certified_unlearning.experiments.model import Plan, Run
from certified_unlearning.experiments.plan import make_plan

MNIST = {"n": 11_982, "d": 784, "largest_eigenvalue": 0.7308741769, "sha256": "0" * 64, "features": "pixels"}
PRESET = parameters.load("params.yaml").presets["mnist"]


def plan(experiment: str, *, sweep: dict[str, Any] | None = None, **settings: Any) -> Plan:
    common = PRESET.model_dump(include=set(parameters.Common.model_fields)) | settings
    default = getattr(PRESET.experiments, experiment)
    return make_plan(
        "mnist",
        parameters.Common(**common),
        experiment,
        default.model_copy(update=sweep or {}),
        MNIST,
    )


def steps(run: Run) -> int:
    return sum(request.unlearning_steps for request in run.requests)


def test_figure_3a_has_table_3s_exact_least_sigmas() -> None:
    sigmas = [run.sigma for run in plan("fig3a").of("langevin")]
    assert sigmas == pytest.approx([0.187157, 0.0936968, 0.0189265, 0.00957769, 0.00489947, 0.00208236], rel=3e-6)


def test_figure_3a_under_spectral_smoothness_has_table_2s_noise_and_is_no_guarantee() -> None:
    runs = plan("fig3a", smoothness="spectral").of("descent-to-delete")
    single = [run.sigma for run in runs if run.requests[0].unlearning_steps == 1]
    assert single == pytest.approx([36.8753, 18.4620, 3.7310, 1.8890, 0.9673, 0.4120], abs=1e-4)
    assert {run.guarantee for run in runs} == {"heuristic"}
    assert {run.guarantee for run in plan("fig3a").of("descent-to-delete")} == {"as published"}


def test_figure_3b_has_the_papers_streams() -> None:
    runs = plan("fig3b").of("langevin")
    assert [(run.records_per_request, steps(run)) for run in runs] == [(5, 26_529), (10, 11_756), (20, 6_806)]
    assert [request.unlearning_steps for request in runs[2].requests] == [1163, 1386, 1405, 1418, 1434]
    spectral = plan("fig3b", smoothness="spectral")
    assert [steps(run) for run in spectral.of("langevin")] == [
        19_717,
        sum([579, 776, 806, 830, 855, 887, 926, 973, 1025, 1082]),
        5058,
    ]
    (descent,) = spectral.of("descent-to-delete")
    assert steps(descent) == 9118


def test_figure_3c_has_the_papers_steps_counted_from_one_or_from_zero() -> None:
    assert [steps(run) for run in plan("fig3c").of("langevin")] == [1738, 1378, 1006, 472, 1]
    assert [steps(run) for run in plan("fig3c", minimum_steps=0).of("langevin")] == [1738, 1378, 1006, 472, 0]


def test_figure_4_has_the_exact_least_steps() -> None:
    runs = plan("fig4").of("langevin")
    assert [steps(run) for run in runs if run.records_per_request == 50] == [3799, 1644, 705, 222]
    assert [steps(run) for run in runs if run.records_per_request == 100] == [4461, 1997, 903, 327]


@pytest.mark.parametrize("experiment", ["fig3a", "fig3b", "fig3c", "fig4"])
def test_every_run_meets_its_target_and_pays_for_finite_learning(experiment: str) -> None:
    whole = plan(experiment)
    for run in whole.runs:
        assert all(request.epsilon <= run.epsilon_target for request in run.requests)
        assert all(first.records_removed < second.records_removed for first, second in pairwise(run.requests))
        if run.mechanism == "langevin":
            assert 0 < run.extra_delta < 1e-5 * whole.constants.delta * 1e3
            assert run.learning_steps < 1000
    assert len({whole.key(run) for run in whole.runs}) == len(whole.runs)


def test_a_certificate_that_short_learning_would_void_is_refused() -> None:
    with pytest.raises(AssumptionError, match=r"after 100 learning steps .* would be added to delta"):
        plan("fig3c", learning_steps=100)
    with pytest.raises(AssumptionError, match="smaller stationarity"):
        plan("fig3a", sweep={"epsilon": [30.0]})
    enough = plan("fig3c", learning_steps=10_000)
    assert {run.learning_steps for run in enough.runs} == {10_000}


def test_noise_that_rounding_would_swallow_is_refused() -> None:
    with pytest.raises(AssumptionError, match=r"sigma = 1e-07 gives noise .* use dtype: float64"):
        plan("fig4", sweep={"sigma": 1e-7})
    assert plan("fig4", sweep={"sigma": 1e-7}, dtype="float64").runs[0].sigma == 1e-7


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
    assert Plan.read(tmp_path / "plan.json") == whole


def test_zero_out_needs_half_the_noise_of_replacement() -> None:
    replaced, zeroed = plan("fig3a"), plan("fig3a", adjacency="zero-out")
    ratios = [
        other.sigma / run.sigma for run, other in zip(replaced.of("langevin"), zeroed.of("langevin"), strict=True)
    ]
    assert ratios == pytest.approx([0.5] * 6, rel=1e-9)


def test_what_no_theorem_covers_is_refused() -> None:
    with pytest.raises(AssumptionError, match=r"step_size.*1 / "):
        plan("fig3c", step_size=5.0)
    with pytest.raises(ParameterError, match=r"records must be at most n = 11982, got 20000"):
        plan("fig3c", sweep={"records": 20_000})
