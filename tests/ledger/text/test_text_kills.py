"""Whenever a command on a model of text is killed, or the disk is full, nothing is lost and nothing is done twice."""

import shutil
import signal
from pathlib import Path

import numpy as np
import pytest

from certified_unlearning.ledger import requests
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.training.forms import copy_of
from certified_unlearning.ledger.verification import verify
from tests.ledger.conftest import Forks, Original
from tests.ledger.tables import write_tickets
from tests.ledger.text.test_text import FEATURES, LEAVING

KILLED = -signal.SIGKILL


def require_rows(model: Path, spoken: Original, added: int) -> None:
    """Check that the copy has the first rows, without those of two people, and so many new ones."""
    state = verify(model).state
    before = copy_of(ModelDirectory(spoken.path), FEATURES, 1)
    now = copy_of(ModelDirectory(model), FEATURES, state.current.version)
    n, gone = len(spoken.table), spoken.table["person"].isin(LEAVING).to_numpy()
    rows, labels = now.stored(n + added), now.labels(n + added)
    assert not np.diff(rows.indptr)[:n][gone].any()
    assert (rows[:n][~gone] != before.stored(n)[~gone]).nnz == 0
    assert (labels[:n] == np.where(gone, 0, before.labels(n))).all()
    assert np.diff(rows.indptr)[n:].all()
    assert [path.name for path in sorted(model.glob("*rows*"))] == [f"rows-{state.current.version}.safetensors"]


@pytest.mark.parametrize("every", [29, pytest.param(1, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize(("accident", "ends_with"), [("kill_at", KILLED), ("fail_at", 1)])
def test_apply_that_is_killed_or_finds_the_disk_full_at_any_of_its_changes_is_finished_once(
    spoken: Original, model: Path, tmp_path: Path, fork: Forks, accident: str, ends_with: int, every: int
) -> None:
    requests.request(model, LEAVING)
    point = 1
    while True:
        copy = Path(shutil.copytree(model, tmp_path / f"{accident}-{point}"))
        status = fork("apply", copy, **{accident: point})
        assert requests.status(copy).state.pending in (0, 2)
        if status == 0:
            break
        assert status == ends_with
        assert fork("apply", copy) == 0
        assert [batch.requests for batch in verify(copy).state.batches] == [2]
        require_rows(copy, spoken, 0)
        shutil.rmtree(copy)
        point += every
    assert point > 40


@pytest.mark.parametrize("every", [17, pytest.param(1, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize(("accident", "ends_with"), [("kill_at", KILLED), ("fail_at", 1)])
def test_add_that_is_killed_or_finds_the_disk_full_at_any_of_its_changes_adds_once(
    spoken: Original, model: Path, tmp_path: Path, fork: Forks, accident: str, ends_with: int, every: int
) -> None:
    requests.request(model, LEAVING)
    new, point, planned = tmp_path / "new.csv", 1, 0
    added = len(write_tickets(new, people=20, first=1000))
    while True:
        copy = Path(shutil.copytree(model, tmp_path / f"{accident}-{point}"))
        status = fork("add", copy, data=str(new), **{accident: point})
        if status == 0:
            break
        assert status == ends_with
        if requests.status(copy).state.planned is not None:
            planned += 1
            assert fork("apply", copy) == 0
        # Again, though it may have been finished: nothing is added twice.
        assert fork("add", copy, data=str(new)) == 0
        require_rows(copy, spoken, added)
        shutil.rmtree(copy)
        point += every
    assert point > 60
    assert planned


@pytest.mark.parametrize("most_bytes", [0, 4_000, 32_000])
def test_apply_whose_files_cannot_grow_fails_in_one_sentence_and_is_finished_once(
    spoken: Original, model: Path, fork: Forks, most_bytes: int
) -> None:
    requests.request(model, LEAVING)
    assert fork("apply", model, most_bytes=most_bytes) == 1
    assert requests.status(model).state.pending == 2
    assert fork("apply", model) == 0
    require_rows(model, spoken, 0)


@pytest.mark.parametrize("most_bytes", [0, 20_000])
def test_init_without_room_leaves_nothing_behind(
    spoken: Original, tmp_path: Path, fork: Forks, most_bytes: int
) -> None:
    assert fork("init", tmp_path / "model", data=str(spoken.data), text=True, most_bytes=most_bytes) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("every", [19, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_init_killed_before_any_of_its_changes_leaves_a_whole_directory_or_none(
    spoken: Original, tmp_path: Path, fork: Forks, every: int
) -> None:
    point, path = 1, tmp_path / "model"
    while fork("init", path, data=str(spoken.data), text=True, kill_at=point) == KILLED:
        point += every
        if path.exists():
            verify(path)
            shutil.rmtree(path)
    verify(path)
    assert point > 20
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]
