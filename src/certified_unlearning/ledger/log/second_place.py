"""How the log in a second place follows the ledger: each transaction is on its disk before the ledger commits.

So whatever happens to the model directory, the log holds everything that was ever confirmed. Before it is written it is
compared with the ledger. If it knows more, the directory was restored from a backup, or a command was killed between
the two writes; then nothing is recorded before `replay` has brought the directory to the present. If it knows less, it
first gets what it lacks.
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
    """The last event of a ledger: 0 and `file.GENESIS` before the first one."""

    sequence: int
    hash: str


class Standing(NamedTuple):
    """The state of a log beside the events of a ledger.

    Attributes:
        path: The log.
        ahead: How many events it has that the ledger lacks.
        has_newer_version: Whether one of them is a version of the model, so that the directory's is an old one.
        behind: How many events it lacks; the next event brings them.
        trouble: Why it cannot be used, as it is missing, damaged, or of other events.
        has_other_events: Whether it has other events. Then it may know more than the directory, for example if that is
            a backup from before a migration.
    """

    path: Path
    ahead: int = 0
    has_newer_version: bool = False
    behind: int = 0
    trouble: str | None = None
    has_other_events: bool = False

    @property
    def may_have_newer_version(self) -> bool:
        """Whether the directory's model may be an old one, which knows people who were removed since."""
        return self.has_newer_version or self.has_other_events


class _OtherEventsError(DataError):
    """A log does not begin with the events of the ledger."""


HashOf = Callable[[int], str | None]
"""Returns the hash of an event by its number; None where there is none."""


def standing_of(path: Path, last: Last, hash_of: HashOf) -> Standing:
    """Return how a log stands to a ledger that ends with ``last``; reads its last line only, unless it is ahead."""
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
    """Raise `DataError` or `StorageError` if a log is ahead of a directory or cannot be used."""
    problem = problem_of(standing, directory)
    if problem is not None:
        raise (DataError if standing.ahead else StorageError)(f"{problem}; nothing was recorded")


def problem_of(standing: Standing, directory: Path) -> str | None:
    """Return a message about a log that is ahead of a directory or cannot be used; None if all is well."""
    if standing.ahead:
        command = f"unlearn replay {shlex.quote(str(directory))} --from {shlex.quote(str(standing.path))}"
        return (
            f"{directory} is behind its log {standing.path} by {counted(standing.ahead, 'event')}, as after a restore "
            f"or a command that was killed: `{command}` brings it to the present"
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
    """Bring a log up to the events of a transaction that is about to be committed.

    Args:
        path: The log.
        directory: The model directory, for messages.
        before: The last event before the transaction.
        hash_of: Finds events, those of the transaction included.
        rows_after: Returns the events after one, those of the transaction included.
        is_new: Whether the transaction says that the log lies here, so that it may have to be made.

    Returns:
        What takes it back, where the transaction fails.

    Raises:
        DataError: It is ahead of the ledger, damaged, or of other events.
        StorageError: It is missing, or cannot be written.
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
    """Return the events of a log that follow the last one of a ledger.

    Raises:
        DataError: The log has other events, or is damaged.
    """
    rows = read_log(path).rows
    if not 0 < last.sequence <= len(rows) or rows[last.sequence - 1][6] != last.hash:
        raise _OtherEventsError(
            f"{path} is the log of another directory, or of another history of this one, or only one of the two is "
            "migrated (then run `unlearn migrate`)"
        )
    return rows[last.sequence :]
