"""Bounds against steps, and the table of accountants, carry the numbers of the accounting."""

import numpy as np
import pytest

from certified_unlearning import accounting, parameters
from certified_unlearning.accountant_table import accountant_table, markdown
from certified_unlearning.experiments.dynamics_bounds import dynamics_table
from certified_unlearning.experiments.plan import make_plan
from certified_unlearning.experiments.recuperation import recuperation_table
from certified_unlearning.results import BOUND_SCHEMA, read_table, write_table

MNIST = {
    "n": 11_982, "d": 784, "classes": {"train": {"-1": 6131, "+1": 5851}}, "largest_eigenvalue": 0.7308741769,
    "sha256": "0" * 64, "features": "pixels",
}  # fmt: skip
PARAMETERS = parameters.load("params.yaml")
PRESET = PARAMETERS.presets["mnist"]
SETTINGS = parameters.Common(**PRESET.model_dump(include=set(parameters.Common.model_fields)))


@pytest.fixture(scope="module")
def recuperation():
    return recuperation_table(SETTINGS, PRESET.bounds.recuperation, MNIST)


def test_recuperation_falls_with_every_step_and_no_accountant_is_below_the_exact_value(recuperation) -> None:
    curves = recuperation.pivot_table(index="steps", columns="bound", values="epsilon")
    assert list(curves.columns) == ["exact on quadratics", "lsi", "lsi-tight", "shifted"]
    assert curves.index[0] == 0
    assert curves.index[-1] == PRESET.bounds.recuperation.steps
    assert (curves.diff().iloc[1:].to_numpy() <= 0).all()
    assert (curves["lsi"] > curves["lsi-tight"]).all()
    assert (curves["lsi-tight"] > curves["shifted"]).all()
    np.testing.assert_allclose(curves["shifted"], curves["exact on quadratics"], rtol=1e-10)


def test_recuperation_starts_at_the_initial_epsilon_of_learning(recuperation) -> None:
    start = recuperation[recuperation["steps"] == 0].set_index("bound")["epsilon"]
    _, problem = 0, accounting.Problem(11_982, 0.011982, 0.261982, 1, 1 / 0.261982)
    for name in ("lsi", "lsi-tight", "shifted"):
        initial = accounting.initial_epsilon(problem, sigma=0.03, delta=1 / 11_982, records=100, accountant=name)
        assert start[name] == pytest.approx(initial, rel=1e-9)


def test_the_papers_figures_of_dynamics_have_its_numbers() -> None:
    first = dynamics_table(1, PARAMETERS.dynamics)
    plateaus = first[(first["bound"] == "corollary-1") & (first["steps"] == 500)]
    found = {(row.alpha, row.strong_convexity): row.renyi for row in plateaus.itertuples()}
    assert found[10, 1] == pytest.approx(1.58922e-02, rel=1e-5)
    assert found[10, 2] == pytest.approx(7.99964e-03, rel=1e-5)
    assert found[10, 4] == pytest.approx(4.0e-03, rel=1e-5)
    assert found[30, 1] == pytest.approx(3 * 1.58922e-02, rel=1e-5)
    assert set(found) == {(10, 1), (20, 1), (30, 1), (10, 2), (10, 4)}
    composed = first[(first["bound"] == "composition") & (first["steps"] == 500)]
    assert sorted(composed["renyi"]) == pytest.approx([0.04, 0.08, 0.12])
    second = dynamics_table(2, PARAMETERS.dynamics)
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
    for number, table in enumerate([recuperation, dynamics_table(1, PARAMETERS.dynamics)]):
        path = tmp_path / f"{number}.parquet"
        write_table(path, table, BOUND_SCHEMA)
        again = read_table(path, BOUND_SCHEMA)
        assert len(again) == len(table)
        np.testing.assert_array_equal(again["steps"], table["steps"])


def test_an_accountant_that_one_sweep_leaves_out_has_a_dash_there() -> None:
    experiments = PRESET.experiments
    sweeps = {
        "fig3a": experiments.fig3a.model_copy(update={"accountants": ["shifted"]}),
        "fig4": experiments.fig4.model_copy(update={"accountants": ["lsi", "shifted"], "records": [100]}),
    }
    plans = [make_plan("mnist", SETTINGS, name, sweep, MNIST) for name, sweep in sweeps.items()]
    lines = markdown(accountant_table(plans)).splitlines()
    assert lines[0] == "|  | lsi | shifted |"
    assert ": epsilon = 0.05, 0.1, 0.5, 1, 2, 5 | – | 0.0659" in lines[2]
    assert lines[3].endswith(" | 4461, 1997, 903, 327 | 73, 60, 47, 30 |")


def test_the_readmes_table_of_accountants_is_the_one_that_the_rule_writes(pytestconfig) -> None:
    plans = [
        make_plan("mnist", SETTINGS, experiment, getattr(PRESET.experiments, experiment), MNIST)
        for experiment in ("fig3a", "fig3b", "fig4")
    ]
    table = markdown(accountant_table(plans))
    assert "| 4461, 1997, 903, 327 | 2693, 1342, 670, 271 | 73, 60, 47, 30 |" in table
    assert table in (pytestconfig.rootpath / "README.md").read_text(encoding="utf-8")
