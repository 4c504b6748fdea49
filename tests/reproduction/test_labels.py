"""The names that a plan gives to its runs, for figures and metrics: of the method, its member, the line, the point."""

from typing import Any

import pytest

from certified_unlearning.accounting.accountants import ACCOUNTANTS, NO_ACCOUNTANT
from certified_unlearning.mechanisms.descent_to_delete import DESCENT_TO_DELETE
from certified_unlearning.mechanisms.langevin import LANGEVIN
from certified_unlearning.mechanisms.minibatch_langevin import MINIBATCH_LANGEVIN
from certified_unlearning.mechanisms.run import ExperimentPlan, Run
from tests.support.planning import make, settings_of, sweep_of

DATA = {
    "n": 1437, "d": 64, "classes": {"train": {"-1": 700, "+1": 737}}, "largest_eigenvalue": 0.595,
    "sha256": "0" * 64, "features": "pixels",
}  # fmt: skip
MECHANISMS = {each.name: each for each in (LANGEVIN, MINIBATCH_LANGEVIN, DESCENT_TO_DELETE)}


def plan(experiment: str, **sweep: Any) -> ExperimentPlan:
    return make(experiment, settings_of("smoke"), sweep_of("smoke", experiment, **sweep), DATA)


def lines(whole: ExperimentPlan) -> list[str]:
    return list(dict.fromkeys(run.line for run in whole.runs))


def points(whole: ExperimentPlan) -> list[str]:
    return [run.point for run in whole.runs]


@pytest.mark.parametrize(
    ("experiment", "sweep", "expected"),
    [
        ("fig3a", {"epsilon": [1.0], "unlearning_steps": 2, "descent_steps": [2, 10]}, [
            "Langevin (lsi), K = 2",
            "Langevin (lsi-tight), K = 2",
            "Langevin (shifted), K = 2",
            "Descent-to-Delete (printed), I = 2, secret state",
            "Descent-to-Delete (tightened), I = 2, secret state",
            "Descent-to-Delete (printed), I = 10, secret state",
            "Descent-to-Delete (tightened), I = 10, secret state",
            "Retraining, noisy (lsi)",
            "Retraining, noisy (lsi-tight)",
            "Retraining, noisy (shifted)",
            "Retraining, noiseless",
            "scikit-learn, from zero",
            "scikit-learn, warm start",
        ]),
        ("fig3b", {"records": 20, "records_per_request": [20]}, [
            "Langevin (lsi), S = 20",
            "Langevin (lsi-tight), S = 20",
            "Langevin (shifted), S = 20",
            "Descent-to-Delete (printed), S = 1, state published",
            "Descent-to-Delete (tightened), S = 1, state published",
            "Retraining, noisy",
            "Retraining, noiseless",
            "scikit-learn, from zero",
            "scikit-learn, warm start",
        ]),
        ("fig3c", {"records": 20}, [
            "Langevin (lsi), S = 20",
            "Langevin (lsi-tight), S = 20",
            "Langevin (shifted), S = 20",
            "Retraining, noisy",
            "Retraining, noiseless",
            "scikit-learn, from zero",
            "scikit-learn, warm start",
        ]),
        ("fig4", {"records": [20]}, [
            "Langevin (lsi), S = 20",
            "Langevin (lsi-tight), S = 20",
            "Langevin (shifted), S = 20",
            "Retraining, noisy",
            "Retraining, noiseless",
            "scikit-learn, from zero",
            "scikit-learn, warm start",
        ]),
        ("fig5a", {"epsilon": [0.5], "records": [20]}, [
            "Langevin (lsi), epsilon = 0.5",
            "Langevin (lsi-tight), epsilon = 0.5",
            "Langevin (shifted), epsilon = 0.5",
            "Retraining, noisy",
            "Retraining, noiseless",
            "scikit-learn, from zero",
            "scikit-learn, warm start",
        ]),
    ],
)  # fmt: skip
def test_lines_are_what_a_reader_would_say(experiment: str, sweep: dict[str, Any], expected: list[str]) -> None:
    assert lines(plan(experiment, **sweep)) == expected


@pytest.mark.parametrize(
    ("experiment", "sweep", "expected"),
    [
        ("fig3a", {"epsilon": [0.5, 1.0], "descent_steps": [1]}, {
            "Langevin (lsi), K = 1, epsilon = 0.5",
            "Langevin (lsi), K = 1, epsilon = 1",
            "Descent-to-Delete (printed), I = 1, secret state, epsilon = 1",
            "Retraining, noisy (shifted), epsilon = 0.5",
            "Retraining, noiseless",
            "scikit-learn, warm start",
        }),
        ("fig3b", {}, {
            "Langevin (lsi), S = 5", "Langevin (shifted), S = 10", "Retraining, noisy", "scikit-learn, from zero",
        }),
        ("fig3c", {"sigma": [0.05, 0.2]}, {
            "Langevin (lsi), S = 10, sigma = 0.05",
            "Langevin (lsi), S = 10, sigma = 0.2",
            "Retraining, noisy, sigma = 0.05",
            "Retraining, noiseless",
            "scikit-learn, warm start",
        }),
        ("fig4", {"epsilon": [0.5, 1.0], "records": [1, 10]}, {
            "Langevin (lsi), S = 1, epsilon = 0.5",
            "Langevin (lsi), S = 10, epsilon = 1",
            "Retraining, noisy, S = 1",
            "Retraining, noiseless, S = 10",
            "scikit-learn, from zero, S = 1",
            "scikit-learn, warm start, S = 10",
        }),
        ("fig5a", {"epsilon": [0.5, 1.0], "records": [1, 10]}, {
            "Langevin (lsi), epsilon = 0.5, S = 1",
            "Langevin (lsi), epsilon = 1, S = 10",
            "Retraining, noisy, S = 10",
            "Retraining, noiseless, S = 10",
            "scikit-learn, from zero, S = 1",
            "scikit-learn, warm start, S = 10",
        }),
    ],
)  # fmt: skip
def test_points_add_what_the_experiment_sweeps(experiment: str, sweep: dict[str, Any], expected: set[str]) -> None:
    whole = plan(experiment, **sweep)
    assert expected <= set(points(whole))
    assert len(set(points(whole))) == len(whole.runs)


@pytest.mark.parametrize("experiment", ["fig3a", "fig3b", "fig3c", "fig4", "fig5a"])
def test_a_point_begins_with_its_line_and_a_line_with_its_method_and_member(experiment: str) -> None:
    def parts(run: Run) -> str:
        return f"{run.method}, {run.member}" if run.member else run.method

    for run in plan(experiment).runs:
        assert run.method
        assert run.line.startswith(parts(run))
        assert run.point.startswith(run.line)


def test_every_accountant_has_a_method_and_lines_of_every_variant() -> None:
    for accountant in ACCOUNTANTS.values():
        mechanism = MECHANISMS[accountant.mechanism]
        method = mechanism.method(accountant.form)
        assert method == f"{mechanism.title} ({accountant.form})"
        for variant in accountant.variants:
            assert mechanism.line(method, "K = 2", variant).startswith(f"{method}, K = 2")


def test_two_accountants_that_run_beside_each_other_have_methods_of_their_own() -> None:
    for mechanism in MECHANISMS:
        for variant in {name for each in ACCOUNTANTS.values() for name in each.variants}:
            forms = [
                each.form for each in ACCOUNTANTS.values() if each.mechanism == mechanism and variant in each.variants
            ]
            assert len(forms) == len(set(forms))
    assert NO_ACCOUNTANT not in ACCOUNTANTS
