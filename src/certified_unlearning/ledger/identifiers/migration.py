"""The command `migrate`: people in a directory of an earlier release get pseudonyms, and the key can move elsewhere.

The whole ledger changes in one SQLite transaction, and no second file is made for the new ledger. After a kill or a
full disk, the ledger is the old one or the new one. A `request` at the same moment waits, and finds the new ledger. If
the new ledger were a second file, renamed over the first, the writes of a command that has the first file open would be
lost. Nothing is drawn at random, so a directory and its backup are converted to the same ledger. Heads and receipts
stay as they were, because they have always used pseudonyms. Only the hashes that chain events change. The old hashes
are kept as keyed digests, because they were computed from plain identifiers.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from certified_unlearning.errors import LedgerError, StorageError
from certified_unlearning.files import synchronise
from certified_unlearning.ledger.directory import ModelDirectory, destroy, finished_by_the_next
from certified_unlearning.ledger.identifiers import keys
from certified_unlearning.ledger.log.file import end_of, write_log
from certified_unlearning.ledger.log.second_place import require_in_step
from certified_unlearning.ledger.proofs.head import Head, head_of, leaves_of
from certified_unlearning.ledger.proofs.leaves import Leaf
from certified_unlearning.ledger.state import read_state
from certified_unlearning.ledger.store import Earlier, Ledger
from certified_unlearning.ledger.verification import check_tags


@dataclass(frozen=True)
class Migrated:
    """Result of `migrate`.

    Attributes:
        has_hidden: Whether this run replaced identifiers by pseudonyms; False if people had pseudonyms already.
        key_file: The new path of the key; None if no other place was requested.
        old_key_file: Path of a remaining copy of the key, for the operator to delete; None if there is none.
        earlier_logs: Earlier paths of the second copy of the log. The logs that are left at these paths were not
            changed.
        head: The head of the log, which a migration does not change.
    """

    has_hidden: bool
    key_file: Path | None
    old_key_file: Path | None
    earlier_logs: tuple[Path, ...]
    head: str


def migrate(path: Path, key_file: Path | None = None) -> Migrated:
    """Convert a directory to the present format, or finish an interrupted migration. A second run changes nothing.

    Args:
        path: The model directory.
        key_file: The new path of the key of identifiers: a new file outside the directory, or a file that contains this
            key.

    Raises:
        ParameterError: The key must not or cannot be written to that file.
        DataError: The directory or its key cannot be read.
        LedgerError: A file was tampered with; nothing was done.
        StorageError: Another command is running, another program keeps the ledger open, the second copy of the log is
            missing, or a file cannot be written.
    """
    directory = ModelDirectory(path)
    if key_file is not None:
        keys.require_apart(key_file, path)
    again = finished_by_the_next(path, "run `unlearn migrate` again")
    with directory.locked(), again, Ledger.opened(directory.ledger) as ledger:
        has_hidden = not ledger.names.hides_people
        if has_hidden:
            standing = ledger.standing()
            # This directory may be an older backup, while the other log goes on after the migration of the original.
            if standing is not None and (standing.ahead or not standing.path.is_file()):
                require_in_step(standing, path)
            _hide_people(directory, ledger)
        _write_second_place_anew(ledger)
        # This is repeated if an earlier `migrate` failed here: SQLite's own log still holds overwritten identifiers.
        if not ledger.empty_log():
            raise StorageError(
                f"{path} is migrated, but another program keeps the ledger open, so that identifiers may be left in "
                f"{directory.ledger.name}-wal: end that program, and run `unlearn migrate` again"
            )
        left = None if key_file is None else _move_key(directory, ledger, key_file)
        return Migrated(has_hidden, key_file, left, tuple(ledger.earlier_logs()), head_of(directory, ledger))


def _hide_people(directory: ModelDirectory, ledger: Ledger) -> None:
    """Check the ledger, replace every identifier by a pseudonym, and check that nothing else has changed."""
    with ledger.transaction(follows=False):
        leaves, state, names = leaves_of(directory, ledger), read_state(ledger), ledger.names
        check_tags(ledger, ledger.owners.records())
        earlier = []
        for event_hash, leaf in zip(ledger.hashes(), leaves, strict=True):
            sealed = names.sealed(event_hash)
            tag = names.earlier(leaf.sequence, sealed, leaf.hash())
            earlier.append(Earlier(leaf.sequence, sealed, leaf.hidden, tag))
        ledger.hide_people(earlier)
        check_tags(ledger, ledger.owners.records())
        if _head(leaves_of(directory, ledger)) != _head(leaves) or read_state(ledger) != state:
            raise LedgerError(f"the content of {ledger.path} would be different under pseudonyms; nothing was changed")


def _is_unfinished(place: Path, ledger: Ledger) -> bool:
    """Return whether a file holds an incomplete key that a killed migration left."""
    if ledger.missing_key() is not None:
        return False
    content = place.read_bytes()
    return content != ledger.key() and ledger.key().startswith(content)


def _write_second_place_anew(ledger: Ledger) -> None:
    """Rewrite the second copy of the log if it still has the events from before the migration; overwrite the old text.

    If the log was rewritten by an earlier migration, as after a restore of the directory, it is not changed.
    """
    place = ledger.log()
    earlier = ledger.earlier()
    if place is None or not place.is_file() or not earlier:
        return
    last = end_of(place).row
    # A log whose last event agrees with the ledger needs no rewriting, and this check needs no key.
    if last is None or ledger.hash_of(last[0]) == last[6]:
        return
    if ledger.names.sealed(last[6]) not in {each.sealed for each in earlier}:
        return
    with place.open("r+b", buffering=0) as old:
        write_log(place, ledger.rows_after(0))
        old.write(bytes(os.fstat(old.fileno()).st_size))
        os.fsync(old.fileno())


def _head(leaves: list[Leaf]) -> Head:
    return Head.over([leaf.hash() for leaf in leaves])


def _move_key(directory: ModelDirectory, ledger: Ledger, key_file: Path) -> Path | None:
    """Put the key into a file outside the directory; return the path of another copy that is left, if any.

    The key is durable in the new place before the old file is deleted.
    """
    before, place = keys.place_of(directory.path), key_file.resolve()
    if place.is_file() and place != before.resolve() and _is_unfinished(place, ledger):
        place.unlink()
    if not place.exists():
        with keys.written_apart(place, ledger.key(), directory.path):
            keys.point_to(directory.path, place)
    ledger.key_in(place)
    # Delete temporary files that a killed migration left; `files.atomic_path` gives them such names.
    for unfinished in directory.path.glob(f".*.{keys.POINTER}"):
        unfinished.unlink()
    keys.point_to(directory.path, place)
    if directory.identifier_key.exists():
        destroy(directory.identifier_key)
        synchronise(directory.path)
    return before if before.resolve() != place and before.exists() else None
