"""DVC around the workflow, by its real commands, in copies of the working tree that are repositories of their own."""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from working_tree import BOUNDS, EXPERIMENTS, JOB, ROOT, WorkingTree, experiment

pytestmark = pytest.mark.workflow

README = ROOT / "README.md"
UP_TO_DATE = "Data and pipelines are up to date."
FIG4_EPSILON = "presets.smoke.experiments.fig4.epsilon"


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


def jobs(printed: str) -> set[tuple[str, str]]:
    """Return the rule and experiment of every job that ran."""
    return {(job["rule"], experiment(job)) for job in JOB.finditer(printed)} - {("all", "")}


@pytest.fixture(scope="module")
def after_snakemake(smoke_run: tuple[WorkingTree, str], tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A repository in which Snakemake ran the smoke preset, and DVC knows nothing yet. Look, do not touch."""
    repository = Repository(tmp_path_factory.mktemp("dvc") / "repository")
    shutil.copytree(smoke_run[0].root, repository.root, symlinks=True)
    (repository.root / "dvc.lock").unlink(missing_ok=True)
    repository.git("init", "--quiet")
    repository.git("add", "--all")
    repository.git("commit", "--quiet", "--message", "the project")
    return repository


@pytest.fixture(scope="module")
def committed(after_snakemake: Repository) -> Repository:
    """The same after `dvc commit` and a git commit with the smoke preset. Look, do not touch."""
    repository = copy(after_snakemake, after_snakemake.root.parent / "committed")
    repository.change_parameter("preset", lambda _: "smoke")
    repository.dvc("commit", "--force", "dvc.yaml")
    repository.git("add", "--all")
    repository.git("commit", "--quiet", "--message", "the smoke preset")
    return repository


@pytest.fixture
def repository(committed: Repository, tmp_path: Path) -> Repository:
    """A copy of the committed repository, to change at will."""
    return copy(committed, tmp_path / "repository")


def copy(repository: Repository, to: Path) -> Repository:
    shutil.copytree(repository.root, to, symlinks=True)
    return Repository(to)


def test_after_snakemake_one_commit_leaves_dvc_nothing_to_do(committed: Repository) -> None:
    assert UP_TO_DATE in committed.dvc("status", "dvc.yaml")
    repeated = committed.dvc("repro")
    assert UP_TO_DATE in repeated
    assert jobs(repeated) == set()
    assert committed.jobs_to_run() == set()


def test_an_experiment_with_another_preset_runs_and_is_compared(after_snakemake: Repository, tmp_path: Path) -> None:
    repository = copy(after_snakemake, tmp_path / "repository")
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
    repository = copy(request.getfixturevalue(state), tmp_path / "repository")
    before = repository.digests("**/*")
    # As README prints it, but for the first stage only.
    command = printed_command("dvc exp run")
    assert "--temp" in command
    repository.dvc(*command, "--name", "apart", "data")
    assert repository.run("git", "status", "--porcelain").stdout == ""
    assert repository.digests("**/*") == before
    assert repository.dvc("exp", "list", "--name-only").split() == ["apart"]


def test_an_experiment_in_place_is_undone_as_readme_says(repository: Repository) -> None:
    content = yaml.safe_load((repository.root / "params.yaml").read_text())
    repository.change_parameter("presets", lambda presets: presets | {"twin": content["presets"]["smoke"]})
    repository.dvc("commit", "--force", "dvc.yaml")
    repository.git("commit", "--quiet", "--all", "--message", "a twin")
    before = repository.digests("**/*")
    # What the twin takes from Snakemake is there already.
    shutil.copytree(repository.results, repository.results.with_name("twin"))
    repository.dvc("exp", "run", "--set-param", "preset=twin")
    assert not (repository.results / "report.html").exists()

    undo = re.search(r"To get back:\s+`(.*?)`", README.read_text(encoding="utf-8"))
    assert undo is not None
    done = repository.run("bash", "-e", "-c", undo[1])
    assert done.returncode == 0, done.stdout
    assert repository.run("git", "status", "--porcelain").stdout == ""
    assert repository.digests("**/*") == before
    assert UP_TO_DATE in repository.dvc("status", "dvc.yaml")
    assert repository.jobs_to_run() == set()


def printed_command(beginning: str) -> list[str]:
    """Return the words after `dvc` of a command that README prints."""
    (line,) = re.findall(rf"^{beginning} .*$", README.read_text(encoding="utf-8"), re.MULTILINE)
    return shlex.split(line, comments=True)[1:]


def test_metrics_are_epsilon_steps_and_accuracy_of_every_figure(committed: Repository) -> None:
    shown = committed.dvc_json("metrics", "show")
    metrics = shown[""]["data"]["results/smoke/metrics.json"]["data"]
    assert tuple(metrics) == EXPERIMENTS
    for name, points in metrics.items():
        steps = "accumulated_steps" if name == "fig3b" else "unlearning_steps"
        for point in points.values():
            assert point.keys() - {"mu"} == {"epsilon", "delta", "extra_delta", "sigma", steps, "accuracy"}


def test_plots_show_every_figure_and_its_numbers_by_mechanism(committed: Repository) -> None:
    html = page(committed.dvc("plots", "show"))
    plots = committed.dvc_json("plots", "show")["data"]
    curves = {name: plot[0]["content"] for name, plot in plots.items() if plot[0]["type"] == "vega"}
    for name in EXPERIMENTS:
        assert f"results_smoke_figures_{name}.png" in html
        assert any(title.startswith(f"Fig. {name.removeprefix('fig')},") for title in curves)
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


def test_a_changed_plot_parameter_redraws_the_figures_and_reruns_nothing_else(repository: Repository) -> None:
    kept = ("data.*", "records.parquet", "records/*", "models/*", "metrics.json", "plots/*")
    before, figures = repository.digests(*kept), repository.digests("figures/*.png")
    times = {path: path.stat().st_mtime_ns for path in repository.results.glob("records/*")}

    repository.change_parameter("figures.palette", lambda _: "deep")
    printed = repository.dvc("repro")

    # MLflow and the report show the figures, so they get the new ones. The claims are an out, which DVC deletes first.
    redraw = {(rule, name) for rule in ("figure", "track") for name in EXPERIMENTS} | {("claims", ""), ("page", "")}
    redraw |= {("bound_figure", name) for name in BOUNDS} | {("deletion_figure", ""), ("track_deletion", "")}
    assert jobs(printed) == redraw
    assert repository.digests(*kept) == before
    assert {path: path.stat().st_mtime_ns for path in times} == times
    redrawn = repository.digests("figures/*.png")
    assert redrawn.keys() == figures.keys()
    assert all(redrawn[name] != figures[name] for name in figures)
    assert repository.jobs_to_run() == set()
    changed = repository.dvc_json("params", "diff")
    assert changed == {"params.yaml": {"figures.palette": {"old": "colorblind", "new": "deep"}}}
    assert repository.dvc_json("metrics", "diff") == {}
    html = page(repository.dvc("plots", "diff"))
    assert all(f"{revision}_results_smoke_figures_fig3a.png" in html for revision in ("HEAD", "workspace"))


def test_metrics_are_compared_between_commits_and_each_is_its_parameters_own(repository: Repository) -> None:
    before = repository.digests("records.parquet")
    repository.change_parameter(FIG4_EPSILON, lambda _: [1.0, 4.0])
    assert ("learn", "fig4") in jobs(repository.snakemake("results/smoke/metrics.json").stdout)
    repository.dvc("commit", "--force", "records")
    after = repository.digests("records.parquet")
    changed = repository.dvc_json("metrics", "diff")["results/smoke/metrics.json"]
    assert changed
    assert all(name.startswith("fig4.") for name in changed)

    # Back to the commit, and there again: what DVC put in place is not taken for what Snakemake made last.
    repository.git("checkout", "--quiet", "HEAD", "--", "params.yaml", "dvc.lock")
    repository.dvc("checkout", "dvc.yaml")
    assert repository.digests("records.parquet") == before
    repository.change_parameter(FIG4_EPSILON, lambda _: [1.0, 4.0])
    assert jobs(repository.dvc("repro", "records")) == {("collect", ""), ("metrics", "")}
    assert repository.digests("records.parquet") == after


def test_a_wiped_cache_is_pulled_back_byte_for_byte(repository: Repository, tmp_path: Path) -> None:
    results = ("data.*", "records.parquet", "metrics.json", "claims.json", "report.html", "figures/*", "plots/*")
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
    assert repository.jobs_to_run() >= {("learn", name) for name in EXPERIMENTS} | {("collect", ""), ("metrics", "")}
