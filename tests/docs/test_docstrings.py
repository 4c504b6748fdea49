"""Examples in docstrings run as they are shown, and every public estimator has some."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

from certified_unlearning import estimators

SOURCE = Path(__file__).parents[2] / "src" / "certified_unlearning"
SHOWN = sorted(path for path in SOURCE.rglob("*.py") if ">>>" in path.read_text(encoding="utf-8"))


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.filterwarnings("ignore::UserWarning")  # The examples' models are small.
@pytest.mark.parametrize("path", SHOWN, ids=module_of)
def test_examples_in_docstrings_run_as_shown(path: Path):
    done = doctest.testmod(importlib.import_module(module_of(path)), optionflags=doctest.ELLIPSIS)
    assert done.attempted > 0
    assert done.failed == 0


@pytest.mark.parametrize("name", estimators.__all__)
def test_every_estimator_has_an_example_and_names_what_is_like_it(name: str):
    lines = getattr(estimators, name).__doc__.splitlines()
    assert [lines.count(title) for title in ("See Also:", "Examples:")] == [1, 1]
    assert lines.index("Examples:") > lines.index("See Also:") > lines.index("Attributes:")
    assert f"    >>> from certified_unlearning import {name}" in lines
    others = re.findall(r"^    `(?:[\w.]+\.)?(\w+)`: ", "\n".join(lines), re.MULTILINE)
    assert others
    assert {*others} <= {*estimators.__all__, "PrivateLabels"} - {name}
