"""The digest of the code that a job runs: what it depends on, and what not."""

import importlib
from collections.abc import Callable
from pathlib import Path

import pytest

from certified_unlearning.errors import ParameterError
from certified_unlearning.reproduction import code

Change = Callable[..., str]

MODULES = {
    "__init__": "",
    "job": """
from typing import TYPE_CHECKING
from invented import used
if TYPE_CHECKING:
    from invented.types_only import Type
def run():
    '''Run.'''
    from invented.late import later
    return later(used.value)
""",
    "used": "value = 1",
    "late": "def later(value):\n    return value",
    "types_only": "class Type: ...",
    "other": "value = 2",
}


@pytest.fixture
def digest_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Change:
    """The digest of a job of an invented package, some of whose modules are replaced."""
    package = tmp_path / "invented"
    package.mkdir()
    monkeypatch.syspath_prepend(tmp_path)

    def digest(**replaced: str) -> str:
        for name, content in (MODULES | replaced).items():
            (package / f"{name}.py").write_text(content)
        importlib.invalidate_caches()
        for each in vars(code).values():
            if hasattr(each, "cache_clear"):
                each.cache_clear()
        return code.digest("invented.job")

    return digest


@pytest.mark.parametrize(
    ("module", "content"),
    [
        ("job", f"# A remark.\n'''A job.'''{MODULES['job'].replace('Run.', 'Run it.')}"),
        ("job", MODULES["job"].replace("return later(", "return later( ")),
        ("types_only", "class Type: value = 1"),
        ("other", "value = 3"),
    ],
)
def test_words_layout_and_what_is_not_run_do_not_count(digest_with: Change, module: str, content: str) -> None:
    assert digest_with(**{module: content}) == digest_with()


@pytest.mark.parametrize(
    ("module", "content"),
    [
        ("job", MODULES["job"].replace("value)", "value + 1)")),
        ("used", "value = 2"),
        ("late", "def later(value):\n    return value + 1"),
        ("__init__", "value = 1"),
    ],
)
def test_what_is_run_counts_wherever_it_is_imported(digest_with: Change, module: str, content: str) -> None:
    assert digest_with(**{module: content}) != digest_with()


def test_files_count_by_their_content(tmp_path: Path) -> None:
    template = tmp_path / "page.html"
    template.write_text("a")
    before = code.digest("certified_unlearning.text", files=[template])
    template.write_text("b")
    assert code.digest("certified_unlearning.text", files=[template]) != before


@pytest.mark.parametrize(("naming", "counts"), [("'kernel.c'", True), ("'another.c'", False)])
def test_a_file_beside_a_module_counts_where_the_module_names_it(
    digest_with: Change, tmp_path: Path, naming: str, counts: bool
) -> None:
    kernel = tmp_path / "invented" / "kernel.c"
    kernel.write_text("int one() { return 1; }")
    module = f"from pathlib import Path\nvalue = Path(__file__).with_name({naming})"
    before = digest_with(used=module)
    kernel.write_text("int one() { return 2; }")
    assert (digest_with(used=module) != before) == counts


def test_experiments_on_networks_depend_on_the_source_of_the_compiled_kernel() -> None:
    (kernel,) = code.files_beside("certified_unlearning.engine.intervals.kernel")
    assert kernel.name == "kernel.cpp"
    packages = frozenset({"certified_unlearning"})
    training = code.closure(["certified_unlearning.mechanisms.certified_sgd.sgd"], packages)
    assert "certified_unlearning.engine.intervals.kernel" in training


def test_learning_depends_on_the_source_of_compiled_steps() -> None:
    module = "certified_unlearning.engine.compiled.minibatch"
    assert [each.name for each in code.files_beside(module)] == ["minibatch.cpp"]
    assert module in code.closure(
        ["certified_unlearning.mechanisms.learners.minibatch"], frozenset({"certified_unlearning"})
    )


@pytest.mark.parametrize("name", ["certified_unlearning.no_such", "no_such_package.module", "math"])
def test_a_module_that_is_not_there_or_not_python_is_named(name: str) -> None:
    with pytest.raises(ParameterError, match=rf"^there is no module {name} in Python"):
        code.digest(name)
