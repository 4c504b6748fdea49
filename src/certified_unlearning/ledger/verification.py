"""The check that a model directory is as its ledger recorded it."""

import hmac
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from certified_unlearning import certificate
from certified_unlearning.certificate import KINDS, Certificate
from certified_unlearning.errors import DataError, LedgerError
from certified_unlearning.ledger.database.owners import Record
from certified_unlearning.ledger.directory import ModelDirectory, read_key
from certified_unlearning.ledger.log.second_place import Standing, problem_of
from certified_unlearning.ledger.log.setting import standing_settled
from certified_unlearning.ledger.method import Answered, Secret, answered_of
from certified_unlearning.ledger.model import (
    StoredModel,
    method_of,
    read_secret,
    read_stored,
    read_weights,
    stated_by,
)
from certified_unlearning.ledger.proofs.head import Head, leaves_of, require_prefix
from certified_unlearning.ledger.proofs.leaves import Leaf
from certified_unlearning.ledger.requests import source_changed, source_key
from certified_unlearning.ledger.state import State, Version, read_state
from certified_unlearning.ledger.store import Ledger
from certified_unlearning.ledger.training.copies import Asked, waiting_of
from certified_unlearning.ledger.training.forms import copy_of
from certified_unlearning.vocabulary import ClassesFrom

UNCHECKED = "the owners of rows, and the hidden parts of events from before a migration, were not checked"
"""A sentence on what is not checked without the key of identifiers."""


@dataclass(frozen=True)
class Verified:
    """A model directory that was checked against its ledger.

    Attributes:
        state: State of the ledger.
        events: The number of events in the log.
        head: The head of the log.
        current: The current version's certificate.
        source: A note about the file that the data came from; None if it is unchanged.
        classes_from: The origin of the list of classes; None if an earlier `init` did not record it, or if numbers are
            predicted.
        target_range: The declared range of numbers to predict; None if classes are predicted.
        text: The number of columns into which each column of text was hashed.
        strangers: Files that do not belong to a model directory. They were not checked.
        unchecked: A note about what was not checked because the key of identifiers cannot be read; None if everything
            was checked.
        log: The state of the second copy of the log; None if the ledger names no second copy.
    """

    state: State
    events: int
    head: str
    current: Certificate
    source: str | None
    classes_from: ClassesFrom | None
    target_range: tuple[float, float] | None
    text: Mapping[str, int]
    strangers: tuple[Path, ...]
    unchecked: str | None
    log: Standing | None


def verify(path: Path, head: str | None = None) -> Verified:
    """Recompute everything that a model directory states.

    Args:
        path: The model directory.
        head: A head that a command printed earlier. The log must begin with the events of this head.

    Raises:
        LedgerError: A file was tampered with, or an `apply` or an `add` was interrupted.
        ParameterError: ``head`` is not a head.
        CertificateError: A certificate states other numbers or words than its constants give.
        DataError: A file cannot be read.
        StorageError: An `apply` or an `add` is running.
    """
    # Earlier releases printed the hash of the last event, which chains it to all events before.
    of_chain = head is not None and re.fullmatch(r"[0-9a-f]{64}", head) is not None
    earlier = None if head is None or of_chain else Head.parse(head)
    directory = ModelDirectory(path)
    with directory.locked(shared=True), Ledger.opened(directory.ledger, read_only=True) as ledger:
        leaves = leaves_of(directory, ledger)
        hashes = [leaf.hash() for leaf in leaves]
        missing = ledger.missing_key()
        sealed_hashes = _sealed_hashes(ledger, leaves)
        log = standing_settled(ledger)
        problem = None if log is None else problem_of(log, path)
        if problem is not None:
            raise LedgerError(problem)
        if head is not None and of_chain and not _has_chained(ledger, sealed_hashes, head):
            if missing is not None and ledger.earlier():
                raise DataError(
                    f"the head {head} may be from before the migration, which cannot be checked without the key: "
                    f"{missing.fact}"
                )
            raise LedgerError(
                f"{directory.ledger} was tampered with: no event in it has the head {head}, so events were dropped "
                "from its end, or all events were replaced (or the head is another ledger's)"
            )
        if earlier is not None:
            require_prefix(earlier, hashes, directory.ledger)
        state = read_state(ledger)
        model = read_stored(directory, state)
        check_data(directory, ledger, model, state)
        owned = check_tags(ledger, ledger.owners.records())
        _check_batches(ledger, state)
        _check_absent(ledger)
        copy = copy_of(directory, model.learner.features, state.current.version)
        row = copy.first_row_left(owned, state.rows)
        if row is not None:
            raise LedgerError(
                f"{ledger.path} was tampered with: row {row} of the training copy belongs to nobody, but is not empty"
            )
        weights, secret = read_weights(directory, state.current), read_secret(directory, state.current)
        for place, version in enumerate(state.versions):
            current = _check_certificate(directory, model, answered_of(state)[:place], version)
        leftovers = directory.leftovers(state)
        interruption = directory.interruption(state, leftovers, f"`unlearn apply {path}`")
        if interruption is not None:
            begun = f"version {state.planned.version}, which is planned" if state.planned else None
            what = leftovers[0] if leftovers else begun
            raise LedgerError(f"{interruption} (found: {what})")
        _check_version(directory, model, state, weights.ravel(), secret, owned)
        source = source_changed(directory, state, source_key(directory, state))
        strangers = tuple(directory.strangers())
        labels = model.classes_from, model.table.target_range
        text = {column: how.width for column, how in model.table.text.items()}
        unchecked = None if missing is None else f"{UNCHECKED}: {missing.fact}"
        printed = str(Head.over(hashes))
        return Verified(state, len(hashes), printed, current, source, *labels, text, strangers, unchecked, log)


def check_data(
    directory: ModelDirectory, ledger: Ledger, model: StoredModel, state: State, beside: Sequence[Asked] = ()
) -> list[str]:
    """Check the training copy, and the owners of the rows that will be removed. Other owners are only counted.

    Args:
        directory: The model directory.
        ledger: The ledger of the directory.
        model: The part of the model that never changes.
        state: State of the ledger.
        beside: Further digests to compute while the copy is read.

    Returns:
        The further digests.

    Raises:
        LedgerError: The copy or an owner differs from what the log records.
    """
    batch = state.planned
    version, due = state.current.version, state.training_digest
    removed: list[int] = []
    if batch is not None:
        # Some rows of the planned batch may be zeroed already.
        version, due = batch.version, batch.training_digest
        removed = [record.row for record in ledger.owners.records_requested(batch.after, batch.up_to)]
    key = read_key(directory.digest_key(version))
    copy = copy_of(directory, model.learner.features, state.current.version)
    found, *others = copy.digests([Asked(key, removed, waiting_of(state)), *beside])
    if found != due:
        raise LedgerError(f"{copy.place} was tampered with: the training copy is not what the ledger recorded")
    requested = ledger.requests(state.answered_up_to, state.last_request, state.is_gone)
    about_to_go = ledger.owners.records_requested(state.answered_up_to, state.last_request)
    check_tags(ledger, about_to_go)
    left = state.rows - state.records_removed + (0 if batch is None else batch.records_added)
    if (
        Counter(record.identifier for record in about_to_go) != requested
        or ledger.owners.records_requested(0, state.answered_up_to)
        or not ledger.owners.count_records() == ledger.owners.count_rows() == left
    ):
        raise LedgerError(f"{ledger.path} was tampered with: the owner of a row is not what was recorded")
    return others


def check_tags(ledger: Ledger, records: Iterable[Record]) -> list[int]:
    """Check that `init` or `add` wrote the owners of these rows, and return the rows.

    If the ledger names people by pseudonyms and the key of identifiers cannot be read, nothing is checked.
    """
    rows, names = [], ledger.names
    # A directory with pseudonyms whose key is missing is checked as far as possible without the key.
    unchecked = names.hides_people and ledger.missing_key() is not None
    for name, row, written in records:
        if not unchecked and not hmac.compare_digest(written, names.tag(name, row)):
            raise LedgerError(f"{ledger.path} was tampered with: the owner of a row is not what was recorded")
        rows.append(row)
    return rows


def _has_chained(ledger: Ledger, sealed_hashes: Collection[str], chained: str) -> bool:
    """Return whether an event has this hash, now or before a migration."""
    if ledger.sequence_of(chained) is not None:
        return True
    return bool(sealed_hashes) and ledger.names.sealed(chained) in sealed_hashes


def _sealed_hashes(ledger: Ledger, leaves: Sequence[Leaf]) -> set[str]:
    """Return the keyed digests of the old hashes, after a check that a migration wrote them.

    If the key of identifiers is missing, the digests cannot be checked, and the result is empty.

    Raises:
        LedgerError: The digests differ from those that the migration wrote.
    """
    earlier, names = ledger.earlier(), ledger.names
    if not earlier or ledger.missing_key() is not None:
        return set()
    for each in earlier:
        leaf = leaves[each.sequence - 1] if 0 < each.sequence <= len(leaves) else None
        due = None if leaf is None else names.earlier(each.sequence, each.sealed, leaf.hash())
        if leaf is None or due is None or leaf.hidden != each.hidden or not hmac.compare_digest(each.tag, due):
            raise LedgerError(
                f"{ledger.path} was tampered with: event {each.sequence} is not what it was before the migration"
            )
    return {each.sealed for each in earlier}


def _check_batches(ledger: Ledger, state: State) -> None:
    """Check that every batch answered the requests that its event names."""
    for batch in state.batches:
        answered = ledger.requests(batch.after, batch.up_to, state.is_gone)
        if (len(answered), sum(answered.values())) != (batch.requests, batch.records):
            raise LedgerError(
                f"{ledger.path} was tampered with: version {batch.version} does not answer the requests that its event "
                "names"
            )


def _check_absent(ledger: Ledger) -> None:
    """Check that people still have no rows if the log says that they had none; `add` refuses rows of such people."""
    absent = ledger.answered_absent()
    people = ledger.owners.people() if absent else set[str]()
    wrong = next((event for name, event in absent.items() if name in people), None)
    if wrong is not None:
        raise LedgerError(
            f"{ledger.path} was tampered with: event {wrong.sequence} says that somebody had no records in the data, "
            "but this person has records"
        )


def _check_version(
    directory: ModelDirectory,
    model: StoredModel,
    state: State,
    weights: NDArray[Any],
    secret: Secret | None,
    owned: list[int],
) -> None:
    """Check that the current version follows from the remaining records, as far as its mechanism can recompute it."""
    try:
        method_of(directory, model).check(weights, secret, answered_of(state), owned)
    except DataError as error:
        raise LedgerError(f"{directory.path} was tampered with: {error}") from error


def _check_certificate(
    directory: ModelDirectory, model: StoredModel, answered: Sequence[Answered], version: Version
) -> Certificate:
    """Check a version's certificate: its file, its numbers, and that it covers the removals of this ledger."""
    path = directory.certificate(version.version)
    directory.recorded_certificate(version)
    certified = certificate.read_any(path)
    certificate.verify(certified)
    if not method_of(directory, model).is_of(certified, answered, version.lost_before):
        raise LedgerError(f"{path} was tampered with: it covers removals other than those in the ledger")
    for name, stated in stated_by(certified).items():
        if getattr(version, name) != stated and (name, version.certificate) != ("kind", KINDS[certified.kind]):
            raise LedgerError(f"{directory.ledger} was tampered with: it states a different {name} from {path.name}")
    return certified


def spoilt_certificate(directory: ModelDirectory, state: State) -> str | None:
    """Return a note about the first certificate that is missing or was changed; None if there is none.

    Nothing is recomputed, so the check of a thousand certificates takes a hundredth of a second.
    """
    for version in state.versions:
        try:
            directory.recorded_certificate(version)
        except (DataError, LedgerError) as error:
            return str(error)
    return None
