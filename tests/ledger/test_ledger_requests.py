"""Requests are recorded all or none, once, by whoever comes first; each mistake is one sentence."""

import sqlite3
import threading
from pathlib import Path

import pytest

from certified_unlearning.errors import DataError, ParameterError, UnlearningError
from certified_unlearning.ledger import requests
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.state import read_state
from certified_unlearning.ledger.store import Ledger
from tests.ledger.conftest import Forks


def test_all_rows_of_a_person_are_requested(model: Path) -> None:
    recorded = requests.request(model, ["p3", "p4"])
    assert (recorded.people, recorded.records, recorded.pending) == (2, 3, 2)


@pytest.mark.parametrize(
    ("identifiers", "sentence"),
    [
        ([], "no identifier is named; give --id, or --file with a file of identifiers"),
        (
            ["p3", "nobody"],
            r"identifier 'nobody' is not in the training data; nothing was recorded \(--skip-unknown reports such .*\)",
        ),
        (
            ["nobody", "p3", ""],
            r"identifier 'nobody' \(and 1 more\) are not in the training data; nothing.*",
        ),
        (
            ["p3", "p4", "p3 "],
            r"identifier 'p3' is named more than once; nothing was recorded \(--skip-unknown repo.*\)",
        ),
        (["p3", "\udcff"], r"'\\udcff' is not UTF-8 text; nothing was recorded"),
    ],
)
def test_a_wrong_identifier_is_one_sentence_and_nothing_is_recorded(
    model: Path, identifiers: list[str], sentence: str
) -> None:
    with pytest.raises(ParameterError, match=f"^{sentence}$"):
        requests.request(model, identifiers)
    assert requests.status(model).state.pending == 0


def test_a_second_request_says_when_the_first_was_made_and_whether_it_was_applied(model: Path) -> None:
    requests.request(model, ["p3"])
    with pytest.raises(ParameterError, match=r"'p3' was requested before \(2.*; not applied yet\); nothing was recor"):
        requests.request(model, ["p4", "p3"])
    apply(model)
    with pytest.raises(ParameterError, match=r"'p3' was requested before \(2.*; applied with version 2, 2.*\); noth"):
        requests.request(model, ["p4", "p3"])
    assert requests.status(model).state.pending == 0


@pytest.mark.parametrize(
    "content",
    ["p3\np4\n", "person\np3\np4\n", "\ufeffperson,why\np3,moved\np4,asked\n", "why,person\r\nmoved,p3\r\n\r\n,p4\r\n"],
)
def test_a_file_names_people_in_one_column_or_in_the_column_of_the_data(
    model: Path, tmp_path: Path, content: str
) -> None:
    (tmp_path / "ids.csv").write_text(content, encoding="utf-8", newline="")
    assert requests.request(model, ["p5"], tmp_path / "ids.csv").people == 3


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "ids.csv is empty; to name nobody, give a file that has only the header 'person'"),
        (b"person\n", "ids.csv holds no identifiers"),
        (b"p3,moved\np4,asked\n", "ids.csv has several columns and none of them is called 'person'"),
        (b"person,person\np3,p4\n", "ids.csv has two columns 'person'; rename one"),
        (b"why,person\nmoved\n", r"ids.csv, row 1 \(line 2\) has 1 column, but the header has 2"),
        (b"why,person\nmoved,\n", "ids.csv, row 1: person is missing; leave out the row"),
        (b'why,person\n"moved\nto,p3\nmoved,"p4\n', r"row 1 \(line 2\): text follows a closing quote"),
        (b'why,person\n"moved,p3\nmoved",p4\n', r"row 1 \(line 2\): a quoted value runs on to line 3"),
        (b"\xff\xfe\x00", "ids.csv, line 1, holds the byte 0xff, which is not UTF-8 text"),
        (b'"p3\n', "ids.csv, line 1: a quote is opened and not closed before the end of the file"),
        (None, "cannot read .*ids.csv: No such file or directory"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_sentence(
    model: Path, tmp_path: Path, content: bytes | None, sentence: str
) -> None:
    if content is not None:
        (tmp_path / "ids.csv").write_bytes(content)
    with pytest.raises(DataError, match=sentence):
        requests.request(model, [], tmp_path / "ids.csv")
    assert requests.status(model).state.pending == 0


def test_of_two_requests_for_a_person_at_once_one_is_recorded(model: Path, fork: Forks, another_fork: Forks) -> None:
    for person in range(10):
        for process in (fork, another_fork):
            process.start("request", model, identifiers=[f"p{person}"])
        assert sorted([fork.status(), another_fork.status()]) == [0, 1]
    assert requests.status(model).state.pending == 10


def test_a_request_waits_for_another_that_is_being_written_and_status_does_not(model: Path) -> None:
    writer = sqlite3.connect(ModelDirectory(model).ledger, isolation_level=None, check_same_thread=False)
    writer.execute("BEGIN IMMEDIATE")
    assert requests.status(model).state.pending == 0
    threading.Timer(0.3, writer.rollback).start()
    assert requests.request(model, ["p3"]).pending == 1
    writer.close()


def test_requests_and_status_go_on_while_an_apply_is_at_work_and_a_second_apply_says_so(
    model: Path, fork: Forks
) -> None:
    requests.request(model, ["p3"])
    with ModelDirectory(model).locked():
        assert fork("apply", model) == 1
        with pytest.raises(UnlearningError, match=f"another `unlearn` command is using {model}; wait until it has fin"):
            apply(model)
        requests.request(model, ["p4"])
        status = requests.status(model)
    assert status.is_busy
    assert status.state.pending == 2
    assert not requests.status(model).is_busy


def test_what_is_requested_while_a_batch_is_being_applied_waits_for_the_next_one(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from certified_unlearning.ledger.methods import noisy_steps

    place_training = noisy_steps.place_training

    def place_while_somebody_asks(*args: object) -> object:
        monkeypatch.undo()
        requests.request(model, ["p4"])
        return place_training(*args)  # type: ignore[arg-type]

    requests.request(model, ["p3"])
    monkeypatch.setattr(noisy_steps, "place_training", place_while_somebody_asks)
    assert [version.batch and version.batch.requests for version in apply(model).versions] == [1]
    assert requests.status(model).state.pending == 1
    assert [version.batch and version.batch.records for version in apply(model).versions] == [1]


@pytest.mark.parametrize("command", [requests.status, apply, lambda path: requests.request(path, ["p3"])])
def test_a_directory_without_a_ledger_is_one_sentence(tmp_path: Path, command: object) -> None:
    with pytest.raises(UnlearningError, match=r"is not a model directory \(.* is missing\); `unlearn init` makes one$"):
        command(tmp_path)  # type: ignore[operator]
    assert list(tmp_path.iterdir()) == []


def test_status_neither_writes_nor_needs_to(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda *args: False)  # As on a medium that is read-only.
    files = sorted(model.iterdir())
    requests.status(model)
    assert sorted(model.iterdir()) == files


def test_a_ledger_that_is_open_for_reading_cannot_be_written(model: Path) -> None:
    with (
        pytest.raises(UnlearningError, match="readonly database"),
        Ledger.opened(ModelDirectory(model).ledger, read_only=True) as ledger,
    ):
        ledger.append_requests("requested", {"p3": {"records": 2}})


def test_a_line_with_more_columns_than_the_header_is_refused(model: Path, tmp_path: Path) -> None:
    """An unquoted comma would otherwise make another person of the first half."""
    table = tmp_path / "leaving.csv"
    with Ledger.opened(ModelDirectory(model).ledger) as ledger:
        column = read_state(ledger).start.id_column
    table.write_text(f"{column}\np3,p4\n")
    with pytest.raises(DataError, match=r"row 1 \(line 2\) has 2 columns, but the header has 1"):
        requests.request(model, (), table)
