"""No ladders: outside its own module nothing asks which certificate, plan or mechanism it holds."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.test_architecture import SOURCE

VALUES = {
    "Affine": "a layer of a network: engines know all layers there are",
    "Dense": "a layer",
    "Flatten": "a layer",
    "Relu": "a layer",
    "Interval": "bounds of a number, where a number may stand as well",
    "GaussianCurve": "how a guarantee depends on delta: conversions know both forms there are",
    "RenyiCurve": "the other form",
    "Model": "a fit with a factor",
    "Table": "a declared table, where a name may stand as well",
    "Paper": "what others name in params.yaml is checked to be a paper",
    "StoredRows": "rows in a file, where rows in memory may stand as well",
    "Quantity": "what a measure returns, where a number may stand as well",
    "NoSweep": "parameters of an experiment that has none",
    "FixedRequests": "a question of the paper: whether requests look at answers",
}
"""Classes that are neither certificates nor plans nor mechanisms, and why their type may be asked."""


def classes(trees: dict[Path, ast.Module]) -> dict[str, set[Path]]:
    """Return where the package's classes are defined, but for exceptions."""
    found: dict[str, set[Path]] = {}
    errors = {"Exception", "BaseException", "RuntimeError", "ValueError", "KeyboardInterrupt"}
    nodes = [(path, node) for path, tree in trees.items() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    for _ in range(5):  # Exceptions of exceptions.
        errors |= {node.name for _, node in nodes if errors & {name for base in node.bases for name in names(base)}}
    for path, node in nodes:
        if node.name not in errors:
            found.setdefault(node.name, set()).add(path)
    return found


def unions(trees: dict[Path, ast.Module], known: dict[str, set[Path]]) -> dict[str, set[Path]]:
    """Return the names that stand for several classes."""
    found: dict[str, set[Path]] = {}
    for tree in trees.values():
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp | ast.Tuple):
                parts = set(names(node.value)) & known.keys()
                if parts:
                    found |= {name: set() for target in node.targets for name in names(target)}
    return found


def names(expression: ast.AST) -> Iterator[str]:
    """Yield the names in an expression; of `module.Class` the last."""
    for node in ast.walk(expression):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def asked(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of every class that a module asks for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 2:
            if node.func.id in ("isinstance", "issubclass"):
                yield from ((node.lineno, name) for name in names(node.args[1]))
        elif isinstance(node, ast.MatchClass):
            yield from ((node.lineno, name) for name in names(node.cls))
        elif isinstance(node, ast.Compare) and _is_type(node.left):
            yield from ((node.lineno, name) for right in node.comparators for name in names(right))
        elif isinstance(node, ast.Subscript) and _is_type(node.slice):
            yield node.lineno, "a table of types"


def _is_type(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "type"


def ladders(source: Path) -> list[str]:
    """Return where somebody asks for a class of another module."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(source.rglob("*.py"))}
    known = classes(trees)
    known |= unions(trees, known) | {"a table of types": set()}
    return [
        f"{path.relative_to(source)}:{line} asks for {name}"
        for path, tree in trees.items()
        for line, name in sorted(asked(tree))
        if name in known and path not in known[name] and name not in VALUES
    ]


def test_nothing_asks_which_certificate_plan_or_mechanism_it_holds() -> None:
    assert ladders(SOURCE) == []


def test_every_exception_is_needed() -> None:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")]
    assert {name for tree in trees for _, name in asked(tree)} >= VALUES.keys()


def test_a_planted_ladder_is_found(tmp_path: Path) -> None:
    (tmp_path / "plans.py").write_text(
        "class Plan: pass\nclass Other(Plan): pass\nEither = Plan | Other\nclass Wrong(Exception): pass\n"
        "def own(x): return isinstance(x, Plan)\n"
    )
    (tmp_path / "asks.py").write_text(
        "def a(x): return isinstance(x, (int, Plan))\n"
        "def b(x): return type(x) is plans.Other\n"
        "def c(x):\n    match x:\n        case Other(): return 1\n"
        "def d(x): return isinstance(x, Either)\n"
        "def e(x): return {Plan: 1}[type(x)]\n"
        "def f(x): return isinstance(x, Wrong | dict | str)\n"
    )
    assert ladders(tmp_path) == [
        "asks.py:1 asks for Plan",
        "asks.py:2 asks for Other",
        "asks.py:5 asks for Other",
        "asks.py:6 asks for Either",
        "asks.py:7 asks for a table of types",
    ]
