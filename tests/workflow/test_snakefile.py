"""The Snakefile without the whole run of smoke: its plan, one figure from nothing, and what a user sees of a mistake.

Whole runs are marked as `workflow`.
"""

import json
from pathlib import Path

import pytest

from certified_unlearning.papers.parameters import load
from certified_unlearning.reproduction.rows import RUN_ROWS, read_table
from tests.workflow.jobs import COMPARED
from tests.workflow.working_tree import WorkingTree, copy_working_tree

LANGEVIN = "presets.smoke.papers.langevin_unlearning"
FIGURE = "results/smoke/figures/langevin_unlearning/fig3c.png"
TRACKED = "results/smoke/tracking/langevin_unlearning-fig3c.json"
TARGETS = (FIGURE, TRACKED)


@pytest.fixture(scope="module")
def one_figure(tmp_path_factory: pytest.TempPathFactory) -> WorkingTree:
    """A working tree in which one figure was drawn and tracked, from nothing. Look, do not touch."""
    tree = copy_working_tree(tmp_path_factory.mktemp("one-figure") / "tree")
    done = tree.snakemake(*TARGETS)
    assert done.returncode == 0, done.stdout
    return tree


@pytest.fixture
def tree(one_figure: WorkingTree, tmp_path: Path) -> WorkingTree:
    """A copy, to change at will."""
    return one_figure.copy(tmp_path / "tree")


# The plan.


def test_snakemakes_own_linter_has_nothing_to_say(fresh_tree: WorkingTree) -> None:
    linted = fresh_tree.run("snakemake", "--lint")
    assert linted.returncode == 0, linted.stdout
    assert "good condition" in linted.stdout


def test_snakemake_run_in_a_fresh_clone_shows_its_plan_for_every_preset(fresh_tree: WorkingTree) -> None:
    presets = list(load(fresh_tree.root / "params.yaml").presets)
    fresh_tree.change_parameter("collections.every", lambda _: presets)
    reports = [f"results/{preset}/report.html" for preset in presets]
    dry = fresh_tree.run("snakemake", "--dry-run", "--quiet", "--config", "preset=every", "--", "all", *reports)
    assert dry.returncode == 0, dry.stdout


# One figure.


def test_one_figure_is_made_from_nothing_with_its_certificates_and_runs(one_figure: WorkingTree) -> None:
    from mlflow import MlflowClient

    assert (one_figure.root / FIGURE).stat().st_size > 0
    mechanisms = set(COMPARED["fig3c"])
    tables = {path.name.partition(".")[0]: path for path in one_figure.of("fig3c").glob("*.rows.parquet")}
    assert set(tables) == mechanisms
    rows = {name: read_table(path, RUN_ROWS) for name, path in tables.items()}
    assert all(each["accuracy"].between(0, 1).all() for each in rows.values())
    certificates = sorted(one_figure.of("fig3c").glob("certificates/*.json"))
    keys = {json.loads(path.read_text())["run_key"] for path in certificates}
    assert keys == set(rows["langevin"]["run_key"])
    verified = one_figure.run("unlearn", "verify", *certificates)
    assert (verified.returncode, verified.stdout.count("epsilon = ")) == (0, len(certificates)), verified.stdout
    client = MlflowClient(f"sqlite:///{one_figure.root}/mlflow.db")
    experiment = client.get_experiment_by_name("certified-unlearning/smoke")
    runs = client.search_runs([experiment.experiment_id], max_results=1000)
    tracked = {run.data.tags["certified_unlearning.run_key"] for run in runs if "mlflow.parentRunId" in run.data.tags}
    assert tracked == {key for each in rows.values() for key in each["run_key"]}


def test_what_is_up_to_date_is_not_run_again_and_a_changed_line_is(tree: WorkingTree) -> None:
    assert tree.dry_run(*TARGETS) == []
    path = tree.root / "src" / "certified_unlearning" / "engine" / "descent.py"
    content = path.read_text()
    path.write_text(f"# A remark.\n{content}")
    assert tree.dry_run(*TARGETS) == []
    path.write_text(f"{content}\n_CHANGED = True\n")
    again = {job.name for job in tree.dry_run(*TARGETS)}
    assert {("learn", "fig3c/langevin"), ("draw", "fig3c"), ("track", "fig3c")} <= again
    assert not {name for name, _ in again} & {"fetch", "prepare", "plan"}


# What a user sees of a mistake.


def test_an_unknown_preset_is_named_beside_the_known_ones(fresh_tree: WorkingTree) -> None:
    refused = fresh_tree.run("snakemake", "--cores", "2", "--config", "preset=digit")
    assert refused.returncode == 1
    known = load(fresh_tree.root / "params.yaml")
    names = ", ".join([*known.presets, *known.collections])
    assert f"params.yaml: preset is 'digit', but must be one of {names}\n" in refused.stdout
    assert "Traceback" not in refused.stdout
    assert not (fresh_tree.root / "results").exists()


def test_a_value_outside_its_range_stops_snakemake_before_any_job(fresh_tree: WorkingTree) -> None:
    """Which values are refused with which sentence is tested in `tests/papers/test_parameters.py`."""
    fresh_tree.change_parameter(f"{LANGEVIN}.fig3b.epsilon", lambda _: float("nan"))
    refused = fresh_tree.snakemake()
    assert refused.returncode == 1
    assert f"params.yaml: {LANGEVIN}.fig3b.epsilon is nan, but must be a number above 0" in refused.stdout
    assert "Traceback" not in refused.stdout
    assert not (fresh_tree.root / "results").exists()


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("presets.smoke.step_size", 5.0, "need step_size <= 1 / smoothness = 3.58"),
        (f"{LANGEVIN}.fig3c.records", 5000, "records must be at most n = 1437, got 5000"),
    ],
)
def test_what_only_the_data_can_tell_stops_the_job_with_its_sentence_on_the_terminal(
    tree: WorkingTree, key: str, value: object, sentence: str
) -> None:
    tree.change_parameter(key, lambda _: value)
    refused = tree.snakemake("results/smoke/langevin_unlearning/fig3c/plan.json")
    assert refused.returncode == 1
    (line,) = [line for line in refused.stdout.splitlines() if line.startswith("error: ")]
    assert sentence in line
    assert "Traceback" not in refused.stdout
    assert not (tree.of("fig3c") / "plan.json").exists()
    assert not list(tree.of("fig3c").glob(".*"))
    assert line in (tree.root / "logs/smoke/langevin_unlearning/fig3c/plan.log").read_text()
