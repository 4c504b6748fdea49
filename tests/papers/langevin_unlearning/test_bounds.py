"""Bounds against steps, and the table of accountants, carry the numbers of the accounting."""

import re
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
import pytest

from certified_unlearning import accounting
from certified_unlearning.reproduction.rows import BOUND_ROWS, read_table, write_table
from certified_unlearning.reproduction.tabulation import ShownTable, tabulate
from tests.support.planning import experiment_called, make, settings_of, sweep_of

MNIST = {
    "n": 11_982, "d": 784, "classes": {"train": {"-1": 6131, "+1": 5851}}, "largest_eigenvalue": 0.7308741769,
    "sha256": "0" * 64, "features": "pixels",
}  # fmt: skip


def made(
    experiment: str, data: dict[str, object] | None = None, plans: Sequence[tuple[str, object]] = ()
) -> pd.DataFrame:
    sweep = sweep_of("mnist", experiment)
    return make(experiment, settings_of("mnist"), sweep, data or {}, plans=dict(plans), preset_name="mnist")


@pytest.fixture(scope="module")
def recuperation() -> pd.DataFrame:
    return made("recuperation", MNIST)


def test_recuperation_falls_with_every_step_and_no_accountant_is_below_the_exact_value(recuperation) -> None:
    curves = recuperation.pivot_table(index="steps", columns="bound", values="epsilon")
    assert list(curves.columns) == ["exact on quadratics", "lsi", "lsi-tight", "shifted"]
    assert curves.index[0] == 0
    assert curves.index[-1] == sweep_of("mnist", "recuperation").steps
    assert (curves.diff().iloc[1:].to_numpy() <= 0).all()
    assert (curves["lsi"] > curves["lsi-tight"]).all()
    assert (curves["lsi-tight"] > curves["shifted"]).all()
    np.testing.assert_allclose(curves["shifted"], curves["exact on quadratics"], rtol=1e-10)


def test_recuperation_starts_at_the_initial_epsilon_of_learning(recuperation) -> None:
    start = recuperation[recuperation["steps"] == 0].set_index("bound")["epsilon"]
    problem = accounting.Problem(11_982, 0.011982, 0.261982, 1, 1 / 0.261982)
    for name in ("lsi", "lsi-tight", "shifted"):
        initial = accounting.initial_epsilon(problem, sigma=0.03, delta=1 / 11_982, records=100, accountant=name)
        assert start[name] == pytest.approx(initial, rel=1e-9)


def test_the_papers_figures_of_dynamics_have_its_numbers() -> None:
    first = made("dynamics1")
    plateaus = first[(first["bound"] == "corollary-1") & (first["steps"] == 500)]
    found = {(row.alpha, row.strong_convexity): row.renyi for row in plateaus.itertuples()}
    assert found[10, 1] == pytest.approx(1.58922e-02, rel=1e-5)
    assert found[10, 2] == pytest.approx(7.99964e-03, rel=1e-5)
    assert found[10, 4] == pytest.approx(4.0e-03, rel=1e-5)
    assert found[30, 1] == pytest.approx(3 * 1.58922e-02, rel=1e-5)
    assert set(found) == {(10, 1), (20, 1), (30, 1), (10, 2), (10, 4)}
    composed = first[(first["bound"] == "composition") & (first["steps"] == 500)]
    assert sorted(composed["renyi"]) == pytest.approx([0.04, 0.08, 0.12])
    second = made("dynamics2")
    last = second[(second["steps"] == 500) & (second["alpha"] == 10)].set_index("bound")
    assert last.loc["corollary-2", "renyi"] == pytest.approx(0.00808040, rel=1e-5)
    assert last.loc["exact", "renyi"] == pytest.approx(7.91935e-03, rel=1e-5)
    assert last["guarantee"].to_dict() == {
        "corollary-2": "upper bound",
        "exact": "exact",
        "theorem-3": "lower bound",
        "composition": "upper bound",
    }


def test_tables_of_bounds_survive_their_file(tmp_path, recuperation) -> None:
    for number, table in enumerate([recuperation, made("dynamics1")]):
        path = tmp_path / f"{number}.parquet"
        write_table(path, table, BOUND_ROWS)
        again = read_table(path, BOUND_ROWS)
        assert len(again) == len(table)
        np.testing.assert_array_equal(again["steps"], table["steps"])


def accountants_of(plans: dict[str, object]) -> ShownTable:
    experiment = experiment_called("accountants")
    return tabulate(experiment, made("accountants", MNIST, list(plans.items())))


def planned(experiment: str, accountants: list[str], **sweep: object) -> object:
    settings = settings_of("mnist", accountants=accountants)
    return make(experiment, settings, sweep_of("mnist", experiment, **sweep), MNIST, preset_name="mnist")


def test_an_accountant_that_one_experiment_leaves_out_has_a_dash_there() -> None:
    shown = accountants_of(
        {
            "fig3a": planned("fig3a", ["shifted"]),
            "fig4": planned("fig4", ["lsi", "shifted"], records=[100]),
        }
    )
    assert shown.columns == ["epsilon", "shifted", "lsi"]
    noise, steps = shown.groups.values()
    assert [row[0] for row in noise] == ["0.05", "0.1", "0.5", "1", "2", "5"]
    assert noise[0][1].startswith("0.0659")
    assert {row[2] for row in noise} == {"–"}
    assert steps == [["0.5", "73", "4,461"], ["1", "60", "1,997"], ["2", "47", "903"], ["5", "30", "327"]]


def compact(shown: ShownTable) -> Iterator[str]:
    """The table with one line for each quantity, as a page for people who do not run anything has it."""
    yield f"|  | {' | '.join(shown.columns[1:])} |"
    yield f"|{' --- |' * len(shown.columns)}"
    for quantity, rows in shown.groups.items():
        columns = [[re.sub(r"(?<=\d),(?=\d)", "", cell) for cell in column] for column in zip(*rows, strict=True)]
        joint = ", " if "sigma =" in quantity else ": "
        yield f"| {quantity}{joint}epsilon = {' | '.join(', '.join(column) for column in columns)} |"


def test_the_documents_table_of_accountants_is_the_one_that_the_rule_writes(pytestconfig: pytest.Config) -> None:
    names = settings_of("mnist").accountants
    table = "\n".join(compact(accountants_of({name: planned(name, names) for name in ("fig3a", "fig3b", "fig4")})))
    assert "| 4461, 1997, 903, 327 | 2693, 1342, 670, 271 | 73, 60, 47, 30 |" in table
    assert table in (pytestconfig.rootpath / "docs" / "accountants.md").read_text(encoding="utf-8")
