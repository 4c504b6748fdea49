"""The setting of a second place for the log. It is an event of the ledger; the latest such event counts."""

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
        path: The second place of the log from now on; None if the log is kept only in the directory.
        before: The previous second place of the log; None if there was none. The file there is left unchanged.
        head: The head of the log.
        ahead: The number of events that the earlier file has and the directory lacks, as after a restore.
    """

    path: Path | None
    before: Path | None
    head: str
    ahead: int


def set_log(path: Path, to: Path | None) -> Moved:
    """Keep the log in a second place, too: all present events, and every new one before it is confirmed.

    Args:
        path: The model directory.
        to: A new file, or a file with a log of this directory. None means that the log has no second place any more.

    Raises:
        ParameterError: ``to`` is in the model directory, ``to`` is a directory, or the parent directory of ``to`` does
            not exist.
        DataError: The directory cannot be read or is behind its present log, or the file is not a log of this
            directory.
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
    """Return the path of a log's second place, as an absolute path.

    Raises:
        ParameterError: ``to`` is in the model directory, ``to`` is a directory, or the parent directory of ``to`` does
            not exist.
    """
    place = to.resolve()
    if place.is_relative_to(directory.resolve()):
        raise ParameterError(f"{to} is in the model directory: whatever destroys the model would also destroy the log")
    if place.is_dir():
        raise ParameterError(f"{to} is a directory; name a file in it, such as {to / 'log.jsonl'}")
    if not place.parent.is_dir():
        raise ParameterError(f"{to} cannot be made: there is no directory {place.parent}")
    return place


def require_present(ledger: Ledger, *, version: bool = False) -> None:
    """Raise `LedgerError` if the second copy of the log has more events, as after a restore from a backup.

    The error is also raised if the two logs have different events. The log outside the directory may then have more
    events, for example if a backup from before `migrate` was restored.

    Args:
        ledger: The ledger.
        version: Whether to raise the error only if the log may have a newer version of the model. This is for callers
            to which no other events matter.
    """
    standing = standing_settled(ledger)
    if standing is None:
        return
    if standing.may_have_newer_version or (standing.ahead and not version):
        raise LedgerError(str(problem_of(standing, ledger.path.parent)))


def standing_settled(ledger: Ledger) -> Standing | None:
    """Return the state of the second copy of the log; None if the ledger names no second copy.

    If the second copy of the log has more events than the ledger, this function waits a moment, because a command that
    has written the additional events may be about to commit. The function also waits if the second copy has different
    events, because a migration may be about to rewrite the second copy.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        found = ledger.standing()
        if found is None or not (found.ahead or found.has_other_events) or time.monotonic() > deadline:
            return found
        time.sleep(PATIENCE_SECONDS / 10)
