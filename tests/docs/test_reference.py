"""The reference holds everything public; what has no docstring is missing there."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.building import ROOT
from tests.docs.links import Page

SOURCE = ROOT / "src" / "certified_unlearning"
ROOMS = ("accounting", "audit", "certificate", "data", "engine", "estimators", "ledger", "mechanisms", "reproduction")
"""A page each."""
OF_PAPERS = ("all.py", "parameters.py", "*/theory/*.py", "*/services/*.py")
"""Modules of papers that others may build on; the rest of a paper only its experiments use."""
EXPORTED = re.compile(
    r"^(certified_unlearning\.(?:estimators|certificate))\."
    r"(?:(?:descent|refit|exact|network|private|residual|steps)\.)?\w+(\.\w)"
)
"""Estimators and certificates are shown where one imports them from, not where they are defined."""
NOT_SHOWN = (
    "cli",
    "estimators.descent.report",
    "estimators.documentation",
    "estimators.network.report",
    "estimators.storage",
)
"""Internals of the estimators and of the command line: `LangevinLogisticRegression` and `--help` say what they do."""


def public_modules() -> Iterator[tuple[str, Path]]:
    ground = SOURCE.glob("*.py")
    rooms = (path for room in ROOMS for path in (SOURCE / room).rglob("*.py"))
    of_papers = (path for pattern in OF_PAPERS for path in (SOURCE / "papers").glob(pattern))
    for path in (*ground, *rooms, *of_papers):
        module = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")
        if module.removeprefix("certified_unlearning.") not in NOT_SHOWN:
            yield module, path


def public_names(module: str, path: Path) -> Iterator[str]:
    """Yield a module's classes and functions, and the methods of its classes."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            yield f"{module}.{node.name}"
            for member in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
                    yield f"{module}.{node.name}.{member.name}"


def test_every_public_module_is_named_and_everything_in_it_has_a_docstring():
    """What the built reference is made of; the next test builds it."""
    pages = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "api").glob("*.rst"))
    named = set(re.findall(r"^\.\. auto(?:module|class|function):: (\S+)", pages, re.MULTILINE))
    assert len(named) > 100
    for module, path in public_modules():
        nodes = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if public(node)]
        assert not nodes or module in named or EXPORTED.match(f"{module}.x"), module
        # What overrides a method has its docstring.
        classes = [node for node in nodes if isinstance(node, ast.ClassDef) and not node.bases]
        for node in [*nodes, *(each for own in classes for each in own.body if public(each))]:
            assert ast.get_docstring(node), f"{module}: {node.name}"


def public(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_")


@pytest.mark.exhaustive
def test_everything_public_is_in_the_reference(site: Path):
    anchors = {anchor for page in (site / "api").glob("*.html") for anchor in Page(page).anchors}
    names = {name for module, path in public_modules() for name in public_names(module, path)}
    assert "certified_unlearning.certificate.base.verify" in names
    assert "certified_unlearning.accounting.langevin.lsi.curve" in names
    missing = {name for name in names if name not in anchors and EXPORTED.sub(r"\1\2", name) not in anchors}
    assert missing == set(), "name their modules in docs/api, and give them docstrings"


def test_every_room_that_is_no_command_has_its_page():
    rooms = {path.parent.name for path in SOURCE.glob("*/__init__.py")} - {"commands"}
    assert rooms == {*ROOMS, "papers"}
    pages = {page.stem for page in (ROOT / "docs" / "api").glob("*.rst")}
    assert pages == {*rooms, "ground"}


def test_every_page_names_the_modules_of_its_room_alone():
    for room in (*ROOMS, "papers"):
        page = (ROOT / "docs" / "api" / f"{room}.rst").read_text(encoding="utf-8")
        named = re.findall(r"^\.\. automodule:: certified_unlearning\.(\w+)", page, re.MULTILINE)
        assert {*named} == {room}
