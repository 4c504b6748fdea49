"""Whenever a command is killed, no request is lost, none is applied twice, and the next `apply` finishes the work."""

import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from certified_unlearning.ledger import requests
from certified_unlearning.ledger.directory import ModelDirectory, file_sha256
from certified_unlearning.ledger.training.dense import labels_of
from certified_unlearning.ledger.verification import verify
from tests.ledger.conftest import Forks, Original
from tests.ledger.tables import make_model, make_regression, write_table
from tests.support.killing import Moments

KILLED = -signal.SIGKILL


@pytest.fixture(scope="module", params=["classes", "numbers"])
def original(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Original:
    """A model of classes, and one that predicts numbers."""
    root, numbers = tmp_path_factory.mktemp("crashes"), request.param == "numbers"
    table = write_table(root / "people.csv", numbers=numbers)
    (make_regression if numbers else make_model)(root / "model", root / "people.csv")
    return Original(root / "model", root / "people.csv", table)


def predicts_numbers(original: Original) -> bool:
    return "income" in original.table


def rows_are_those_left(model: Path, original: Original, removed: set[str]) -> bool:
    """Whether the training copy is the original one with exactly these people's rows and labels zeroed."""
    before, now = ModelDirectory(original.path), ModelDirectory(model)
    gone = original.table["person"].isin(removed).to_numpy()
    features = np.fromfile(before.features, np.float32).reshape(len(gone), -1)
    labels = np.fromfile(*labels_of(before))
    features[gone], labels[gone] = 0, 0
    return now.features.read_bytes() == features.tobytes() and now.label_file().read_bytes() == labels.tobytes()


def require_consistent(model: Path, requested: int) -> int:
    """Check what must hold even between a crash and the next `apply`; return how many requests are pending."""
    state = requests.status(model).state
    assert sum(batch.requests for batch in state.batches) + state.pending == requested
    assert file_sha256(ModelDirectory(model).weights(state.current.version)) == state.current.weights_sha256
    return state.pending


@pytest.mark.sampled
@pytest.mark.parametrize(("accident", "ends_with"), [("kill_at", KILLED), ("fail_at", 1)])
def test_apply_that_is_killed_or_finds_the_disk_full_at_any_of_its_changes_is_finished_once(
    original: Original, model: Path, tmp_path: Path, fork: Forks, accident: str, ends_with: int
) -> None:
    requests.request(model, ["p3", "p4"])
    accidents = 0
    while True:
        copy = Path(shutil.copytree(model, tmp_path / f"{accident}-{accidents + 1}"))
        status = fork("apply", copy, **{accident: accidents + 1})
        require_consistent(copy, requested=2)
        if status == 0:
            break
        assert status == ends_with
        accidents += 1
        assert fork("apply", copy) == 0
        verified = verify(copy)
        assert [batch.requests for batch in verified.state.batches] == [2]
        assert rows_are_those_left(copy, original, {"p3", "p4"})
        shutil.rmtree(copy)
    assert accidents > 40


@pytest.mark.parametrize("most_bytes", [0, 31, 100, 2_000, 4_000, 20_000, 32_000])
def test_apply_whose_files_cannot_grow_fails_in_one_sentence_and_is_finished_once(
    original: Original, model: Path, fork: Forks, most_bytes: int
) -> None:
    requests.request(model, ["p3", "p4"])
    assert fork("apply", model, most_bytes=most_bytes) == 1
    assert require_consistent(model, requested=2) == 2
    assert fork("apply", model) == 0
    assert len(verify(model).state.versions) == 2
    assert rows_are_those_left(model, original, {"p3", "p4"})


@pytest.mark.parametrize("most_bytes", [0, 1_000, 4_000, 20_000, 32_000])
def test_init_without_room_leaves_nothing_behind(
    original: Original, tmp_path: Path, fork: Forks, most_bytes: int
) -> None:
    job = {"data": str(original.data), "numbers": predicts_numbers(original)}
    assert fork("init", tmp_path / "model", **job, most_bytes=most_bytes) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kills", [40, pytest.param(200, marks=pytest.mark.exhaustive)])
def test_apply_killed_at_random_moments_loses_no_request_and_applies_none_twice(
    original: Original, model: Path, fork: Forks, kills: int
) -> None:
    people = iter(range(299))
    requests.request(model, ["p299"])
    requested = {"p299"}
    started = time.monotonic()
    assert fork("apply", model) == 0
    moments, killed = Moments(1, time.monotonic() - started), 0
    while killed < kills:
        # One more request now and then, also while an interrupted batch waits.
        if require_consistent(model, len(requested)) < 2:
            person = f"p{next(people)}"
            requests.request(model, [person])
            requested.add(person)
        status = fork("apply", model, kill_after=moments())
        assert status in (0, KILLED)
        moments.note(killed=status == KILLED)
        killed += status == KILLED
    assert fork("apply", model) == 0
    assert require_consistent(model, len(requested)) == 0
    verify(model)
    assert rows_are_those_left(model, original, requested)


def test_request_killed_before_any_of_its_changes_records_all_or_nothing(
    model: Path, tmp_path: Path, fork: Forks
) -> None:
    kills = 0
    while True:
        copy = Path(shutil.copytree(model, tmp_path / f"killed-{kills}"))
        status = fork("request", copy, identifiers=["p3", "p4"], kill_at=kills + 1)
        if status == 0:
            break
        assert status == KILLED
        assert requests.status(copy).state.pending in (0, 2)
        kills += 1
    assert requests.status(copy).state.pending == 2
    assert kills > 5


def test_init_killed_before_any_of_its_changes_leaves_a_whole_directory_or_none(
    original: Original, tmp_path: Path, fork: Forks
) -> None:
    kills, path = 0, tmp_path / "model"
    job = {"data": str(original.data), "numbers": predicts_numbers(original)}
    while fork("init", path, **job, kill_at=kills + 1) == KILLED:
        kills += 1
        if path.exists():
            verify(path)
            shutil.rmtree(path)
    verify(path)
    assert kills > 30
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]
