"""The page on Fig. 3a and Descent-to-Delete: its preset, tables and conclusion follow from formulas and runs."""

import json
import math
import re
from functools import cache
from pathlib import Path
from typing import get_args

import pytest
import yaml

from certified_unlearning.accounting import Problem, descent_problem, mu_from_epsilon, secret_state_sigma
from certified_unlearning.accounting.core.losses import logistic_constants
from certified_unlearning.accounting.descent import shifted
from certified_unlearning.errors import AssumptionError
from certified_unlearning.mechanisms.run import ExperimentPlan
from certified_unlearning.papers.langevin_unlearning.measures import noise_and_steps, streams
from certified_unlearning.papers.langevin_unlearning.measures.noise_and_steps import secret_state_excess
from certified_unlearning.papers.langevin_unlearning.paper import PAPER
from certified_unlearning.reproduction.claims.model import claims_of
from certified_unlearning.vocabulary import Smoothness
from tests.docs.code_blocks import blocks
from tests.support.planning import make, preset, settings_of, sweep_of

ROOT = Path(__file__).parents[2]
PATH = ROOT / "docs" / "howto" / "langevin-fig3a.md"
PAGE = PATH.read_text(encoding="utf-8")
EPSILONS = [0.05, 0.1, 0.5, 1.0, 2.0, 5.0]
N, LARGEST_EIGENVALUE = 11_982, 0.7308741769
MNIST = {
    "features": "pixels", "n": N, "n_test": 1984, "d": 784, "classes": {"train": {0: 6131, 1: 5851}},
    "largest_eigenvalue": LARGEST_EIGENVALUE, "sha256": "0" * 64,
}  # fmt: skip

CLAIMS = {each.claim.id: each for each in claims_of([PAPER])[PAPER.name]}


def row(name: str) -> list[float]:
    (cells,) = re.findall(rf"^\| {re.escape(name)} \| (.*) \|$", PAGE, re.MULTILINE)
    return [float(cell) for cell in cells.split("|")]


def theorem(smoothness: float) -> list[float]:
    problem = descent_problem(Problem(N, 1e-6 * N, smoothness, 1, 1 / smoothness))
    return [secret_state_sigma(problem, epsilon=each, delta=1 / N, steps=1) for each in EPSILONS]


def test_the_preset_of_the_page_plans_the_noise_of_table_2() -> None:
    """Its one large change is L; the first number of Table 2 has two digits exchanged."""
    ((name, added),) = yaml.safe_load(next(each.text for each in blocks(PATH) if each.language == "yaml"))[
        "presets"
    ].items()
    assert added.pop("extends") == "mnist"
    assert added.pop("shows") == ["fig3a"]
    assert f"--config preset={name}\n" in PAGE
    sweep = sweep_of("mnist", "fig3a")
    assert sweep.model_dump()["epsilon"] == EPSILONS
    plan = make("fig3a", settings_of("mnist", **added), sweep, MNIST, preset_name=name)
    found = [
        run.sigma
        for run in plan.runs
        if run.accountant == "descent-to-delete N.1" and run.requests[0].unlearning_steps == 1
    ]
    assert found == pytest.approx(row("the theorem with the authors' L"), abs=2e-4)
    assert found[1:] == pytest.approx(row("Table 2")[1:], abs=2e-4)
    assert preset("mnist").settings.smoothness == "bound" != added["smoothness"]


@pytest.mark.parametrize(
    ("name", "smoothness"),
    [
        ("the theorem with the authors' L", LARGEST_EIGENVALUE / 4 + 1e-6 * N),
        ("the theorem with the stated L", 0.261982),
    ],
)
def test_the_table_of_noise_has_the_theorems_numbers_cut_off_after_four_digits(name: str, smoothness: float) -> None:
    assert row(name) == [math.floor(each * 1e4) / 1e4 for each in theorem(smoothness)]


def test_the_excess_of_the_theorem_is_slack_times_the_price_of_an_endless_stream() -> None:
    """The factors of the page: 87 is 7.6 times 11, which is 1 / (1 - gamma)."""

    def excess(requests: str) -> float:
        (found,) = secret_state_excess((), dataset="mnist-3-vs-8", steps=[1], epsilon=[0.05], requests=requests)
        return float(found.value)

    one, stream = excess("one"), excess("a stream without end")
    assert (round(one), round(stream, 1), round(one / stream)) == (87, 7.6, 11)
    in_one_line = " ".join(PAGE.split())
    assert "87 times" in in_one_line
    assert "factor of 7.6 is due to slack" in in_one_line
    assert "factor of 11 is the price" in in_one_line
    problem = descent_problem(Problem(N, 1e-6 * N, 0.261982, 1, 1 / 0.261982))
    gamma = (0.261982 - 0.011982) / (0.261982 + 0.011982)
    assert one / stream == pytest.approx(1 / (1 - gamma), rel=1e-9)
    mu = mu_from_epsilon(0.05, 1 / N)
    after_a_thousand = shifted.secret_state_sigma(problem, mu=mu, steps=1, request=1000)
    assert after_a_thousand == pytest.approx(theorem(0.261982)[0] / stream, rel=1e-9)


def test_on_digits_five_tightened_steps_overtake_langevin_which_the_theorem_keeps_behind() -> None:
    """Means of the committed runs, at the two smallest targets."""
    points = json.loads((ROOT / "workflow" / "baselines" / "metrics" / "digits.json").read_text())["points"]

    def mean(line: str, epsilon: float) -> float:
        correct = points[f"fig3a: {line}, epsilon = {epsilon:g}, request 1"]["correct"]
        return sum(correct) / len(correct) / 360

    for epsilon in (0.05, 0.1):
        langevin = {name: mean(f"Langevin ({name}), K = 1", epsilon) for name in ("lsi", "shifted")}
        descent = {
            form: {steps: mean(f"Descent-to-Delete ({form}), I = {steps}, secret state", epsilon) for steps in (1, 5)}
            for form in ("printed", "tightened")
        }
        assert max(descent["printed"].values()) < langevin["lsi"]
        assert descent["tightened"][1] < langevin["shifted"] < descent["tightened"][5] - 0.05


CHECKED = {
    "Table 2": (1, tuple(f"table-2-mnist-i{steps}-bound" for steps in (1, 2, 5))),
    "Table 3": (1, ("table-3-mnist-bound",)),
    "Fig. 3b, Langevin": (100, tuple(f"fig-3b-mnist-by-{records}-bound" for records in (5, 10, 20))),
    "Fig. 3b, Descent-to-Delete": (100, ("fig-3b-mnist-descent-bound",)),
    "Fig. 3c, results": (100, ("fig-3c-mnist-steps-bound",)),
    "Fig. 3c, code": (100, ("fig-3c-mnist-steps-spectral",)),
    "Fig. 4": (None, tuple(f"fig-4-mnist-s{records}-bound" for records in (1, 50, 100))),
}
"""Groups of published numbers: the records that are removed in all (None: as many as a claim says), and the claims."""


def problem_with(rule: Smoothness, records: int) -> Problem:
    constants = logistic_constants(
        n=N, regularisation=1e-6, smoothness=rule, largest_eigenvalue=LARGEST_EIGENVALUE, records=records
    )
    return Problem(N, constants.strong_convexity, constants.smoothness, constants.lipschitz, 1 / constants.smoothness)


def reproduced(rule: Smoothness, group: str, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """How many of a group's numbers the claims' own measures give under a rule for L, and how many there are."""
    records, names = CHECKED[group]
    findings = []
    for each in (CLAIMS[name] for name in names):
        problem = problem_with(rule, records or each.claim.arguments["records"][0])
        for module in (noise_and_steps, streams):
            monkeypatch.setattr(module, "paper_problem", lambda *_, problem=problem: problem)
        findings += each.claim.expected.findings(each.measured([]))
    return sum(each.agrees is True for each in findings), len(findings)


@cache
def planned(rule: Smoothness, learning_steps: int | str) -> ExperimentPlan:
    """Fig. 3a's plan for MNIST under a rule for L, with T given or planned."""
    settings = settings_of("mnist", smoothness=rule, learning_steps=learning_steps)
    plan: ExperimentPlan = make("fig3a", settings, sweep_of("mnist", "fig3a"), MNIST, preset_name="mnist")
    return plan


@pytest.mark.parametrize("rule", get_args(Smoothness))
def test_the_table_of_choices_counts_the_published_numbers_that_each_gives(
    rule: Smoothness, monkeypatch: pytest.MonkeyPatch
) -> None:
    (head,) = (line for line in PAGE.splitlines() if line.startswith("| L | T | "))
    counted = {group: reproduced(rule, group, monkeypatch) for group in CHECKED}
    assert head.strip("| ").split(" | ")[2:-1] == [f"{group}: {of}" for group, (_, of) in counted.items()]
    for learning_steps in ("learned", 10_000):
        runs = [run for run in planned(rule, learning_steps).runs if run.mechanism == "langevin"]
        steps = sorted({run.learning_steps for run in runs})
        in_words = "10 000" if steps == [10_000] else f"{steps[0]} to {steps[-1]}"
        added = math.ceil(max(run.extra_delta for run in runs) * N * 1000) / 10
        cells = [f"`{rule}`", in_words, *(str(found) for found, _ in counted.values()), f"{added} %"]
        assert f"| {' | '.join(cells)} |" in PAGE


def test_after_100_learning_steps_nothing_is_certified() -> None:
    assert "With T = 100, nothing is certified" in PAGE
    with pytest.raises(AssumptionError, match=r"after 100 learning steps .* 1 would be added to delta"):
        planned("bound", 100)


def test_the_noise_of_the_planned_figure_does_not_depend_on_t() -> None:
    for rule in get_args(Smoothness):
        noise = [
            {
                (run.accountant, run.epsilon_target): run.sigma
                for run in planned(rule, steps).runs
                if run.accountant == "lsi"
            }
            for steps in ("learned", 10_000)
        ]
        assert len(noise[0]) == len(EPSILONS)
        assert noise[0] == pytest.approx(noise[1], rel=1e-9)
