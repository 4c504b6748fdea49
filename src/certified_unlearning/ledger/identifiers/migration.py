"""`migrate`: in a directory of an earlier release people get pseudonyms, and the key can go to another place.

The whole ledger changes in one transaction of SQLite, in the same file: a kill or a full disk leaves the old ledger or
the new one, and a `request` at the same moment waits and finds the new one. A second file, renamed over the first,
would lose what another command, which has the first one open, writes. Nothing is drawn at random, so a directory and
its backup become the same. Heads and receipts stay as they were, for these have always held pseudonyms; only the hashes
that chain events change. The old ones are kept as keyed digests, because they were made of identifiers in clear.
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
        has_hidden: Whether people got pseudonyms; False where they had them already.
        key_file: Where the key lies now; None where nobody asked for another place.
        old_key_file: Where a copy of it is left, which its owner must delete; None where there is none.
        earlier_logs: Where the log was kept in a second place before; what is left there is as it was.
        head: The head of the log, which is as it was.
    """

    has_hidden: bool
    key_file: Path | None
    old_key_file: Path | None
    earlier_logs: tuple[Path, ...]
    head: str


def migrate(path: Path, key_file: Path | None = None) -> Migrated:
    """Bring a directory to the present format; an interrupted migration is finished, and a second one does nothing.

    Args:
        path: The model directory.
        key_file: The new place of the key of identifiers: a new file outside the directory, or one that holds it.

    Raises:
        ParameterError: The key cannot lie in that file.
        DataError: The directory or its key cannot be read.
        LedgerError: Something was tampered with; nothing was done.
        StorageError: Another command is at work, another program keeps the ledger open, the log in the second place is
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
            # A log of other events may have been written after a migration, and this be an older backup.
            if standing is not None and (standing.ahead or not standing.path.is_file()):
                require_in_step(standing, path)
            _hide_people(directory, ledger)
        _write_second_place_anew(ledger)
        # Also if an earlier `migrate` could not: the log of SQLite holds what was overwritten in its file.
        if not ledger.empty_log():
            raise StorageError(
                f"{path} is migrated, but another program keeps the ledger open, so that identifiers may be left in "
                f"{directory.ledger.name}-wal: end that program, and run `unlearn migrate` again"
            )
        left = None if key_file is None else _move_key(directory, ledger, key_file)
        return Migrated(has_hidden, key_file, left, tuple(ledger.earlier_logs()), head_of(directory, ledger))


def _hide_people(directory: ModelDirectory, ledger: Ledger) -> None:
    """Check the ledger, give everybody a pseudonym, and check that nothing else has changed."""
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
            raise LedgerError(f"{ledger.path} says something else under pseudonyms than before; nothing was changed")


def _is_unfinished(place: Path, ledger: Ledger) -> bool:
    """Return whether a migration that was killed has begun to write the key to a file."""
    if ledger.missing_key() is not None:
        return False
    content = place.read_bytes()
    return content != ledger.key() and ledger.key().startswith(content)


def _write_second_place_anew(ledger: Ledger) -> None:
    """Write the log in a second place anew if it has the events of before the migration, and overwrite what was there.

    A log of a directory that was migrated earlier, as after a restore, is left as it is.
    """
    place = ledger.log()
    earlier = ledger.earlier()
    if place is None or not place.is_file() or not earlier:
        return
    last = end_of(place).row
    # What follows the ledger as it is needs no key.
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
    """Put the key into a file outside the directory; return where else a copy of it is left.

    The new place is durable before the old one goes.
    """
    before, place = keys.place_of(directory.path), key_file.resolve()
    if place.is_file() and place != before.resolve() and _is_unfinished(place, ledger):
        place.unlink()
    if not place.exists():
        with keys.written_apart(place, ledger.key(), directory.path):
            keys.point_to(directory.path, place)
    ledger.key_in(place)
    # What a migration left that was killed; `files.atomic_path` gives such names.
    for unfinished in directory.path.glob(f".*.{keys.POINTER}"):
        unfinished.unlink()
    keys.point_to(directory.path, place)
    if directory.identifier_key.exists():
        destroy(directory.identifier_key)
        synchronise(directory.path)
    return before if before.resolve() != place and before.exists() else None
