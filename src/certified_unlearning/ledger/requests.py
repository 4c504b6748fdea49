"""Requests to remove people's records, and the status of a model. The module reads neither data nor weights.

It has no heavy imports.
"""

import hmac
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from certified_unlearning.data.tables import csv_file
from certified_unlearning.data.tables.declaration import text_of
from certified_unlearning.data.tables.spellings import ROUNDED
from certified_unlearning.errors import DataError, ParameterError, UnlearningError
from certified_unlearning.files import read_json
from certified_unlearning.ledger.copies.exports import Copy, copies
from certified_unlearning.ledger.directory import BusyError, ModelDirectory, read_key, shell_command
from certified_unlearning.ledger.log.second_place import Standing, problem_of
from certified_unlearning.ledger.log.setting import standing_settled
from certified_unlearning.ledger.proofs.head import head_of
from certified_unlearning.ledger.state import State, read_state
from certified_unlearning.ledger.store import Ledger
from certified_unlearning.ledger.terms.deadlines import NO_TERMS, OpenRequest, Terms, open_requests
from certified_unlearning.ledger.training.keyed import digest_of_file
from certified_unlearning.text import counted
from certified_unlearning.vocabulary import ClassesFrom

if TYPE_CHECKING:
    from certified_unlearning.certificate.ledger import LedgerCertificate

_ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class Recorded:
    """What was recorded about removal requests.

    Attributes:
        people: The number of people whose removal was requested.
        records: The number of their rows.
        pending: The number of requests that now wait for `apply`.
        head: The head of the log, with which anybody can later prove that the request was recorded.
    """

    people: int
    records: int
    pending: int
    head: str


def request(
    path: Path,
    identifiers: Sequence[str],
    file: Path | None = None,
    *,
    one_spelling: bool = False,
    terms: Terms = NO_TERMS,
) -> Recorded:
    """Record requests to remove people's records. All of them are recorded, or none if one is invalid.

    Args:
        path: The model directory.
        identifiers: The people's identifiers, in any spelling that the table's rules treat as equal (7.0 is 7).
        file: A CSV file with more identifiers, in its only column or in the column with the data's identifier name.
        one_spelling: Whether similar identifiers, which differ from the named ones in blanks, case or encoding, belong
            to other people. By default, a request that leaves out a similar identifier is refused.
        terms: When the requests were received and are due, and why they must wait, if they must.

    Raises:
        ParameterError: Nobody is named; a person is named twice, is unknown or was named in an earlier request; or a
            similar identifier is left out.
        DataError: The file or the model directory cannot be read.
        StorageError: The ledger cannot be written.
    """
    directory = ModelDirectory(path)
    kind: Literal["held", "requested"] = "requested" if terms.hold is None else "held"
    with Ledger.opened(directory.ledger) as ledger:
        named = named_people(read_state(ledger), identifiers, file)
        # Within a transaction, no other request can come between two looks at the ledger.
        with recorded_in_utf8(), ledger.transaction():
            state = read_state(ledger)
            records = _count_records(ledger, state, named)
            if not one_spelling:
                _require_all_spellings(ledger, named)
            ledger.append_requests(kind, {each: _payload(ledger, state, each, records[each], terms) for each in named})
            head = head_of(directory, ledger)
    pending = state.pending + (len(named) if kind == "requested" else 0)
    return Recorded(len(named), sum(records.values()), pending, head)


def named_people(state: State, identifiers: Sequence[str], file: Path | None) -> list[str]:
    """Return the identifiers from options and from a file, in the table's form (7.0 becomes 7).

    Raises:
        ParameterError: Nobody is named, or a person is named twice or by a number that a program has rounded.
        DataError: The file cannot be read.
    """
    given = [*identifiers, *([] if file is None else _read_identifiers(file, state.start.id_column))]
    rounded = next((identifier for identifier in given if ROUNDED.fullmatch(identifier)), None)
    if rounded is not None:
        raise ParameterError(
            f"identifier {rounded!r} is a number that a program has rounded, so it may be somebody else's; export "
            "identifiers as text; nothing was recorded"
        )
    named = [str(text_of(identifier)) for identifier in given]
    if not named:
        raise ParameterError("no identifier is named; say --id, or --file with a file of identifiers")
    twice = [identifier for identifier, count in Counter(named).items() if count > 1]
    if twice:
        raise ParameterError(f"{_shown(twice)} named more than once; nothing was recorded")
    return named


@contextmanager
def recorded_in_utf8() -> Iterator[None]:
    """Raise `ParameterError`, as one sentence, if the block gives SQLite a text that is not UTF-8."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise ParameterError(f"{error.object!r} is no UTF-8 text; nothing was recorded") from error


def _payload(ledger: Ledger, state: State, identifier: str, records: int, terms: Terms) -> dict[str, Any]:
    """Return the payload of a request's event."""
    version = state.added_with(ledger.owners.row_of(identifier) or 0)
    added = {"added_with": version} if version > 1 else {}
    return {"records": records} | added | terms.as_payload()


def _count_records(ledger: Ledger, state: State, named: Sequence[str]) -> dict[str, int]:
    """Return each person's number of rows; refuse people who are unknown or whose removal was requested before."""
    records = {}
    for identifier in named:
        earlier = ledger.request_of(identifier)
        if earlier is not None:
            version = state.answering(earlier.sequence)
            answer = "not applied yet" if version is None else f"applied with version {version.version}, {version.time}"
            raise ParameterError(
                f"the removal of {identifier!r} was requested before ({earlier.time}; {answer}); nothing was recorded"
            )
        hold = ledger.hold_of(identifier)
        if hold is not None:
            raise ParameterError(
                f"the removal of {identifier!r} is on hold since {hold.time} ({Terms.read(hold).hold}); `unlearn "
                "release` ends that; nothing was recorded"
            )
        records[identifier] = ledger.owners.count_records_of(identifier)
    unknown = [identifier for identifier, count in records.items() if not count]
    if unknown:
        like = ledger.owners.like(unknown[0])
        hint = "" if like is None else f" (did you mean {ledger.names.in_words(unknown[0], like)}?)"
        raise ParameterError(f"{_shown(unknown)} not in the training data{hint}; nothing was recorded")
    return records


def _require_all_spellings(ledger: Ledger, named: Sequence[str]) -> None:
    """Refuse a request that leaves out an identifier which looks like another spelling of a named one."""
    names = ledger.names
    chosen = {names.stored(each) for each in named}
    for identifier in named:
        others = [each for each in ledger.owners.other_spellings(identifier) if each not in chosen]
        left_out = [each for each in others if ledger.request_named(each) is None]
        if left_out:
            records = counted(ledger.owners.count_records_named(left_out[0]), "record")
            raise ParameterError(
                f"{identifier!r} may be {names.with_difference(identifier, left_out[0])} ({records}): name both if "
                "they are one person, or say --one-spelling if they are not; nothing was recorded"
            )


def count_known(path: Path, identifiers: Sequence[str]) -> tuple[int, int]:
    """Return how many of these people have records in the training copy, and how many requested their removal.

    Raises:
        DataError: There is no model, or its ledger is damaged.
    """
    with Ledger.opened(ModelDirectory(path).ledger, read_only=True) as ledger:
        requested = [identifier for identifier in identifiers if ledger.request_of(identifier) is not None]
        return sum(ledger.owners.count_records_of(identifier) > 0 for identifier in identifiers), len(requested)


def _shown(identifiers: Sequence[str]) -> str:
    """Return the identifiers as the subject of a sentence, with its verb."""
    first = f"identifier {identifiers[0]!r}"
    return f"{first} is" if len(identifiers) == 1 else f"{first} (and {len(identifiers) - 1} more) are"


def _read_identifiers(path: Path, column: str) -> list[str]:
    if path.suffix.lower() in (".parquet", ".pq"):
        raise DataError(f"{path} is named like Parquet, but identifiers are read from CSV; export them as CSV")
    blocks = csv_file.read(path, _ROWS_AT_ONCE)
    first = next(blocks, [[]])[0]
    rows = [row for block in blocks for row in block]
    if first.count(column) > 1:
        raise DataError(f"{path} has two columns {column!r}; rename one")
    if column in first:
        place = first.index(column)
    elif len(first) == 1 and column in re.split(r"[;\t|]", first[0]):
        csv_file.require_commas(path)
        raise DataError(f"{path} has one column, {first[0]!r}, but none that is called {column!r}")
    elif len(first) > 1:
        raise DataError(f"{path} has several columns and none of them is called {column!r}")
    else:
        place, rows = 0, [first, *rows] if first else rows
    if not rows:
        raise DataError(f"{path} holds no identifiers")
    empty = next((number for number, row in enumerate(rows, 1) if not row[place].strip()), None)
    if empty is not None:
        raise DataError(f"{path}, row {empty}: {column} is missing; leave out the row")
    return [row[place] for row in rows]


@dataclass(frozen=True)
class Status:
    """The status of a model.

    Attributes:
        state: State of the ledger.
        head: The head of the log.
        open_requests: The requests that wait or are on hold.
        copies: The copies of the model elsewhere.
        is_busy: Whether an `apply` or an `add` is running.
        source: A note about the file that the data came from; None if it is unchanged.
        classes_from: The origin of the list of classes; None if an earlier `init` did not record it, or if numbers are
            predicted.
        class_weight: Weights of the classes' losses, as declared at `init`; None if all are 1.
        target_range: The declared range of numbers to predict; None if classes are predicted.
        meaning: What the guarantee of the current version means, as a sentence without technical terms, or why the
            certificate cannot be read or repeated; None if nothing is guaranteed.
        interruption: A note about an interrupted command; None if there was none.
        in_clear: Whether the ledger stores plain identifiers, as in earlier releases.
        log: The state of the log in the second place; None if there is none.
    """

    state: State
    head: str
    open_requests: Sequence[OpenRequest]
    copies: Sequence[Copy]
    is_busy: bool
    source: str | None
    classes_from: ClassesFrom | None
    class_weight: Mapping[str, float] | None
    target_range: tuple[float, float] | None
    meaning: str | None
    interruption: str | None
    in_clear: bool
    log: Standing | None


def status(path: Path) -> Status:
    """Return the status of a model. Nothing is changed.

    Raises:
        DataError: There is no model, or its ledger is damaged.
    """
    directory = ModelDirectory(path)
    with Ledger.opened(directory.ledger, read_only=True) as ledger:
        state = read_state(ledger)
        head, waiting, elsewhere = head_of(directory, ledger), open_requests(ledger, state), copies(ledger)
        in_clear = not ledger.names.hides_people
        log = standing_settled(ledger)
    leftovers, is_busy = look_for_leftovers(directory, state)
    source, labels = source_changed(directory, state), about_labels(directory)
    try:
        meaning = current_certificate(directory, state).meaning()
    except UnlearningError as error:
        meaning = f"note: what is guaranteed cannot be read: {error}"
    if log is not None and log.may_have_newer_version:
        meaning = f"note: {problem_of(log, path)}; until then nothing that is guaranteed is repeated here"
    return Status(
        state,
        head,
        waiting,
        elsewhere,
        is_busy,
        source,
        labels.classes_from,
        labels.class_weight,
        labels.target_range,
        meaning,
        None if is_busy else directory.interruption(state, leftovers, f"`{shell_command('apply', path)}`"),
        in_clear,
        log,
    )


def look_for_leftovers(directory: ModelDirectory, state: State) -> tuple[tuple[Path, ...], bool]:
    """Return the files that an interrupted `apply` left (none while one is running), and whether one is running."""
    try:
        with directory.locked(shared=True):
            return tuple(directory.leftovers(state)), False
    except BusyError:
        return (), True


def current_certificate(directory: ModelDirectory, state: State) -> "LedgerCertificate":
    """Read the current version's certificate, without recomputing its numbers.

    If later versions were lost, the certificate does not count them. Its statement about all versions is then left out.

    Raises:
        DataError: The file cannot be read.
        LedgerError: It differs from what the log records about it.
    """
    directory.recorded_certificate(state.current)
    certified = state.current.certificate.read(directory.certificate(state.current.version))
    return certified.of_one_release() if state.current.lost_since else certified


class Labels(NamedTuple):
    """What `model.json` says about the labels.

    Attributes:
        classes_from: The origin of the list of classes; None if it is not recorded.
        class_weight: Weights of the classes' losses; None if all are 1.
        target_range: The declared range of numbers to predict; None if classes are predicted.
    """

    classes_from: ClassesFrom | None = None
    class_weight: Mapping[str, float] | None = None
    target_range: tuple[float, float] | None = None


def about_labels(directory: ModelDirectory) -> Labels:
    """Return what `model.json` says about the labels.

    The file is read as plain JSON, because its Pydantic model imports the learners.

    Raises:
        DataError: The file cannot be read.
    """
    stored = read_json(directory.model)
    if not isinstance(stored, dict):
        return Labels()
    origin, table = stored.get("classes_from"), stored.get("table")
    declared = table if isinstance(table, dict) else {}
    weights, ends = declared.get("class_weight"), declared.get("target_range")
    return Labels(
        origin if origin in get_args(ClassesFrom) else None,
        weights if isinstance(weights, dict) else None,
        None if ends is None else tuple(ends),
    )


def source_key(directory: ModelDirectory, state: State) -> bytes | None:
    """Return the key of the digest of the file that the data came from; None after a removal, which deletes the key.

    Raises:
        DataError: The key cannot be read.
    """
    return read_key(directory.digest_key(1)) if len(state.versions) == 1 else None


def source_changed(directory: ModelDirectory, state: State, key: bytes | None = None) -> str | None:
    """Return a note about the file that the data came from; None if it is unchanged.

    After the first removal there is no note. The removal deletes the key of the digest, so that nobody can use it to
    test guesses of what was removed.

    Args:
        directory: The model directory.
        state: State of the ledger.
        key: The key of the file's digest. With it, the file is read even if its time of change is unchanged.
    """
    start = state.start
    if len(state.versions) > 1:
        return None
    source = Path(start.source)
    try:
        if source.stat().st_mtime_ns == start.source_modified and key is None:
            return None
        found = digest_of_file(source, key or read_key(directory.digest_key(1)))
    except OSError as error:
        return f"{source} cannot be read any more ({error.strerror}); what counts is the copy in {directory.path}"
    if hmac.compare_digest(found, start.source_digest):
        return None
    return f"{source} has changed since `unlearn init`; what counts is the copy made then, in {directory.path}"
