"""The numbers of the page's first tables are the records', as a browser shows them."""

import itertools
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from playwright.sync_api import Page

from certified_unlearning.reproduction.report import write_report
from tests.reproduction.report.report_results import EPSILONS, PRESETS, SHOWN, TRIALS, records_of
from tests.support.planning import ANEW

READ_TABLE = """table => [...table.tBodies].flatMap(body =>
    [...body.rows].filter(row => row.className != "group").map(row => [
        body.dataset.preset,
        row.cells[0].firstChild.textContent.trim(),
        [...row.cells].slice(1).map(cell => cell.innerText.trim().split(/\\s*\\n\\s*/)),
    ])
)"""
METHODS = {
    "Langevin (lsi), K = 1": ("langevin", "least-sigma", "lsi", 1, "upper bound"),
    "Langevin (shifted), K = 1": ("langevin", "least-sigma", "shifted", 1, "upper bound"),
    "Descent-to-Delete (printed), I = 5, secret state": (
        "descent-to-delete", "secret-state", "descent-to-delete N.1", 5, "as published",
    ),
    "Descent-to-Delete (tightened), I = 5, secret state": (
        "descent-to-delete", "secret-state", "descent-to-delete shifted", 5, "upper bound",
    ),
    "Retraining, noiseless": ("retraining", "noiseless", "none", 0, "exact"),
    "scikit-learn, from zero": ("scikit-learn", "from zero", "none", 0, "exact"),
    "scikit-learn, warm start": ("scikit-learn", "warm start", "none", 0, "none"),
}  # fmt: skip


def read_table(page: Page, identifier: str) -> tuple[list[str], list[tuple[str, str, list[list[str]]]]]:
    table = page.locator(f"#{identifier}")
    epsilons = [text.removeprefix("ε = ") for text in table.locator("thead th").all_inner_texts()[1:]]
    return epsilons, table.evaluate(READ_TABLE)


def accuracies(records: pd.DataFrame, method: str, epsilon: str) -> list[str]:
    """Return the accuracies that the page must state, straight from the records."""
    mechanism, variant, accountant, steps, guarantee = METHODS[method]
    rows = records[
        (records["experiment"] == "fig3a")
        & (records["mechanism"] == mechanism)
        & (records["variant"] == variant)
        & (records["accountant"] == accountant)
        & (records["unlearning_steps"] == steps)
    ]
    assert set(rows["guarantee"]) == {guarantee}
    if mechanism in ANEW:
        assert len(set(rows["accuracy"])) == 1
        return [f"{rows['accuracy'].iloc[0]:.4f}"]
    rows = rows[rows["epsilon_target"] == float(epsilon)]
    assert len(rows) == TRIALS
    return [f"{rows['accuracy'].mean():.4f}", f"± {rows['accuracy'].std():.4f}"]


def test_every_accuracy_of_the_headline_is_the_records(page: Page):
    epsilons, rows = read_table(page, "accuracies")
    assert epsilons == ["0.5", "1", "2"]
    assert [(preset, method) for preset, method, _ in rows] == list(itertools.product(PRESETS, METHODS))
    for preset, method, cells in rows:
        for epsilon, cell in zip(epsilons, cells, strict=True):
            known = float(epsilon) in EPSILONS[preset]
            assert cell == (accuracies(records_of(preset), method, epsilon) if known else ["–"])


def test_every_method_stands_with_what_its_epsilon_is_and_a_warm_start_with_none(page: Page):
    words = page.locator("#accuracies tbody tr:not(.group) th small").all_inner_texts()
    assert words == [guarantee for *_, guarantee in METHODS.values()] * len(PRESETS)


def test_every_number_of_steps_is_the_records_and_stands_with_its_epsilon(page: Page):
    epsilons, rows = read_table(page, "steps")
    assert epsilons == ["0.5", "1", "2"]
    methods = (
        "Langevin (lsi)", "Langevin (shifted)", "Retraining, noisy", "scikit-learn, from zero",
        "scikit-learn, warm start",
    )  # fmt: skip
    assert [(preset, method) for preset, method, _ in rows] == list(itertools.product(PRESETS, methods))
    steps = {"0.5": "2,400", "1": "1,200", "2": "600"}
    reached = {"0.5": "0.4939", "1": "0.9877", "2": "1.976"}  # 0.98765432 of the target, rounded up
    alone, of_one = "0.25 s", "0.062 s"  # A quarter of a second; four trials share it.
    assert TRIALS == 4
    for preset, method, cells in rows:
        for epsilon, cell in zip(epsilons, cells, strict=True):
            if float(epsilon) not in EPSILONS[preset]:
                assert cell == ["–"]
            elif method == "Retraining, noisy":
                assert cell == ["268", of_one]
            elif "scikit-learn" in method:
                assert cell == [alone]
            else:
                assert cell == ["20" if "shifted" in method else steps[epsilon], of_one, f"ε = {reached[epsilon]}"]


@pytest.mark.parametrize("column", ["epsilon", "epsilon_target"])
def test_two_swapped_epsilons_change_the_headline(column, browser_page: Page, results: Path, change_records):
    def headline() -> Any:
        write_report(results, "first", {"first": SHOWN["first"]}, results / "report.html")
        browser_page.goto((results / "report.html").as_uri())
        return read_table(browser_page, "accuracies")

    def swap(records: pd.DataFrame) -> None:
        langevin = (records["experiment"] == "fig3a") & (records["mechanism"] == "langevin")
        of = {key: langevin & (records["accountant"] == "lsi") & (records["sigma"] == key) for key in (0.04, 0.02)}
        records.loc[of[0.04], column], records.loc[of[0.02], column] = 1.0, 0.5

    before = headline()
    change_records(swap)
    after = headline()
    assert before != after
    if column == "epsilon":  # an epsilon above its target is pointed out
        ((_, _, cells),) = [row for row in after[1] if row[1] == "Langevin (lsi), K = 1"]
        assert [cell[2] for cell in cells] == ["ε = 1", "ε = 0.5"]
        assert browser_page.locator("#accuracies .above").all_inner_texts() == ["ε = 1"]
