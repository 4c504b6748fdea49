"""The page on papers of one's own: what it shows runs through the whole pipeline, as printed."""

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from tests.workflow.working_tree import WorkingTree, copy_working_tree

pytestmark = pytest.mark.workflow

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "own-paper.md").read_text()


def block(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> WorkingTree:
    """A copy of the project with the page's module and parameters, after the page's command."""
    tree = copy_working_tree(tmp_path_factory.mktemp("own-paper"))
    (tree.root / "moons_paper.py").write_text(block("python"))
    path = tree.root / "params.yaml"
    content = yaml.safe_load(path.read_text())
    added = yaml.safe_load(block("yaml"))
    content["papers_of_others"] = added["papers_of_others"]
    for key in ("papers", "presets"):
        content[key] |= added[key]
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    tree.environment["PYTHONPATH"] += f":{tree.root}"
    command = block("sh").strip().removeprefix("PYTHONPATH=. ")
    made = tree.run(*command.split())
    assert made.returncode == 0, made.stdout
    return tree


def test_the_figure_the_report_and_the_rows_are_there(tree: WorkingTree) -> None:
    """Its setup runs a pipeline with a paper of one's own, as the page says."""
    results = tree.root / "results" / "moons"
    rows = pd.read_parquet(results / "moons" / "finetuning" / "fine-tuning.rows.parquet")
    assert sorted(rows["unlearning_steps"].unique()) == [1, 2, 5, 10, 100]
    assert rows["accuracy"].min() > 0.7
    assert (results / "figures" / "moons" / "finetuning.png").stat().st_size > 10_000
    report = (results / "report.html").read_text()
    assert "Two moons, Fig. 1" in report
    assert "Accuracy after fine-tuning" in report
    assert json.loads((results / "claims.json").read_text()) == []  # No paper speaks of these data.
    assert "No paper shown here makes a claim about moons." in report
    assert not list((results / "moons" / "finetuning" / "certificates").glob("*.json"))


def test_mlflow_has_its_runs(tree: WorkingTree) -> None:
    with sqlite3.connect(tree.root / "mlflow.db") as database:
        names = {name for (name,) in database.execute("select name from runs")}
    assert {"Fig. 1: Accuracy after fine-tuning", "Fine-tuning, K = 100"} <= names


def test_it_changes_nothing_of_the_papers_of_this_package(tree: WorkingTree) -> None:
    planned = tree.run("snakemake", "--dry-run", "--config", "preset=moons")
    assert "Nothing to be done" in planned.stdout, planned.stdout


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("moons_papers:PAPER", "there is no module moons_papers"),
        ("moons_paper:PAPERS", "the module moons_paper has no PAPERS"),
        ("moons_paper:MOONS", "of type DataSet"),
    ],
)
def test_a_reference_that_names_no_paper_is_refused_in_one_sentence(
    tree: WorkingTree, reference: str, said: str
) -> None:
    content: dict[str, Any] = yaml.safe_load((tree.root / "params.yaml").read_text())
    content["papers_of_others"] = [reference]
    other = tree.root / "other.yaml"
    other.write_text(yaml.safe_dump(content))
    refused = tree.run("snakemake", "--dry-run", "--configfile", other)
    assert refused.returncode != 0
    assert said in refused.stdout
