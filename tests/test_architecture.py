"""The house: rooms import rooms below them, no circles, few modules a folder, jobs that import no list of papers."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from certified_unlearning.reproduction.code import closure

SOURCE = Path(__file__).parents[1] / "src" / "certified_unlearning"
PACKAGE = "certified_unlearning"
ROOMS = (
    ("cli",),
    ("commands",),
    ("papers",),
    ("audit",),
    ("reproduction", "estimators", "ledger"),
    ("certificate",),
    ("mechanisms",),
    ("engine", "data"),
    ("accounting",),
    ("compiled",),
    ("version", "files", "vocabulary", "text"),
    ("errors",),
)
"""From the roof to the ground; those of one floor do not know each other."""
FLOOR = {room: number for number, rooms in enumerate(ROOMS) for room in rooms}
MOST_MODULES = 15


def modules(source: Path = SOURCE) -> dict[str, Path]:
    found = {}
    for path in source.rglob("*.py"):
        parts = path.relative_to(source).with_suffix("").parts
        found[".".join((PACKAGE, *parts)).removesuffix(".__init__")] = path
    return found


def imports(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """The modules of the package that a file imports, those for types only included."""
    for module, name in _named(path.read_text()):
        yield f"{module}.{name}" if name and f"{module}.{name}" in known else module


@cache
def _named(text: str) -> tuple[tuple[str, str], ...]:
    """The modules of the package that a text imports, with the names that it imports from them."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [(str(node.module), alias.name) for alias in node.names]
    return tuple((module, name) for module, name in found if module.partition(".")[0] == PACKAGE)


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def upward_imports(source: Path = SOURCE) -> list[str]:
    """Imports of a room that is not below, and of another paper than by its theory."""
    known, wrong = modules(source), []
    for name, path in known.items():
        for imported in imports(path, known):
            here, there = room(name), room(imported)
            same_floor = here != there and FLOOR.get(there) == FLOOR.get(here) and here not in ("version", "files")
            if here and there and (FLOOR[there] < FLOOR[here] or same_floor):
                wrong.append(f"{name} imports {imported}")
            if here == there == "papers" and len(name.split(".")) > 3 and len(imported.split(".")) > 3:
                (_, _, own, *_), (_, _, other, part, *_) = name.split("."), imported.split(".")
                if own != other and part != "theory":
                    wrong.append(f"{name} imports {imported}")
    return wrong


def circles(source: Path = SOURCE) -> list[str]:
    """Modules that import themselves, whatever the way round; a package that gathers its modules counts as they do."""
    known = modules(source)
    graph = {name: {each for each in imports(path, known) if each != name} for name, path in known.items()}
    found, done = [], set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            found.append(" -> ".join((*above[above.index(name) :], name)))
            return
        if name in done:
            return
        for imported in sorted(graph[name]):
            visit(imported, (*above, name))
        done.add(name)

    for name in sorted(graph):
        visit(name, ())
    return found


def copy_with(tmp_path: Path, module: str, line: str) -> Path:
    """A copy of the source in which a module has one more line at its end."""
    source = tmp_path / PACKAGE
    for name, path in modules().items():
        target = source / path.relative_to(SOURCE)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(path.read_text() + (f"\n{line}\n" if name == f"{PACKAGE}.{module}" else ""))
    return source


def test_rooms_import_only_rooms_below_them() -> None:
    assert upward_imports() == []


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("accounting.core.search", "from certified_unlearning.mechanisms.run import Run"),
        ("engine.descent", "import certified_unlearning.data.sets"),
        ("mechanisms.langevin", "from certified_unlearning import certificate"),
        ("reproduction.jobs", "from certified_unlearning.papers.all import PAPERS"),
        ("errors", "from certified_unlearning.files import read_json"),
        ("papers.privacy_dynamics.bounds", "from certified_unlearning.papers.langevin_unlearning import fig3a"),
    ],
)
def test_a_planted_import_is_found(tmp_path: Path, module: str, line: str) -> None:
    assert len(upward_imports(copy_with(tmp_path, module, line))) == 1


def test_no_module_imports_itself_in_a_circle() -> None:
    assert circles() == []


def test_a_planted_circle_is_found(tmp_path: Path) -> None:
    planted = "from certified_unlearning.accounting.shifted import interpolation"
    assert circles(copy_with(tmp_path, "accounting.core.problem", planted))


def test_the_root_holds_the_ground_and_the_program() -> None:
    ground = {name for rooms in ROOMS[-3:] for name in rooms}
    assert {path.stem for path in SOURCE.glob("*.py")} == ground | {"__init__", "cli"}


def test_no_folder_has_more_modules_than_one_can_look_over() -> None:
    folders = {path.parent for path in modules().values()}
    counts = {folder: len([path for path in folder.glob("*.py") if path.stem != "__init__"]) for folder in folders}
    assert {str(folder.relative_to(SOURCE)): n for folder, n in counts.items() if n > MOST_MODULES} == {}


@pytest.mark.parametrize("room", ["accounting", "vocabulary", "mechanisms.langevin", "papers.parameters"])
def test_what_plans_and_snakefiles_import_needs_no_torch(room: str) -> None:
    code = f"import sys, {PACKAGE}.{room}; print('torch' in sys.modules, 'pandas' in sys.modules)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert printed[0] == "False"
    if room in ("accounting", "vocabulary"):
        assert printed[1] == "False"


def test_jobs_import_neither_the_list_of_papers_nor_commands() -> None:
    jobs = [f"{PACKAGE}.reproduction.{name}" for name in ("jobs", "tracking", "figures.drawing", "rows", "summaries")]
    reached = closure([*jobs, f"{PACKAGE}.papers.langevin_unlearning.fig3a"], frozenset({PACKAGE}))
    assert f"{PACKAGE}.papers.langevin_unlearning.captions" in reached
    assert not {f"{PACKAGE}.papers.all", f"{PACKAGE}.papers.parameters"} & reached
    assert not [name for name in reached if room(name) == "commands"]


@pytest.mark.parametrize("folder", ["src/certified_unlearning/reproduction", "workflow/rules", "workflow/scripts"])
def test_the_machinery_names_no_paper_no_experiment_and_no_mechanism(folder: str) -> None:
    from certified_unlearning.accounting.accountants import ACCOUNTANTS
    from certified_unlearning.papers.all import PAPERS

    names = [paper.name for paper in PAPERS]
    names += [each.name for paper in PAPERS for each in paper.experiments if each.name not in _WORDS]
    names += ["langevin", "descent-to-delete", "retraining"]
    root = SOURCE.parents[1] / folder
    said = {
        f"{path.relative_to(root)}: {name}"
        for path in root.rglob("*")
        if path.suffix in (".py", ".smk")
        for name in names
        if any(name in text for text in _texts(path) if text not in ACCOUNTANTS)
    }
    assert said == set()


_WORDS = ("deletion", "risk", "accountants", "smoothness", "measured", "cost", "batches", "head")
"""Names of experiments that are words of the field as well."""


def _texts(path: Path) -> list[str]:
    """The strings of a module that are no docstrings; all lines of a workflow's rules but comments."""
    if path.suffix == ".smk":
        return [line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]
    tree = ast.parse(path.read_text())
    docstrings = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
    ]
