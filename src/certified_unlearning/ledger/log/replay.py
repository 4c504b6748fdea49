"""The command `replay`: update a directory that was restored from a backup.

The events since the backup are appended as they were, so earlier heads and receipts stay valid. Files that belong to
some of these events are gone: weights, secrets, rows that were added. If these files are needed, one more event,
``restored``, records the event from which the model continues. The requests since then wait again, and `apply` answers
them. Versions that were published in the meantime stay published: `State.lost` contains these versions. Certificates
count them, or make weaker statements (`certificate.lost`).

A command may be killed after it has written the second copy of the log, but before it commits. The directory then has
the files of some events, but not the events themselves. In this case, nothing is lost, and no ``restored`` is recorded.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from certified_unlearning.errors import DataError, LedgerError, UnlearningError
from certified_unlearning.ledger.application import Applied, apply
from certified_unlearning.ledger.database.events import event_of
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.log.file import Row, read_log
from certified_unlearning.ledger.log.setting import checked_place
from certified_unlearning.ledger.model import StoredModel, read_secret, read_stored, read_weights
from certified_unlearning.ledger.proofs.head import Head, hashes_of, require_prefix
from certified_unlearning.ledger.state import Addition, Batch, State, read_state
from certified_unlearning.ledger.store import Ledger
from certified_unlearning.ledger.verification import check_data
from certified_unlearning.text import counted

_SQLITE = b"SQLite format 3\0"


@dataclass(frozen=True)
class Replayed:
    """Result of `replay`.

    Attributes:
        events: The number of events that the directory lacked.
        unknown: The number of the directory's events that the source lacked.
        back_to: The number of the event from which the model continues; None if no files were lost.
        lost: The lost versions, which were published after that event.
        additions: The additions by `add` after the event ``back_to``. The added records are gone.
        half_written: Whether the log ended with an incomplete line.
        applied: The result of the `apply` that followed.
    """

    events: int
    unknown: int
    back_to: int | None
    lost: tuple[int, ...]
    additions: tuple[Addition, ...]
    half_written: bool
    applied: Applied


class _FilesLackError(UnlearningError):
    """The files in the directory are not those of the last event."""


def replay(path: Path, source: Path, *, log: Path | None = None, head: str | None = None) -> Replayed:
    """Update a model directory that was restored from a backup, and answer all pending requests.

    If the process is killed, run `replay` again, or `apply`.

    Args:
        path: The model directory.
        source: The second copy of the log, or the ``ledger.sqlite`` of the lost directory.
        log: The path at which the log is kept from now on; None for the path at which it was kept before.
        head: A head that a command printed before the loss. ``source`` must have the events of this head.

    Raises:
        DataError: ``source`` cannot be read, belongs to another directory or history, or lacks events of the earlier
            log that ``log`` replaces.
        ParameterError: ``head`` is not a head, or ``log`` cannot be made.
        LedgerError: A file was tampered with, ``source`` lacks events of ``head``, or the files of the directory do not
            belong together.
        StorageError: An `apply` or an `add` is running, or a file cannot be written.
    """
    directory = ModelDirectory(path)
    place = None if log is None else checked_place(log, path)
    earlier = None if head is None else Head.parse(head)
    rows, half_written = _read(source)
    with directory.locked(), Ledger.opened(directory.ledger) as ledger, ledger.transaction():
        before, own = read_state(ledger), ledger.last().sequence
        missing = _missing(ledger, rows, source)
        ledger.insert(missing)
        if earlier is not None:
            require_prefix(earlier, hashes_of(directory, ledger), source)
        _follow(directory, ledger, before, own)
        if place is not None and place != ledger.log():
            _require_no_other(ledger, path, source)
            ledger.append("logged", {"path": str(place)})
        after = read_state(ledger)
    applied = apply(path)
    is_back = after.restored != before.restored
    known = {version.event for version in before.lost}
    return Replayed(
        events=len(missing),
        unknown=max(0, own - len(rows)),
        back_to=None if after.restored is None or not is_back else after.restored.to,
        lost=tuple(version.version for version in after.lost if version.event not in known),
        additions=tuple(_additions(missing)) if is_back else (),
        half_written=half_written,
        applied=applied,
    )


def _read(source: Path) -> tuple[list[Row], bool]:
    """Return the events of a log or of a ledger, and whether an incomplete line follows them."""
    file = ModelDirectory(source).ledger if source.is_dir() else source
    try:
        with file.open("rb") as opened:
            is_ledger = opened.read(len(_SQLITE)) == _SQLITE
    except OSError as error:
        raise DataError(f"cannot read {file}: {error.strerror}; nothing was done") from error
    if not is_ledger:
        content = read_log(file)
        if not content.rows:
            raise DataError(f"{file} holds no events; nothing was done")
        return content.rows, content.half_written
    with Ledger.opened(file, read_only=True) as ledger:
        ledger.verify_chain()
        return ledger.rows_after(0), False


def _missing(ledger: Ledger, rows: Sequence[Row], source: Path) -> Sequence[Row]:
    """Return the events that a ledger lacks compared with ``rows``.

    Raises:
        DataError: ``rows`` do not begin with the ledger's events.
        LedgerError: The ledger was tampered with.
    """
    ledger.verify_chain()
    own = ledger.rows_after(0)
    pairs = enumerate(zip(own, rows, strict=False))
    common = next((place for place, (mine, theirs) in pairs if mine != theirs), None)
    if common is None:
        return rows[len(own) :]
    if not common:
        raise DataError(f"{source} is the log of a model directory other than {ledger.path.parent}; nothing was done")
    raise DataError(
        f"{source} and {ledger.path} have {counted(common, 'event')} in common and then differ, so something was "
        f"recorded after the restore ({counted(len(own) - common, 'event')}): restore the backup once more, run "
        "`unlearn replay`, and then record these events again. If only one of them was migrated, run `unlearn migrate` "
        "on the other one first; nothing was done"
    )


def _require_no_other(ledger: Ledger, path: Path, source: Path) -> None:
    """Raise `DataError` if the ledger's earlier log, which ``source`` replaces, still exists and has more events."""
    had = ledger.standing()
    if had is not None and had.path.exists() and (had.ahead or had.trouble):
        raise DataError(
            f"{source} and the earlier log of {path}, {had.path}, have different events "
            f"({had.trouble or 'the earlier log has more'}): replay {had.path}, or move it away if it must not be used"
            "; nothing was done"
        )


def _follow(directory: ModelDirectory, ledger: Ledger, before: State, own: int) -> None:
    """Bring the directory's files up to date with the appended events. If files are gone, record one more event.

    Args:
        directory: The model directory.
        ledger: The ledger of the directory, with the appended events.
        before: The ledger's state before the events were appended.
        own: The number of the ledger's events before the appended ones.

    Raises:
        LedgerError: The files belong neither to the last event nor to the last event of the backup.
    """
    after = read_state(ledger)
    if (after.versions, after.planned) == (before.versions, before.planned):
        return
    model = read_stored(directory, before)
    try:
        with ledger.attempt():
            _take_files_as_they_are(directory, ledger, model, before, after)
    except _FilesLackError:
        ledger.append("restored", {"to": own, "name": secrets.token_hex(16)})
        try:
            _require_files(directory, ledger, model)
        except (DataError, LedgerError) as error:
            raise LedgerError(
                f"the files of {directory.path} belong neither to the last event nor to the backup's last event, {own} "
                f"({error}). Either a command was running while the backup was made, or a part of the backup is "
                "missing; restore another backup; nothing was done"
            ) from error


def _take_files_as_they_are(
    directory: ModelDirectory, ledger: Ledger, model: StoredModel, before: State, after: State
) -> None:
    """Forget the owners of newly removed rows; raise `_FilesLackError` unless the files are those of the last event."""
    known = {version.event for version in before.versions}
    batches = [version.batch for version in after.versions if version.batch is not None and version.event not in known]
    new = [batch for batch in (*batches, after.planned) if batch is not None and batch != before.planned]
    if any(batch.addition is not None for batch in new):
        # No event records the owners of the added rows.
        raise _FilesLackError
    for batch in batches:
        ledger.owners.forget_records(batch.after, batch.up_to)
    try:
        _require_files(directory, ledger, model)
    except (DataError, LedgerError) as error:
        raise _FilesLackError from error


def _require_files(directory: ModelDirectory, ledger: Ledger, model: StoredModel) -> None:
    """Raise `DataError` or `LedgerError` unless the files are those that the ledger records.

    A missing certificate delays no removal: `apply` and `verify` report it.
    """
    state = read_state(ledger)
    check_data(directory, ledger, model, state)
    read_weights(directory, state.current)
    read_secret(directory, state.current)


def _additions(rows: Sequence[Row]) -> list[Addition]:
    """Return the additions that `add` planned in these events."""
    additions = (Batch.read(event_of(row).payload).addition for row in rows if row[2] == "planned")
    return [addition for addition in additions if addition is not None]
