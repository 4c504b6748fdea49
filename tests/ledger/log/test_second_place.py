"""The log in a second place has every event before it is confirmed, and nothing is recorded where it cannot."""

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from certified_unlearning.data.tables.declaration import Table
from certified_unlearning.errors import DataError, LedgerError, ParameterError, StorageError, UnlearningError
from certified_unlearning.ledger import load_model, requests
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.copies.exports import export
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.initialisation import initialise
from certified_unlearning.ledger.log import file
from certified_unlearning.ledger.log.replay import replay
from certified_unlearning.ledger.log.setting import set_log
from certified_unlearning.ledger.personal.report import report_on
from certified_unlearning.ledger.proofs.receipt import make_receipt
from certified_unlearning.ledger.store import Ledger
from certified_unlearning.ledger.verification import verify
from tests.ledger.conftest import Forks, Original, Unlearn
from tests.ledger.log.conftest import backed_up, events_of, restore
from tests.ledger.tables import LANGEVIN
from tests.ledger.test_crashes import KILLED


def rows_of(model: Path) -> list[file.Row]:
    with Ledger.opened(ModelDirectory(model).ledger, read_only=True) as ledger:
        return ledger.rows_after(0)


def test_the_log_has_every_event_as_the_ledger_has_it(model: Path, log: Path) -> None:
    requests.request(model, ["p3", "p4"])
    apply(model)
    assert file.read_log(log) == (rows_of(model), False)
    assert len(log.read_bytes().splitlines()) == 5  # Two when the log began, and one a transaction.
    assert log.stat().st_mode & 0o077 == 0
    verify(model)


def test_init_keeps_the_log_in_a_second_place_at_once(original: Original, tmp_path: Path) -> None:
    table = Table(path=str(original.data), label="ill", identifier="person")
    asked = {**LANGEVIN, "C": 0.1, "steps": 5, "records": 3, "device": "cpu"}
    initialise(tmp_path / "model", table, **asked, log=tmp_path / "log")
    assert file.read_log(tmp_path / "log").rows == rows_of(tmp_path / "model")
    with pytest.raises(ParameterError, match="which exists already: the log of a new model must be a new file "):
        initialise(tmp_path / "other", table, **asked, log=tmp_path / "log")
    assert not (tmp_path / "other").exists()


def test_a_directory_without_a_second_place_is_as_before(model: Path, tmp_path: Path) -> None:
    requests.request(model, ["p3"])
    apply(model)
    found = requests.status(model)
    assert (found.log, found.state.lost, found.state.restored) == (None, (), None)
    assert events_of(model) == ["initialised", "requested", "planned", "applied"]


def test_a_line_is_written_before_the_ledger_commits(model: Path, log: Path, tmp_path: Path, fork: Forks) -> None:
    """Killed before any of its changes, a request is in both, in none, or in the log, whence `replay` brings it."""
    seen, kills = set(), 0
    while True:
        copy = backed_up(model, f"copy-{kills}")
        set_log(copy, tmp_path / f"log-{kills}")
        own = tmp_path / f"log-{kills}"
        status = fork("request", copy, identifiers=["p3", "p4"], kill_at=kills + 1)
        in_ledger = requests.status(copy).state.pending
        in_log = sum(row[2] == "requested" for row in file.read_log(own).rows)
        assert in_ledger in (0, 2)
        assert in_log in (0, 2)
        assert in_ledger <= in_log
        seen.add((in_ledger, in_log))
        if status == 0:
            break
        assert status == KILLED
        kills += 1
        if in_ledger < in_log:
            assert len(replay(copy, own).applied.versions) == 1
            assert "restored" not in events_of(copy)
            verify(copy)
    assert seen == {(0, 0), (0, 2), (2, 2)}
    assert kills > 5


@pytest.mark.parametrize("accident", ["missing", "a directory away", "full"])
def test_nothing_is_recorded_where_the_log_cannot_be_written(
    model: Path, log: Path, tmp_path: Path, accident: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, before = log.read_bytes(), rows_of(model)
    if accident == "missing":
        log.rename(tmp_path / "away")
    elif accident == "a directory away":
        shutil.rmtree(tmp_path / "elsewhere", ignore_errors=True)
        set_log(model, _made(tmp_path / "elsewhere") / "log")
        before = rows_of(model)
        shutil.rmtree(tmp_path / "elsewhere")
    else:

        def refuse(*_: object) -> None:
            raise OSError(28, os.strerror(28))

        monkeypatch.setattr(file.os, "fsync", refuse)
    with pytest.raises(StorageError, match=r"log.*; nothing was recorded"):
        requests.request(model, ["p3"])
    monkeypatch.undo()
    assert rows_of(model) == before
    if accident == "full":
        assert log.read_bytes() == content
        requests.request(model, ["p3"])
        verify(model)


def _made(path: Path) -> Path:
    path.mkdir()
    return path


def test_what_the_ledger_could_not_commit_is_taken_back_from_the_log(
    model: Path, log: Path, tmp_path: Path, fork: Forks
) -> None:
    """The disk is full at any change of a request: all is recorded in both places, or nothing in either."""
    accidents = 0
    while True:
        copy, own = backed_up(model, f"copy-{accidents}"), tmp_path / f"log-{accidents}"
        set_log(copy, own)
        before = rows_of(copy)
        status = fork("request", copy, identifiers=["p3"], fail_at=accidents + 1)
        assert file.read_log(own).rows == rows_of(copy)
        if status == 0:
            break
        assert rows_of(copy) == before
        accidents += 1
    assert accidents > 5


def test_a_log_that_lacks_events_gets_them_first(model: Path, log: Path) -> None:
    early = log.read_bytes()
    requests.request(model, ["p3"])
    log.write_bytes(early)
    standing = requests.status(model).log
    assert standing is not None
    assert (standing.behind, standing.trouble) == (1, None)
    verify(model)
    requests.request(model, ["p4"])
    assert file.read_log(log).rows == rows_of(model)


@pytest.mark.parametrize("rest", [b'[{"seq', b"\0" * 100, b"x"])
def test_a_half_written_line_is_cut_off(model: Path, log: Path, rest: bytes) -> None:
    requests.request(model, ["p3"])
    with log.open("ab") as opened:
        opened.write(rest)
    assert file.read_log(log) == (rows_of(model), True)
    verify(model)
    requests.request(model, ["p4"])
    assert file.read_log(log) == (rows_of(model), False)


def test_a_log_that_knows_more_stops_everything_that_records(model: Path, log: Path, tmp_path: Path) -> None:
    backup = backed_up(model, "backup")
    requests.request(model, ["p3"])
    restore(model, backup)
    before, content = rows_of(model), log.read_bytes()
    sentence = r"is behind its log .*log.jsonl by 1 event, .*: `unlearn replay .*model --from .*log.jsonl` brings it up"
    for record in (
        lambda: requests.request(model, ["p4"]),
        lambda: apply(model),
        lambda: export(model, name="served"),
        lambda: set_log(model, tmp_path / "another"),
        lambda: verify(model),
        lambda: report_on(model, "p3"),
        lambda: make_receipt(model, None, since=requests.status(model).head),
    ):
        with pytest.raises(UnlearningError, match=sentence):
            record()
    standing = requests.status(model).log
    assert standing is not None
    assert (standing.ahead, standing.has_newer_version) == (1, False)
    assert (rows_of(model), log.read_bytes()) == (before, content)


def test_a_directory_that_is_behind_repeats_no_guarantee(model: Path, log: Path, unlearn: Unlearn) -> None:
    """What it states of all versions leaves out those that the log knows."""
    requests.request(model, ["p3"])
    apply(model)
    backup = backed_up(model, "backup")
    assert "for a reader who kept all versions" in unlearn("status", model, "--no-quality").stdout
    requests.request(model, ["p4"])
    apply(model)
    restore(model, backup)
    printed = unlearn("status", model, "--no-quality").stdout
    assert printed.startswith(f"note: {model} is behind its log {log} by 3 events")
    assert "until then, no guarantee is shown here" in printed
    assert "epsilon" not in printed
    assert json.loads(unlearn("status", model, "--no-quality", "--json").stdout)["guarantee"] is None
    assert f"{log} has 3 events that {backup} lacks" in unlearn("log", backup, "--stop").stdout


def test_an_old_version_that_a_backup_brought_back_answers_nothing(model: Path, log: Path) -> None:
    requests.request(model, ["p3"])
    backup = backed_up(model, "backup")
    requests.request(model, ["p4"])
    restore(model, backup)
    assert load_model(model).version == 1  # The newest there is: only a request is missing.
    replay(model, log)
    restore(model, backup)
    with pytest.raises(LedgerError, match=r"is behind its log .*: `unlearn replay"):
        load_model(model)
    replay(model, log)
    assert load_model(model).version == 3


def test_requests_at_the_same_time_are_all_in_both(model: Path, log: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda number: requests.request(model, [f"p{number}"]), range(20)))
    assert requests.status(model).state.pending == 20
    assert file.read_log(log) == (rows_of(model), False)


def test_the_log_of_another_directory_is_refused(original: Original, model: Path, log: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(original.path, tmp_path / "other"))
    requests.request(other, ["p9"])
    with pytest.raises(StorageError, match=r"log.jsonl is the log of another directory or of another history"):
        set_log(other, log)
    set_log(other, tmp_path / "own")
    shutil.copy(log, tmp_path / "own")
    with pytest.raises(
        StorageError,
        match=r"is the log of another directory or of another history of this directory, or only one.*: put",
    ):
        requests.request(other, ["p8"])
    with pytest.raises(DataError, match=r"then differ, so something was recorded after the restore \(2 events\)"):
        replay(other, log)
    assert events_of(other) == ["initialised", "requested", "logged"]


def test_the_log_moves_and_stops(model: Path, log: Path, tmp_path: Path) -> None:
    moved = set_log(model, tmp_path / "another")
    assert (moved.path, moved.before) == (tmp_path / "another", log)
    content = log.read_bytes()
    requests.request(model, ["p3"])
    assert file.read_log(tmp_path / "another").rows == rows_of(model)
    set_log(model, None)
    requests.request(model, ["p4"])
    assert len(file.read_log(tmp_path / "another").rows) == len(rows_of(model)) - 2
    assert log.read_bytes() == content
    # It goes on where it was, with all that it lacks.
    set_log(model, tmp_path / "another")
    assert file.read_log(tmp_path / "another").rows == rows_of(model)


def test_a_log_that_is_gone_is_made_again_where_somebody_says_so(model: Path, log: Path) -> None:
    log.unlink()
    set_log(model, log)
    assert file.read_log(log).rows == rows_of(model)


def test_where_no_log_can_lie_is_one_sentence(model: Path, tmp_path: Path, unlearn: Unlearn) -> None:
    for place, sentence in (
        (model / "log", "is in the model directory: whatever destroys the model would also destroy the log"),
        (tmp_path, "is a directory; name a file in it"),
        (tmp_path / "nowhere" / "log", "cannot be made: there is no directory"),
    ):
        with pytest.raises(ParameterError, match=sentence):
            set_log(model, place)
    (tmp_path / "letter").write_text("Dear sirs\n")
    with pytest.raises(StorageError, match="letter is damaged: a line holds no events"):
        set_log(model, tmp_path / "letter")
    for options in ((), ("--to", tmp_path / "log", "--stop")):
        with pytest.raises(ParameterError, match="give either --to with a file or --stop"):
            unlearn("log", model, *options)
    assert events_of(model) == ["initialised"]


def test_every_flipped_bit_of_a_log_is_refused(model: Path, log: Path, tmp_path: Path) -> None:
    """No byte is irrelevant: `replay` reads none of these logs, and `request` none whose last line was changed."""
    requests.request(model, ["p3", "p4"])
    requests.request(model, ["p5"])
    content, own = log.read_bytes(), tmp_path / "flipped"
    for place in range(len(content)):
        flipped = bytearray(content)
        flipped[place] ^= 1 << (place % 7)
        own.write_bytes(flipped)
        with pytest.raises(DataError, match="is damaged"):
            file.read_log(own)
    last = content.rfind(b"\n", 0, -1) + 1
    for place in range(last, len(content)):
        flipped = bytearray(content)
        flipped[place] ^= 1
        own.write_bytes(flipped)
        with pytest.raises(UnlearningError, match="is damaged"):
            file.end_of(own)


def test_a_line_that_is_longer_than_what_is_read_at_once_is_found(model: Path, log: Path) -> None:
    with Ledger.opened(ModelDirectory(model).ledger) as ledger, ledger.transaction():
        for number in range(2000):
            ledger.append("exported", {"name": "x" * 100, "number": number})
    assert log.stat().st_size > 2 * file._FIRST_REACH
    assert file.end_of(log) == file.End(rows_of(model)[-1], log.stat().st_size)


def test_status_and_the_command_say_where_the_log_is_kept(model: Path, tmp_path: Path, unlearn: Unlearn) -> None:
    log = tmp_path / "log.jsonl"
    assert f"from now on, the log is also kept in {log}\nhead: 2:" in unlearn("log", model, "--to", log).stdout
    assert f"log: {log}\n" in unlearn("status", model, "--no-quality").stdout
    found = json.loads(unlearn("status", model, "--no-quality", "--json").stdout)
    assert (found["log"], found["lost_versions"]) == ({"path": str(log), "trouble": None}, [])
    log.unlink()
    assert f"log: {log}; cannot read the log" in unlearn("status", model, "--no-quality").stdout
    assert unlearn("verify", model).exit_code == 1
    printed = unlearn("log", model, "--stop").stdout
    assert f"{log} gets no more events" in printed
    assert json.loads(unlearn("verify", model, "--json").stdout)["log"] is None
