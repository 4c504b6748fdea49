"""Docstrings of estimators: a class describes the parameters that it declares, and its subclasses inherit the words."""

import inspect
import re


def complete(cls: type) -> None:
    """Complete ``Args`` and ``Attributes`` of a class's docstring by what its bases say of theirs.

    What the class itself describes stays as it is.
    """
    if not vars(cls).get("__doc__"):
        return  # Python's option -OO leaves docstrings out.
    described = {each: inspect.cleandoc(_own_docstring(each)) for each in cls.__mro__}
    cls._own_docstring = text = described[cls]  # type: ignore[attr-defined]
    for title in ("Args", "Attributes"):
        entries: dict[str, str] = {}
        for docstring in described.values():
            for name, entry in _entries(docstring, title).items():
                entries.setdefault(name, entry)
        text = _section(title).sub("", text).rstrip()
        if entries:
            text = "\n".join([f"{text}\n\n{title}:", *entries.values()])
    cls.__doc__ = text + "\n"


def _own_docstring(cls: type) -> str:
    """Return a class's docstring as its source has it."""
    found: str | None = vars(cls).get("_own_docstring", vars(cls).get("__doc__"))
    return found or ""


def _section(title: str) -> re.Pattern[str]:
    return re.compile(rf"^{title}:\n((?:    .*(?:\n|\Z))+)", re.MULTILINE)


def _entries(docstring: str, title: str) -> dict[str, str]:
    """Return what a docstring says under a title, by name."""
    found = _section(title).search(docstring)
    entries = re.split(r"^(?=    \w+: )", found[1], flags=re.MULTILINE) if found else []
    return {each.partition(":")[0].strip(): each.rstrip() for each in entries if each}
