"""The smoke preset from an empty directory: what it leaves, what runs again after a change, and the report."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from certified_unlearning.mechanisms.run import ExperimentPlan
from certified_unlearning.papers.parameters import load
from certified_unlearning.reproduction.rows import RUN_ROWS, read_table
from tests.support.browser import chromium
from tests.support.planning import ANEW
from tests.workflow.conftest import SmokeRun
from tests.workflow.jobs import COMPARED, DRAWN, EVERY_JOB, EXPERIMENTS, MADE, PAPER_OF, TABLES, TRACKED, jobs_in
from tests.workflow.working_tree import ROOT, WorkingTree

pytestmark = pytest.mark.workflow

DEMANDED_COLUMNS = (
    "dataset, features, experiment, mechanism, variant, accountant, adjacency, smoothness, epsilon_target, epsilon, "
    "delta, n, d, strong_convexity, smoothness_constant, lipschitz, step_size, sigma, learning_steps, "
    "unlearning_steps, records_per_request, request, records_removed, trial, seed, accuracy, seconds, device, "
    "data_sha256, code_version"
)
"""Columns that issue 2 requires of the records."""
LANGEVIN = "presets.smoke.papers.langevin_unlearning"


@pytest.fixture(scope="module")
def finished(smoke_run: SmokeRun) -> WorkingTree:
    return smoke_run.tree


def test_every_job_runs_once_and_leaves_its_log_and_benchmark(smoke_run: SmokeRun) -> None:
    jobs = jobs_in(smoke_run.printed)
    assert sorted(job.name for job in jobs) == sorted(EVERY_JOB)
    for job in jobs:
        for kind in ("log", "benchmark"):
            named = re.search(rf"^    {kind}: (\S+)$", job.fields, re.MULTILINE)
            assert named, f"{job.name} has no {kind}"
            assert (smoke_run.tree.root / named[1]).stat().st_size > 0, f"{named[1]} is empty"


def test_every_target_is_there_and_nothing_is_half_written(finished: WorkingTree) -> None:
    expected = {"data.json", "data.safetensors", "metrics.json", "parameters.html", "records.parquet"}
    expected |= {"tracking/store.json", "claims.json", "findings.json", "report.html"}
    expected |= {f"tracking/{PAPER_OF[name]}-{name}.json" for name in TRACKED}
    expected |= {f"figures/{PAPER_OF[name]}/{name}.{kind}" for name in DRAWN for kind in ("png", "pdf", "svg")}
    expected |= {f"plots/{PAPER_OF[name]}/{name}.csv" for name in (*DRAWN, *TABLES)}
    expected |= {f"{PAPER_OF[name]}/{name}/rows.parquet" for name in MADE}
    expected |= {f"{PAPER_OF[name]}/{name}/table.md" for name in TABLES}
    for name in EXPERIMENTS:
        own = {"plan.json", "langevin.learned.safetensors"}
        own |= {f"{mechanism}.{kind}.parquet" for mechanism in COMPARED[name] for kind in ("rows", "curves")}
        expected |= {f"{PAPER_OF[name]}/{name}/{file}" for file in own}
    there = {str(path.relative_to(finished.results)) for path in finished.results.rglob("*") if path.is_file()}
    # Snakemake marks directories with a hidden file; there are no other ones, and no checkpoint.
    certificate = re.compile(r"\w+/\w+/certificates/([\w.=+-]+\.json|\..*_timestamp)")
    assert {path for path in there if not certificate.fullmatch(path)} == expected


def test_the_records_follow_the_schema_and_hold_every_trial_of_every_run(finished) -> None:
    records = read_table(finished.results / "records.parquet", RUN_ROWS)
    assert set(DEMANDED_COLUMNS.split(", ")) <= set(records.columns)
    assert records.drop(columns=["epsilon", "initial_epsilon", "mu", "rounding_error"]).notna().all(axis=None)
    warm = (records["mechanism"] == "scikit-learn") & (records["variant"] == "warm start")
    assert set(records.loc[warm, "experiment"]) == set(EXPERIMENTS)
    assert (records["epsilon"].isna() == warm).all()
    assert ((records["guarantee"] == "none") == warm).all()
    assert (records["rounding_error"].notna() == ~records["mechanism"].isin(ANEW)).all()
    langevin = records[records["mechanism"] == "langevin"]
    assert set(langevin["accountant"]) == {"lsi", "lsi-tight", "shifted"}
    assert (langevin["mu"].notna() == (langevin["accountant"] == "shifted")).all()
    held = records.groupby("experiment")["mechanism"].unique()
    assert {name: set(mechanisms) for name, mechanisms in held.items()} == {
        "fig3a": {"langevin", "descent-to-delete", "retraining", "scikit-learn"},
        "fig3b": {"langevin", "descent-to-delete", "retraining", "scikit-learn"},
        "fig3c": {"langevin", "retraining", "scikit-learn"},
        "fig4": {"langevin", "retraining", "scikit-learn"},
        "fig5a": {"langevin", "retraining", "scikit-learn"},
        "batch_sizes": {"langevin", "minibatch-langevin", "scikit-learn"},
    }
    trials = list(range(load(finished.root / "params.yaml").presets["smoke"].settings.trials))
    plans = [ExperimentPlan.read(finished.of(name) / "plan.json") for name in EXPERIMENTS]
    requests = {plan.key(run): len(run.requests) for plan in plans for run in plan.runs}
    held_trials = records.groupby(["run_key", "request"])["trial"].apply(list)
    assert set(held_trials.index) == {(key, number + 1) for key in requests for number in range(requests[key])}
    assert all(each == trials for each in held_trials)
    assert records["accuracy"].between(0, 1).all()
    summary = json.loads((finished.results / "data.json").read_text())
    assert records["data_sha256"].unique().tolist() == [summary["sha256"]]


def test_every_certified_run_has_a_certificate_that_verifies(finished) -> None:
    certificates = sorted(finished.results.glob("*/*/certificates/*.json"))
    records = read_table(finished.results / "records.parquet", RUN_ROWS)
    keys = [json.loads(path.read_text())["run_key"] for path in certificates]
    assert sorted(keys) == sorted(records.loc[~records["mechanism"].isin(ANEW), "run_key"].unique())
    assert finished.of("fig3a").joinpath("certificates", "langevin-lsi_steps=1_epsilon=0.5.json") in certificates
    verified = finished.run("unlearn", "verify", *certificates)
    assert verified.returncode == 0, verified.stdout
    assert verified.stdout.count("epsilon = ") == len(certificates)


def test_a_certificate_that_states_too_small_an_epsilon_is_refused(finished, tmp_path: Path) -> None:
    certificate = next(finished.of("fig3c").glob("certificates/*.json"))
    stated = json.loads(certificate.read_text())
    forged = tmp_path / "forged.json"
    forged.write_text(json.dumps(stated | {"epsilon": 0.9 * stated["epsilon"]}))
    refused = finished.run("unlearn", "verify", forged)
    assert refused.returncode == 1
    assert re.search(
        r"^error: \S+forged.json: the certificate of run .* states epsilon = ", refused.stdout, re.MULTILINE
    )


def test_mlflow_has_one_run_per_sweep_point_below_one_per_experiment(finished) -> None:
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{finished.root}/mlflow.db")
    mlflow_experiment = client.get_experiment_by_name("certified-unlearning/smoke")
    runs = client.search_runs([mlflow_experiment.experiment_id], max_results=1000)
    children = [run for run in runs if "mlflow.parentRunId" in run.data.tags]
    records = read_table(finished.results / "records.parquet", RUN_ROWS)
    rows_of = {
        name: [run for run in children if run.data.tags["figure"] == name]
        for name in TRACKED
        if name not in EXPERIMENTS
    }
    for name, own in rows_of.items():
        assert len(own) == len(pd.read_parquet(finished.of(name) / "rows.parquet")) > 0
    sweep_points = [run for run in children if run.data.tags["figure"] in EXPERIMENTS]
    assert len(children) == len(sweep_points) + sum(map(len, rows_of.values()))
    assert len(sweep_points) == records["run_key"].nunique()
    assert len(runs) == len(children) + len(TRACKED)
    assert all(run.info.status == "FINISHED" for run in runs)
    warm = [run for run in sweep_points if run.data.tags["variant"] == "warm start"]
    assert len(warm) == records.loc[records["variant"] == "warm start", "run_key"].nunique() > 0
    assert {run.data.tags["mechanism"] for run in warm} == {"scikit-learn"}
    for run in sweep_points:
        assert {"K", "sigma", "accuracy"} <= run.data.metrics.keys()
        assert ("epsilon" in run.data.metrics) == (run not in warm)
    assert all({"share", "accuracy"} <= run.data.metrics.keys() for run in rows_of["shares"])


def test_the_log_of_a_job_says_how_to_repeat_it_by_hand(finished, tmp_path: Path) -> None:
    log = (finished.root / "logs/smoke/langevin_unlearning/fig3c/plan.log").read_text()
    command = log.splitlines()[0].removeprefix("$ ")
    copy = tmp_path / "plan.json"
    repeated = finished.run("bash", "-c", re.sub(r"--output \S+", f"--output {copy}", command))
    assert repeated.returncode == 0, repeated.stdout
    assert copy.read_bytes() == (finished.of("fig3c") / "plan.json").read_bytes()


def test_a_run_that_failed_fails_again_and_never_passes_for_up_to_date(smoke_tree: WorkingTree) -> None:
    """Three starts of Snakemake that each run a job until it fails."""
    smoke_tree.change_parameter("presets.smoke.step_size", lambda _: 10.0)
    for _ in range(3):
        failed = smoke_tree.snakemake()
        assert failed.returncode == 1, failed.stdout
        assert "need step_size <= 1 / smoothness" in failed.stdout
        assert "Nothing to be done" not in failed.stdout


def test_a_preset_without_a_baseline_gets_one_as_the_page_says(smoke_tree: WorkingTree) -> None:
    page = (ROOT / "docs" / "howto" / "baseline.md").read_text(encoding="utf-8")
    section = page.partition("## When the change is intended")[2]
    accept = re.findall(r"^unlearn .* --preset smoke --accept", section, re.MULTILINE)
    assert len(accept) == 2
    compare = [line.replace(" --accept", " --check" if " claims " in line else "") for line in accept]
    for path in (smoke_tree.root / "workflow" / "baselines").glob("*/smoke.json"):
        path.unlink()
    for line in compare:
        missing = smoke_tree.run(*line.split())
        assert (missing.returncode, missing.stdout.count("\n")) == (1, 1), missing.stdout
        assert "preset smoke has no baseline yet" in missing.stdout
    for line in [*accept, *compare]:
        done = smoke_tree.run(*line.split())
        assert done.returncode == 0, done.stdout


# The report and the tools.


def test_the_report_shows_figures_captions_and_parameters(smoke_tree: WorkingTree) -> None:
    """Snakemake puts all results into one file, and a browser opens each figure."""
    written = smoke_tree.run("snakemake", "--config", "preset=smoke", "--report", "report.html")
    assert written.returncode == 0, written.stdout
    with chromium() as page:
        failed: list[str] = []
        page.on("requestfailed", lambda request: failed.append(request.url))
        page.on("pageerror", lambda error: failed.append(str(error)))
        page.goto((smoke_tree.root / "report.html").as_uri())
        assert "what it costs to remove records" in page.inner_text("body")
        page.get_by_text("Figures", exact=True).click()
        for name in EXPERIMENTS:
            page.get_by_text(PAPER_OF[name], exact=True).click()
            row = page.locator("tr", has_text=name)
            row.locator("[iconname=eye]").click()
            image = page.locator(f'img[src*="{name}.png"]')
            image.wait_for()
            assert image.evaluate("image => image.complete && image.naturalWidth") > 500
            row.locator("[iconname=information-circle]").click()
            of_a_figure = f"Fig. {name.removeprefix('fig')} of Langevin unlearning: "
            page.get_by_text(of_a_figure if name.startswith("fig") else "Mini-batches of b records").first.wait_for()
            page.get_by_text("Figures", exact=True).click()
        page.get_by_text("Results", exact=True).click()
        page.get_by_text("Parameters", exact=True).click()
        page.locator("tr", has_text="smoke").locator("[iconname=eye]").click()
        page.wait_for_function("window.frames.length > 0 || document.querySelector('iframe')")
        table = page.frames[-1].locator("table")
        table.wait_for()
        values = dict(row.split("\t") for row in table.inner_text().splitlines())
        preset = load(smoke_tree.root / "params.yaml").presets["smoke"]
        assert values["trials"] == str(preset.settings.trials)
        sigma = preset.papers["langevin_unlearning"]["fig3c"].sigma
        assert values["papers.langevin_unlearning.fig3c.sigma"] == str(sigma)
        assert failed == []
