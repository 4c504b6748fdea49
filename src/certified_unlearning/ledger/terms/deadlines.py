"""The terms of requests, and which requests are late."""

import calendar
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Self

from certified_unlearning.errors import LedgerError, ParameterError
from certified_unlearning.ledger.database.events import Event
from certified_unlearning.ledger.state import State
from certified_unlearning.ledger.store import Ledger

_MOST_DAYS = 3650
_MOST_MONTHS = 120
_LONGEST_REASON = 500


@dataclass(frozen=True)
class Terms:
    """The terms of a request.

    Attributes:
        received: The day on which the person asked; None if it is not known.
        due: The last day on which an answer is in time; None if none was given.
        hold: The reason why the request is put on hold until its release; None if the request is not put on hold.
    """

    received: date | None = None
    due: date | None = None
    hold: str | None = None

    @classmethod
    def of(cls, received: str | None, due: str | None, hold: str | None) -> Self:
        """Return the terms that a command's options give.

        Args:
            received: A date, such as 2026-11-26; None if it is not known.
            due: A number of days after ``received`` (or after today), a number of calendar months such as 1month, or a
                date.
            hold: The reason for a hold; None for no hold.

        Raises:
            ParameterError: A value is invalid.
        """
        now = today()
        day = None if received is None else _day(received, now)
        if hold is not None and (not hold.strip() or len(hold) > _LONGEST_REASON or not hold.isprintable()):
            raise ParameterError(
                f"--hold must say why the request has to wait, in 1 to {_LONGEST_REASON} printable characters, got "
                f"{hold[:40]!r}"
            )
        last = None if due is None else _due(due, day or now)
        return cls(day, last, None if hold is None else hold.strip())

    @classmethod
    def read(cls, event: Event) -> Self:
        """Return the terms that an event recorded.

        Raises:
            LedgerError: The event does not hold valid terms.
        """
        try:
            received, due = (
                None if event.payload.get(name) is None else date.fromisoformat(event.payload[name])
                for name in ("received", "due")
            )
        except (TypeError, ValueError) as error:
            raise LedgerError(f"event {event.sequence} of the ledger was tampered with: {error}") from error
        return cls(received, due, event.payload.get("reason"))

    def as_payload(self) -> dict[str, Any]:
        """Return the terms as an event records them."""
        days = {"received": self.received, "due": self.due}
        recorded: dict[str, Any] = {name: day.isoformat() for name, day in days.items() if day is not None}
        return recorded if self.hold is None else recorded | {"reason": self.hold}


NO_TERMS = Terms()
"""The terms of a request that has no dates and no hold."""


@dataclass(frozen=True)
class OpenRequest:
    """A request that is not answered yet.

    Attributes:
        event: The number of the request's event in the log.
        recorded: The time when the request was recorded, in UTC.
        terms: The terms of the request; they have a reason while the request is on hold.
    """

    event: int
    recorded: str
    terms: Terms

    def days_late(self, on: date) -> int:
        """Return the number of days by which the request is late; 0 if it is in time."""
        return 0 if self.terms.due is None else max(0, (on - self.terms.due).days)


def open_requests(ledger: Ledger, state: State) -> list[OpenRequest]:
    """Return all requests that wait or are on hold, in the log's order."""
    waiting = (each for each in ledger.requests_after(state.answered_up_to) if not state.is_gone(each))
    events = sorted([*waiting, *ledger.holds()], key=lambda each: each.sequence)
    return [OpenRequest(each.sequence, each.time, Terms.read(each)) for each in events]


def late(requests: Iterable[OpenRequest], on: date | None = None) -> list[OpenRequest]:
    """Return the requests whose due day is before a given day (by default today), the most overdue first."""
    day = on or today()
    return sorted((each for each in requests if each.days_late(day)), key=lambda each: -each.days_late(day))


def today() -> date:
    """Return today's date in UTC, as in the log."""
    return datetime.now(UTC).date()


def _day(text: str, now: date) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError as error:
        raise ParameterError(f"--received must be a date such as {now}, got {text!r}") from error
    if day > now:
        raise ParameterError(f"--received must not lie in the future, got {day} (today is {now} in UTC)")
    if (now - day).days > _MOST_DAYS:
        raise ParameterError(f"--received must lie within the last {_MOST_DAYS} days, got {day}")
    return day


def _due(text: str, start: date) -> date:
    """Return the last day of a period that begins on a given day."""
    months = re.fullmatch(r"([0-9]{1,3}) ?(?:m|months?)", text)
    if months and 1 <= int(months[1]) <= _MOST_MONTHS:
        return _months_after(start, int(months[1]))
    if re.fullmatch("[0-9]{1,4}", text) and int(text) <= _MOST_DAYS:
        return start + timedelta(days=int(text))
    try:
        day = date.fromisoformat(text)
    except ValueError as error:
        raise ParameterError(
            f"--due must be a number of days from 0 to {_MOST_DAYS}, calendar months from 1month to "
            f"{_MOST_MONTHS}months, or a day such as {start}, got {text!r}"
        ) from error
    if not 0 <= (day - start).days <= _MOST_DAYS:
        raise ParameterError(f"--due must lie within {_MOST_DAYS} days after {start}, got {day}")
    return day


def _months_after(start: date, months: int) -> date:
    """Return the same date of a later month, or the month's last day if it has no such date.

    Source: Regulation (EEC, Euratom) No 1182/71, Article 3(2)(c). Under Article 3(4) of the same regulation, a period
    that would end on a holiday or at a weekend ends later. This rule is not applied: holidays differ, and the earlier
    day is the safe one.
    """
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    return date(year, month + 1, min(start.day, calendar.monthrange(year, month + 1)[1]))
