"""Whenever an `add` is killed, its records are in the model once or not at all, and the next command finishes it."""

import shutil
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from certified_unlearning.data.tables.table import Table
from certified_unlearning.errors import LedgerError
from certified_unlearning.ledger import requests
from certified_unlearning.ledger.directory import ModelDirectory, file_sha256
from certified_unlearning.ledger.initialisation import initialise
from certified_unlearning.ledger.model import read_secret
from certified_unlearning.ledger.verification import verify
from tests.ledger.conftest import Forks, Original, Unlearn
from tests.ledger.tables import make_refit, make_regression, write_new, write_table

KILLED = -signal.SIGKILL
LEAVING = ["p3", "p4"]


@pytest.fixture(scope="module")
def made(original: Original, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("adding") / "model"
    make_refit(path, original.data)
    requests.request(path, LEAVING)
    return path


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("new") / "new.csv"
    write_new(path)
    return path


def require_consistent(model: Path) -> None:
    """Check what must hold even between a crash and the next command."""
    state = requests.status(model).state
    assert sum(batch.requests for batch in state.batches) + state.pending == len(LEAVING)
    assert file_sha256(ModelDirectory(model).weights(state.current.version)) == state.current.weights_sha256
    assert len([batch for batch in state.batches if batch.addition is not None]) <= 1


def require_added_once(model: Path, original: Original, new: Path) -> None:
    """Check that the training copy has the first rows, without those of two people, and the new ones, each once."""
    state = verify(model).state
    assert [(batch.records_added, batch.requests) for batch in state.batches] == [(30, 2)]
    features = np.fromfile(ModelDirectory(model).features, np.float32).reshape(-1, 4)
    table = pd.concat([original.table, pd.read_csv(new)])
    x = table[["height", "weight", "age"]].to_numpy()
    due = np.hstack([x / np.linalg.norm(x, axis=1)[:, None], np.ones((len(x), 1))]) / np.sqrt(2)
    due[table["person"].isin(LEAVING)] = 0
    assert np.allclose(features, due, atol=1e-6)
    labels = np.fromfile(ModelDirectory(model).labels, np.int8)
    signs = np.where(table["ill"] == "yes", 1, -1)
    assert (labels == np.where(table["person"].isin(LEAVING), 0, signs)).all()


@pytest.mark.parametrize("every", [17, pytest.param(1, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize(
    ("accident", "ends_with", "finished_by"),
    [("kill_at", KILLED, "add"), ("kill_at", KILLED, "apply"), ("fail_at", 1, "add"), ("fail_at", 1, "apply")],
)
def test_add_that_is_killed_or_finds_the_disk_full_at_any_of_its_changes_adds_once(
    original: Original,
    made: Path,
    new: Path,
    tmp_path: Path,
    fork: Forks,
    accident: str,
    ends_with: int,
    finished_by: str,
    every: int,
) -> None:
    point, planned = 1, 0
    while True:
        copy = Path(shutil.copytree(made, tmp_path / f"{accident}-{point}"))
        status = fork("add", copy, data=str(new), **{accident: point})
        require_consistent(copy)
        if status == 0:
            break
        assert status == ends_with
        was_planned = requests.status(copy).state.planned is not None
        planned += was_planned
        if finished_by == "apply":
            assert fork("apply", copy) == 0
            if len(verify(copy).state.batches) == 1 and verify(copy).state.rows == 450:
                # It was not begun yet: the requests alone were answered, and the records can come now.
                assert not was_planned
                assert fork("add", copy, data=str(new)) == 0
                assert [batch.records_added for batch in verify(copy).state.batches] == [0, 30]
                shutil.rmtree(copy)
                point += every
                continue
        # Again, though it may have been finished: nothing is added twice.
        assert fork("add", copy, data=str(new)) == 0
        require_added_once(copy, original, new)
        assert not list(copy.glob("added-*"))
        shutil.rmtree(copy)
        point += every
    assert point > 60
    assert planned > 20 // every


@pytest.mark.parametrize("every", [23, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_numbers_are_added_once_however_early_or_late_add_is_killed(tmp_path: Path, fork: Forks, every: int) -> None:
    first = write_table(tmp_path / "people.csv", numbers=True)
    new = write_new(tmp_path / "new.csv", numbers=True)
    made, point, interrupted = tmp_path / "made", 1, 0
    make_regression(made, tmp_path / "people.csv")
    due = (pd.concat([first, new])["income"].to_numpy() - 30_000) / 30_000
    while True:
        copy = Path(shutil.copytree(made, tmp_path / f"{point}"))
        status = fork("add", copy, data=str(tmp_path / "new.csv"), kill_at=point)
        interrupted += requests.status(copy).state.planned is not None
        assert fork("add", copy, data=str(tmp_path / "new.csv")) == 0
        assert np.allclose(np.fromfile(ModelDirectory(copy).targets, np.float64), due, atol=1e-12)
        assert [batch.records_added for batch in verify(copy).state.batches] == [30]
        if status == 0:
            break
        shutil.rmtree(copy)
        point += every
    assert interrupted > 0


def test_what_an_interrupted_add_left_is_named_by_verify_and_status(
    made: Path, new: Path, tmp_path: Path, fork: Forks
) -> None:
    copy, point = tmp_path / "model", 30
    while True:
        shutil.copytree(made, copy)
        assert fork("add", copy, data=str(new), kill_at=point) == KILLED
        if requests.status(copy).state.planned is not None:
            break
        shutil.rmtree(copy)
        point += 5
    with pytest.raises(LedgerError, match=r"an `add` was interrupted: `unlearn apply .*` finishes it \(found: "):
        verify(copy)


@pytest.mark.parametrize("most_bytes", [0, 31, 100, 400, 4_000, 20_000, 32_000])
def test_add_whose_files_cannot_grow_fails_in_one_sentence_and_is_finished_once(
    original: Original, made: Path, new: Path, tmp_path: Path, fork: Forks, most_bytes: int
) -> None:
    copy = Path(shutil.copytree(made, tmp_path / "model"))
    assert fork("add", copy, data=str(new), most_bytes=most_bytes) == 1
    require_consistent(copy)
    assert fork("add", copy, data=str(new)) == 0
    require_added_once(copy, original, new)


def test_a_removal_that_was_interrupted_is_finished_before_anything_is_added(
    original: Original, made: Path, new: Path, tmp_path: Path, fork: Forks
) -> None:
    copy, point = tmp_path / "model", 20
    while True:
        shutil.copytree(made, copy)
        assert fork("apply", copy, kill_at=point) == KILLED
        if requests.status(copy).state.planned is not None:
            break
        shutil.rmtree(copy)
        point += 3
    assert fork("add", copy, data=str(new)) == 0
    assert [(batch.records, batch.records_added) for batch in verify(copy).state.batches] == [(3, 0), (0, 30)]


def test_what_forgets_exactly_takes_records_in_with_the_same_draws_however_often_it_is_killed(
    original: Original, new: Path, tmp_path: Path, fork: Forks
) -> None:
    """With other draws a crash would choose among outcomes: those that take long would get another chance."""

    def state_of(path: Path) -> dict[str, np.ndarray]:
        secret = read_secret(ModelDirectory(path), requests.status(path).state.current)
        assert secret is not None
        return dict(secret.arrays)

    first = tmp_path / "exact"
    table = Table(path=str(original.data), label="ill", identifier="person", classes=("no", "yes"))
    initialise(first, table, mechanism="noisy-sgd", C=0.1, steps=20)
    requests.request(first, LEAVING)
    whole = Path(shutil.copytree(first, tmp_path / "whole"))
    assert fork("add", whole, data=str(new)) == 0
    due, interrupted = state_of(whole), 0
    for point in (40, 60, 80, 100):
        copy = Path(shutil.copytree(first, tmp_path / f"{point}"))
        fork("add", copy, data=str(new), kill_at=point)
        interrupted += requests.status(copy).state.planned is not None
        assert fork("add", copy, data=str(new)) == 0
        assert all((state_of(copy)[name] == array).all() for name, array in due.items())
    assert interrupted > 0
    # The check sees other draws.
    assert fork("add", first, data=str(new), new_seed=5) == 0
    assert any((state_of(first)[name] != array).any() for name, array in due.items())


def test_an_add_that_was_interrupted_before_its_records_counted_says_that_nothing_was_added(
    made: Path, new: Path, tmp_path: Path, fork: Forks, unlearn: Unlearn
) -> None:
    copy, point = tmp_path / "model", 1
    while True:
        shutil.copytree(made, copy)
        assert fork("add", copy, data=str(new), kill_at=point) == KILLED
        if list(copy.glob("added-*")):
            break
        shutil.rmtree(copy)
        point += 1
    assert requests.status(copy).state.planned is None
    lost = "an `add` was interrupted before it recorded anything, so nothing was added: run it again"
    assert lost in unlearn("status", copy).stdout
    with pytest.raises(LedgerError, match=lost):
        verify(copy)
    assert f"note: {lost}" in unlearn("apply", copy).stdout
    assert fork("add", copy, data=str(new)) == 0
    assert [batch.records_added for batch in verify(copy).state.batches] == [0, 30]


def test_rows_that_were_changed_while_they_waited_are_not_learned_from(
    made: Path, new: Path, tmp_path: Path, fork: Forks
) -> None:
    copy, point = tmp_path / "model", 30
    while True:
        shutil.copytree(made, copy)
        assert fork("add", copy, data=str(new), kill_at=point) == KILLED
        if requests.status(copy).state.planned is not None:
            break
        shutil.rmtree(copy)
        point += 5
    waiting = ModelDirectory(copy).added_features(2)
    content = bytearray(waiting.read_bytes())
    content[5] ^= 1
    waiting.write_bytes(content)
    assert fork("apply", copy) == 1
    assert requests.status(copy).state.current.version == 1
