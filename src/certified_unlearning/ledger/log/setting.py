"""The second place of the log: the setting is an event of the ledger, and the latest one counts."""

import time
from pathlib import Path
from typing import NamedTuple

from certified_unlearning.errors import LedgerError, ParameterError
from certified_unlearning.ledger.directory import PATIENCE_SECONDS, ModelDirectory
from certified_unlearning.ledger.log.second_place import Standing, problem_of, require_in_step
from certified_unlearning.ledger.proofs.head import head_of
from certified_unlearning.ledger.store import Ledger


class Moved(NamedTuple):
    """Result of `set_log`.

    Attributes:
        path: Where the log is kept from now on; None where it is kept in the directory only.
        before: Where it was kept before; None where it was not. That file is left as it is.
        head: The head of the log.
        ahead: How many events that file has which the directory lacks, as after a restore.
    """

    path: Path | None
    before: Path | None
    head: str
    ahead: int


def set_log(path: Path, to: Path | None) -> Moved:
    """Keep the log in a second place, too: all events there are, and every new one before it is confirmed.

    Args:
        path: The model directory.
        to: The file: a new one, or one that holds a log of this directory. None: no second place any more.

    Raises:
        ParameterError: The file lies in the model directory, is a directory, or is in no directory.
        DataError: The directory cannot be read, is behind the log that it has, or the file holds something else.
        StorageError: The file or the ledger cannot be written.
    """
    directory = ModelDirectory(path)
    place = None if to is None else checked_place(to, path)
    with Ledger.opened(directory.ledger) as ledger, ledger.transaction():
        before, standing = ledger.log(), ledger.standing()
        if place is not None and standing is not None and standing.ahead:
            require_in_step(standing, path)
        ledger.append("logged", {"path": None if place is None else str(place)})
        return Moved(place, before, head_of(directory, ledger), 0 if standing is None else standing.ahead)


def checked_place(to: Path, directory: Path) -> Path:
    """Return the place of a log, as an absolute path.

    Raises:
        ParameterError: It lies in the model directory, is a directory, or is in no directory.
    """
    place = to.resolve()
    if place.is_relative_to(directory.resolve()):
        raise ParameterError(f"{to} lies in the model directory: what destroys that would destroy the log, too")
    if place.is_dir():
        raise ParameterError(f"{to} is a directory; name a file in it, such as {to / 'log.jsonl'}")
    if not place.parent.is_dir():
        raise ParameterError(f"{to} cannot be made: there is no directory {place.parent}")
    return place


def require_present(ledger: Ledger, *, version: bool = False) -> None:
    """Raise `LedgerError` where the log in the second place knows more, as after a restore from a backup.

    A log of other events may know more, too: for example where a backup from before `migrate` was restored.

    Args:
        ledger: The ledger.
        version: Whether only a newer version of the model counts: what is asked for depends on nothing else.
    """
    standing = standing_settled(ledger)
    if standing is None:
        return
    if standing.may_have_newer_version or (standing.ahead and not version):
        raise LedgerError(str(problem_of(standing, ledger.path.parent)))


def standing_settled(ledger: Ledger) -> Standing | None:
    """Return how the log in the second place stands to a ledger; None where there is none.

    If it knows more, this waits a moment: a command that has written it may be about to commit. It also waits if the
    log has other events: a migration may be about to write it anew.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        found = ledger.standing()
        if found is None or not (found.ahead or found.has_other_events) or time.monotonic() > deadline:
            return found
        time.sleep(PATIENCE_SECONDS / 10)
