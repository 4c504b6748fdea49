"""Presets on data of one's own: what nobody chose fits the data's size, and what cannot be run is left out."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from typer.testing import CliRunner

from certified_unlearning import cli
from certified_unlearning.errors import ParameterError, UnlearningError
from certified_unlearning.mechanisms.run import ExperimentPlan
from certified_unlearning.papers import parameters
from certified_unlearning.reproduction.experiment import Inputs
from certified_unlearning.reproduction.layout import Layout, certificate_file
from tests.support.planning import ROOT, experiment_called, settings_of, sweep_of

LOANS = {"path": "data/tables/loans.csv", "label": "repaid", "split": {"test": 0.2}}
DEPENDENT = (
    "fig3a", "fig3b", "smoothness", "fig3c", "fig4", "fig5a", "recuperation", "table1", "table2", "table3",
    "accountants", "batch_sizes",
)  # fmt: skip


def with_presets(**presets: Mapping[str, Any]) -> parameters.Parameters:
    content = yaml.safe_load((ROOT / "params.yaml").read_text())
    content["own_data"] = {"loans": LOANS}
    content["presets"] |= presets
    return parameters.check(content)


def summary(n: int, classes: int, features: int = 20) -> dict[str, Any]:
    return {
        "name": "loans", "features": "declared", "n": n, "n_test": n // 4, "d": features, "largest_eigenvalue": 0.3,
        "classes": {"train": dict.fromkeys(map(str, range(classes)), n // classes)}, "sha256": "0" * 64,
    }  # fmt: skip


def test_a_preset_on_data_of_ones_own_needs_a_data_set_and_nothing_else() -> None:
    loaded = with_presets(own={"dataset": "loans"})
    assert tuple(each.name for _, each in loaded.shown("own")) == DEPENDENT
    assert loaded.presets["own"].defaults("langevin_unlearning", "fig5a") == (
        "regularisation", "trials", "epsilon", "sigma", "records",
    )  # fmt: skip


@pytest.mark.parametrize("base", ["mnist", "digits", "adult"])
def test_what_a_preset_on_other_data_says_was_not_chosen_for_ones_own(base: str) -> None:
    own = with_presets(own={"extends": base, "dataset": "loans"}).presets["own"]
    assert "regularisation" in own.defaults("langevin_unlearning", "fig5a")
    assert "records" in own.defaults("langevin_unlearning", "fig5a")


def test_what_a_preset_on_the_same_data_chose_stays() -> None:
    said = {"langevin_unlearning": {"fig5a": {"records": [7]}}}
    loaded = with_presets(
        own={"dataset": "loans", "regularisation": 1e-4, "papers": said}, again={"extends": "own", "trials": 3}
    )
    assert loaded.presets["again"].defaults("langevin_unlearning", "fig5a") == ("epsilon", "sigma")
    assert "records" in loaded.presets["again"].defaults("langevin_unlearning", "fig4")


def test_of_committed_presets_every_value_was_chosen() -> None:
    loaded = parameters.load(ROOT / "params.yaml")
    assert not any(
        preset.defaults(paper, name)
        for preset in loaded.presets.values()
        for paper, experiments in preset.papers.items()
        for name in experiments
    )


def test_parameters_that_are_fitted_are_told_with_how() -> None:
    written = parameters.as_written(with_presets(own={"dataset": "loans", "trials": 5}).presets["own"])
    assert (written["regularisation"], written["trials"]) == ("0.01 / n", 5)
    assert written["papers"]["langevin_unlearning"]["fig3c"]["records"] == "100, at most half of the records"


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("n", [60, 250, 1_000_000])
def test_every_experiment_can_be_planned_for_small_and_large_tables(n: int, classes: int) -> None:
    plans: dict[str, ExperimentPlan] = {}
    settings = settings_of("mnist", dataset="loans")
    for name in DEPENDENT:
        if name == "smoothness" and n > 60:
            continue  # Plans of fig3b once more, for seconds.
        experiment, sweep = experiment_called(name), sweep_of("mnist", name)
        keys = (*parameters.FITTED, *type(sweep).model_fields)
        inputs = Inputs("own", settings, sweep, summary(n, classes), plans).fitted(keys)
        assert inputs.sweep.check() is None
        made = experiment.make(inputs)
        if isinstance(made, ExperimentPlan):
            plans[name] = made
            assert all(run.requests[-1].records_removed <= n // 2 for run in made.runs)
        else:
            assert len(made)
    constants = plans["fig3a"].constants
    assert constants.strong_convexity == pytest.approx(0.01)
    assert plans["fig3a"].settings.trials == {60: 100, 250: 100 if classes == 2 else 66, 1_000_000: 2}[n]


def run(*arguments: object) -> str:
    result = CliRunner().invoke(cli.app, [str(each) for each in arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def plan_with_the_command(directory: Path, n: int, classes: int, *, defaults: bool) -> str:
    """Plan ``fig3b``, of which Descent-to-Delete is beyond float64 for a million records of ten classes."""
    place = directory / "own" / "langevin_unlearning" / "fig3b"
    place.mkdir(parents=True, exist_ok=True)
    (directory / "own" / "data.json").write_text(json.dumps(summary(n, classes)))
    preset = with_presets(own={"dataset": "loans"}).presets["own"]
    sweep = preset.papers["langevin_unlearning"]["fig3b"]
    settings = preset.settings.model_copy(update={"regularisation": 0.01 / n})
    keys = preset.defaults("langevin_unlearning", "fig3b") if defaults else ()
    return run(
        "pipeline", "plan", experiment_called("fig3b").reference, "--preset", "own", "--settings",
        settings.model_dump_json(), "--sweep", sweep.model_dump_json(), "--summary", directory / "own" / "data.json",
        "--output", place / "plan.json", *(word for key in keys for word in ("--default", key)),
    )  # fmt: skip


def test_a_plan_says_what_was_fitted(tmp_path: Path) -> None:
    printed = plan_with_the_command(tmp_path, 60, 2, defaults=True)
    assert printed.splitlines()[-1] == "own: fig3b fitted to 60 training records: records 20 (by default 100)"
    assert ExperimentPlan.read(tmp_path / "own/langevin_unlearning/fig3b/plan.json").sweep["records"] == 20


def test_what_was_chosen_and_cannot_be_run_is_an_error_as_ever(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="100"):
        plan_with_the_command(tmp_path, 60, 2, defaults=False)
    with pytest.raises(UnlearningError, match="rounding in float64"):
        plan_with_the_command(tmp_path, 1_000_000, 10, defaults=False)


def test_an_experiment_that_cannot_be_run_is_left_out_and_the_rest_goes_on(tmp_path: Path) -> None:
    printed = plan_with_the_command(tmp_path, 1_000_000, 10, defaults=True)
    assert "own: fig3b is left out: with sigma = " in printed
    layout = Layout(tmp_path, "own")
    place = layout.of("langevin_unlearning", "fig3b")
    plan = ExperimentPlan.read(place / "plan.json")
    assert plan.left_out is not None
    assert plan.runs == ()
    from certified_unlearning.commands.pipeline import _shown
    from certified_unlearning.papers.all import PAPERS

    shown = _shown(["own=fig3a,fig3b,smoothness"], PAPERS, tmp_path)["own"]
    assert [each.name for _, each in shown] == ["fig3a"]


def test_jobs_of_what_is_left_out_write_empty_tables_and_a_figure_that_says_so(tmp_path: Path) -> None:
    from certified_unlearning.mechanisms.langevin import LANGEVIN
    from certified_unlearning.mechanisms.scikit_learn import SCIKIT_LEARN
    from certified_unlearning.reproduction import jobs
    from certified_unlearning.reproduction.rows import RUN_ROWS, read_table

    plan_with_the_command(tmp_path, 1_000_000, 10, defaults=True)
    place = Layout(tmp_path, "own").of("langevin_unlearning", "fig3b")
    plan = ExperimentPlan.read(place / "plan.json")
    data: Any = None  # Not looked at.
    jobs.learn(LANGEVIN, plan, data, place / "learned")
    jobs.unlearn(LANGEVIN, plan, data, place / "learned", place / "rows", place / "curves")
    jobs.refit(SCIKIT_LEARN, plan, data, place / "rows-2", place / "curves-2")
    assert read_table(place / "rows", RUN_ROWS).empty
    run("pipeline", "certify", "--plan", place / "plan.json", "--output", place / "certificates")
    assert list((place / "certificates").iterdir()) == []
    style = parameters.load(ROOT / "params.yaml").figures.model_dump_json()
    run(
        "pipeline", "draw", experiment_called("fig3b").reference, "--rows", place / "rows", "--numbers",
        tmp_path / "numbers.csv", "--style", style, "--figure", tmp_path / "figure",
    )  # fmt: skip
    assert (tmp_path / "figure.png").exists()
    assert pd.read_csv(tmp_path / "numbers.csv").empty
    printed = run(
        "pipeline", "make", experiment_called("smoothness").reference, "--preset", "own", "--settings",
        plan.settings.model_dump_json(), "--sweep", "{}", "--summary", tmp_path / "own" / "data.json",
        "--plan", place / "plan.json", "--output", tmp_path / "smoothness.parquet",
    )  # fmt: skip
    assert "smoothness is left out: it reads" in printed


def test_certificates_are_named_after_what_they_certify(tmp_path: Path) -> None:
    settings = settings_of("smoke", trials=2)
    for name in ("fig3a", "fig3b", "fig3c", "fig4", "fig5a", "batch_sizes"):
        inputs = Inputs("smoke", settings, sweep_of("smoke", name), summary(1437, 2))
        plan = experiment_called(name).make(inputs)
        assert isinstance(plan, ExperimentPlan)
        names = [certificate_file(run) for run in plan.runs]
        assert len({each.casefold() for each in names}) == len(names)
        assert all(each.isascii() and not set(each) & set(" ,()/:'\"") for each in names)
        if name == "fig3a":
            assert names[0] == "langevin-lsi_steps=1_epsilon=0.5.json"
            plan.model_copy(update={"runs": (*plan.runs, plan.runs[0])}).write(tmp_path / "twice.json")
    with pytest.raises(UnlearningError, match="has several runs called 'Langevin"):
        run("pipeline", "certify", "--plan", tmp_path / "twice.json", "--output", tmp_path / "certificates")
