"""The command `add`: make a new version of the model with new records, and append them to the training copy.

An `add` is an `apply` that also adds records: its new version also answers the pending requests. First, the new rows
wait in files of their own, and are not part of the data yet. The event `planned` makes the addition final, in one
transaction with the owners of the rows. Then the rows are appended to the training copy, the model learns, and the
event `applied` ends the addition. After a crash that follows `planned`, the next `apply` or `add` finishes the
addition, and does not need the user's file again. After a crash before `planned`, nothing was added.
"""

import functools
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from certified_unlearning.engine.devices import pick_device
from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.ledger.adding.reading import NewRecords, read_new_records
from certified_unlearning.ledger.application import (
    BY_APPLY,
    answer,
    delete_leftovers,
    opened_for_work,
    planned_batch,
)
from certified_unlearning.ledger.directory import ModelDirectory, destroy, finished_by_the_next, read_key
from certified_unlearning.ledger.method import Answered, answered_of
from certified_unlearning.ledger.model import StoredModel, method_of
from certified_unlearning.ledger.proofs.head import head_of
from certified_unlearning.ledger.state import Addition, Batch, State, Version, read_state
from certified_unlearning.ledger.store import Ledger
from certified_unlearning.ledger.training.forms import copy_of
from certified_unlearning.ledger.training.keyed import digest_of_file
from certified_unlearning.mechanisms.learners.duration import seconds_to_learn


@dataclass(frozen=True)
class Extended:
    """Result of `add`.

    Attributes:
        versions: The versions that `add` made; two if it first finished an interrupted command.
        known: Whether the current version had already been made by adding this file, so that `add` did not add the file
            again.
        deleted: Files that an interrupted command had left behind.
        pending: The number of requests that still wait, for example because nothing was added.
        head: The head of the log.
    """

    versions: tuple[Version, ...]
    known: bool
    deleted: tuple[Path, ...]
    pending: int
    head: str


def add(
    path: Path,
    file: Path,
    *,
    one_spelling: bool = False,
    announce: Callable[[NewRecords, float], None] | None = None,
) -> Extended:
    """Add new people's records to a model. One new version contains them and answers the pending requests.

    An interrupted command is finished first. If the same file was added last, adding it again changes nothing.

    Args:
        path: The model directory.
        file: A CSV or Parquet file with the columns of `init`, in any order; other columns are ignored.
        one_spelling: Whether a new identifier that resembles a removed person's identifier belongs to a different
            person. By default, such new identifiers are refused.
        announce: A function that is called before the model learns, with the new records and the estimated seconds
            that learning takes.

    Raises:
        ParameterError: The model's mechanism cannot add records, or a person is in the model or was removed from it.
        DataError: The file or the model directory cannot be read, or the file has undeclared values.
        AssumptionError: With so many records, float64 is too coarse for the target.
        LedgerError: A file was tampered with; nothing was done.
        StorageError: Another `apply` or `add` is running, or a file could not be written; run the command again.
    """
    made = []
    with opened_for_work(path) as (directory, ledger, state, model):
        why = method_of(directory, model).no_additions
        if why is not None:
            raise ParameterError(
                f"no records can be added to a model of {model.learner.mechanism}: {why}; instead, use "
                "`unlearn init` to make a new model from all records except those of removed people"
            )
        place = pick_device(model.device)
        with finished_by_the_next(path, BY_APPLY):
            deleted = delete_leftovers(directory, state)
            plan = functools.partial(
                _plan, directory, ledger, model, file=file, one_spelling=one_spelling, announce=announce
            )
            if state.planned is not None:
                made.append(answer(directory, ledger, model, state, place, plan))
                state = read_state(ledger)
            known = _is_of(directory, state, file)
            if not known:
                try:
                    made.append(answer(directory, ledger, model, state, place, plan))
                except BaseException:
                    _delete_what_does_not_count(directory, ledger)
                    raise
        return Extended(tuple(made), known, deleted, read_state(ledger).pending, head_of(directory, ledger))


def _plan(
    directory: ModelDirectory,
    ledger: Ledger,
    model: StoredModel,
    state: State,
    *,
    file: Path,
    one_spelling: bool,
    announce: Callable[[NewRecords, float], None] | None,
) -> Batch:
    """Read the file, plan a batch that adds its records, and record the plan. From then on, the batch is final."""
    ledger.key()  # Read before the file, because nobody can be looked up without the key.
    modified = file.stat().st_mtime_ns if file.exists() else None
    new = read_new_records(directory, ledger, model, state, file, one_spelling=one_spelling)

    def described(key: bytes) -> Addition:
        return Addition(new.people, new.records, str(file.resolve()), digest_of_file(file, key))

    batch = planned_batch(directory, ledger, model, state, new.records, described)
    if file.stat().st_mtime_ns != modified:
        raise DataError(f"{file} was changed while it was read; nothing was added, try again")
    if announce is not None:
        grown = method_of(directory, model).plan_after([*answered_of(state), Answered(batch, None)])
        rows = copy_of(directory, model.learner.features, state.current.version).rows(state.rows)
        announce(new, seconds_to_learn(rows, grown))
    with ledger.transaction():
        ledger.owners.add_records((identifier, row) for row, identifier in enumerate(new.identifiers, state.rows))
        ledger.owners.add_spellings(new.spellings)
        ledger.append("planned", batch.as_payload())
    return batch


def _is_of(directory: ModelDirectory, state: State, file: Path) -> bool:
    """Return whether the current version was made by adding the records of exactly this file."""
    batch = state.current.batch
    if batch is None or batch.addition is None:
        return False
    try:
        found = digest_of_file(file, read_key(directory.digest_key(batch.version)))
    except OSError as error:
        raise DataError(f"cannot read {file}: {error.strerror}; nothing was added") from error
    return hmac.compare_digest(found, batch.addition.source_digest)


def _delete_what_does_not_count(directory: ModelDirectory, ledger: Ledger) -> None:
    """Delete the waiting rows of a refused file. Rows of a planned batch stay, and the next command adds them."""
    for path in directory.leftovers(read_state(ledger)):
        destroy(path)
