"""A working tree in which nothing has run, and one in which the smoke preset has."""

import shutil
from pathlib import Path

import pytest
from working_tree import WorkingTree, copy_working_tree


@pytest.fixture
def fresh_tree(tmp_path: Path) -> WorkingTree:
    """A working tree in which nothing has run yet."""
    return copy_working_tree(tmp_path / "tree")


@pytest.fixture(scope="session")
def smoke_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[WorkingTree, str]:
    """A working tree in which the smoke preset ran from nothing, and what Snakemake printed. Look, do not touch."""
    tree = copy_working_tree(tmp_path_factory.mktemp("smoke") / "tree")
    finished = tree.snakemake()
    assert finished.returncode == 0, finished.stdout
    return tree, finished.stdout


@pytest.fixture
def smoke_tree(smoke_run: tuple[WorkingTree, str], tmp_path: Path) -> WorkingTree:
    """A copy of the working tree with the finished smoke run, to change at will."""
    shutil.copytree(smoke_run[0].root, tmp_path / "tree", symlinks=True)
    return WorkingTree(tmp_path / "tree")
