"""The commands of the request ledger: `init`, `request`, `apply`, `add`, `status`, and `verify` for a directory."""

import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from certified_unlearning.commands import ledger_init
from certified_unlearning.commands.keeping.copies import export, lines_about
from certified_unlearning.commands.keeping.holds import release
from certified_unlearning.commands.keeping.migration import migrate
from certified_unlearning.commands.keeping.receipts import receipt
from certified_unlearning.commands.keeping.requests import request
from certified_unlearning.commands.keeping.restores import as_json as restores_as_json
from certified_unlearning.commands.keeping.restores import lines_about_the_log, log, replay
from certified_unlearning.commands.ledger_use import (
    NOT_FOR_PUBLICATION,
    evaluate,
    look_at_quality,
    predict,
    print_left_out,
    print_quality,
    print_warnings,
    show,
    warnings_about,
)
from certified_unlearning.commands.options import AsJson, ModelDir, WithQuality
from certified_unlearning.commands.output import after, interruptible
from certified_unlearning.data.tables.declaration import in_words
from certified_unlearning.errors import UnlearningError
from certified_unlearning.ledger import requests
from certified_unlearning.ledger.directory import shell_command
from certified_unlearning.ledger.requests import Status
from certified_unlearning.ledger.state import State, Version
from certified_unlearning.ledger.terms.deadlines import OpenRequest, late, today
from certified_unlearning.text import counted, seconds_in_words, with_commas
from certified_unlearning.vocabulary import ClassesFrom

if TYPE_CHECKING:
    from certified_unlearning.ledger.adding.reading import NewRecords
    from certified_unlearning.ledger.application import Applied


def register(app: typer.Typer) -> None:
    """Add the commands, but for `verify`, which verifies files too."""
    ledger_init.register(app)
    commands = (request, release, apply, add, status, show, receipt, export, log, replay, predict, evaluate, migrate)
    for command in commands:
        app.command(command.__name__)(command)


def apply(
    model_dir: ModelDir,
    device: Annotated[
        str | None, typer.Option(help="Device for the computation: auto, cpu or cuda; by default that of `init`.")
    ] = None,
    quality: WithQuality = True,
) -> None:
    """Answer all pending requests with a new version, its certificate, and a training copy without the records.

    After a crash or a full disk, run it again: it finishes what was begun, once.
    """
    from certified_unlearning.ledger.application import apply as apply_requests

    with interruptible(lambda: f"nothing is lost; {_command('apply', model_dir)} goes on"):
        applied = apply_requests(model_dir, device=device)
        made = f"version {applied.versions[-1].version} was made" if applied.versions else "no request is pending"
        with after(f"{made} (head: {applied.head})"):
            _print_applied(applied, model_dir, quality)


def add(
    model_dir: ModelDir,
    data: Annotated[
        Path, typer.Option(help="New records: a .csv, .csv.gz or .parquet file with the columns of `init`.")
    ],
    one_spelling: Annotated[
        bool,
        typer.Option(
            "--one-spelling",
            help="Treat identifiers that differ from a removed one only in blanks, case or encoding as other people's.",
        ),
    ] = False,
    quality: WithQuality = True,
) -> None:
    """Add new people's records, and answer all pending requests, with one new version of the model and its certificate.

    All records are added, or none. After a crash or a full disk, run it again: it finishes what was begun, once.
    """
    from certified_unlearning.ledger.adding.addition import add as add_records

    with interruptible(lambda: f"{_command('status', model_dir)} says whether the records were added"):
        added = add_records(model_dir, data, one_spelling=one_spelling, announce=functools.partial(_announce_new, data))
        said = f"version {added.versions[-1].version} was made" if added.versions else "nothing was added"
        with after(f"{said} (head: {added.head})"):
            _print_deleted(added.deleted)
            for version in added.versions:
                _print_version(version)
            if added.known:
                again = "" if added.versions else "; nothing was added again"
                print(f"{data} was added with the current version{again}")
                if added.pending:
                    wait = "waits" if added.pending == 1 else "wait"
                    answers = f"{_command('apply', model_dir)} answers {'it' if added.pending == 1 else 'them'}"
                    print(f"{counted(added.pending, 'request')} still {wait}: {answers}")
            else:
                if quality:
                    print_quality(model_dir, again=True)
                print(f"{data} is still there: what is removed from the model must be removed there too")
            _print_head(added.head)


def _announce_new(data: Path, new: "NewRecords", seconds: float) -> None:
    """Print what was read from the file of new records, before the model learns."""
    from certified_unlearning.data.tables.spellings import described
    from certified_unlearning.data.tables.table_values import listed

    with after("nothing was added"):
        print(f"{data}: {counted(new.records, 'record')} of {counted(new.people, 'new person')}")
        if new.classes:
            print("classes: " + ", ".join(f"{name!r} {count:,}" for name, count in new.classes.items()))
        if new.outside:
            print(f"outside the range of the label: {counted(new.outside, 'record')}, which count as its nearer end")
        print_left_out(new.left_out)
        warnings = described(new.spellings)
        if new.unnamed:
            several = counted(len(new.unnamed), "new identifier")
            warnings.append(
                f"{several} may be another spelling of somebody's in the model, such as {new.unnamed[0]!r}: they count "
                "as different people, so a request for one must name the other, too"
            )
        if new.absent:
            warnings.append(
                f"the identifier is {listed(new.absent)} in one row each: remove these people again if that means that "
                "it is missing"
            )
        if new.first_of_several_rows is not None:
            warnings.append(
                f"several of the new rows have the identifier {new.first_of_several_rows!r}, and count as one "
                "person's; so far everybody had one row"
            )
        print_warnings(warnings)
        if new.answers:
            print(f"{counted(new.answers, 'pending request')} {'is' if new.answers == 1 else 'are'} answered with it")
        print(f"learning takes about {seconds_in_words(seconds)}", flush=True)


def _print_applied(applied: "Applied", model_dir: Path, quality: bool) -> None:
    for note in (applied.source, applied.unchecked):
        if note is not None:
            print(f"note: {note}")
    if applied.certificate is not None:
        print(f"note: {applied.certificate}; requests are answered nevertheless")
    _print_deleted(applied.deleted)
    if applied.interruption is not None:
        print(f"note: {applied.interruption}")
    for version in applied.versions:
        _print_version(version)
    if applied.versions:
        if quality:
            print_quality(model_dir, again=True)
        print("The file that the data came from is yours: remove the records there too.")
    else:
        print("no request is pending")
    _print_head(applied.head)


def _print_deleted(paths: Sequence[Path]) -> None:
    if paths:
        print(f"deleted what an interrupted command had left: {', '.join(path.name for path in paths)}")


def _print_version(version: Version) -> None:
    print(_version(version))
    print(f"  {guarantee_in_words(version)}")
    if version.batch is not None and version.batch.addition is not None:
        print("  A later removal is compared with learning from all records that are left, the added ones included.")
        covered = "covered only by what is stated for adaptive requests" if version.scope.adaptive else "not covered"
        print(
            "  New records in which an earlier model had a part, such as offers that followed its predictions, are "
            f"{covered}."
        )


MOST_LINES = 20
"""Late and held requests that `status` lists."""
LATE = 3
"""Exit status of `status --fail-when-late` when a request is late: 1 and 2 are mistakes of the user's."""


def status(
    model_dir: ModelDir,
    quality: WithQuality = True,
    as_json: AsJson = False,
    fail_when_late: Annotated[
        bool,
        typer.Option("--fail-when-late", help=f"Exit with {LATE} if a request is late, so that cron reports it."),
    ] = False,
) -> None:
    """Show a model's requests and versions, what is guaranteed, how good it is, and where its weights lie."""
    found = requests.status(model_dir)
    if as_json:
        print(json.dumps(_status_as_json(found, model_dir, quality), indent=2))
    else:
        _print_status(found, model_dir, quality)
    if fail_when_late and late(found.open_requests):
        raise typer.Exit(LATE)


def _print_status(found: Status, model_dir: Path, quality: bool) -> None:
    state = found.state
    people, records = _removed(state)
    if found.meaning is not None:
        print(found.meaning)
    print(
        f"{model_dir}: learned from {counted(state.start.records, 'record')} of {counted(state.start.people, 'person')}"
        + (f"; added since: {_of_people(state.records_added, state.people_added)}" if state.people_added else "")
    )
    print(_labels(found.classes_from, found.target_range))
    if found.class_weight is not None:
        weights = in_words(found.class_weight)
        print(f"weights of classes: {weights} (fixed at `init`; the comparator learns with the same)")
    print(f"requests: {state.pending:,} pending, {people:,} applied ({counted(records, 'record')} removed)")
    if found.absent:
        print(f"not in this model's data when they asked: {counted(found.absent, 'person')}")
    _print_open(found.open_requests)
    print("".join(f"{line}\n" for line in lines_about(found.copies, state, model_dir)), end="")
    for version in state.versions:
        print(_version(version))
    print("".join(f"{line}\n" for line in lines_about_the_log(found.log, state, model_dir)), end="")
    if not _is_old(found):
        print(guarantee_in_words(state.current))
    print(f"weights: {_weights(model_dir, state) if state.current.certificate.publishes_weights else 'secret'}")
    if quality:
        print_quality(model_dir)
    _print_notes(found, model_dir)
    _print_head(found.head)


def _is_old(found: Status) -> bool:
    """Whether the log in the second place may know a newer version: then no number for all versions can be right."""
    return found.log is not None and found.log.may_have_newer_version


def _print_open(open_requests: Sequence[OpenRequest]) -> None:
    """Print which requests are late, and which are on hold."""
    day, lines = today(), []
    for each in late(open_requests, day):
        why = "" if each.terms.hold is None else f", on hold: {each.terms.hold}"
        ago = counted(each.days_late(day), "day")
        lines.append(f"late: request {each.event} was due {each.terms.due} ({ago} ago{why})")
    for each in open_requests:
        if each.terms.hold is not None and not each.days_late(day):
            due = "" if each.terms.due is None else f", due {each.terms.due}"
            lines.append(f"on hold: request {each.event} since {each.recorded}{due}: {each.terms.hold}")
    print("".join(f"{line}\n" for line in lines[:MOST_LINES]), end="")
    if len(lines) > MOST_LINES:
        print(f"{len(lines) - MOST_LINES:,} more are late or on hold: `status --json` lists all")


def _open_as_json(request: OpenRequest) -> dict[str, Any]:
    terms = request.terms
    return {
        "event": request.event,
        "recorded": request.recorded,
        "received": None if terms.received is None else str(terms.received),
        "due": None if terms.due is None else str(terms.due),
        "days_late": request.days_late(today()),
        "hold": terms.hold,
    }


def _labels(origin: ClassesFrom | None, target_range: tuple[float, float] | None) -> str:
    """Return where the list of classes comes from, or the range of numbers."""
    if target_range is not None:
        return f"predicts numbers: from {with_commas(target_range[0])} to {with_commas(target_range[1])}, as declared"
    if origin == "declaration":
        return "classes: declared"
    if origin == "records":
        return (
            "classes: taken from the records; the list stays as it is after a removal, and may show that a removed "
            "record existed"
        )
    return "classes: declared or taken from the records; the version that made this model did not record which"


def _removed(state: State) -> tuple[int, int]:
    """Return of how many people how many records were removed."""
    return sum(batch.requests for batch in state.batches), sum(batch.records for batch in state.batches)


def _weights(model_dir: Path, state: State) -> Path:
    return model_dir / f"weights-{state.current.version}.safetensors"


def _status_as_json(found: Status, model_dir: Path, with_quality: bool) -> dict[str, Any]:
    """Return what `status` says, with the keys that docs/howto/ledger.md lists."""
    state = found.state
    people, removed = _removed(state)
    quality = look_at_quality(model_dir) if with_quality else "it was not asked for"
    known = None if isinstance(quality, str) else quality
    return {
        "model": str(model_dir),
        "records": state.start.records,
        "people": state.start.people,
        "added": {"records": state.records_added, "people": state.people_added},
        "classes_from": found.classes_from,
        "class_weight": found.class_weight,
        "target_range": found.target_range,
        "requests": {
            "pending": state.pending,
            "applied": people,
            "records_removed": removed,
            "not_in_data": found.absent,
        },
        "versions": [_version_as_json(version) for version in state.versions],
        "guarantee": None if _is_old(found) else guarantee_as_json(state.current),
        "weights": str(_weights(model_dir, state)),
        "quality": None if known is None else known.numbers | {"computed": NOT_FOR_PUBLICATION},
        "quality_missing": quality if isinstance(quality, str) else None,
        "busy": found.is_busy,
        "interrupted": found.interruption is not None,
        "source": found.source,
        "warnings": [] if known is None else warnings_about(known, model_dir),
        "open": [_open_as_json(each) for each in found.open_requests],
        "late": len(late(found.open_requests)),
        "in_clear": found.in_clear,
        "copies": [
            {"name": each.name, "version": each.version, "time": each.time, "outdated": each.is_outdated(state)}
            for each in found.copies
        ],
        **restores_as_json(found.log, state, model_dir),
        "head": found.head,
    }


def _version_as_json(version: Version) -> dict[str, Any]:
    batch = version.batch
    return {
        "version": version.version,
        "time": version.time,
        "people_removed": batch.requests if batch else 0,
        "records_removed": batch.records if batch else 0,
        "people_added": batch.addition.people if batch and batch.addition else 0,
        "records_added": batch.records_added if batch else 0,
        "steps": batch.steps if batch and version.certificate.takes_noisy_steps else None,
        "reading": version.reading,
    }


def guarantee_as_json(version: Version) -> dict[str, Any] | None:
    """Return what is guaranteed of a version: its certificate's numbers, not rounded; None without removals."""
    if not version.has_removed:
        return None
    scope, stated = version.scope, version.stated
    everything = stated.epsilon_all_published
    return {
        "version": version.version,
        "compared_with": scope.compared_with,
        "epsilon": stated.epsilon,
        "delta": stated.whole_delta,
        "epsilon_all_versions": everything,
        "delta_all_versions": None if everything is None else stated.delta,
        "adaptive_requests": scope.adaptive,
    }


def verify_as_json(model_dir: Path, head: str | None) -> bool:
    """Print what `verify` says of a model directory as one JSON object; return whether everything is as stated."""
    from certified_unlearning.ledger.verification import verify as verify_directory

    try:
        verified = verify_directory(model_dir, head)
    except UnlearningError as error:
        print(json.dumps({"model": str(model_dir), "verified": False, "error": str(error)}, indent=2))
        return False
    state = verified.state
    found = {
        "model": str(model_dir),
        "verified": True,
        "error": None,
        "events": verified.events,
        "version": state.current.version,
        "certificates": len(state.versions),
        "head_in_log": True if head else None,
        "classes_from": verified.classes_from,
        "target_range": verified.target_range,
        "text": verified.text,
        "guarantee": guarantee_as_json(state.current),
        "source": verified.source,
        "not_checked": [str(path) for path in verified.strangers],
        "unchecked": verified.unchecked,
        **restores_as_json(verified.log, state, model_dir),
        "head": verified.head,
    }
    print(json.dumps(found, indent=2))
    return True


def verify(model_dir: Path, head: str | None) -> None:
    """Recompute everything that a model directory states.

    Raises:
        UnlearningError: Something is not what the ledger recorded.
    """
    from certified_unlearning.ledger.verification import verify as verify_directory

    verified = verify_directory(model_dir, head)
    state, meaning = verified.state, verified.current.meaning()
    owned = "and who has which rows are" if verified.unchecked is None else "is"
    if meaning is not None:
        print(meaning)
    print(
        f"{model_dir}: {counted(verified.events, 'event')} in one chain, version {state.current.version} of the model, "
        f"{counted(len(state.versions), 'certificate')}, the training copy {owned} as recorded"
        + ("; the log begins with the events of the head that you named" if head else "")
    )
    print(_labels(verified.classes_from, verified.target_range))
    for column, width in verified.text.items():
        print(f"text: {column!r}, hashed into {width:,} columns, without a vocabulary")
    print("".join(f"{line}\n" for line in lines_about_the_log(verified.log, state, model_dir)), end="")
    if state.lost:
        print("note: certificates of lost versions are not in the directory, and were not verified")
    print(guarantee_in_words(state.current))
    if verified.source is not None:
        print(f"note: {verified.source}")
    if verified.unchecked is not None:
        print(f"note: {verified.unchecked}")
    for path in verified.strangers:
        print(f"note: {path} is no part of the model; what it holds was not checked")
    _print_head(verified.head)


def _version(version: Version) -> str:
    """Return what a version did."""
    if version.batch is None:
        return f"version 1 ({version.time}): learned"
    batch = version.batch
    done = []
    if batch.addition is not None:
        done.append(f"added {_of_people(batch.addition.records, batch.addition.people)}")
    if batch.requests:
        done.append(f"removed {_of_people(batch.records, batch.requests)}")
    if batch.requests or version.reading is not None:
        done[-1] += f" by {version.certificate.removed_by(batch.steps, version.reading)}"
    return f"version {version.version} ({version.time}): {' and '.join(done)}"


def _of_people(records: int, people: int) -> str:
    return f"{counted(records, 'record')} of {counted(people, 'person')}"


def guarantee_in_words(version: Version) -> str:
    """Return what is guaranteed of a version."""
    if not version.has_removed:
        return "nothing was removed yet, so there is nothing to guarantee"
    return version.scope.sentence


def _command(name: str, model_dir: Path) -> str:
    """Return a command of the ledger as messages show it."""
    return f"`{shell_command(name, model_dir)}`"


def _print_notes(found: Status, model_dir: Path) -> None:
    if found.is_busy:
        print("an `apply` or an `add` is at work")
    elif found.interruption is not None:
        print(found.interruption)
    if found.source is not None:
        print(f"note: {found.source}")
    if found.in_clear:
        print(
            f"note: identifiers stand in the ledger in clear: {_command('migrate', model_dir)} gives people pseudonyms"
        )


def _print_head(head: str) -> None:
    print(f"head: {head}")
