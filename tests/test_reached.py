"""Who calls what: in `accounting/` stands only what the software computes with, in `papers/` what only claims need.

References are followed over the syntax trees, from every room above to what it names there. An attribute's name stands
for all methods of that name, so a method that nobody calls may be overlooked; a function or a class is not.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

import pytest

from tests.test_architecture import PACKAGE, modules, room

Definition = tuple[str, str]
"""A module, and a function, class, constant or ``Class.method`` in it; empty for the module's own statements."""
ONLY_CLAIMS = {
    "cyclic.stream.curve",
}
"""Formulas that move to the papers' theory with the plans and the streams beside them."""


class Mentions(NamedTuple):
    """What a definition names: chains such as ``search.minimise``, and the attributes of whatever else."""

    chains: frozenset[tuple[str, ...]]
    attributes: frozenset[str]


class Outline(NamedTuple):
    """A module: what its names were imported as, and what it defines."""

    imports: dict[str, Definition]
    definitions: dict[str, Mentions]


@cache
def outline(text: str) -> Outline:
    tree = ast.parse(text)
    imports = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(PACKAGE):
            imports |= {alias.asname or alias.name: (str(node.module), alias.name) for alias in node.names}
        elif isinstance(node, ast.Import):
            imports |= {alias.asname: (alias.name, "") for alias in node.names if alias.asname}
    parts: dict[str, list[ast.AST]] = defaultdict(list)
    for name, node in _parts(tree):
        parts[name].append(node)
    return Outline(imports, {name: _mentions(nodes) for name, nodes in parts.items()})


def _parts(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Yield a module's statements, each with the name that it defines; none for an import, which calls nothing."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield node.name, ast.Pass()
            for child in (*node.bases, *node.keywords, *node.decorator_list, *node.body):
                own = isinstance(child, ast.FunctionDef) and not child.name.startswith("__")
                yield f"{node.name}.{child.name}" if own else node.name, child
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((each.id, node) for target in targets for each in ast.walk(target) if _is_name(each))
        elif not isinstance(node, ast.Import | ast.ImportFrom):
            yield "", node


def _is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Name)


def _mentions(nodes: list[ast.AST]) -> Mentions:
    chains, attributes = set(), set()
    for node in (inner for each in nodes for inner in ast.walk(each)):
        if isinstance(node, ast.Name):
            chains.add((node.id,))
        elif isinstance(node, ast.Attribute):
            attributes.add(node.attr)
            if chain := ast.unparse(node) if _is_chain(node) else "":
                chains.add(tuple(chain.split(".")))
    return Mentions(frozenset(chains), frozenset(attributes))


def _is_chain(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _is_chain(node.value))


class Code:
    """All modules of the package, and which of their definitions name which."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.outlines = {module: outline(text) for module, text in texts.items()}

    def definitions(self, rooms: Iterable[str]) -> set[Definition]:
        """Those of some rooms, with the statements of their modules."""
        chosen = {module for module in self.outlines if room(module) in rooms}
        return {(module, name) for module in chosen for name in ("", *self.outlines[module].definitions)}

    def reached(self, roots: set[Definition], *, but: str = "") -> set[Definition]:
        """What some definitions name, and what that names; nothing in the room ``but``."""
        found, todo, called = set[Definition](), list(roots), set[str]()
        methods = defaultdict(list)
        for module, name in self.definitions({room(module) for module in self.outlines}):
            if "." in name:
                methods[name.partition(".")[2]].append((module, name))
        while todo:
            definition = todo.pop()
            module, name = definition
            if definition in found or room(module) == but:
                continue
            found.add(definition)
            mentions = self.outlines[module].definitions.get(name, Mentions(frozenset(), frozenset()))
            todo += [(module, ""), *(each for chain in mentions.chains for each in self._named(module, chain))]
            for attribute in mentions.attributes - called:
                todo += [each for each in methods[attribute] if (each[0], each[1].partition(".")[0]) in found]
            called |= mentions.attributes
            # The methods of a class that was not known to be reached when they were called.
            inner = (each for each in self.outlines[module].definitions if each.startswith(f"{name}."))
            todo += [(module, each) for each in inner if name and each.partition(".")[2] in called]
        return found

    def _named(self, module: str, chain: tuple[str, ...]) -> Iterator[Definition]:
        """Yield the definition that a chain of names leads to, if it is one of the package's."""
        place: Definition = (module, "")
        for name in chain:
            place = self._resolved(place[0], name)
            yield from [place] if place[0] else []
            if place[1] or not place[0]:
                return

    def _resolved(self, module: str, name: str) -> Definition:
        if name in self.outlines[module].definitions:
            return module, name
        if f"{module}.{name}" in self.outlines:
            return f"{module}.{name}", ""
        source, original = self.outlines[module].imports.get(name, ("", ""))
        if source not in self.outlines or (source, original) == (module, name):
            return "", ""
        return self._resolved(source, original) if original else (source, "")


def texts() -> dict[str, str]:
    return {module: path.read_text(encoding="utf-8") for module, path in modules().items()}


def unreached(code: Code, *, claims: bool) -> set[str]:
    """Public functions, classes and methods of `accounting` that nothing reaches; with papers, or without them.

    What the package `accounting` itself exports is for users.
    """
    rooms = {room(module) for module in code.outlines} - {"accounting", "papers"}
    exported = set(code.outlines[f"{PACKAGE}.accounting"].imports.values())
    roots = code.definitions(rooms | ({"papers"} if claims else set())) | exported
    found = code.reached(roots, but="" if claims else "papers")
    return _shown(code.definitions({"accounting"}) - found)


def _shown(definitions: set[Definition]) -> set[str]:
    """Public functions, classes and methods, without the room that they are in."""
    formulas = {each for each in definitions if not re.search(r"^$|^_|\._|^[A-Z_\d]+$", each[1])}
    return {f"{module}.{name}".split(".", maxsplit=2)[2] for module, name in formulas}


def unreached_theory(code: Code) -> set[str]:
    """Public functions, classes and methods of the papers' theory that no paper reaches."""
    theory = {each for each in code.definitions({"papers"}) if ".theory." in each[0]}
    return _shown(theory - code.reached(code.definitions({"papers"}) - theory))


def test_accounting_holds_nothing_that_only_tests_call() -> None:
    assert unreached(Code(texts()), claims=True) == set()


def test_accounting_holds_nothing_that_only_claims_call() -> None:
    assert unreached(Code(texts()), claims=False) == ONLY_CLAIMS


def test_the_papers_theory_holds_nothing_that_only_tests_call() -> None:
    assert unreached_theory(Code(texts())) == set()


@pytest.mark.parametrize("claimed", [False, True])
def test_a_planted_formula_is_found(claimed: bool) -> None:
    """A function and a method that one claim calls, or that nothing calls."""
    planted = texts()
    planted[f"{PACKAGE}.accounting.core.search"] += "\n\ndef planted():\n    return Planted().value()\n"
    planted[f"{PACKAGE}.accounting.core.search"] += "\n\nclass Planted:\n    def value(self):\n        return 1\n"
    if claimed:
        measures = f"{PACKAGE}.papers.tv_stability.measures.batches"
        planted[measures] += "\n\ndef claim():\n    return search.planted()\n"
        planted[measures] = f"from {PACKAGE}.accounting.core import search\n{planted[measures]}"
    code = Code(planted)
    found = {"core.search.planted", "core.search.Planted", "core.search.Planted.value"}
    assert unreached(code, claims=True) == (set() if claimed else found)
    assert unreached(code, claims=False) - ONLY_CLAIMS == found


def test_a_formula_that_a_mechanism_calls_is_reached() -> None:
    planted = texts()
    planted[f"{PACKAGE}.accounting.core.search"] += "\n\ndef planted():\n    return 1\n"
    line = f"from {PACKAGE}.accounting.core.search import planted as found\n\nVALUE = found()\n"
    planted[f"{PACKAGE}.mechanisms.langevin"] += line
    assert "core.search.planted" not in unreached(Code(planted), claims=False)
