"""A model directory of tickets, made once and copied for every test."""

import shutil
from pathlib import Path

import pytest

from tests.ledger.conftest import Original
from tests.ledger.tables import make_text, write_tickets


@pytest.fixture(scope="session")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> Original:
    """The model that tests copy, and the tickets that it was made from."""
    root = tmp_path_factory.mktemp("text")
    table = write_tickets(root / "tickets.csv")
    make_text(root / "model", root / "tickets.csv")
    return Original(root / "model", root / "tickets.csv", table)


@pytest.fixture
def model(spoken: Original, tmp_path: Path) -> Path:
    """A copy of the model directory."""
    return Path(shutil.copytree(spoken.path, tmp_path / "model"))
