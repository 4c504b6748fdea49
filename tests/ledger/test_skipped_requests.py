"""Lists of people who want their records deleted name people who never were in the data: each gets an answer."""

import dataclasses
import json
import re
from pathlib import Path

import pandas as pd
import pytest

from certified_unlearning.data.tables.declaration import Table
from certified_unlearning.errors import DataError, ParameterError, UnlearningError
from certified_unlearning.ledger import requests
from certified_unlearning.ledger.adding.addition import add
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.initialisation import initialise
from certified_unlearning.ledger.personal.report import report_on
from certified_unlearning.ledger.proofs.receipt import ReceiptError, check, make_receipt
from certified_unlearning.ledger.requests import Skipped
from certified_unlearning.ledger.store import Ledger, LedgerError
from certified_unlearning.ledger.terms.deadlines import Terms
from certified_unlearning.ledger.verification import verify
from tests.ledger.conftest import Original, Unlearn
from tests.ledger.tables import make_refit, write_new


def events(path: Path) -> list[tuple[str, str | None]]:
    """Return kind and subject of every event of the log."""
    with Ledger.opened(ModelDirectory(path).ledger, read_only=True) as ledger:
        return [(event.kind, event.subject) for event in ledger.verify_chain()]


def answers(skipped: tuple[Skipped, ...] | object) -> list[tuple[str, str, int | None]]:
    """Return what was said of each person, without times."""
    assert isinstance(skipped, tuple)
    return [(each.identifier, each.answer, each.version) for each in skipped]


def test_people_who_are_not_in_the_data_are_answered_and_the_others_requested(model: Path, tmp_path: Path) -> None:
    requests.request(model, ["p7"])
    apply(model)
    requests.request(model, ["p6"])
    requests.request(model, ["p5"], terms=Terms(hold="case 12"))
    (tmp_path / "ids.csv").write_text("person\np3\nx900\np4\np3\np7\nx901\np6\np5\n", encoding="utf-8")
    recorded = requests.request(model, [], tmp_path / "ids.csv", skip_unknown=True)
    assert (recorded.requested, recorded.people, recorded.records, recorded.pending) == ({"p3": 2, "p4": 1}, 2, 3, 3)
    assert answers(recorded.skipped) == [
        ("x900", requests.NOT_IN_DATA, None),
        ("x901", requests.NOT_IN_DATA, None),
        ("p7", "requested before", 2),
        ("p6", "requested before", None),
        ("p5", "on hold", None),
    ]
    assert recorded.repeated == ("p3",)
    apply(model)
    assert verify(model).head == requests.status(model).head
    assert requests.status(model).absent == 2


def test_the_log_records_once_and_under_a_pseudonym_that_somebody_is_not_in_the_data(model: Path) -> None:
    first = requests.request(model, ["x900"], skip_unknown=True)
    again = requests.request(model, ["x900", "x901"], skip_unknown=True)
    found = events(model)
    assert [kind for kind, _ in found] == ["initialised", "absent", "absent"]
    assert len({subject for _, subject in found}) == 3
    assert b"x900" not in ModelDirectory(model).ledger.read_bytes()
    assert first.skipped[0] == again.skipped[0]
    assert first.head != again.head
    assert requests.request(model, ["x900"], skip_unknown=True).head == again.head


def test_the_day_on_which_somebody_asked_is_part_of_the_answer(model: Path) -> None:
    terms = Terms.of("2026-11-02", "30", None)
    requests.request(model, ["x900"], skip_unknown=True, terms=terms)
    with Ledger.opened(ModelDirectory(model).ledger, read_only=True) as ledger:
        assert [event.payload for event in ledger.events("absent")] == [{"received": "2026-11-02"}]
    # What is answered cannot be late.
    assert not requests.status(model).open_requests


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("person\np3\nP5\n", r"'P5' is not in the training data, but may be 'p5', which differs only in case: corr"),
        ("person\np3\n NULL\n", r"'NULL' is not in the training data, and usually names nobody; leave out the row"),
        ("person\np3\n]\n", r"identifier ']' is not in the training data, and usually names nobody"),
        ("person\np3\n(1 row)\n", r"identifier '\(1 row\)' is not in the training data, and usually names nobody"),
        (
            "p3;\np4;\n",
            r"identifier 'p3;' is not in the training data, but 'p3' is or was: write one ident",
        ),
        ("person\nx900 p3\n", r"identifier 'x900 p3' is not in the training data, but 'p3' is or was"),
        (
            "person\n'p3'\n",
            r"\"'p3'\" is not in the training data, but may be 'p3', which differs only in surrounding characters",
        ),
        ("customers\np3\np4\n", r"ids.csv, line 1: 'customers' is not in the training data, and looks like a header"),
        (
            "Person\np3\np4\n",
            r"line 1: 'Person' .* looks like a header; if it is one, replace it by 'person', the name",
        ),
        ("customer_id\n", r"line 1: 'customer_id' .* looks like a header"),
        ("", r"ids.csv is empty; to name nobody, give a file that has only the header 'person'"),
        ("p3\nx900,\n", r"ids.csv, row 1 \(line 2\) has 2 columns, but the header has 1"),
    ],
)
def test_what_may_be_a_mistake_is_refused_and_nothing_is_recorded(
    model: Path, tmp_path: Path, content: str, sentence: str
) -> None:
    (tmp_path / "ids.csv").write_text(content, encoding="utf-8")
    with pytest.raises(UnlearningError, match=sentence):
        requests.request(model, ["p9", "x900"], tmp_path / "ids.csv", skip_unknown=True)
    assert events(model) == [("initialised", None)]


def test_another_spelling_of_somebody_who_was_removed_is_refused_too_unless_it_is_somebody_else(model: Path) -> None:
    requests.request(model, ["p3"])
    apply(model)
    with pytest.raises(ParameterError, match="'P3' is not in the training data, but may be 'p3', which differs only"):
        requests.request(model, ["P3"], skip_unknown=True)
    recorded = requests.request(model, ["P3"], skip_unknown=True, one_spelling=True)
    assert answers(recorded.skipped) == [("P3", requests.NOT_IN_DATA, None)]


def test_lost_leading_zeros_are_found_and_the_message_names_the_identifier(original: Original, tmp_path: Path) -> None:
    table = original.table.assign(person=original.table["person"].str[1:].str.zfill(6))
    table.to_csv(tmp_path / "people.csv", index=False)
    declared = Table(path=str(tmp_path / "people.csv"), label="ill", identifier="person", classes=("no", "yes"))
    initialise(tmp_path / "model", declared, epsilon=1.0, C=0.1)
    for skips in (False, True):
        with pytest.raises(ParameterError, match=r"'17' is not in the training data.*'000017'"):
            requests.request(tmp_path / "model", ["17"], skip_unknown=skips)


@pytest.mark.parametrize(
    "content",
    [
        b"p3\r\nx900\r\np4\r\n",
        b"\xef\xbb\xbfp3\nx900\np4\n",
        b"\xef\xbb\xbfperson\r\np3 \r\n x900\t\r\n\r\np4\r\n\r\n",
        b'"person","why"\n"p3","moved"\n"x900","a ""b"", c"\n"p4",\n',
        b"p3\nx900\np4",
    ],
)
def test_line_ends_byte_order_marks_blanks_and_quotes_change_nothing(
    model: Path, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "ids.csv").write_bytes(content)
    recorded = requests.request(model, [], tmp_path / "ids.csv", skip_unknown=True)
    assert [*recorded.requested] == ["p3", "p4"]
    assert answers(recorded.skipped) == [("x900", requests.NOT_IN_DATA, None)]


def test_a_list_with_its_header_alone_names_nobody(model: Path, tmp_path: Path, unlearn: Unlearn) -> None:
    (tmp_path / "ids.csv").write_text("person,why\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"ids.csv holds no identifiers"):
        requests.request(model, [], tmp_path / "ids.csv")
    said = unlearn("request", model, "--file", tmp_path / "ids.csv", "--skip-unknown")
    assert (said.exit_code, said.stdout.splitlines()[0]) == (0, "recorded: 0 requests, 0 records; 0 pending")


def test_nobody_who_asked_comes_in_with_add(original: Original, tmp_path: Path) -> None:
    path = tmp_path / "model"
    make_refit(path, original.data)
    write_new(tmp_path / "new.csv", 4)
    requests.request(path, ["p301"], skip_unknown=True)
    with pytest.raises(ParameterError, match=r"'p301' asked to be removed \(2.*\), and was not in this model's data"):
        add(path, tmp_path / "new.csv")
    new = pd.read_csv(tmp_path / "new.csv")
    new[new["person"] != "p301"].to_csv(tmp_path / "new.csv", index=False)
    assert add(path, tmp_path / "new.csv").versions[-1].version == 2


def test_show_names_the_answer(model: Path) -> None:
    requests.request(model, ["x900"], skip_unknown=True)
    with pytest.raises(ParameterError, match=r"'x900' is not in the training data, and .* request: event 2, 2.*; `unl"):
        report_on(model, "x900")


def test_a_receipt_proves_the_answer(model: Path, tmp_path: Path, unlearn: Unlearn) -> None:
    terms = Terms.of("2026-11-02", None, None)
    requests.request(model, ["x900", "x901", "p3"], skip_unknown=True, terms=terms)
    receipt = make_receipt(model, "x900")
    check(receipt, head=requests.status(model).head)
    receipt.write(tmp_path / "receipt.json")
    said = unlearn("verify", tmp_path / "receipt.json").stdout
    assert re.search(
        r"person \w{32}: removal requested 2.* \(event 2\), received .*; the data had no records of this person", said
    )
    (shown,) = make_receipt(model, "x901").events.values()
    with pytest.raises(ReceiptError, match="the answer to a person other than the one it names"):
        check(dataclasses.replace(receipt, events={"absent": shown}))
    (asked,) = make_receipt(model, "p3").events.values()
    with pytest.raises(ReceiptError, match="must show some of the events"):
        check(dataclasses.replace(receipt, events={"absent": receipt.events["absent"], "requested": asked}))


def test_a_log_that_denies_records_which_are_there_is_not_verified(model: Path) -> None:
    with Ledger.opened(ModelDirectory(model).ledger) as ledger, ledger.transaction():
        ledger.append_requests("absent", {"p3": {}})
    with pytest.raises(LedgerError, match="event 2 says that somebody had no records in the data, but this person has"):
        verify(model)


def test_the_command_says_what_became_of_everybody(model: Path, unlearn: Unlearn) -> None:
    unlearn("request", model, "--id", "p3")
    arguments = [part for each in ("p3", "p4", "x900", "x901", "x900") for part in ("--id", each)]
    said = unlearn("request", model, *arguments, "--skip-unknown")
    assert said.exit_code == 0
    assert said.stdout.splitlines()[:-1] == [
        f"recorded: 1 request, 1 record; 2 pending, `unlearn apply {model}` answers them",
        "recorded as not in this model's data: 2 people: 'x900', 'x901'",
        "requested before: 1 person: 'p3' (waits for `apply`)",
        "named more than once, and counted once: 1 person: 'x900'",
    ]
    assert "not in this model's data when they asked: 2 people" in unlearn("status", model, "--no-quality").stdout
    found = json.loads(unlearn("request", model, *arguments, "--skip-unknown", "--json").stdout)
    assert (found["requests"], found["requested"], found["repeated"]) == (0, [], ["x900"])
    assert [each["identifier"] for each in found["not_in_data"]] == ["x900", "x901"]
    assert [(each["identifier"], each["version"]) for each in found["requested_before"]] == [("p3", None), ("p4", None)]
    assert json.loads(unlearn("status", model, "--no-quality", "--json").stdout)["requests"]["not_in_data"] == 2


def test_many_people_of_whom_nobody_was_ever_in_the_data_are_a_warning(model: Path, unlearn: Unlearn) -> None:
    arguments = [part for each in range(30) for part in ("--id", f"x{900 + each}")]
    said = unlearn("request", model, *arguments, "--skip-unknown")
    assert "'x918', 'x919' and 10 more, which --json lists" in said.stdout
    assert said.stderr.startswith("warning: none of the 30 people is or was in this model's data: check whether")
    assert not unlearn("request", model, *arguments, "--id", "p3", "--skip-unknown").stderr


def test_what_was_recorded_survives_a_kill_or_is_not_there_at_all(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Ledger.append_requests

    def dies_at_requests(self: Ledger, kind: str, people: dict[str, dict[str, object]]) -> None:
        if kind == "requested":
            raise KeyboardInterrupt
        whole(self, "absent", people)

    monkeypatch.setattr(Ledger, "append_requests", dies_at_requests)
    with pytest.raises(KeyboardInterrupt):
        requests.request(model, ["p3", "x900"], skip_unknown=True)
    assert events(model) == [("initialised", None)]


def test_records_of_people_who_asked_are_not_for_judging_either(
    model: Path, original: Original, tmp_path: Path, unlearn: Unlearn
) -> None:
    original.table.assign(person=[f"x{row}" for row in range(len(original.table))]).to_csv(
        tmp_path / "others.csv", index=False
    )
    requests.request(model, ["x3", "x4"], skip_unknown=True)
    judged = unlearn("evaluate", model, tmp_path / "others.csv")
    assert "warning: 2 of the records belong to people whose removal was requested" in judged.stderr
    with pytest.raises(DataError, match="2 of the first 450 records belong to people whom the ledger knows"):
        unlearn("evaluate", model, tmp_path / "others.csv", "--choose-threshold", "balanced")
