"""The command `release`: end the hold of requests, which then wait for the next `apply`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from certified_unlearning.errors import ParameterError
from certified_unlearning.ledger.database.events import Event
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.identifiers.given import given_people, recorded_in_utf8, require_once
from certified_unlearning.ledger.proofs.head import head_of
from certified_unlearning.ledger.requests import Recorded
from certified_unlearning.ledger.state import State, read_state
from certified_unlearning.ledger.store import Ledger


def release(path: Path, identifiers: Sequence[str], file: Path | None = None) -> Recorded:
    """Release people's requests from their hold. All of them are released, or none if one is invalid.

    Args:
        path: The model directory.
        identifiers: The identifiers of the people whose requests are released.
        file: A file with more identifiers, in the form that the command `request` reads.

    Raises:
        ParameterError: Nobody is named, a person is named twice, or the request of a person is not on hold.
        DataError: The file or the model directory cannot be read.
        StorageError: The ledger cannot be written.
    """
    directory = ModelDirectory(path)
    with Ledger.opened(directory.ledger) as ledger:
        given = given_people(identifiers, file, read_state(ledger).start.id_column)
        require_once(given, file)
        with recorded_in_utf8(), ledger.transaction():
            state = read_state(ledger)
            holds = {each: _hold_of(ledger, each) for each in given.people}
            released = {each: _released(ledger, state, each, hold) for each, hold in holds.items()}
            ledger.append_requests("requested", released)
            head = head_of(directory, ledger)
    records = sum(each["records"] for each in released.values())
    return Recorded(len(given.people), records, state.pending + len(given.people), head)


def _released(ledger: Ledger, state: State, identifier: str, hold: Event) -> dict[str, Any]:
    """Return the payload for the event of a request that is released from its hold.

    The payload is that of the hold, with the number of the hold's event instead of the reason. If a restore lost the
    records and they were added again, the payload counts the present records.
    """
    found = {name: value for name, value in hold.payload.items() if name != "reason"} | {"held": hold.sequence}
    row = ledger.owners.row_of(identifier)
    if row is None:
        return found
    version = state.added_with(row)
    found |= {"records": ledger.owners.count_records_of(identifier), "added_with": version}
    return found if version > 1 else {name: value for name, value in found.items() if name != "added_with"}


def _hold_of(ledger: Ledger, identifier: str) -> Event:
    """Return the event by which a request was put on hold; refuse a request that is not on hold."""
    hold, request = ledger.hold_of(identifier), ledger.request_of(identifier)
    if request is not None:
        raise ParameterError(
            f"the removal of {identifier!r} is not on hold: it {'was requested' if hold is None else 'was released'} "
            f"{request.time}; nothing was recorded"
        )
    if hold is None:
        raise ParameterError(f"no removal of {identifier!r} is on hold; nothing was recorded")
    return hold
