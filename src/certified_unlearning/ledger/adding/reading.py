"""Functions that read new records in the same way as `init` reads a table.

The records then wait in files, and are not part of the data yet.

The declaration of `init` stays in force: columns, categories, ranges, classes. The owners of the records are checked.
Nobody's records are added twice, and nobody whose removal was requested is added again.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np

from certified_unlearning.data.tables.spellings import Group, Spellings, is_absent
from certified_unlearning.data.tables.table import label_values, read_blocks, require_known
from certified_unlearning.data.tables.table_file import column_names
from certified_unlearning.data.tables.table_values import UnfitError
from certified_unlearning.data.tables.targets import TargetCounts
from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.model import StoredModel, with_intercept
from certified_unlearning.ledger.state import State
from certified_unlearning.ledger.store import Ledger
from certified_unlearning.ledger.training.forms import adding

UNCHANGED = (
    "nothing was added: correct the file or leave such rows out, because the declaration that `unlearn init` recorded "
    "cannot be changed"
)


@dataclass(frozen=True)
class NewRecords:
    """New records and counts of them, which the operator sees before the model learns.

    The counts depend on the records. Only the numbers of records and of people are stored.

    Attributes:
        identifiers: The identifier of each row, in the file's order.
        people: The number of different identifiers.
        classes: The number of records of each class; empty for a model that predicts numbers.
        outside: The number of targets outside their range; each is replaced by the nearer end of the range.
        left_out: Columns of the file that are not used.
        spellings: Groups of identifiers that look like spellings of one identifier; at least one of each group is new.
        unnamed: New identifiers that resemble the identifier of a person in the model, if only this person's pseudonym
            is known.
        absent: Identifiers that stand for a missing identifier, such as NULL, and occur in one row each.
        first_of_several_rows: A person with several of the new rows, if nobody had several rows so far; otherwise None.
        answers: The number of pending requests, which the same version answers.
    """

    identifiers: Sequence[str]
    people: int
    classes: Mapping[str, int]
    outside: int
    left_out: Sequence[str]
    spellings: Sequence[Group]
    unnamed: Sequence[str]
    absent: Sequence[str]
    first_of_several_rows: str | None
    answers: int

    @property
    def records(self) -> int:
        """Number of records: all rows of the file."""
        return len(self.identifiers)


def read_new_records(
    directory: ModelDirectory,
    ledger: Ledger,
    model: StoredModel,
    state: State,
    file: Path,
    *,
    one_spelling: bool,
) -> NewRecords:
    """Read a file, check the owners of its records, and write the rows and labels to files where they wait.

    Args:
        directory: The model directory.
        ledger: The ledger of the directory.
        model: The part of the model that never changes.
        state: State of the ledger.
        file: A CSV or Parquet file with the columns of `init`.
        one_spelling: Whether a new identifier that resembles a removed person's identifier belongs to a different
            person.

    Raises:
        DataError: The file cannot be read, or has undeclared values.
        ParameterError: A person is in the model already, or was removed from it.
    """
    # Only the path is new: the rest of the declaration stays.
    table = model.table.model_copy(update={"path": str(file)})
    known, requested = ledger.owners.people(), ledger.owners.people_requested()
    try:
        columns = column_names(str(file))
    except DataError as error:
        raise DataError(f"{error}; nothing was added") from error
    version = state.next_version
    labels = label_values(table)
    targets = TargetCounts.of(table.target_range, intercept=model.intercept)
    by_class = np.zeros(len(labels), np.int64)
    rows_of: Counter[str] = Counter()
    identifiers: list[str] = []
    with Spellings() as spellings, adding(directory, version) as writer:
        try:
            for block in read_blocks(table):
                rows = with_intercept(block.features) if model.intercept else block.features
                writer.add(rows, block.labels if targets is None else targets.scaled(block.labels))
                identifiers += block.identifiers or []
                spellings.add(block.spellings or [])
                by_class += (block.labels[:, None] == labels).sum(axis=0)
            rows_of.update(identifiers)
            require_known(table, {each: count for each, count in rows_of.items() if is_absent(each)})
        except DataError as error:
            # The error's advice to change the declaration is left out, because the declaration can no longer change.
            found = error.fact if isinstance(error, UnfitError) else str(error)
            raise DataError(f"{found}; {UNCHANGED}") from error
        _require_new(rows_of, known, requested, ledger, state)
        # A new identifier may look like another spelling of an old one.
        alike = ledger.owners.alike(rows_of)
        if not one_spelling:
            _require_unlike_removed(alike, requested, ledger, state)
        unnamed = _add_old_spellings(spellings, alike, requested, ledger)
        groups = [group for group in spellings.groups() if any(each in rows_of for each in group.people)]
    used = {*table.roles.values(), *(table.features or ())}
    one_row_each = ledger.owners.count_records() == len(known)
    return NewRecords(
        identifiers=identifiers,
        people=len(rows_of),
        classes=dict(zip([str(name) for name in table.classes or ()], by_class.tolist(), strict=True)),
        outside=0 if targets is None else targets.outside,
        left_out=[column for column in columns if column not in used],
        spellings=groups,
        unnamed=unnamed,
        absent=[each for each in rows_of if is_absent(each)],
        first_of_several_rows=next((each for each, count in rows_of.items() if count > 1 and one_row_each), None),
        answers=state.waiting,
    )


def _require_new(
    rows_of: Mapping[str, int], known: set[str], requested: set[str], ledger: Ledger, state: State
) -> None:
    """Raise `ParameterError` if a person of the file was removed, has asked for removal, or is in the model already."""
    names = ledger.names
    stored = {each: names.stored(each) for each in rows_of}
    back = [each for each, name in stored.items() if name in requested]
    if back:
        _refuse(
            back,
            f"{_removed(stored[back[0]], ledger, state)}, and a removal is permanent: leave the rows out. Somebody who "
            "wants to come back needs an identifier that was never used",
        )
    absent = ledger.answered_absent()
    asked = [each for each, name in stored.items() if name in absent]
    if asked:
        _refuse(
            asked,
            f"asked to be removed ({absent[stored[asked[0]]].time}), and was not in this model's data then: leave the "
            "rows out. Somebody who wants to come back needs an identifier that was never used",
        )
    again = [each for each, name in stored.items() if name in known]
    if again:
        version = state.added_with(ledger.owners.row_of(again[0]) or 0)
        since = f"since version {version}" if len(again) == 1 else f"{again[0]!r} since version {version}"
        _refuse(
            again,
            f"{'is' if len(again) == 1 else 'are'} in the model already ({since}): `add` accepts only people who "
            "are not in it, with all their rows; leave these rows out",
        )


def _refuse(identifiers: Sequence[str], why: str) -> NoReturn:
    more = f" (and {len(identifiers) - 1:,} more)" if len(identifiers) > 1 else ""
    raise ParameterError(f"identifier {identifiers[0]!r}{more} {why}; nothing was added")


def _removed(name: str, ledger: Ledger, state: State) -> str:
    """Return a phrase that says when a person's removal was requested, and whether it was carried out."""
    request = ledger.request_named(name)
    assert request is not None
    version = state.answering(request.sequence)
    answer = "not applied yet" if version is None else f"applied with version {version.version}"
    return f"was to be removed ({request.time}; {answer})"


def _require_unlike_removed(
    alike: Mapping[str, Sequence[str]], requested: set[str], ledger: Ledger, state: State
) -> None:
    """Raise `ParameterError` if a new identifier may be another spelling of a removed person's identifier."""
    for new, others in alike.items():
        removed = next((each for each in others if each in requested), None)
        if removed is not None:
            raise ParameterError(
                f"identifier {new!r} may be {ledger.names.with_difference(new, removed)}; the latter "
                f"{_removed(removed, ledger, state)}: if both are one person, leave the rows out; otherwise, "
                "give --one-spelling; nothing was added"
            )


def _add_old_spellings(
    spellings: Spellings, alike: Mapping[str, Sequence[str]], requested: set[str], ledger: Ledger
) -> list[str]:
    """Add to ``spellings`` those identifiers of people in the model that resemble new identifiers.

    People whose removal was requested are not considered.

    Returns:
        Each new identifier that resembles the identifier of a person in the model, if only the pseudonym of that person
        is known.
    """
    unnamed = []
    for new, others in alike.items():
        left = [ledger.names.recognised(new, each) for each in others if each not in requested]
        spellings.add(each for each in left if each is not None)
        if None in left:
            unnamed.append(new)
    return unnamed
