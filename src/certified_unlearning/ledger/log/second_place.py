"""A log in a second place, which follows the ledger: every transaction is in the log before the ledger commits it.

So the log has everything that was ever confirmed, even if the model directory is lost. Before each write, the log is
compared with the ledger. If the log has more events, the directory was restored from a backup, or a command was killed
between the two writes. Then nothing is recorded until `replay` has brought the directory up to date. If the log has
fewer events, the missing ones are written first.
"""

import functools
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from certified_unlearning.errors import DataError, StorageError, UnlearningError
from certified_unlearning.ledger.log.file import Row, append, cut, end_of, read_log, write_log
from certified_unlearning.text import counted


class Last(NamedTuple):
    """The last event of a ledger. Before the first event, its number is 0, and its hash is `file.GENESIS`."""

    sequence: int
    hash: str


class Standing(NamedTuple):
    """The state of a log, compared with the events of a ledger.

    Attributes:
        path: Path of the log.
        ahead: The number of events that the log has and the ledger lacks.
        has_newer_version: Whether one of these events published a version of the model, so that the directory has an
            old version.
        behind: The number of events that the log lacks; they are written together with the next event.
        trouble: The reason why the log cannot be used: the log is missing, is damaged, or has events that differ from
            those of the ledger.
        has_other_events: Whether the log has different events. It may then have more events than the directory, for
            example if the directory is a backup from before a migration.
    """

    path: Path
    ahead: int = 0
    has_newer_version: bool = False
    behind: int = 0
    trouble: str | None = None
    has_other_events: bool = False

    @property
    def may_have_newer_version(self) -> bool:
        """Whether the directory's model may be an old version, made with records that were removed later."""
        return self.has_newer_version or self.has_other_events


class _OtherEventsError(DataError):
    """The log does not begin with the events of the ledger."""


HashOf = Callable[[int], str | None]
"""A function that returns the hash of an event, given its number; None if there is no such event."""


def standing_of(path: Path, last: Last, hash_of: HashOf) -> Standing:
    """Compare a log with a ledger that ends with ``last``; read only the log's last line, unless the log is ahead."""
    try:
        end = end_of(path).row
        known = 0 if end is None else end[0]
        if end is None or hash_of(known) == end[6]:
            return Standing(path, behind=max(0, last.sequence - known))
        ahead = _rows_ahead(path, last)
        return Standing(path, ahead=len(ahead), has_newer_version=any(row[2] == "applied" for row in ahead))
    except UnlearningError as error:
        return Standing(path, trouble=str(error), has_other_events=isinstance(error, _OtherEventsError))


def require_in_step(standing: Standing, directory: Path) -> None:
    """Raise `DataError` or `StorageError` if the log is ahead of the directory or cannot be used."""
    problem = problem_of(standing, directory)
    if problem is not None:
        raise (DataError if standing.ahead else StorageError)(f"{problem}; nothing was recorded")


def problem_of(standing: Standing, directory: Path) -> str | None:
    """Return a message about a log that is ahead of the directory or cannot be used; None if there is no problem."""
    if standing.ahead:
        command = f"unlearn replay {shlex.quote(str(directory))} --from {shlex.quote(str(standing.path))}"
        return (
            f"{directory} is behind its log {standing.path} by {counted(standing.ahead, 'event')}, as after a restore "
            f"or a command that was killed: `{command}` brings it up to date"
        )
    if standing.trouble is not None:
        return (
            f"{standing.trouble}: put the log of {directory} back, or say where it is kept from now on (`unlearn log`, "
            "or `unlearn replay --log`)"
        )
    return None


def follow(
    path: Path,
    directory: Path,
    before: Last,
    hash_of: HashOf,
    rows_after: Callable[[int], list[Row]],
    *,
    is_new: bool,
) -> Callable[[], None]:
    """Write to a log all events up to and including a transaction that is about to be committed.

    Args:
        path: Path of the log.
        directory: The model directory, for messages.
        before: The last event before the transaction.
        hash_of: A function that returns the hash of an event, including the events of the transaction.
        rows_after: A function that returns all events after a given event, including the events of the transaction.
        is_new: Whether the transaction itself sets this path as the log's place, so that the file may not exist yet.

    Returns:
        A function that restores the log as it was. Call this function if the transaction fails.

    Raises:
        DataError: The log is ahead of the ledger, is damaged, or has different events.
        StorageError: The log is missing, or cannot be written.
    """
    if is_new and path.parent.is_dir() and not path.exists():
        write_log(path, rows_after(0))
        return path.unlink
    standing = standing_of(path, before, hash_of)
    if is_new and standing.trouble is not None:
        raise StorageError(f"{standing.trouble}; nothing was recorded: name a new file, or the log of {directory}")
    require_in_step(standing, directory)
    end = end_of(path)
    missing = rows_after(0 if end.row is None else end.row[0])
    if missing:
        append(path, end.size, missing)
    return functools.partial(cut, path, end.size)


def _rows_ahead(path: Path, last: Last) -> list[Row]:
    """Return the events of a log that follow the last event of a ledger.

    Raises:
        DataError: The log has different events, or is damaged.
    """
    rows = read_log(path).rows
    if not 0 < last.sequence <= len(rows) or rows[last.sequence - 1][6] != last.hash:
        raise _OtherEventsError(
            f"{path} is the log of another directory or of another history of this directory, or only one of the "
            "log and the directory was migrated (in that case, run `unlearn migrate`)"
        )
    return rows[last.sequence :]
