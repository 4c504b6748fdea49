"""The events of a ledger, as objects and as rows of their table."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from certified_unlearning.errors import LedgerError

Kind = Literal[
    "initialised", "held", "requested", "absent", "planned", "applied", "exported", "withdrawn", "logged", "restored"
]
"""The kinds of events."""
PersonalKind = Literal["held", "requested", "absent"]
"""The kinds of events about one person. ``absent`` records a request of somebody who had no records in the data."""
COLUMNS = "sequence, time, kind, subject, payload, previous_hash, hash"
"""The columns of the table of events, in order."""

_SALT = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Event:
    """An event of a ledger.

    Attributes:
        sequence: The number of the event: 1, 2, 3, ...
        time: The time of the event, in UTC.
        kind: The kind of the event.
        subject: The name in the ledger of the person that the event is about. The removal of this person was requested
            or put on hold, or this person had no records in the data. None for events of all other kinds.
        payload: All other content.
        hash: SHA-256 of all of the above, the salt, and the hash of the previous event.
        salt: The random text that hides the payload in proofs, hexadecimal; None if the event was recorded without one.
    """

    sequence: int
    time: str
    kind: str
    subject: str | None
    payload: dict[str, Any]
    hash: str
    salt: str | None = None


def event_of(row: Sequence[Any]) -> Event:
    """Return the event that a row of the table, or a line of a log, describes.

    Raises:
        LedgerError: The payload or the salt is invalid.
    """
    sequence, time, kind, subject, text, _, event_hash = row
    payload = payload_of(text, sequence)
    salt = payload.pop("salt", None)
    if salt is not None and not (isinstance(salt, str) and _SALT.fullmatch(salt)):
        raise LedgerError(f"event {sequence} of the ledger was tampered with: {salt!r} is not a valid salt")
    return Event(sequence, time, kind, subject, payload, event_hash, salt)


def payload_of(text: str, sequence: int) -> dict[str, Any]:
    """Return the payload of an event, and its salt if it has one, from the stored text.

    Raises:
        LedgerError: The text is not a JSON object.
    """
    try:
        payload = json.loads(text)
    except ValueError as error:
        raise LedgerError(f"event {sequence} of the ledger was tampered with: {error}") from error
    if not isinstance(payload, dict):
        raise LedgerError(f"event {sequence} of the ledger was tampered with: its payload is not a JSON object")
    return payload
