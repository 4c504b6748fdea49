"""A model directory with its log in a second place, lost and restored."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.log.setting import set_log
from certified_unlearning.ledger.store import Ledger
from certified_unlearning.ledger.training.forms import copy_of
from tests.ledger.tables import PEOPLE


@pytest.fixture
def log(model: Path, tmp_path: Path) -> Path:
    """The log of the model directory, from now on in a second place, too."""
    set_log(model, tmp_path / "log.jsonl")
    return tmp_path / "log.jsonl"


def backed_up(model: Path, name: str) -> Path:
    """Return a copy of a directory."""
    return Path(shutil.copytree(model, model.with_name(name)))


def restore(model: Path, backup: Path) -> None:
    """Put a backup in the place of a directory."""
    shutil.rmtree(model)
    shutil.copytree(backup, model)


def people_left(model: Path) -> set[str]:
    """Return whose rows are in the training copy and not empty, as the bytes have it."""
    directory = ModelDirectory(model)
    with Ledger.opened(directory.ledger, read_only=True) as ledger:
        records = list(ledger.owners.records())
    rows = copy_of(directory, 4, 1).rows(directory.features.stat().st_size // 16)
    whole = set(np.flatnonzero((np.asarray(rows) != 0).any(axis=1)).tolist())
    assert whole == {record.row for record in records}
    return in_clear(model, {record.identifier for record in records})


def in_clear(model: Path, names: set[str]) -> set[str]:
    """Return the identifiers of people by the ledger's names."""
    with Ledger.opened(ModelDirectory(model).ledger, read_only=True) as ledger:
        known = {ledger.names.stored(f"p{person}"): f"p{person}" for person in range(PEOPLE + 100)}
    return {known[name] for name in names}


def events_of(model: Path) -> list[str]:
    """Return the kinds of all events of a directory."""
    with Ledger.opened(ModelDirectory(model).ledger, read_only=True) as ledger:
        return [event.kind for event in ledger.verify_chain()]
