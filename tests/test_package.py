"""What people install: a wheel, made from the sdist, that works in an empty directory without this repository."""

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

from tests.support.waiting import PATIENCE
from tests.workflow.working_tree import copy_working_tree

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ESTIMATOR = """
import numpy as np
from certified_unlearning.estimators import LangevinLogisticRegression
draw = np.random.default_rng(0)
X = draw.normal(size=(400, 3))
y = X[:, 0] > 0
model = LangevinLogisticRegression(epsilon=1, delta="1/n", C=0.25, normalize=True, random_state=1).fit(X, y)
model.unlearn([3, 5])
model.save("model.safetensors")
again = LangevinLogisticRegression.load("model.safetensors")
assert (again.predict(X) == model.predict(X)).all()
print(again.certificate_.epsilon <= 1, again.score(X, y) > 0.6)
"""
PACKAGE_DATA = """
from importlib.resources import files
from certified_unlearning.papers.all import papers
from certified_unlearning.reproduction.claims.model import claims_of
from certified_unlearning.reproduction.report import page
assert files("certified_unlearning").joinpath("py.typed").is_file()
assert all(claims_of(papers(())).values())
for name in ("page.html.j2", "claims.html.j2"):
    page._ENVIRONMENT.get_template(name)
print(len(page._asset("page.css")) > 100)
"""


def built(*command: str | Path, directory: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *map(str, command)],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


class Installed:
    """The wheel in a virtual environment of its own, which sees the other packages of this one."""

    def __init__(self, place: Path) -> None:
        tree = copy_working_tree(place / "tree").root
        built("hatchling", "build", "-t", "sdist", "-d", place, directory=tree)
        (self.sdist,) = place.glob("*.tar.gz")
        offline = ("--no-deps", "--no-index", "--disable-pip-version-check")
        built("pip", "wheel", self.sdist, *offline, "--no-build-isolation", "-w", place, directory=place)
        (self.wheel,) = place.glob("*.whl")
        venv = place / "venv"
        built("venv", "--without-pip", venv, directory=place)
        self.bin = venv / "bin"
        built("pip", "--python", self.bin / "python", "install", *offline, self.wheel, directory=place)
        (packages,) = venv.glob("lib/*/site-packages")
        # Only its folder: what is installed there as editable is named in files that Python does not read this way.
        (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
        self.empty = place / "empty"
        self.empty.mkdir()

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        foreign = ("PYTHONPATH", "UNLEARNING_DATA", "VIRTUAL_ENV")
        environment = {name: value for name, value in os.environ.items() if name not in foreign}
        return subprocess.run(
            [self.bin / program, *arguments],
            cwd=self.empty,
            env=environment | {"PATH": f"{self.bin}{os.pathsep}{environment['PATH']}"},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    pytest.importorskip("hatchling")
    return Installed(tmp_path_factory.mktemp("package"))


def test_the_installed_package_is_the_one_that_runs(installed: Installed) -> None:
    done = installed.run("python", "-c", "import certified_unlearning; print(certified_unlearning.__file__)")
    assert done.stdout.startswith(str(installed.bin.parent)), done.stderr


def test_a_clone_is_installed_as_readme_says(tmp_path: Path) -> None:
    """But for what needs a network: the packages it depends on are those of this environment."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "`pip install .`" in readme
    pytest.importorskip("hatchling")
    tree, venv = copy_working_tree(tmp_path / "clone").root, tmp_path / "venv"
    built("venv", "--without-pip", venv, directory=tmp_path)
    (packages,) = venv.glob("lib/*/site-packages")
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    offline = ("--no-deps", "--no-index", "--no-build-isolation", "--ignore-installed", "--disable-pip-version-check")
    built("pip", "--python", venv / "bin" / "python", "install", ".", *offline, directory=tree)
    assert (venv / "bin" / "unlearn").exists()
    assert (packages / "certified_unlearning" / "__init__.py").exists()
    assert not (packages / "tests").exists()


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("--help", "Usage: unlearn"),
        ("--version", f"unlearn {PROJECT['version']}\n"),
        ("plan removal --C 0.05 --n 1500 --records 1 --epsilon 1 --steps 10", "shifted"),
        ("schema --output params.schema.json", "written: params.schema.json"),
    ],
)
def test_a_command_runs_in_an_empty_directory(installed: Installed, command: str, printed: str) -> None:
    done = installed.run("unlearn", *command.split())
    assert done.returncode == 0, done.stderr
    assert printed in done.stdout


@pytest.mark.sampled
@pytest.mark.parametrize("code", [ESTIMATOR, PACKAGE_DATA])
def test_code_runs_in_an_empty_directory(installed: Installed, code: str) -> None:
    done = installed.run("python", "-c", code)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == {"True"}


def test_sdist_and_wheel_hold_what_they_should(installed: Installed) -> None:
    with tarfile.open(installed.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "LICENSE", "pyproject.toml", "params.yaml", "Snakefile", "tests/test_package.py"} <= names
    assert not [name for name in names if name.startswith((".venv", "results", "mlruns", ".snakemake"))]
    with zipfile.ZipFile(installed.wheel) as archive:
        wheel = archive.namelist()
        (metadata,) = (archive.read(name).decode() for name in wheel if name.endswith("/METADATA"))
    assert "certified_unlearning/py.typed" in wheel
    tops = {name.partition("/")[0] for name in wheel}
    assert tops == {"certified_unlearning", f"certified_unlearning-{PROJECT['version']}.dist-info"}
    source = ROOT / "src"
    data = {
        str(path.relative_to(source)) for path in source.rglob("*") if path.suffix in (".yaml", ".j2", ".css", ".js")
    }
    assert data <= set(wheel)
    for line in ("License-Expression: Apache-2.0", "License-File: LICENSE", "Classifier: Typing :: Typed"):
        assert line in metadata


def test_the_version_stands_in_one_place_and_its_copy_agrees() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == PROJECT["version"]
    assert not re.search(r"__version__ = [\"']", (ROOT / "src/certified_unlearning/__init__.py").read_text())


def test_a_release_is_published_for_tags_only_and_after_the_checks() -> None:
    release = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))
    assert release[True] == {"push": {"tags": ["v*"]}}  # YAML 1.1 reads the key `on` as a truth value.
    assert release["permissions"] == {"contents": "read"}
    build, publish = release["jobs"]["build"], release["jobs"]["publish"]
    assert "permissions" not in build
    assert (publish["needs"], publish["permissions"]) == ("build", {"id-token": "write"})
    steps = [step.get("run", "") for step in build["steps"]]
    assert any("python -m hatchling build" in step for step in steps)
    assert any("project" in step and "GITHUB_REF_NAME" in step for step in steps)


def test_the_container_runs_unlearn_as_somebody_without_rights() -> None:
    lines = (ROOT / "Containerfile").read_text(encoding="utf-8").splitlines()
    last = [line for line in lines if line.startswith(("USER", "ENTRYPOINT"))]
    assert last == ["USER 1000:1000", 'ENTRYPOINT ["unlearn"]']
    copied = [word for line in lines if line.startswith("COPY") and "--from" not in line for word in line.split()[1:-1]]
    assert copied
    assert all((ROOT / name).exists() for name in copied)
