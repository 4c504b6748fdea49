"""DVC around the workflow, by its real commands, in copies of the working tree that are repositories of their own."""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from certified_unlearning.files import read_json
from tests.workflow.conftest import SmokeRun
from tests.workflow.jobs import DRAWN, EXPERIMENTS, LEARNING, PAPER_OF, VERDICTS, Name, each, jobs_in
from tests.workflow.working_tree import ROOT, WorkingTree

pytestmark = pytest.mark.workflow

PAGE = ROOT / "docs" / "howto" / "dvc.md"
UP_TO_DATE = "Data and pipelines are up to date."
SHORT = ("fig3a", "table2", "dynamics1")
"""Experiments of a preset that takes little time: one that mechanisms run, a table, bounds."""
HEADLINE = "results/headline.json"
KEY_NUMBERS = {
    "reproduced", "contradicted", "not_run", "epsilon", "sigma", "accuracy", "auc", "log_loss",
    "accuracy_of_retraining", "accuracy_of_majority", "unlearning_steps", "largest_request",
    "steps_for_the_largest_request", "retraining_steps",
}  # fmt: skip
EPSILON = "presets.smoke.papers.langevin_unlearning.fig3a.epsilon"


class Repository(WorkingTree):
    """A working tree that is a git repository, out of reach of the settings of the user and the machine."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        own = {name: value for name, value in self.environment.items() if not name.startswith(("GIT_", "DVC_"))}
        beside = root.parent
        self.environment = own | {
            "GIT_CEILING_DIRECTORIES": str(beside),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            **{f"GIT_{person}_NAME": "Test" for person in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{person}_EMAIL": "test@example.org" for person in ("AUTHOR", "COMMITTER")},
            **{f"DVC_{place}_DIR": str(beside / "dvc") for place in ("GLOBAL_CONFIG", "SYSTEM_CONFIG", "SITE_CACHE")},
        }

    def git(self, *arguments: str) -> None:
        assert ROOT not in (self.root, *self.root.parents)
        subprocess.run(["git", "-C", self.root, *arguments], env=self.environment, check=True)

    def commit(self, message: str) -> None:
        """Let DVC take note of what Snakemake made, and git of that."""
        self.dvc("commit", "--force", "dvc.yaml")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)

    def dvc(self, *arguments: str | Path) -> str:
        """Run DVC; return what it and the commands of its stages printed."""
        finished = self.run("dvc", *arguments)
        assert finished.returncode == 0, finished.stdout
        return finished.stdout

    def dvc_json(self, *arguments: str) -> Any:
        """Run DVC for a machine to read (its warnings go to the other stream)."""
        printed = subprocess.check_output(["dvc", *arguments, "--json"], cwd=self.root, env=self.environment)
        return json.loads(printed)

    def digests(self, *patterns: str) -> dict[str, str]:
        """Return the SHA-256 of the results that match."""
        files = [path for pattern in patterns for path in sorted(self.results.glob(pattern)) if path.is_file()]
        assert files
        return {str(path.relative_to(self.results)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def jobs(printed: str) -> set[Name]:
    """Return every job that ran."""
    return {job.name for job in jobs_in(printed)}


@pytest.fixture(scope="module")
def after_snakemake(smoke_run: SmokeRun, tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A repository in which Snakemake ran the smoke preset, and DVC knows nothing yet. Look, do not touch."""
    repository = Repository(smoke_run.tree.copy(tmp_path_factory.mktemp("dvc") / "repository").root)
    (repository.root / "dvc.lock").unlink(missing_ok=True)
    repository.git("init", "--quiet")
    repository.git("add", "--all")
    repository.git("commit", "--quiet", "--message", "the project")
    return repository


@pytest.fixture(scope="module")
def committed(after_snakemake: Repository) -> Repository:
    """The same after `dvc commit` and a git commit with the smoke preset. Look, do not touch."""
    repository = after_snakemake.copy(after_snakemake.root.parent / "committed")
    repository.change_parameter("preset", lambda _: "smoke")
    repository.commit("the smoke preset")
    return repository


@pytest.fixture(scope="module")
def committed_short(after_snakemake: Repository) -> Repository:
    """The same with few experiments. Look, do not touch."""
    repository = after_snakemake.copy(after_snakemake.root.parent / "short")
    repository.change_parameter("preset", lambda _: "smoke")
    repository.change_parameter("presets.smoke.shows", lambda _: list(SHORT))
    for shown in ("figures", "plots"):
        for path in (repository.results / shown).glob("*/*"):
            if path.stem not in SHORT:
                path.unlink()
    finished = repository.snakemake()
    assert finished.returncode == 0, finished.stdout
    repository.commit("the smoke preset with few experiments")
    return repository


@pytest.fixture
def repository(committed: Repository, tmp_path: Path) -> Repository:
    """A copy of the committed repository, to change at will."""
    return committed.copy(tmp_path / "repository")


@pytest.fixture
def short(committed_short: Repository, tmp_path: Path) -> Repository:
    """A copy of the one with few experiments, to change at will."""
    return committed_short.copy(tmp_path / "repository")


def test_after_snakemake_one_commit_leaves_dvc_nothing_to_do(committed: Repository) -> None:
    assert UP_TO_DATE in committed.dvc("status", "dvc.yaml")
    repeated = committed.dvc("repro")
    assert UP_TO_DATE in repeated
    assert jobs(repeated) == set()
    assert committed.jobs_to_run() == set()


def test_an_experiment_with_another_preset_runs_and_is_compared(after_snakemake: Repository, tmp_path: Path) -> None:
    """An experiment of DVC runs the stages of all records."""
    repository = after_snakemake.copy(tmp_path / "repository")
    printed = repository.dvc("exp", "run", "--name", "short", "--set-param", "preset=smoke", "records")
    assert jobs(printed) == {("prepare", ""), ("collect", ""), ("metrics", "")}
    assert repository.dvc("exp", "list", "--name-only").split() == ["short"]
    changed = repository.dvc_json("params", "diff", "HEAD", "short")
    assert changed == {"params.yaml": {"preset": {"old": "digits", "new": "smoke"}}}
    assert repository.jobs_to_run() == set()


@pytest.mark.parametrize("state", ["after_snakemake", "committed"])
def test_a_temporary_experiment_leaves_everything_as_it_was(
    request: pytest.FixtureRequest, tmp_path: Path, state: str
) -> None:
    """DVC makes a copy of the repository, and runs a stage there."""
    repository = request.getfixturevalue(state).copy(tmp_path / "repository")
    before = repository.digests("**/*")
    # As the page prints it, but for the first stage only.
    command = printed_command("dvc exp run")
    assert "--temp" in command
    repository.dvc(*command, "--name", "apart", "data")
    assert repository.run("git", "status", "--porcelain").stdout == ""
    assert repository.digests("**/*") == before
    assert repository.dvc("exp", "list", "--name-only").split() == ["apart"]


def test_an_experiment_in_place_is_undone_as_the_page_says(short: Repository) -> None:
    """An experiment of DVC runs a pipeline, and is undone by DVC, which reads every file of it."""
    repository = short
    twin = {"extends": "smoke", "shows": ["dynamics2"]}
    repository.change_parameter("presets", lambda presets: presets | {"twin": twin})
    repository.commit("a twin")
    before, headline = repository.digests("**/*"), read_json(repository.root / HEADLINE)
    repository.dvc("exp", "run", "--set-param", "preset=twin")
    assert (repository.results.with_name("twin") / "report.html").exists()
    assert not (repository.results / "report.html").exists()

    undo = re.search(r"To undo this, run\s+`(.*?)`", PAGE.read_text(encoding="utf-8"))
    assert undo is not None
    done = repository.run("bash", "-e", "-c", undo[1])
    assert done.returncode == 0, done.stdout
    assert repository.run("git", "status", "--porcelain").stdout == ""
    assert repository.digests("**/*") == before
    assert read_json(repository.root / HEADLINE) == headline
    assert UP_TO_DATE in repository.dvc("status", "dvc.yaml")
    # The headline is back as well, but the one that Snakemake made last was the other preset's.
    assert repository.jobs_to_run() == {("headline", "")}


def printed_command(beginning: str) -> list[str]:
    """Return the words after `dvc` of a command that the page prints."""
    (line,) = re.findall(rf"^{beginning} .*$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return shlex.split(line, comments=True)[1:]


def test_metrics_are_a_dozen_numbers_and_those_of_every_sweep_point_are_a_file(committed: Repository) -> None:
    shown = committed.dvc_json("metrics", "show")
    ((path, shown_there),) = shown[""]["data"].items()
    assert path == HEADLINE
    numbers = shown_there["data"]
    assert set(numbers) == KEY_NUMBERS
    assert all(isinstance(value, int | float) for value in numbers.values())
    claims = [each for each in read_json(committed.results / "claims.json") if each["whose"] == "paper"]
    judged = [each["verdict"].replace(" ", "_") for each in claims]
    assert {name: numbers[name] for name in ("reproduced", "contradicted", "not_run")} == Counter(judged)

    points = read_json(committed.results / "metrics.json")
    assert sorted(points) == sorted(EXPERIMENTS)
    point = points["fig3a"]["Langevin (shifted), K = 1, epsilon = 1"]
    assert {name: numbers[name] for name in ("epsilon", "sigma", "accuracy", "auc", "log_loss")} == {
        name: point[name] for name in ("epsilon", "sigma", "accuracy", "auc", "log_loss")
    }
    for name, own in points.items():
        steps = "accumulated_steps" if name == "fig3b" else "unlearning_steps"
        shared = {"delta", "extra_delta", "sigma", steps, "accuracy", "balanced_accuracy", "auc", "log_loss"}
        warm = {point for point in own if point.startswith("scikit-learn, warm start")}
        assert warm
        for point, of_point in own.items():
            assert of_point.keys() - {"mu"} == (shared if point in warm else shared | {"epsilon"})


def test_plots_show_every_figure_and_its_numbers_by_mechanism(committed: Repository) -> None:
    html = page(committed.dvc("plots", "show"))
    assert not re.search(r"<(script|link)[^>]*(src|href)=", html), "it loads something"
    plots = committed.dvc_json("plots", "show")["data"]
    # Experiments that the preset leaves out have no picture.
    missing = {Path(name).stem for name, plot in plots.items() if not plot}
    assert not missing & set(DRAWN)
    curves = {name: plot[0]["content"] for name, plot in plots.items() if plot and plot[0]["type"] == "vega"}
    for name in EXPERIMENTS:
        assert f"results_smoke_figures_{PAPER_OF[name]}_{name}.png" in html
        source = f"Fig. {name.removeprefix('fig')}" if name.startswith("fig") else name
        assert any(title.startswith(f"{source},") for title in curves)
    for title, curve in curves.items():
        assert title in html
        encoding = curve["encoding"]
        assert encoding["color"]["field"] == "label"
        for row in curve["data"]["values"]:
            assert row["label"]
            assert float(row[encoding["x"]["field"]]) >= 0
            assert float(row[encoding["y"]["field"]]) >= 0


def page(printed: str) -> str:
    """Return the HTML that DVC wrote, found by the address that it printed."""
    path = re.search(r"^file://(/.*)$", printed, re.MULTILINE)
    assert path, printed
    return Path(path[1]).read_text()


def test_a_changed_plot_parameter_redraws_the_figures_and_reruns_nothing_else(short: Repository) -> None:
    """All figures are drawn anew, each by a process."""
    repository = short
    kept = (
        "data.*",
        "records.parquet",
        "langevin_unlearning/*/*.*",
        "privacy_dynamics/*/*.*",
        "metrics.json",
        "plots/*/*",
    )
    before, figures = repository.digests(*kept), repository.digests("figures/*/*.png")
    times = {path: path.stat().st_mtime_ns for path in repository.results.glob("*/*/*.rows.parquet")}
    # As if DVC had put a table of other parameters there.
    (repository.results / "plots/langevin_unlearning/table2.csv").write_text("stale\n")

    repository.change_parameter("figures.palette", lambda _: "deep")
    printed = repository.dvc("repro")

    # MLflow and the report show the figures, so they get the new ones. The claims are an out, which DVC deletes first.
    drawn = {*each("draw", set(SHORT) & set(DRAWN)), ("tabulate", "table2")}
    assert jobs(printed) == {*drawn, ("track", "fig3a"), *VERDICTS}
    assert repository.digests(*kept) == before
    assert {path: path.stat().st_mtime_ns for path in times} == times
    redrawn = repository.digests("figures/*/*.png")
    assert redrawn.keys() == figures.keys()
    assert all(redrawn[name] != figures[name] for name in figures)
    assert repository.jobs_to_run() == set()
    changed = repository.dvc_json("params", "diff")
    assert changed == {"params.yaml": {"figures.palette": {"old": "colorblind", "new": "deep"}}}
    assert repository.dvc_json("metrics", "diff") == {}
    html = page(repository.dvc("plots", "diff"))
    name = "results_smoke_figures_langevin_unlearning_fig3a.png"
    assert all(f"{revision}_{name}" in html for revision in ("HEAD", "workspace"))


def test_records_and_metrics_are_their_parameters_own(short: Repository) -> None:
    """A figure is learned anew, by Snakemake, and put in place twice, by DVC."""
    repository = short
    before, points = repository.digests("records.parquet"), read_json(repository.results / "metrics.json")
    repository.change_parameter(EPSILON, lambda _: [1.0, 4.0])
    assert ("learn", "fig3a/langevin") in jobs(repository.snakemake("results/smoke/metrics.json").stdout)
    repository.dvc("commit", "--force", "data")
    repository.dvc("commit", "--force", "records")
    after = repository.digests("records.parquet")
    assert set(read_json(repository.results / "metrics.json")["fig3a"]) != set(points["fig3a"])

    # Back to the commit, and there again: what DVC put in place is not taken for what Snakemake made last.
    repository.git("checkout", "--quiet", "HEAD", "--", "params.yaml", "dvc.lock")
    repository.dvc("checkout", "dvc.yaml")
    assert repository.digests("records.parquet") == before
    repository.change_parameter(EPSILON, lambda _: [1.0, 4.0])
    assert jobs(repository.dvc("repro", "records")) == {("prepare", ""), ("collect", ""), ("metrics", "")}
    assert repository.digests("records.parquet") == after


def test_presets_are_compared_by_the_same_few_numbers(short: Repository) -> None:
    """An experiment of DVC runs a pipeline from nothing, and DVC starts four times more."""
    repository = short
    other = {"extends": "smoke", "shows": ["fig3a", "table2"], "seed": 124}
    repository.change_parameter("presets", lambda presets: presets | {"other": other})
    before = repository.digests("**/*")
    repository.git("add", "--all")
    repository.git("commit", "--quiet", "--message", "another preset")
    # As the page prints it, but for the preset's name.
    *command, last = printed_command("dvc exp run")
    assert last == "preset=smoke"
    repository.dvc(*command, "preset=other", "--name", "compared")

    # The results of the active preset are still there, and nothing is there to commit.
    assert repository.digests("**/*") == before
    assert repository.run("git", "status", "--porcelain").stdout == ""
    changed = repository.dvc_json("metrics", "diff", "HEAD", "compared")
    assert set(changed) == {HEADLINE}
    assert {"accuracy", "not_run"} <= set(changed[HEADLINE])
    assert all({"old", "new", "diff"} == set(values) for values in changed[HEADLINE].values()), "a preset lacks one"
    assert "compared" in repository.dvc(*printed_command("dvc exp show"))
    shown = repository.dvc("exp", "show", "--csv")
    heads = shown.splitlines()[0].split(",")
    assert {"accuracy", "epsilon", "reproduced", "not_run", "preset"} <= set(heads)
    assert not any("K = 1" in head for head in heads)


def test_a_wiped_cache_is_pulled_back_byte_for_byte(repository: Repository, tmp_path: Path) -> None:
    """DVC pushes, pulls and compares every file of a run."""
    shown = ("claims.json", "findings.json", "report.html", "figures/*/*", "plots/*/*")
    results = ("data.*", "records.parquet", "metrics.json", *shown)
    before = repository.digests(*results)
    repository.dvc("remote", "add", "--local", "--default", "here", tmp_path / "remote")
    repository.dvc("push", "dvc.yaml")
    for wiped in (repository.results, repository.root / ".dvc" / "cache", repository.root / ".snakemake"):
        shutil.rmtree(wiped)
    repository.dvc("pull", "dvc.yaml")
    assert repository.digests(*results) == before
    assert UP_TO_DATE in repository.dvc("repro")

    # Snakemake does not know how the pulled files were made; another seed must not inherit them.
    repository.change_parameter("presets.smoke.seed", lambda seed: seed + 1)
    assert jobs(repository.dvc("repro", "data")) >= {("prepare", "")}
    assert repository.digests("data.safetensors") != {name: before[name] for name in ("data.safetensors",)}
    assert repository.jobs_to_run() >= LEARNING | {("collect", ""), ("metrics", "")}


def test_the_page_of_plots_has_the_drawing_library_of_its_makers_inside() -> None:
    """DVC's own page would load it from the internet."""
    html = (ROOT / ".dvc" / "plots" / "page.html").read_text()
    scripts = re.findall(r'<script data-library="(\S+) \S+" data-sha256="(\w+)">(.*?)</script>', html, re.DOTALL)
    assert [name for name, _, _ in scripts] == ["vega", "vega-lite", "vega-embed"]
    assert [recorded for _, recorded, _ in scripts] == [
        hashlib.sha256(code.encode()).hexdigest() for _, _, code in scripts
    ]
    assert html.count("<script") == len(scripts)


def test_the_plots_are_those_that_the_papers_declare() -> None:
    script = [sys.executable, "workflow/scripts/dvc_plots.py"]
    printed = subprocess.run(script, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert (ROOT / "dvc.yaml").read_text().partition("\nplots:")[2] == printed.removeprefix("plots:")
