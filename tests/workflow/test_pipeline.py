"""The smoke preset from an empty directory: what it leaves, what runs again after a change, and the report."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from working_tree import BOUNDS, EXPERIMENTS, JOB, ROOT, WorkingTree, experiment

from browser import chromium
from certified_unlearning.experiments.model import Plan
from certified_unlearning.parameters import load
from certified_unlearning.results import ATTACK_SCHEMA, RECORD_SCHEMA, read_table

pytestmark = pytest.mark.workflow

DEMANDED_COLUMNS = (
    "dataset, features, experiment, mechanism, variant, accountant, adjacency, smoothness, epsilon_target, epsilon, "
    "delta, n, d, strong_convexity, smoothness_constant, lipschitz, step_size, sigma, learning_steps, "
    "unlearning_steps, records_per_request, request, records_removed, trial, seed, accuracy, seconds, device, "
    "data_sha256, code_version"
)
"""What issue 2 asks of the records."""

COMPARED = {
    "fig3a": {"langevin", "descent-to-delete", "retraining"},
    "fig3b": {"langevin", "descent-to-delete", "retraining"},
    "fig3c": {"langevin", "retraining"},
    "fig4": {"langevin", "retraining"},
    "fig5a": {"langevin", "retraining"},
}
ONCE = {("fetch", ""), ("prepare", ""), ("track_store", ""), ("parameter_table", ""), ("collect", ""), ("metrics", "")}
PER_EXPERIMENT = ("plan", "learn", "unlearn", "retrain", "certify", "figure", "track")
DELETION = {("deletion", ""), ("deletion_figure", ""), ("track_deletion", "")}
EVERY_JOB = (
    ONCE
    | DELETION
    | {(rule, experiment) for rule in PER_EXPERIMENT for experiment in EXPERIMENTS}
    | {("descend", "fig3a"), ("descend", "fig3b")}
    | {("recuperation", ""), ("dynamics", "1"), ("dynamics", "2"), ("accountants", "")}
    | {("smoothness", ""), ("tables", ""), ("claims", ""), ("page", "")}
    | {("bound_figure", bound) for bound in BOUNDS}
)


@pytest.fixture(scope="module")
def finished(smoke_run: tuple[WorkingTree, str]) -> WorkingTree:
    return smoke_run[0]


def of(rules: tuple[str, ...], experiments: tuple[str, ...] = EXPERIMENTS) -> set[tuple[str, str]]:
    return {(rule, experiment) for rule, experiment in EVERY_JOB if rule in rules and experiment in experiments}


def test_every_job_runs_once_and_leaves_its_log_and_benchmark(smoke_run) -> None:
    tree, printed = smoke_run
    jobs = [job for job in JOB.finditer(printed) if job["rule"] != "all"]
    assert sorted((job["rule"], experiment(job)) for job in jobs) == sorted(EVERY_JOB)
    for job in jobs:
        for kind in ("log", "benchmark"):
            named = re.search(rf"^    {kind}: (\S+)$", job["fields"], re.MULTILINE)
            assert named, f"rule {job['rule']} has no {kind}"
            assert (tree.root / named[1]).stat().st_size > 0, f"{named[1]} is empty"


def test_every_target_is_there_and_nothing_is_half_written(finished) -> None:
    expected = {"data.json", "data.safetensors", "metrics.json", "parameters.html", "records.parquet"}
    expected |= {"tracking/store.json", "accountants.md", "plots/accountants.csv", "claims.json", "report.html"}
    expected |= {"tables.md", "plots/table1.csv", "plots/table2.csv", "plots/table3.csv"}
    expected |= {"deletion/attacks.parquet", "deletion/risk.parquet", "tracking/deletion.json"}
    expected |= {"figures/deletion.png", "figures/deletion.pdf", "plots/deletion.csv"}
    for name in BOUNDS:
        expected |= {f"bounds/{name}.parquet", f"figures/{name}.png", f"figures/{name}.pdf", f"plots/{name}.csv"}
    for name in EXPERIMENTS:
        expected |= {f"figures/{name}.png", f"figures/{name}.pdf", f"plots/{name}.csv", f"plans/{name}.json"}
        expected |= {f"models/{name}.safetensors", f"tracking/{name}.json"}
        expected |= {f"{kind}/{name}-{each}.parquet" for kind in ("records", "curves") for each in COMPARED[name]}
    there = {str(path.relative_to(finished.results)) for path in finished.results.rglob("*") if path.is_file()}
    # Snakemake marks directories with a hidden file; there are no other ones, and no checkpoint.
    certificate = re.compile(r"certificates/\w+/([0-9a-f]{64}\.json|\..*_timestamp)")
    assert {path for path in there if not certificate.fullmatch(path)} == expected


def test_the_records_follow_the_schema_and_hold_every_trial_of_every_run(finished) -> None:
    records = read_table(finished.results / "records.parquet", RECORD_SCHEMA)
    assert set(DEMANDED_COLUMNS.split(", ")) <= set(records.columns)
    assert records.drop(columns=["initial_epsilon", "mu", "rounding_error"]).notna().all(axis=None)
    assert (records["rounding_error"].notna() == (records["mechanism"] != "retraining")).all()
    langevin = records[records["mechanism"] == "langevin"]
    assert set(langevin["accountant"]) == {"lsi", "lsi-tight", "shifted"}
    assert (langevin["mu"].notna() == (langevin["accountant"] == "shifted")).all()
    held = records.groupby("experiment")["mechanism"].unique()
    assert {name: set(mechanisms) for name, mechanisms in held.items()} == COMPARED
    trials = list(range(load(finished.root / "params.yaml").presets["smoke"].trials))
    plans = [Plan.read(finished.results / f"plans/{name}.json") for name in EXPERIMENTS]
    requests = {plan.key(run): len(run.requests) for plan in plans for run in plan.runs}
    held_trials = records.groupby(["run_key", "request"])["trial"].apply(list)
    assert set(held_trials.index) == {(key, number + 1) for key in requests for number in range(requests[key])}
    assert all(each == trials for each in held_trials)
    assert records["accuracy"].between(0, 1).all()
    summary = json.loads((finished.results / "data.json").read_text())
    assert records["data_sha256"].unique().tolist() == [summary["sha256"]]


def test_every_certified_run_has_a_certificate_that_verifies(finished) -> None:
    certificates = sorted(finished.results.glob("certificates/*/*.json"))
    records = read_table(finished.results / "records.parquet", RECORD_SCHEMA)
    assert {path.stem for path in certificates} == set(records.loc[records["mechanism"] != "retraining", "run_key"])
    verified = finished.run("unlearn", "verify", *certificates)
    assert verified.returncode == 0, verified.stdout
    assert verified.stdout.count("epsilon = ") == len(certificates)


def test_a_certificate_that_states_too_small_an_epsilon_is_refused(finished, tmp_path: Path) -> None:
    certificate = next(finished.results.glob("certificates/fig3c/*.json"))
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
    records = read_table(finished.results / "records.parquet", RECORD_SCHEMA)
    attacks = [run for run in children if run.data.tags["figure"] == "deletion"]
    assert len(attacks) == len(read_table(finished.results / "deletion/attacks.parquet", ATTACK_SCHEMA))
    sweep_points = [run for run in children if run not in attacks]
    assert len(sweep_points) == records["run_key"].nunique()
    assert len(runs) == len(children) + len(EXPERIMENTS) + 1
    assert all(run.info.status == "FINISHED" for run in runs)
    assert all({"epsilon", "K", "sigma", "accuracy"} <= run.data.metrics.keys() for run in sweep_points)
    assert all({"advantage", "low", "high", "promised"} <= run.data.metrics.keys() for run in attacks)


def test_the_log_of_a_job_says_how_to_repeat_it_by_hand(finished, tmp_path: Path) -> None:
    log = (finished.root / "logs/smoke/plan-fig3c.log").read_text()
    command = log.splitlines()[0].removeprefix("$ ")
    copy = tmp_path / "plan.json"
    repeated = finished.run("bash", "-c", re.sub(r"--output \S+", f"--output {copy}", command))
    assert repeated.returncode == 0, repeated.stdout
    assert copy.read_bytes() == (finished.results / "plans/fig3c.json").read_bytes()


def test_a_second_run_has_nothing_to_do(smoke_tree: WorkingTree) -> None:
    again = smoke_tree.snakemake()
    assert again.returncode == 0
    assert "Nothing to be done" in again.stdout


# What runs again after a change: exactly what depends on it.

SIMULATION = ("learn", "unlearn", "retrain", "descend")
FROM_RECORDS = ("certify", "figure", "track")
TOGETHER = {("collect", ""), ("metrics", ""), ("claims", ""), ("page", "")}
DYNAMICS = {("dynamics", "1"), ("dynamics", "2"), ("bound_figure", "dynamics1"), ("bound_figure", "dynamics2")}
OTHER_FIGURES = {("bound_figure", bound) for bound in BOUNDS} | (DELETION - {("deletion", "")})


def test_one_number_of_one_sweep_reruns_that_experiment_only(smoke_tree: WorkingTree) -> None:
    key = "presets.smoke.experiments.fig3c.sigma"
    smoke_tree.change_parameter(key, lambda sigma: [1.25 * sigma[0], *sigma[1:]])
    own = of(("plan", *SIMULATION, *FROM_RECORDS), ("fig3c",))
    assert smoke_tree.jobs_to_run() == own | TOGETHER | {("parameter_table", ""), ("tables", "")}


def test_another_accountant_of_one_sweep_reruns_that_experiment_only(smoke_tree: WorkingTree) -> None:
    smoke_tree.change_parameter("presets.smoke.experiments.fig3b.accountants", lambda _: ["shifted"])
    own = of(("plan", *SIMULATION, *FROM_RECORDS), ("fig3b",))
    shown = {("parameter_table", ""), ("accountants", ""), ("tables", "")}
    assert smoke_tree.jobs_to_run() == own | TOGETHER | shown | {("smoothness", ""), ("bound_figure", "smoothness")}


def test_a_sweep_of_bounds_reruns_no_simulation(smoke_tree: WorkingTree) -> None:
    smoke_tree.change_parameter("presets.smoke.bounds.recuperation.steps", lambda steps: 2 * steps)
    smoke_tree.change_parameter("dynamics.sigma", lambda sigma: 2 * sigma)
    bounds = {("recuperation", ""), ("bound_figure", "recuperation")} | DYNAMICS
    assert smoke_tree.jobs_to_run() == bounds | {("parameter_table", ""), ("page", "")}


def test_the_number_of_trials_reruns_all_but_the_data(smoke_tree: WorkingTree) -> None:
    smoke_tree.change_parameter("presets.smoke.trials", lambda trials: trials + 1)
    kept = {("fetch", ""), ("prepare", ""), ("track_store", ""), *DYNAMICS, *DELETION}
    assert smoke_tree.jobs_to_run() == EVERY_JOB - kept


def test_the_seed_reruns_all_but_fetching(smoke_tree: WorkingTree) -> None:
    smoke_tree.change_parameter("presets.smoke.seed", lambda seed: seed + 1)
    assert smoke_tree.jobs_to_run() == EVERY_JOB - {("fetch", ""), ("track_store", ""), *DYNAMICS, *DELETION}


@pytest.mark.parametrize(
    ("key", "also"), [("deletion.key.length", set()), ("presets.smoke.interactions", {("parameter_table", "")})]
)
def test_a_number_of_deletion_reruns_deletion_and_what_shows_it(smoke_tree: WorkingTree, key: str, also: set) -> None:
    smoke_tree.change_parameter(key, lambda number: number + 1)
    assert smoke_tree.jobs_to_run() == DELETION | {("claims", ""), ("page", "")} | also


def test_the_number_of_threads_reruns_the_table_of_parameters_only(smoke_tree: WorkingTree) -> None:
    smoke_tree.change_parameter("presets.smoke.threads", lambda threads: threads + 1)
    assert smoke_tree.jobs_to_run() == {("parameter_table", ""), ("page", "")}


def test_another_preset_reruns_nothing(smoke_tree: WorkingTree) -> None:
    smoke_tree.change_parameter("presets.digits.trials", lambda trials: trials + 1)
    assert smoke_tree.jobs_to_run() == set()


def test_cosmetic_edits_of_the_parameters_rerun_nothing(smoke_tree: WorkingTree) -> None:
    path = smoke_tree.root / "params.yaml"
    content = path.read_text()
    cosmetic = "# A remark.\n" + re.sub(r"(\d+\.\d+)(?![\de])", r"\g<1>0", content)
    assert re.search(r"\b0\.50\b", cosmetic)
    assert yaml.safe_load(cosmetic) == yaml.safe_load(content)
    path.write_text(cosmetic)
    assert smoke_tree.jobs_to_run() == set()


def test_a_figure_parameter_reruns_the_figures_and_what_shows_them(smoke_tree: WorkingTree) -> None:
    smoke_tree.change_parameter("figures.dots_per_inch", lambda dots: dots // 4)
    assert smoke_tree.jobs_to_run() == of(("figure", "track")) | OTHER_FIGURES | {("page", "")}
    figures, records = smoke_tree.results / "figures", smoke_tree.results / "records.parquet"
    before = (figures / "fig3a.png").stat().st_size, records.stat()
    drawn = smoke_tree.snakemake("results/smoke/figures/fig3a.png")
    assert drawn.returncode == 0, drawn.stdout
    assert (figures / "fig3a.png").stat().st_size < before[0]
    assert records.stat() == before[1]
    left = of(("figure",)) - {("figure", "fig3a")} | of(("track",)) | OTHER_FIGURES | {("page", "")}
    assert smoke_tree.jobs_to_run() == left


@pytest.mark.parametrize(
    ("module", "rerun"),
    [
        ("figures/fig3a.py", of(("figure", "track")) | OTHER_FIGURES | {("page", "")}),
        ("dynamics.py", of((*SIMULATION, *FROM_RECORDS)) | DELETION | TOGETHER),
        ("deletion/encoding.py", DELETION | {("claims", ""), ("page", "")}),
        ("certificate/model.py", of(("certify", "track")) | {("page", "")}),
        ("claims/measures.py", {("claims", ""), ("page", "")}),
        ("report/page.py", {("page", "")}),
        ("tracking/histogram.py", of(("track",)) | {("track_store", ""), ("track_deletion", "")}),
        ("cli.py", set()),
    ],
)
def test_a_module_reruns_the_rules_that_run_it(smoke_tree: WorkingTree, module: str, rerun: set) -> None:
    path = smoke_tree.root / "src/certified_unlearning" / module
    path.write_text(path.read_text() + "\n# A remark.\n")
    assert smoke_tree.jobs_to_run() == rerun


def test_a_run_that_failed_fails_again_and_never_passes_for_up_to_date(smoke_tree: WorkingTree) -> None:
    smoke_tree.change_parameter("presets.smoke.step_size", lambda _: 10.0)
    for _ in range(3):
        failed = smoke_tree.snakemake()
        assert failed.returncode == 1, failed.stdout
        assert "need step_size <= 1 / smoothness" in failed.stdout
        assert "Nothing to be done" not in failed.stdout


def test_a_preset_without_a_baseline_gets_one_as_the_page_says(smoke_tree: WorkingTree) -> None:
    page = (ROOT / "docs" / "howto" / "baseline.md").read_text(encoding="utf-8").partition("## When it should have")[2]
    accept = re.findall(r"^unlearn .* --preset smoke --accept", page, re.MULTILINE)
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


def test_touched_but_equal_files_rerun_nothing(smoke_tree: WorkingTree) -> None:
    for path in [smoke_tree.root / "params.yaml", *smoke_tree.root.glob("src/**/*.py")]:
        path.touch()
    assert smoke_tree.jobs_to_run() == set()


PACKAGE = ROOT / "src/certified_unlearning"
PLUMBING = {"cli.py", "pipeline_commands.py", "errors.py", "files.py", "progress.py", "version.py"}
"""Modules that decide over no result; a change of theirs must not cost a night of learning."""


def imported(module: Path, function: str | None = None) -> Iterator[Path]:
    """The project's modules that a module, or one function of it, imports by name."""
    tree: ast.AST = ast.parse(module.read_text())
    if function:
        tree = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == function)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("certified_unlearning"):
            place = PACKAGE.joinpath(*node.module.split(".")[1:])
            for name in node.names:
                candidates = (place / f"{name.name}.py", place / name.name / "__init__.py")
                candidates += (place.with_suffix(".py"), place / "__init__.py")
                yield next(path for path in candidates if path.exists())


def needed(command: str) -> set[str]:
    """The modules that a command's results depend on: what it imports, and what those import."""
    function = command.replace(" ", "_").replace("-", "_")
    found: set[Path] = set()
    commands = "pipeline_commands.py" if command.startswith("pipeline ") else "cli.py"
    waiting = list(imported(PACKAGE / commands, function))
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += imported(module)
    return {str(module.relative_to(PACKAGE)) for module in found} - PLUMBING - {"__init__.py"}


def test_every_module_that_a_job_runs_is_declared_as_its_input(smoke_run) -> None:
    tree, printed = smoke_run
    checked = set()
    for job in JOB.finditer(printed):
        if job["rule"] == "all":
            continue
        log = re.search(r"log: (\S+)", job["fields"])[1]
        called = re.match(r"\$ unlearn (data|pipeline) ([\w-]+)", (tree.root / log).read_text())
        command = f"{called[1]} {called[2]}"
        declared = set(re.findall(r"src/certified_unlearning/([\w/]+\.py)", job["fields"]))
        assert needed(command) - declared == set(), f"rule {job['rule']} runs modules that are not its input"
        checked.add(job["rule"])
    assert checked == {rule for rule, _ in EVERY_JOB}
    assert {"dynamics.py", "randomness.py", "mechanisms/langevin.py"} <= needed("pipeline learn")


# The report and the tools.


def test_the_report_shows_figures_captions_and_parameters(smoke_tree: WorkingTree) -> None:
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
            row = page.locator("tr", has_text=name)
            row.locator("[iconname=eye]").click()
            image = page.locator(f'img[src*="{name}.png"]')
            image.wait_for()
            assert image.evaluate("image => image.complete && image.naturalWidth") > 500
            row.locator("[iconname=information-circle]").click()
            page.get_by_text(f"figure {name.removeprefix('fig')} of the paper").wait_for()
            page.get_by_text("Figures", exact=True).click()
        page.get_by_text("Results", exact=True).click()
        page.get_by_text("Parameters", exact=True).click()
        page.locator("tr", has_text="smoke").locator("[iconname=eye]").click()
        page.wait_for_function("window.frames.length > 0 || document.querySelector('iframe')")
        table = page.frames[-1].locator("table")
        table.wait_for()
        values = dict(row.split("\t") for row in table.inner_text().splitlines())
        preset = load(smoke_tree.root / "params.yaml").presets["smoke"]
        assert values["trials"] == str(preset.trials)
        assert values["experiments.fig3c.sigma"] == str(preset.experiments.fig3c.sigma)
        assert failed == []


def test_snakemakes_own_linter_has_nothing_to_say(fresh_tree: WorkingTree) -> None:
    linted = fresh_tree.run("snakemake", "--lint")
    assert linted.returncode == 0, linted.stdout
    assert "good condition" in linted.stdout


def test_snakemake_run_in_a_fresh_clone_shows_its_plan_for_every_preset(fresh_tree: WorkingTree) -> None:
    for preset in load(fresh_tree.root / "params.yaml").presets:
        dry = fresh_tree.run("snakemake", "--dry-run", "--quiet", "--config", f"preset={preset}")
        assert dry.returncode == 0, dry.stdout


# What a user sees of a mistake.


def test_an_unknown_preset_is_named_beside_the_known_ones(fresh_tree: WorkingTree) -> None:
    refused = fresh_tree.run("snakemake", "--cores", "2", "--config", "preset=digit")
    assert refused.returncode == 1
    known = load(fresh_tree.root / "params.yaml")
    names = ", ".join([*known.presets, *known.collections])
    assert f"params.yaml: preset is 'digit', but must be one of {names}\n" in refused.stdout
    assert "Traceback" not in refused.stdout
    assert not (fresh_tree.root / "results").exists()


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("presets.smoke.experiments.fig3b.epsilon", 0, "epsilon is 0, but must be a number above 0"),
        ("presets.smoke.experiments.fig3b.epsilon", float("nan"), "epsilon is nan, but must be a number above 0"),
        ("presets.smoke.delta", 1.5, 'delta is 1.5, but must be "1/n" or a number strictly between 0 and 1'),
        ("presets.smoke.experiments.fig3c.sigma", [0.0], "sigma contains 0.0, but must be"),
    ],
)
def test_a_value_outside_its_range_stops_snakemake_before_any_job(
    fresh_tree: WorkingTree, key: str, value: object, sentence: str
) -> None:
    fresh_tree.change_parameter(key, lambda _: value)
    refused = fresh_tree.snakemake()
    assert refused.returncode == 1
    assert f"params.yaml: {key.rpartition('.')[0]}.{sentence}" in refused.stdout
    assert "Traceback" not in refused.stdout
    assert not (fresh_tree.root / "results").exists()


def test_a_misspelt_key_stops_snakemake_with_the_right_one(fresh_tree: WorkingTree) -> None:
    path = fresh_tree.root / "params.yaml"
    path.write_text(path.read_text().replace("trials:", "trails:", 1))
    refused = fresh_tree.snakemake()
    assert refused.returncode == 1
    assert "presets.digits.trails is not a known key; did you mean trials?\n" in refused.stdout


def test_a_key_that_stands_twice_stops_snakemake(fresh_tree: WorkingTree) -> None:
    path = fresh_tree.root / "params.yaml"
    path.write_text(f"{path.read_text()}\ntables: {{}}\n")
    refused = fresh_tree.snakemake()
    assert refused.returncode == 1
    assert "params.yaml is not valid YAML: the key 'tables' stands in lines " in refused.stdout


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("presets.smoke.step_size", 5.0, "need step_size <= 1 / smoothness = 3.58"),
        ("presets.smoke.experiments.fig3c.records", 5000, "records must be at most n = 1437, got 5000"),
    ],
)
def test_what_only_the_data_can_tell_stops_the_job_with_its_sentence_on_the_terminal(
    smoke_tree: WorkingTree, key: str, value: object, sentence: str
) -> None:
    smoke_tree.change_parameter(key, lambda _: value)
    refused = smoke_tree.snakemake("results/smoke/plans/fig3c.json")
    assert refused.returncode == 1
    (line,) = [line for line in refused.stdout.splitlines() if line.startswith("error: ")]
    assert sentence in line
    assert "Traceback" not in refused.stdout
    assert not (smoke_tree.results / "plans/fig3c.json").exists()
    assert not list(smoke_tree.results.glob("plans/.*"))
    assert line in (smoke_tree.root / "logs/smoke/plan-fig3c.log").read_text()
