"""Reruns after a change of the parameters or of the code: exactly the jobs that depend on it."""

import ast
import json
import re
import sys

import pytest
import yaml

from tests.workflow.conftest import Process, SmokeRun
from tests.workflow.jobs import (
    DRAWING,
    EVERY_JOB,
    EXPERIMENTS,
    LEARNING,
    TOGETHER,
    TRACKED,
    TRACKING,
    UNLEARNING,
    VERDICTS,
    WITHOUT_DATA,
    Name,
    each,
    of,
)
from tests.workflow.working_tree import WorkingTree

pytestmark = pytest.mark.workflow

SMOKE = "presets.smoke.papers"
LANGEVIN = f"{SMOKE}.langevin_unlearning"
RISK = "papers.forget_unlearning.risk"
PACKAGE = "certified_unlearning"
BOUNDS = ("dynamics1", "dynamics2")
OF_PRIVATE = ("group_privacy", "private_audits", "private_risk")
SIMULATED = ("cost", "deletions", "edits", "measured", "risk", *OF_PRIVATE)
"""Made at once, but by running the hot loop."""
OF_NETWORKS = ("batches", "head", "regions", "shares")
"""Made by abstract training, which is no hot loop of runs."""
OF_ESTIMATORS = ("cost", "deletions", "edits", "group_privacy")
"""Made with estimators, which certify."""
SHOWN = {*VERDICTS, ("parameter_table", "")}
AFTER_LEARNING = {(rule, about) for rule, about in UNLEARNING if about.endswith("/langevin")}
ALL_BUT_DATA = EVERY_JOB - of(*WITHOUT_DATA) - {("fetch", ""), ("prepare", ""), ("track_store", "")}


def test_a_second_run_has_nothing_to_do(smoke_tree: WorkingTree) -> None:
    """Its setup runs smoke, once for all tests that look at it: more than a hundred jobs, two minutes."""
    again = smoke_tree.snakemake()
    assert again.returncode == 0
    assert "Nothing to be done" in again.stdout


# Parameters.


def test_one_number_of_one_sweep_reruns_that_experiment_only(smoke_tree: WorkingTree) -> None:
    smoke_tree.change_parameter(f"{LANGEVIN}.fig3c.sigma", lambda sigma: [1.25 * sigma[0], *sigma[1:]])
    assert smoke_tree.jobs_to_run() == of("fig3c", "table1") | TOGETHER | SHOWN


def test_a_sweep_of_bounds_reruns_no_simulation(smoke_tree: WorkingTree) -> None:
    smoke_tree.change_parameter(f"{LANGEVIN}.recuperation.steps", lambda steps: 2 * steps)
    smoke_tree.change_parameter(f"{SMOKE}.privacy_dynamics.dynamics2.sigma", lambda sigma: 2 * sigma)
    assert smoke_tree.jobs_to_run() == of("recuperation", "dynamics2") | SHOWN


@pytest.mark.parametrize(
    ("key", "value", "rerun"),
    [
        ("trials", 101, ALL_BUT_DATA),
        ("accountants", ["shifted"], ALL_BUT_DATA),
        ("seed", 124, ALL_BUT_DATA | {("prepare", "")}),
    ],
)
def test_a_setting_reruns_all_that_depends_on_the_data_set(
    smoke_tree: WorkingTree, key: str, value: object, rerun: set[Name]
) -> None:
    smoke_tree.change_parameter(f"presets.smoke.{key}", lambda _: value)
    assert smoke_tree.jobs_to_run() == rerun


@pytest.mark.parametrize("key", [f"{RISK}.records", f"presets.smoke.{RISK}.trials"])
def test_a_number_of_one_experiment_reruns_it_and_what_shows_it(smoke_tree: WorkingTree, key: str) -> None:
    smoke_tree.change_parameter(key, lambda number: number + 1)
    assert smoke_tree.jobs_to_run() == of("risk") | SHOWN


def test_the_number_of_threads_reruns_the_table_of_parameters_only(smoke_tree: WorkingTree) -> None:
    smoke_tree.change_parameter("presets.smoke.threads", lambda threads: threads + 1)
    assert smoke_tree.jobs_to_run() == {("parameter_table", ""), ("page", "")}


def test_another_preset_reruns_nothing(smoke_tree: WorkingTree) -> None:
    smoke_tree.change_parameter("presets.mnist.trials", lambda trials: trials + 1)
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
    """Three starts of Snakemake on all jobs, which take three seconds each, and one figure."""
    smoke_tree.change_parameter("figures.dots_per_inch", lambda dots: dots // 4)
    assert smoke_tree.jobs_to_run() == DRAWING | TRACKING | {("page", "")}
    figure, records = "figures/langevin_unlearning/fig3a.png", smoke_tree.results / "records.parquet"
    before = (smoke_tree.results / figure).stat().st_size, records.stat()
    drawn = smoke_tree.snakemake(f"results/smoke/{figure}")
    assert drawn.returncode == 0, drawn.stdout
    assert (smoke_tree.results / figure).stat().st_size < before[0]
    assert records.stat() == before[1]
    assert smoke_tree.jobs_to_run() == DRAWING - {("draw", "fig3a")} | TRACKING | {("page", "")}


# Code.


def test_comments_docstrings_and_times_of_files_rerun_nothing(smoke_tree: WorkingTree) -> None:
    for path in smoke_tree.root.glob("src/**/*.py"):
        content = path.read_text()
        path.write_text(f"# A remark.\n{with_other_docstrings(content)}\n# Another.\n")
    (smoke_tree.root / "params.yaml").touch()
    assert smoke_tree.jobs_to_run() == set()


def with_other_docstrings(content: str) -> str:
    """A module whose docstrings, its own and those of its functions and classes, say something more."""
    lines = content.splitlines(keepends=True)
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            first = node.body[0].lineno - 1
            lines[first] = lines[first].replace('"""', '"""Reworded. ', 1)
    return "".join(lines)


@pytest.mark.parametrize(
    ("module", "changed", "follow"),
    [
        (
            "engine/descent.py",
            LEARNING | (UNLEARNING - AFTER_LEARNING) | each("make", SIMULATED),
            AFTER_LEARNING
            | each("certify", EXPERIMENTS)
            | each(
                "draw",
                {*TRACKED, "measured", "cost", "deletions", *OF_PRIVATE} - {*OF_NETWORKS} - {"private_audits"},
            )
            | each("tabulate", ["private_audits"])
            | (TRACKING - each("track", OF_NETWORKS))
            | TOGETHER,
        ),
        (
            # Certificates of networks are verified with it.
            "engine/intervals/kernel.cpp",
            each("certify", EXPERIMENTS) | each("make", {*OF_ESTIMATORS, *OF_NETWORKS}),
            each("track", {*EXPERIMENTS, "edits", "group_privacy"})
            | each("draw", {*OF_ESTIMATORS, *OF_NETWORKS})
            | (TRACKING & each("track", OF_NETWORKS))
            | VERDICTS,
        ),
        (
            "certificate/steps/model.py",
            each("certify", EXPERIMENTS) | each("make", OF_ESTIMATORS),
            each("track", {*EXPERIMENTS, "edits", "group_privacy"}) | each("draw", OF_ESTIMATORS) | VERDICTS,
        ),
        ("papers/privacy_dynamics/bounds.py", each("make", BOUNDS), each("draw", BOUNDS) | VERDICTS),
        (
            "papers/forget_unlearning/services/encoding.py",
            each("make", ["risk"]),
            VERDICTS,
        ),
        ("papers/langevin_unlearning/figures/fig3a.py", {("draw", "fig3a")}, {("track", "fig3a"), ("page", "")}),
        ("papers/langevin_unlearning/measures/noise_and_steps.py", {("claims", "")}, VERDICTS - {("claims", "")}),
        ("papers/langevin_unlearning/findings.py", {("claims", "")}, VERDICTS - {("claims", "")}),
        ("papers/langevin_unlearning/headline.py", {("page", "")}, set()),
        ("reproduction/report/page.py", {("page", "")}, set()),
        ("reproduction/tracking/histogram.py", {("track_store", "")}, TRACKING),
        ("cli.py", set(), set()),
    ],
)
def test_a_changed_line_reruns_what_runs_it_and_what_follows(
    smoke_tree: WorkingTree, module: str, changed: set[Name], follow: set[Name]
) -> None:
    add_line(smoke_tree, module)
    jobs = smoke_tree.dry_run()
    assert {job.name for job in jobs if "Params have changed" in job.fields} == changed
    assert {job.name for job in jobs} == changed | follow


def test_a_changed_line_of_a_data_set_prepares_that_data_set_again(smoke_tree: WorkingTree) -> None:
    prepared = "results/smoke/data.safetensors"
    add_line(smoke_tree, "data/adult.py")
    assert smoke_tree.dry_run(prepared) == []
    add_line(smoke_tree, "data/digits.py")
    assert {job.name for job in smoke_tree.dry_run(prepared)} == {("fetch", ""), ("prepare", "")}


def add_line(tree: WorkingTree, module: str) -> None:
    path = tree.root / "src" / PACKAGE / module
    path.write_text(f"{path.read_text()}\n_CHANGED = True\n")


PROBE = """
import json
from snakemake.api import SnakemakeApi
from snakemake.settings.types import ConfigSettings, OutputSettings, Quietness, ResourceSettings
from certified_unlearning.reproduction import code

code.digest = lambda *modules, files=(): " ".join(code.closure(modules, frozenset({"certified_unlearning"})))
with SnakemakeApi(OutputSettings(quiet={Quietness.ALL}, dryrun=True)) as api:
    workflow = api.workflow(ResourceSettings(cores=1), ConfigSettings(config={"preset": "smoke"}))
    workflow.dag().execute_workflow(executor="dryrun")
    jobs = [job for job in workflow._workflow.dag.jobs if job.rule.name != "all"]
    print(json.dumps([[job.rule.name, list(job.output), job.params.code.split()] for job in jobs]))
"""
"""Prints every job's rule, outputs, and the modules that its parameter `code` is a digest of."""

READS_COMMAND_LINES = {
    "reproduction.declared", "reproduction.experiment", "mechanisms.mechanism", "engine", "engine.phase",
    "reproduction.parsing", "reproduction.figure_style", "commands.data",
}  # fmt: skip
"""Modules that read what a command line names; a change of theirs must not cost a night of learning."""
OTHER_DATA = {"data", "data.sets", "data.adult", "data.cifar10", "data.mnist", "data.features"}
"""Modules that the list of data sets imports beside the one that is prepared."""
OUTPUT_OPTIONS = ("--output", "--manifest", "--numbers", "--curves")
ABOUT_ALL_PAPERS = ("claims", "report")


def writes(process: Process, outputs: list[str]) -> bool:
    options = zip(process.command, process.command[1:], strict=False)
    return any(option in OUTPUT_OPTIONS and value in outputs for option, value in options)


def test_every_module_that_a_job_imports_is_part_of_its_code(smoke_run: SmokeRun) -> None:
    tree = smoke_run.tree
    probed = tree.run(sys.executable, "-c", PROBE)
    assert probed.returncode == 0, probed.stdout
    jobs = json.loads(probed.stdout.splitlines()[-1])
    assert len(jobs) == len(smoke_run.processes) == len(EVERY_JOB)
    declared = {outputs[0]: set(code) for _, outputs, code in jobs}
    imported = {}
    for _, outputs, _ in jobs:
        (process,) = (process for process in smoke_run.processes if writes(process, outputs))
        imported[outputs[0]] = process.modules
    # Every command imports some modules, whatever it does; the table of parameters needs none of them.
    idle = imported["results/smoke/parameters.html"] | named(READS_COMMAND_LINES)
    outside = {}
    for rule, (output, *_), _ in jobs:
        free = idle | (named(OTHER_DATA) if rule in ("fetch", "prepare") else set())
        outside[rule] = outside.get(rule, set()) | (imported[output] - declared[output] - free)
    assert {rule: modules for rule, modules in outside.items() if modules} == {}, "jobs run what is not in their code"

    fig3a = "results/smoke/langevin_unlearning/fig3a"
    learning = named({"engine.descent", "engine.randomness", "mechanisms.langevin"})
    assert learning <= declared[f"{fig3a}/langevin.learned.safetensors"]
    assert named({"accounting.langevin.planning"}) <= declared[f"{fig3a}/plan.json"]


def named(modules: set[str]) -> set[str]:
    return {f"{PACKAGE}.{name}" for name in modules}


def test_a_job_imports_its_own_experiment_and_no_list_of_papers(smoke_run: SmokeRun) -> None:
    lists = {f"{PACKAGE}.papers.all", f"{PACKAGE}.papers.parameters"}
    for process in smoke_run.processes:
        _, command, *arguments = process.command
        if command in ABOUT_ALL_PAPERS:
            continue
        assert not process.modules & lists, process.command
        own = {".".join(each.split(".")[:3]) for each in arguments if each.startswith(f"{PACKAGE}.papers.")}
        papers = {name for name in process.modules if re.fullmatch(rf"{PACKAGE}\.papers\.\w+", name)}
        assert own <= papers, process.command
        # Of another paper a job may import formulas.
        others = {name for name in process.modules if name.startswith(tuple(f"{other}." for other in papers - own))}
        assert all(re.match(rf"{PACKAGE}\.papers\.\w+\.theory\b", name) for name in others), process.command
