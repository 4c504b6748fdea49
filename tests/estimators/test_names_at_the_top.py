"""`from certified_unlearning import ...`: everyday names, imported when they are asked for."""

import importlib
import subprocess
import sys

import pytest

import certified_unlearning
from certified_unlearning import certificate, estimators, ledger


def test_the_package_alone_is_imported_without_the_heavy_ones():
    code = "import sys, certified_unlearning; print(sorted({'torch', 'sklearn', 'pandas', 'scipy'} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown == "[]\n"


@pytest.mark.parametrize("name", estimators.__all__)
def test_every_estimator_is_there(name):
    assert getattr(certified_unlearning, name) is getattr(estimators, name)


def test_what_else_a_program_needs_is_there():
    assert certified_unlearning.load_model is ledger.load_model
    assert certified_unlearning.certificate is certificate


def test_all_names_exist_and_are_listed():
    for name in certified_unlearning.__all__:
        assert getattr(certified_unlearning, name) is not None
    assert set(certified_unlearning.__all__) <= set(dir(certified_unlearning))
    assert set(estimators.__all__) <= set(certified_unlearning.__all__)


def test_other_names_are_unknown_and_modules_are_found():
    with pytest.raises(AttributeError, match="has no attribute 'LangevinRegression'"):
        certified_unlearning.LangevinRegression  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name"):
        from certified_unlearning import LangevinRegression  # type: ignore[attr-defined]  # noqa: F401
    assert importlib.import_module("certified_unlearning.version").code_version()
