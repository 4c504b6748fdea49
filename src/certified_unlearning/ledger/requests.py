"""Requests to remove people's records, and the status of a model. The module reads neither data nor weights.

It has no heavy imports.
"""

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from certified_unlearning.errors import ParameterError, UnlearningError
from certified_unlearning.files import read_json
from certified_unlearning.ledger.copies.exports import Copy, copies
from certified_unlearning.ledger.directory import BusyError, ModelDirectory, read_key, shell_command
from certified_unlearning.ledger.identifiers.given import given_people, recorded_in_utf8, require_once, subject_of
from certified_unlearning.ledger.log.second_place import Standing, problem_of
from certified_unlearning.ledger.log.setting import standing_settled
from certified_unlearning.ledger.proofs.head import head_of
from certified_unlearning.ledger.state import State, read_state
from certified_unlearning.ledger.store import Ledger
from certified_unlearning.ledger.terms.absent import answer_absent
from certified_unlearning.ledger.terms.deadlines import NO_TERMS, OpenRequest, Terms, open_requests
from certified_unlearning.ledger.training.keyed import digest_of_file
from certified_unlearning.text import counted
from certified_unlearning.vocabulary import ClassesFrom

if TYPE_CHECKING:
    from certified_unlearning.certificate.ledger import LedgerCertificate

Answer = Literal["not in this model's data", "requested before", "on hold"]
"""The answers of `request` about people whom it skips."""
NOT_IN_DATA: Answer = "not in this model's data"
_OPTION = "--skip-unknown reports such identifiers, and requests the removal of the others"


class Skipped(NamedTuple):
    """A person whom a request named, but whose removal this request did not record.

    Attributes:
        identifier: The person's identifier.
        answer: The reason why the removal was not requested now.
        recorded: The time, in UTC, of the event to which ``answer`` refers. This event is the person's earlier request,
            the hold on that request, or the note in the log that the person has no records.
        version: The version that removed the records; None if no version removed them.
        applied: The time, in UTC, when ``version`` became the current version; None if ``version`` is None.
    """

    identifier: str
    answer: Answer
    recorded: str
    version: int | None = None
    applied: str | None = None


@dataclass(frozen=True)
class Recorded:
    """Result of recording removal requests.

    Attributes:
        people: The number of people whose removal was requested.
        records: The number of these people's rows.
        pending: The number of requests that now wait for `apply`.
        head: The head of the log, with which anybody can later prove that the request was recorded.
        requested: The number of rows of each person whose removal was requested, keyed by identifier.
        skipped: The people who were skipped, each with the answer that is in the log.
        repeated: Identifiers that were named more than once; each counts as one.
    """

    people: int
    records: int
    pending: int
    head: str
    requested: Mapping[str, int] = field(default_factory=dict)
    skipped: Sequence[Skipped] = ()
    repeated: Sequence[str] = ()


def request(
    path: Path,
    identifiers: Sequence[str],
    file: Path | None = None,
    *,
    one_spelling: bool = False,
    skip_unknown: bool = False,
    terms: Terms = NO_TERMS,
) -> Recorded:
    """Record requests to remove people's records. All of them are recorded, or none if one is invalid.

    Args:
        path: The model directory.
        identifiers: The people's identifiers, in any spelling that the table's rules treat as equal (7.0 is 7).
        file: A CSV file with more identifiers, in its only column or in the column named like the data's identifier
            column.
        one_spelling: Whether similar identifiers, which differ from the named ones in blanks, case or encoding, belong
            to other people. By default, a request that leaves out a similar identifier is refused.
        skip_unknown: Whether people without records, people whose removal was requested before, and repeated
            identifiers are skipped and reported. Otherwise they are refused. For each person without records, the log
            has one event, under a pseudonym, to show that no records were found.
        terms: The terms of the requests: when they were received and are due, and why they must wait, if they must.

    Raises:
        ParameterError: Nobody is named. A person is named twice, is unknown, or was named in an earlier request. An
            identifier in the data is similar to a named identifier, and is not named itself. With ``skip_unknown``,
            unknown identifiers raise this error in fewer cases: if they are similar to an identifier that is or was in
            the data, stand for a missing identifier, are a header, or contain several identifiers.
        DataError: The file or the model directory cannot be read.
        StorageError: The ledger cannot be written.
    """
    directory = ModelDirectory(path)
    kind: Literal["held", "requested"] = "requested" if terms.hold is None else "held"
    with Ledger.opened(directory.ledger) as ledger:
        column = read_state(ledger).start.id_column
        given = given_people(identifiers, file, column)
        if not skip_unknown:
            require_once(given, file, f" ({_OPTION})")
        # Within a transaction, no other request can come between two looks at the ledger.
        with recorded_in_utf8(), ledger.transaction():
            state = read_state(ledger)
            records, asked = dict[str, int](), list[Skipped]()
            for each in given.people:
                earlier = _asked_before(ledger, state, each)
                if earlier is None:
                    records[each] = ledger.owners.count_records_of(each)
                elif skip_unknown:
                    asked.append(earlier)
                else:
                    raise ParameterError(_refusal(ledger, earlier))
            unknown = [identifier for identifier, count in records.items() if not count]
            if given.likely_header in unknown:
                raise ParameterError(
                    f"{file}, line 1: {given.likely_header!r} is not in the training data, and looks like a header; "
                    f"if it is one, replace it by {column!r}, the name of the data's identifier column; nothing "
                    "was recorded"
                )
            if unknown and not skip_unknown:
                raise ParameterError(_unknown(ledger, unknown))
            found = {each: count for each, count in records.items() if count}
            if not one_spelling:
                _require_all_spellings(ledger, [*found])
            told = answer_absent(ledger, unknown, terms, one_spelling=one_spelling)
            absent = [Skipped(identifier, NOT_IN_DATA, time) for identifier, time in told.items()]
            ledger.append_requests(kind, {each: _payload(ledger, state, each, found[each], terms) for each in found})
            head = head_of(directory, ledger)
    pending = state.pending + (len(found) if kind == "requested" else 0)
    return Recorded(
        len(found), sum(found.values()), pending, head, found, (*absent, *asked), given.repeated if skip_unknown else ()
    )


def _payload(ledger: Ledger, state: State, identifier: str, records: int, terms: Terms) -> dict[str, Any]:
    """Return the payload of a request's event."""
    version = state.added_with(ledger.owners.row_of(identifier) or 0)
    added = {"added_with": version} if version > 1 else {}
    return {"records": records} | added | terms.as_payload()


def _asked_before(ledger: Ledger, state: State, identifier: str) -> Skipped | None:
    """Return the earlier request, or the hold, of somebody who was named before."""
    earlier = ledger.request_of(identifier)
    if earlier is not None:
        version = state.answering(earlier.sequence)
        answered = (None, None) if version is None else (version.version, version.time)
        return Skipped(identifier, "requested before", earlier.time, *answered)
    hold = ledger.hold_of(identifier)
    return None if hold is None else Skipped(identifier, "on hold", hold.time)


def _refusal(ledger: Ledger, earlier: Skipped) -> str:
    """Return a message that says why somebody who was named before is refused."""
    identifier = earlier.identifier
    if earlier.answer == "on hold":
        hold = ledger.hold_of(identifier)
        assert hold is not None
        return (
            f"the removal of {identifier!r} has been on hold since {hold.time} ({Terms.read(hold).hold}); `unlearn "
            f"release` ends the hold; nothing was recorded ({_OPTION})"
        )
    answer = (
        "not applied yet" if earlier.version is None else f"applied with version {earlier.version}, {earlier.applied}"
    )
    return (
        f"the removal of {identifier!r} was requested before ({earlier.recorded}; {answer}); nothing was recorded "
        f"({_OPTION})"
    )


def _unknown(ledger: Ledger, unknown: Sequence[str]) -> str:
    """Return a message that says why people without records are refused."""
    like = ledger.owners.like(unknown[0])
    hint = "" if like is None else f" (did you mean {ledger.names.in_words(unknown[0], like)}?)"
    return f"{subject_of(unknown)} not in the training data{hint}; nothing was recorded ({_OPTION})"


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
                "they are one person; otherwise, give --one-spelling; nothing was recorded"
            )


def count_known(path: Path, identifiers: Sequence[str]) -> tuple[int, int]:
    """Return how many of these people have records in the training copy, and how many have asked to be removed.

    People are also counted if they had no records in the data when they asked, because their records must not be used
    either.

    Raises:
        DataError: There is no model, or its ledger is damaged.
    """
    with Ledger.opened(ModelDirectory(path).ledger, read_only=True) as ledger:
        absent, names = ledger.answered_absent(), ledger.names
        asked = sum(ledger.request_of(each) is not None or names.stored(each) in absent for each in identifiers)
        return sum(ledger.owners.count_records_of(each) > 0 for each in identifiers), asked


@dataclass(frozen=True)
class Status:
    """The status of a model.

    Attributes:
        state: State of the ledger.
        head: The head of the log.
        open_requests: The requests that wait or are on hold.
        absent: The number of people who asked to be removed, and were told that they had no records in the data.
        copies: The copies of the model elsewhere.
        is_busy: Whether an `apply` or an `add` is running.
        source: A note about the file that the data came from; None if it is unchanged.
        classes_from: The origin of the list of classes; None if an earlier `init` did not record it, or if numbers are
            predicted.
        class_weight: Weights of the classes' losses, as declared at `init`; None if all are 1.
        target_range: The declared range of numbers to predict; None if classes are predicted.
        meaning: The meaning of the current version's guarantee, as a sentence without technical terms, or a note on why
            the guarantee cannot be shown; None if nothing is guaranteed.
        interruption: A note about an interrupted command; None if there was none.
        in_clear: Whether the ledger stores plain identifiers, as in earlier releases.
        log: The state of the second copy of the log; None if the ledger names no second copy.
    """

    state: State
    head: str
    open_requests: Sequence[OpenRequest]
    absent: int
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
        in_clear, absent = not ledger.names.hides_people, len(ledger.answered_absent())
        log = standing_settled(ledger)
    leftovers, is_busy = look_for_leftovers(directory, state)
    source, labels = source_changed(directory, state), about_labels(directory)
    try:
        meaning = current_certificate(directory, state).meaning()
    except UnlearningError as error:
        meaning = f"note: the guarantee cannot be read: {error}"
    if log is not None and log.may_have_newer_version:
        meaning = f"note: {problem_of(log, path)}; until then, no guarantee is shown here"
    return Status(
        state,
        head,
        waiting,
        absent,
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
    """Return the files that an interrupted `apply` left, and whether an `apply` is running.

    If an `apply` is running, no files are returned.
    """
    try:
        with directory.locked(shared=True):
            return tuple(directory.leftovers(state)), False
    except BusyError:
        return (), True


def current_certificate(directory: ModelDirectory, state: State) -> "LedgerCertificate":
    """Read the current version's certificate, without recomputing its numbers.

    If later versions were lost, the certificate does not count them. The certificate's statement about all versions is
    then left out.

    Raises:
        DataError: The file cannot be read.
        LedgerError: The file differs from what the log records about it.
    """
    directory.recorded_certificate(state.current)
    certified = state.current.certificate.read(directory.certificate(state.current.version))
    return certified.of_one_release() if state.current.lost_since else certified


class Labels(NamedTuple):
    """The part of `model.json` that describes the labels.

    Attributes:
        classes_from: The origin of the list of classes; None if it is not recorded.
        class_weight: Weights of the classes' losses; None if all are 1.
        target_range: The declared range of numbers to predict; None if classes are predicted.
    """

    classes_from: ClassesFrom | None = None
    class_weight: Mapping[str, float] | None = None
    target_range: tuple[float, float] | None = None


def about_labels(directory: ModelDirectory) -> Labels:
    """Return the part of `model.json` that describes the labels.

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
        key: The key of the file's digest. If the key is given, the file is read even if its modification time is
            unchanged.
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
        return f"{source} cannot be read any more ({error.strerror}); the model uses the copy in {directory.path}"
    if hmac.compare_digest(found, start.source_digest):
        return None
    return f"{source} has changed since `unlearn init`; the model uses the copy made then, in {directory.path}"
