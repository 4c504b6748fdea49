"""One digest of the code on which a job depends: the given modules and everything they import.

Comments are ignored.
"""

import ast
import hashlib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from certified_unlearning.errors import ParameterError


def digest(*modules: str, files: Sequence[str | Path] = ()) -> str:
    """Return a digest of the given modules, the modules that they import, and the given files.

    Imported modules are included if they belong to this package, or to the package of a given module. The digest does
    not depend on comments, docstrings and layout, so changing any of these does not rerun a job. Imports in functions
    are included. Imports under ``if TYPE_CHECKING``, and modules that are named only in strings, are left out. If a
    module names files in its own directory, such as the source of a compiled kernel, the bytes of these files are
    included.

    Args:
        modules: Dotted names of the modules.
        files: Other files that the job reads, such as templates; their bytes are included.

    Raises:
        ParameterError: A module does not exist, or is not written in Python.
    """
    packages = frozenset(name.partition(".")[0] for name in ("certified_unlearning", *modules))
    sha = hashlib.sha256()
    for name in sorted(closure(modules, packages)):
        sha.update(f"{name} {_read(_source(name)).meaning}\n".encode())
    for path in sorted(map(Path, files)):
        sha.update(f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return sha.hexdigest()


def files_beside(module: str) -> tuple[Path, ...]:
    """Return the files in a module's directory whose names are strings in the module's code.

    Python files are left out. The returned files count as code.
    """
    return _read(_source(module)).files


def closure(modules: Sequence[str], packages: frozenset[str]) -> set[str]:
    """Return the given modules, the modules that they import (also indirectly), and the packages of these modules.

    Imported modules are included only if they belong to one of the given packages.
    """
    found: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        parent = name.rpartition(".")[0]
        waiting += [each for each in (parent, *_read(_source(name)).imports) if each.partition(".")[0] in packages]
    return found


class _Module(NamedTuple):
    meaning: str
    """Digest of the module's syntax tree without docstrings, and of the files in `files`."""
    imports: tuple[str, ...]
    files: tuple[Path, ...]


@cache
def _read(path: Path) -> _Module:
    tree = ast.parse(path.read_bytes(), filename=str(path))
    imports = tuple(_imports(tree))
    _remove_texts(tree)
    sha = hashlib.sha256(ast.dump(tree).encode())
    files = _files_beside(path, tree)
    for file in files:
        sha.update(f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return _Module(sha.hexdigest(), imports, files)


def _files_beside(path: Path, tree: ast.Module) -> tuple[Path, ...]:
    strings = {each.value for each in ast.walk(tree) if isinstance(each, ast.Constant) and isinstance(each.value, str)}
    beside = (each for each in sorted(path.parent.iterdir()) if each.suffix != ".py" and each.is_file())
    return tuple(each for each in beside if each.name in strings)


def _inner(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements, handlers and cases inside a node, which may contain imports or strings."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        yield from getattr(node, name, ())


def _remove_texts(node: ast.AST) -> None:
    if hasattr(node, "body"):
        node.body = [each for each in node.body if not _is_text(each)]
    for child in _inner(node):
        _remove_texts(child)


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _imports(node: ast.AST) -> Iterator[str]:
    """Yield the modules that a syntax tree imports; `from a import b` gives the module ``a.b`` if it exists."""
    for child in _inner(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.module is not None and child.level == 0:
            yield child.module
            yield from (
                f"{child.module}.{alias.name}" for alias in child.names if _exists(f"{child.module}.{alias.name}")
            )
        else:
            yield from _imports(child)


def _exists(name: str) -> bool:
    path = _place(name)
    return path is not None and (path.with_suffix(".py").is_file() or (path / "__init__.py").is_file())


@cache
def _source(name: str) -> Path:
    path = _place(name)
    for candidate in () if path is None else (path / "__init__.py", path.with_suffix(".py")):
        if candidate.is_file():
            return candidate
    raise ParameterError(f"there is no module {name} in Python, so its code has no digest")


@cache
def _place(name: str) -> Path | None:
    """Return the path that a module would have, without a suffix; only its top-level package is searched for."""
    top, _, rest = name.partition(".")
    spec = find_spec(top)
    if spec is None or spec.origin is None:
        return None
    origin = Path(spec.origin)
    if origin.name != "__init__.py":
        return origin.with_suffix("") if not rest else None
    return origin.parent.joinpath(*rest.split(".")) if rest else origin.parent
