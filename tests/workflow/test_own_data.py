"""A table of one's own through the whole workflow: from a CSV file to the report."""

import json
import random
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from certified_unlearning.reproduction.rows import RUN_ROWS, read_table
from tests.support.browser import chromium
from tests.workflow.jobs import EXPERIMENTS, PAPER_OF, jobs_in
from tests.workflow.working_tree import ROOT, WorkingTree, copy_working_tree

pytestmark = pytest.mark.workflow

ROWS = 600
TABLE = {
    "path": "data/tables/loans.csv",
    "label": "repaid",
    "identifier": "customer",
    "categories": {"job": ["nurse", "teacher", "farmer's hand"]},
    "ranges": {"income": [0, 100_000], "age": [18, 100]},
    "split": {"test": 0.2},
}
SWEEPS = {
    "fig3a": {"epsilon": [0.5, 1.0], "unlearning_steps": 1, "descent_steps": [1]},
    "fig3b": {"epsilon": 1.0, "sigma": 0.1, "records": 4, "records_per_request": [2]},
    "fig3c": {"epsilon": 1.0, "sigma": [0.1, 0.2], "records": 4},
    "fig4": {"epsilon": [1.0, 5.0], "sigma": 0.1, "records": [4]},
    "fig5a": {"epsilon": [1.0], "sigma": 0.1, "records": [1, 4]},
    "recuperation": {"steps": 20, "records": 4, "sigma": 0.1},
}
OWN = {
    "extends": "smoke",
    "dataset": "loans",
    "trials": 10,
    "regularisation": 1e-4,
    "accountants": ["shifted"],
    "shows": ["langevin_unlearning"],
    "papers": {"langevin_unlearning": SWEEPS},
}


def test_git_ignores_tables_and_dvc_notices_them() -> None:
    ignored = subprocess.run(["git", "-C", ROOT, "check-ignore", "--quiet", TABLE["path"]], check=False)
    assert ignored.returncode == 0
    stage = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]["data"]
    assert "data/tables" in stage["deps"]
    assert {"own_data", "presets", "settings.dataset"} <= set(stage["params"])


def write_loans(path: Path) -> None:
    generator = random.Random(5)
    lines = ["customer,income,age,job,repaid"]
    for number in range(ROWS):
        income, job = generator.randrange(10_000, 90_000), generator.choice(TABLE["categories"]["job"])
        repaid = income + 30_000 * (job == "nurse") > generator.gauss(60_000, 10_000)
        lines.append(f"{number // 2},{income},{generator.randrange(20, 80)},{job},{'yes' if repaid else 'no'}")
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> WorkingTree:
    """A working tree in which a preset on a table of one's own ran as far as its report, and once to MLflow."""
    tree = copy_working_tree(tmp_path_factory.mktemp("own") / "tree")
    write_loans(tree.root / TABLE["path"])
    path = tree.root / "params.yaml"
    content = yaml.safe_load(path.read_text())
    content |= {"preset": "own", "presets": content["presets"] | {"own": OWN}, "own_data": {"loans": TABLE}}
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    run = tree.run(
        "snakemake", "--cores", "2", "--", "results/own/report.html", "results/own/metrics.json",
        "results/own/tracking/langevin_unlearning-fig3a.json",
    )  # fmt: skip
    assert run.returncode == 0, run.stdout
    return tree


@pytest.fixture
def own_tree(finished: WorkingTree, tmp_path: Path) -> WorkingTree:
    """A copy of the finished working tree, to change at will."""
    return finished.copy(tmp_path / "tree")


def test_a_table_becomes_a_report_with_verified_certificates(finished: WorkingTree) -> None:
    """Its setup runs a whole preset on a table of one's own: every job is a process."""
    results = finished.root / "results/own"
    summary = json.loads((results / "data.json").read_text())
    assert summary["name"] == "loans"
    assert summary["n"] + summary["n_test"] == ROWS
    assert summary["d"] == 5
    assert summary["classes"]["train"].keys() == {"no", "yes"}
    records = read_table(results / "records.parquet", RUN_ROWS)
    assert set(records["experiment"]) == {name for name in EXPERIMENTS if PAPER_OF[name] == "langevin_unlearning"}
    assert set(records["dataset"]) == {"loans"}
    noiseless = records[(records["mechanism"] == "retraining") & (records["variant"] == "noiseless")]
    assert noiseless["accuracy"].mean() > 0.75, "the records lost what they say of the label"
    assert (records.loc[records["mechanism"] == "scikit-learn", "accuracy"] > 0.75).all()
    certificates = sorted(results.glob("*/*/certificates/*.json"))
    stated = [json.loads(path.read_text()) for path in certificates]
    assert {(each["dataset"], each["features"]) for each in stated} == {("loans", "declared, classes from the records")}
    verified = finished.run("unlearn", "verify", *certificates)
    assert verified.returncode == 0, verified.stdout
    page = (results / "report.html").read_text()
    assert "nothing is fitted to the records" in page


def test_claims_about_other_data_and_of_papers_that_were_not_run_are_left_out(finished: WorkingTree) -> None:
    results = finished.root / "results/own"
    verdicts = json.loads((results / "claims.json").read_text())
    assert {verdict["paper"] for verdict in verdicts} == {"langevin_unlearning"}
    assert any(verdict["verdict"] != "not run" for verdict in verdicts), "none is judged by the table's runs"
    with chromium(1280, 800) as page:
        page.goto((results / "report.html").as_uri())
        page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true })")
        claims = page.locator("#claims").inner_text()
        assert "Claims of papers about other data than loans are left out" in claims
        assert f"{len(verdicts)} of {len(verdicts)} shown" in claims
        shown = json.dumps(verdicts) + claims + page.locator("#findings").inner_text()
        found = page.locator(".findings > li").all_inner_texts()
    assert not any(data in shown for data in ("MNIST", "CIFAR", "Adult", "digits", "mnist", "cifar", "adult"))
    n = json.loads((results / "data.json").read_text())["n"]
    assert found[0].startswith(f"own: removing 4 of {n} records at ε\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}1 ")
    assert found[1].startswith("own: with the least noise (accountant ")
    assert f" after removing 1 of {n} records" in found[1]


def test_the_terminals_findings_are_the_reports(finished: WorkingTree) -> None:
    findings = json.loads((finished.root / "results/own/findings.json").read_text())
    brief = finished.run("unlearn", "claims", "--preset", "own", "--brief")
    assert brief.returncode == 0, brief.stdout
    told = brief.stdout.replace("\n   ", " ")
    runs = [each["text"] for each in findings[:2]]
    assert all(f"{number}. {text}\n" in told for number, text in enumerate(runs, start=1))
    assert brief.stdout.endswith("Report: results/own/report.html\n")


def test_mlflow_knows_the_table_by_its_name(finished: WorkingTree) -> None:
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{finished.root}/mlflow.db")
    experiment = client.get_experiment_by_name("certified-unlearning/own")
    runs = client.search_runs([experiment.experiment_id])
    assert runs
    assert {each.dataset.name for run in runs for each in run.inputs.dataset_inputs} == {"loans"}


def rerun(tree: WorkingTree) -> set[str]:
    dry = tree.run("snakemake", "--dry-run", "--", "results/own/data.safetensors")
    assert dry.returncode == 0, dry.stdout
    return {rule for (rule, _), _ in jobs_in(dry.stdout)}


def test_a_changed_file_and_a_changed_declaration_are_prepared_again_and_another_table_is_nothing(
    own_tree: WorkingTree,
) -> None:
    """Five starts of Snakemake, which take three seconds each."""
    assert rerun(own_tree) == set()
    own_tree.change_parameter("own_data", lambda tables: tables | {"other": TABLE | {"path": "data/tables/other.csv"}})
    assert rerun(own_tree) == set()
    own_tree.change_parameter("own_data.loans.ranges.age", lambda _: [18, 110])
    assert rerun(own_tree) == {"prepare"}
    own_tree.change_parameter("own_data.loans.ranges.age", lambda _: [18, 100])
    assert rerun(own_tree) == set()
    path = own_tree.root / TABLE["path"]
    path.write_text(path.read_text().replace("\n0,", "\n7,", 1))
    assert rerun(own_tree) == {"prepare"}


def test_a_value_that_is_not_declared_stops_the_job_with_one_sentence(own_tree: WorkingTree) -> None:
    own_tree.change_parameter("own_data.loans.categories.job", lambda jobs: jobs[:2])
    refused = own_tree.run("snakemake", "--cores", "1", "--", "results/own/data.safetensors")
    assert refused.returncode == 1
    (line,) = re.findall(r"^error: .*", refused.stdout, re.MULTILINE)
    assert re.match(r"error: data/tables/loans\.csv, row \d+: job is \"farmer's hand\", which is none of its", line)
    assert "Traceback" not in refused.stdout


def test_a_preset_with_a_data_set_and_nothing_else_is_fitted_to_its_size(own_tree: WorkingTree) -> None:
    own_tree.change_parameter("presets", lambda presets: presets | {"least": {"dataset": "loans"}})
    target = "results/least/langevin_unlearning/fig5a/plan.json"
    run = own_tree.run("snakemake", "--cores", "1", "--", target)
    assert run.returncode == 0, run.stdout
    assert "least: fig5a fitted to" in run.stdout
    plan = json.loads((own_tree.root / target).read_text())
    assert plan["sweep"]["records"] == [1, 10, 50, 100, 200]
    assert plan["constants"]["strong_convexity"] == pytest.approx(0.01)
