"""The page on Fig. 3a and Descent-to-Delete: its preset, tables and conclusion follow from formulas and runs."""

import json
import math
import re
from pathlib import Path

import pytest
import yaml

from certified_unlearning.accounting import Problem, descent_problem, mu_from_epsilon, secret_state_sigma
from certified_unlearning.accounting.descent import shifted
from certified_unlearning.papers.langevin_unlearning.measures.noise_and_steps import secret_state_excess
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
    assert "87 times" in PAGE
    assert "a factor of 7.6 is slack" in PAGE
    assert "a factor of 11 pays" in PAGE
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
