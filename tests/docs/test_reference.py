"""The reference holds everything public; what has no docstring is missing there."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from links import Page

SOURCE = Path(__file__).parents[2] / "src" / "certified_unlearning"
DOCUMENTED = (
    "estimators", "learner", "descent_learner", "ledger", "certificate", "assumptions", "accounting", "offers",
    "dynamics", "randomness", "objectives", "data", "devices", "errors",
)  # fmt: skip
EXPORTED = re.compile(r"^(certified_unlearning\.(?:estimators|certificate))\.\w+(\.\w)")
"""Estimators and certificates are shown where one imports them from, not where they are defined."""
NOT_SHOWN = tuple(
    f"certified_unlearning.{name}"
    for name in ("estimators.report", "estimators.storage", "ledger.commands", "ledger.init_command")
)
"""What estimators and the command line are made of: `LangevinLogisticRegression` and `--help` say what they do."""


def public_modules() -> Iterator[tuple[str, Path]]:
    for name in DOCUMENTED:
        for path in sorted((SOURCE / name).glob("*.py")) or [SOURCE / f"{name}.py"]:
            relative = path.relative_to(SOURCE.parent).with_suffix("")
            module = ".".join(relative.parts).removesuffix(".__init__")
            if module not in NOT_SHOWN:
                yield module, path


def public_names(module: str, path: Path) -> Iterator[str]:
    """Yield a module's classes and functions, and the methods of its classes."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            yield f"{module}.{node.name}"
            for member in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
                    yield f"{module}.{node.name}.{member.name}"


def test_everything_public_is_in_the_reference(site: Path):
    anchors = {anchor for page in (site / "api").glob("*.html") for anchor in Page(page).anchors}
    names = {name for module, path in public_modules() for name in public_names(module, path)}
    assert "certified_unlearning.certificate.verification.verify" in names
    missing = {name for name in names if name not in anchors and EXPORTED.sub(r"\1\2", name) not in anchors}
    assert missing == set(), "name their modules in docs/api, and give them docstrings"
