"""Requests have dates, late ones are named, and a request on hold is never answered before it is released."""

import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certified_unlearning.errors import LedgerError, ParameterError
from certified_unlearning.ledger import requests
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.proofs.receipt import check, make_receipt
from certified_unlearning.ledger.store import Ledger
from certified_unlearning.ledger.terms.deadlines import NO_TERMS, Terms, _due, late, today
from certified_unlearning.ledger.terms.release import release
from certified_unlearning.ledger.verification import verify
from tests.ledger.conftest import Forks, Unlearn

HELD = Terms(hold="case 12")


def days_ago(days: int) -> date:
    return datetime.now(UTC).date() - timedelta(days=days)


def test_a_held_request_is_answered_after_its_release_only(model: Path) -> None:
    requests.request(model, ["p3"], terms=HELD)
    requests.request(model, ["p4"])
    assert requests.status(model).state.pending == 1
    apply(model)
    with Ledger.opened(ModelDirectory(model).ledger) as ledger:
        assert (ledger.owners.count_records_of("p3"), ledger.owners.count_records_of("p4")) == (2, 0)
    assert [each.terms.hold for each in requests.status(model).open_requests] == ["case 12"]
    assert release(model, ["p3"]).pending == 1
    assert [each.terms.hold for each in requests.status(model).open_requests] == [None]
    apply(model)
    with Ledger.opened(ModelDirectory(model).ledger) as ledger:
        assert ledger.owners.count_records_of("p3") == 0
    verify(model)
    assert requests.status(model).open_requests == []


def test_apply_does_nothing_while_everything_is_on_hold(model: Path) -> None:
    requests.request(model, ["p3"], terms=HELD)
    assert apply(model).versions == ()
    verify(model)


def test_release_takes_the_dates_of_the_hold_and_the_receipt_shows_both(model: Path) -> None:
    requests.request(model, ["p3"], terms=Terms(days_ago(40), days_ago(10), "case 12"))
    release(model, ["p3"])
    (waiting,) = requests.status(model).open_requests
    assert waiting.terms == Terms(days_ago(40), days_ago(10))
    receipt = make_receipt(model, "p3")
    check(receipt)
    assert [*receipt.events] == ["held", "requested"]
    with pytest.raises(LedgerError, match="leaves out the hold that its request was released from"):
        check(replace(receipt, events={"requested": receipt.events["requested"]}))
    assert receipt.events["requested"].leaf.shown["held"] == 2
    assert "case 12" not in json.dumps(receipt.as_json())


@pytest.mark.parametrize("twice", [NO_TERMS, HELD])
def test_a_held_request_is_not_recorded_again(model: Path, twice: Terms) -> None:
    requests.request(model, ["p3"], terms=HELD)
    with pytest.raises(
        ParameterError, match=r"'p3' has been on hold since 20.* \(case 12\); `unlearn release` ends the"
    ):
        requests.request(model, ["p4", "p3"], terms=twice)
    assert requests.status(model).state.pending == 0


def test_what_is_not_on_hold_cannot_be_released_and_nothing_is(model: Path) -> None:
    requests.request(model, ["p3"], terms=HELD)
    requests.request(model, ["p4"])
    with pytest.raises(ParameterError, match=r"the removal of 'p4' is not on hold: it was requested 20.*; nothing was"):
        release(model, ["p3", "p4"])
    with pytest.raises(ParameterError, match="no removal of 'nobody' is on hold; nothing was recorded"):
        release(model, ["p3", "nobody"])
    with pytest.raises(ParameterError, match="no identifier is named"):
        release(model, [])
    release(model, ["p3"])
    with pytest.raises(ParameterError, match="the removal of 'p3' is not on hold: it was released 20"):
        release(model, ["p3"])


def test_of_two_releases_at_once_one_is_recorded(model: Path, fork: Forks, another_fork: Forks) -> None:
    people = [f"p{person}" for person in range(5)]
    requests.request(model, people, terms=HELD)
    for person in people:
        for process in (fork, another_fork):
            process.start("release", model, identifiers=[person])
        assert sorted([fork.status(), another_fork.status()]) == [0, 1]
    assert requests.status(model).state.pending == 5


def test_late_requests_are_those_due_before_today_held_ones_too(model: Path) -> None:
    requests.request(model, ["p1"], terms=Terms(due=days_ago(1)))
    requests.request(model, ["p2"], terms=Terms(due=days_ago(0)))
    requests.request(model, ["p3"], terms=Terms(due=days_ago(5), hold="case 12"))
    requests.request(model, ["p4"])
    found = requests.status(model).open_requests
    assert [(each.event, each.days_late(today())) for each in late(found)] == [(4, 5), (2, 1)]
    apply(model)
    assert [each.event for each in late(requests.status(model).open_requests)] == [4]


@pytest.mark.parametrize(
    ("received", "due", "hold", "sentence"),
    [
        ("yesterday", None, None, "--received must be a date such as 20.*, got 'yesterday'"),
        ("2999-01-01", None, None, "--received must not lie in the future, got 2999-01-01"),
        (None, "-1", None, "--due must be a number of days from 0 to 3650, .* or a day such as 20.*, got '-1'"),
        (None, "3651", None, "--due must be a number of days from 0 to 3650, .*, got '3651'"),
        (None, "0months", None, "--due must be .*, calendar months from 1month to 120months, .*, got '0months'"),
        (None, "121months", None, "--due must be .*, got '121months'"),
        (None, "a month", None, "--due must be .*, got 'a month'"),
        ("2026-11-02", "2026-11-01", None, "--due must lie within 3650 days after 2026-11-02, got 2026-11-01"),
        ("2026-11-02", "2036-11-01", None, "--due must lie within 3650 days after 2026-11-02, got 2036-11-01"),
        (None, None, "  ", "--hold must say why the request has to wait, in 1 to 500 printable characters, got '  '"),
        (None, None, "case\nhead: 9:0", "--hold must say why the request has to wait"),
        (None, None, "x" * 501, "--hold must say why the request has to wait"),
        ("1026-11-26", None, None, "--received must lie within the last 3650 days, got 1026-11-26"),
    ],
)
def test_wrong_terms_are_one_sentence(received: str | None, due: str | None, hold: str | None, sentence: str) -> None:
    with pytest.raises(ParameterError, match=sentence):
        Terms.of(received, due, hold)


def test_days_count_from_the_day_of_receipt_or_from_today() -> None:
    assert Terms.of("2026-11-01", "30", None) == Terms(date(2026, 11, 1), date(2026, 12, 1))
    assert Terms.of(None, "3", None) == Terms(None, today() + timedelta(days=3))
    assert Terms.of(None, None, None) == NO_TERMS


@pytest.mark.parametrize(
    ("received", "due", "last"),
    [
        ("2026-03-05", "1month", date(2026, 4, 5)),
        # Where the last month has no such date, its last day counts: 30 days would end on 1 or 2 March, too late.
        ("2026-01-31", "1month", date(2026, 2, 28)),
        ("2026-01-30", "1month", date(2026, 2, 28)),
        ("2024-01-31", "1month", date(2024, 2, 29)),
        ("2024-02-29", "1m", date(2024, 3, 29)),
        ("2026-08-31", "1 month", date(2026, 9, 30)),
        ("2025-12-31", "2months", date(2026, 2, 28)),
        ("2025-12-15", "12months", date(2026, 12, 15)),
        ("2026-11-02", "2026-12-02", date(2026, 12, 2)),
    ],
)
def test_a_period_is_a_calendar_month_or_a_day(received: str, due: str, last: date) -> None:
    assert Terms.of(received, due, None).due == last


@given(start=st.dates(date(2000, 1, 1), date(2100, 1, 1)), months=st.integers(1, 120))
def test_a_period_in_months_is_that_of_pandas(start: date, months: int) -> None:
    last = (pd.Timestamp(start) + pd.DateOffset(months=months)).date()
    assert _due(f"{months}months", start) == last


def test_the_commands_say_what_is_late_and_on_hold(model: Path, unlearn: Unlearn) -> None:
    assert unlearn("status", model, "--fail-when-late", "--no-quality").exit_code == 0
    due = days_ago(40) + timedelta(days=30)
    unlearn("request", model, "--id", "p3", "--received", days_ago(40), "--due", 30)
    printed = unlearn("request", model, "--id", "p4", "--hold", "case 12").stdout
    assert f"1 request, 1 record, on hold until `unlearn release {model}` names them; 1 pending, `unl" in printed
    result = unlearn("status", model, "--fail-when-late", "--no-quality")
    assert result.exit_code == 3
    assert f"late: request 2 was due {due} (10 days ago)\n" in result.stdout
    assert "on hold: request 3 since 20" in result.stdout
    assert ": case 12\n" in result.stdout
    found = json.loads(unlearn("status", model, "--json", "--no-quality").stdout)
    assert found["late"] == 1
    assert [(each["event"], each["days_late"], each["hold"]) for each in found["open"]] == [
        (2, 10, None),
        (3, 0, "case 12"),
    ]
    printed = unlearn("release", model, "--id", "p4").stdout
    assert "released: 1 request, 1 record; 2 pending, `unlearn apply" in printed
    unlearn("apply", model, "--no-quality")
    assert unlearn("status", model, "--fail-when-late", "--no-quality").exit_code == 0


def test_of_many_late_requests_status_lists_the_first(model: Path, unlearn: Unlearn) -> None:
    requests.request(model, [f"p{person}" for person in range(25)], terms=Terms(due=days_ago(1)))
    printed = unlearn("status", model, "--no-quality").stdout
    assert printed.count("late: request") == 20
    assert "5 more are late or on hold: `status --json` lists all of them\n" in printed


def test_only_what_waits_is_answered_by_apply(model: Path, unlearn: Unlearn) -> None:
    assert "; 0 pending\n" in unlearn("request", model, "--id", "p4", "--hold", "case 12").stdout
