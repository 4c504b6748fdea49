"""Requests, `apply` and `replay` with a log in a second place: killed at any moment, they lose and repeat nothing."""

import shutil
import time
from pathlib import Path

import pytest

from certified_unlearning.ledger import requests
from certified_unlearning.ledger.log.file import read_log
from certified_unlearning.ledger.log.setting import set_log
from certified_unlearning.ledger.verification import verify
from tests.ledger.conftest import Forks, Original
from tests.ledger.log.conftest import backed_up, events_of, in_clear, people_left, restore
from tests.ledger.tables import make_refit, write_new
from tests.ledger.test_crashes import KILLED
from tests.support.killing import Moments


def require_same(model: Path, log: Path, asked: set[str]) -> None:
    """Check that the directory is whole, and that directory and log tell the same."""
    state = verify(model).state
    assert state.pending == 0
    assert not asked & people_left(model)
    assert sum(batch.requests for batch in state.batches) == len(asked)
    rows = read_log(log).rows
    assert [row[2] for row in rows] == events_of(model)
    assert len([row for row in rows if row[2] == "requested"]) == len(asked)


def lost(model: Path, log: Path, fork: Forks) -> None:
    """Restore a directory that had answered two requests since its backup."""
    backup = backed_up(model, "backup")
    for person in ("p3", "p4"):
        assert fork("request", model, identifiers=[person]) == 0
        assert fork("apply", model) == 0
    restore(model, backup)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("accident", "ends_with"), [("kill_at", KILLED), ("fail_at", 1)])
def test_replay_that_is_killed_or_finds_the_disk_full_at_any_of_its_changes_is_finished_once(
    model: Path, log: Path, fork: Forks, accident: str, ends_with: int
) -> None:
    lost(model, log, fork)
    content, accidents = log.read_bytes(), 0
    while True:
        log.write_bytes(content)
        copy = backed_up(model, "copy")
        status = fork("replay", copy, source=str(log), **{accident: accidents + 1})
        if status == 0:
            break
        assert status == ends_with
        accidents += 1
        assert fork("replay", copy, source=str(log)) == 0
        require_same(copy, log, {"p3", "p4"})
        assert events_of(copy).count("restored") == 1
        assert [version.version for version in requests.status(copy).state.lost] == [2, 3]
        shutil.rmtree(copy)
    assert accidents > 40


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["apply", "add"])
def test_a_command_that_is_killed_is_finished_and_no_version_counts_as_lost(
    model: Path, tmp_path: Path, original: Original, fork: Forks, kind: str
) -> None:
    """Between the two writes, the log knows more than the ledger: what files there are is taken as it is."""
    job: dict[str, object] = {}
    if kind == "add":
        shutil.rmtree(model)
        make_refit(model, original.data)
        write_new(tmp_path / "new.csv", people=4)
        job = {"data": str(tmp_path / "new.csv")}
    log = tmp_path / "log"
    set_log(model, log)
    requests.request(model, ["p3", "p4"])
    content, kills, ahead = log.read_bytes(), 0, 0
    while True:
        log.write_bytes(content)
        copy = backed_up(model, "copy")
        if fork(kind, copy, **job, kill_at=kills + 1) == 0:
            break
        kills += 1
        known = events_of(copy)
        ahead += len(read_log(log).rows) > len(known)
        assert fork("replay", copy, source=str(log)) == 0
        assert requests.status(copy).state.lost == ()
        require_same(copy, log, {"p3", "p4"})
        if kind == "apply":
            assert events_of(copy) == ["initialised", "logged", "requested", "requested", "planned", "applied"]
        shutil.rmtree(copy)
    assert kills > 40
    assert ahead == 2 * 2


@pytest.mark.parametrize("kills", [5, pytest.param(200, marks=pytest.mark.exhaustive)])
def test_kills_at_random_moments_and_restores_in_between_lose_nothing(
    model: Path, tmp_path: Path, fork: Forks, kills: int
) -> None:
    """Each command may be killed; now and then the directory is lost, and a backup takes its place."""
    log = tmp_path / "log"
    set_log(model, log)
    people = (f"p{person}" for person in range(299))
    asked: set[str] = set()
    fork("request", model, identifiers=[])  # The first job waits until the process that forks has begun.
    requests.request(model, ["p299"])
    asked.add("p299")
    started = time.monotonic()
    assert fork("apply", model) == 0
    moments, killed, backup = Moments(1, time.monotonic() - started), 0, backed_up(model, "backup-0")
    while killed < kills:
        person = next(people)
        jobs = [("request", {"identifiers": [person]}), ("apply", {}), ("replay", {"source": str(log)})]
        for do, job in jobs:
            status = fork(do, model, kill_after=moments(), **job)
            # The log may know more than the directory, after a kill or a restore: then commands refuse until `replay`.
            assert status in (0, 1, KILLED)
            moments.note(killed=status == KILLED)
            killed += status == KILLED
        recorded = in_clear(model, {str(row[3]) for row in read_log(log).rows if row[2] == "requested"})
        assert asked <= recorded <= asked | {person}
        asked = recorded
        if len(asked) % 7 == 3:
            shutil.rmtree(backup)
            assert fork("replay", model, source=str(log)) == 0
            backup = backed_up(model, f"backup-{killed}-{len(asked)}")
        if len(asked) % 7 == 6:
            restore(model, backup)
    assert fork("replay", model, source=str(log)) == 0
    require_same(model, log, asked)
