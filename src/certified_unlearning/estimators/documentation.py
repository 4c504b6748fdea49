"""Docstrings of estimators: each class describes the parameters that it declares, and subclasses inherit this text."""

import inspect
import re


def complete(cls: type) -> None:
    """Complete ``Args`` and ``Attributes`` of a class's docstring with the entries of its base classes.

    The class's own entries take precedence.
    """
    if not vars(cls).get("__doc__"):
        return  # Python's option -OO removes docstrings.
    described = {each: inspect.cleandoc(_own_docstring(each)) for each in cls.__mro__}
    cls._own_docstring = described[cls]  # type: ignore[attr-defined]
    # The sections *See Also* and *Examples* of the class itself come last.
    text, *last = re.split(r"^(?=See Also:\n|Examples:\n)", described[cls], maxsplit=1, flags=re.MULTILINE)
    for title in ("Args", "Attributes"):
        entries: dict[str, str] = {}
        for docstring in described.values():
            for name, entry in _entries(docstring, title).items():
                entries.setdefault(name, entry)
        text = _section(title).sub("", text).rstrip()
        if entries:
            text = "\n".join([f"{text}\n\n{title}:", *entries.values()])
    cls.__doc__ = "\n\n".join([text, *last]) + "\n"


def _own_docstring(cls: type) -> str:
    """Return a class's docstring as it is in its source."""
    found: str | None = vars(cls).get("_own_docstring", vars(cls).get("__doc__"))
    return found or ""


def _section(title: str) -> re.Pattern[str]:
    return re.compile(rf"^{title}:\n((?:    .*(?:\n|\Z))+)", re.MULTILINE)


def _entries(docstring: str, title: str) -> dict[str, str]:
    """Return the entries of a docstring's section, by name."""
    found = _section(title).search(docstring)
    entries = re.split(r"^(?=    \w+: )", found[1], flags=re.MULTILINE) if found else []
    return {each.partition(":")[0].strip(): each.rstrip() for each in entries if each}
