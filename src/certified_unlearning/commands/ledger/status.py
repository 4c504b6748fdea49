"""The command `status`: requests, versions, the guarantee, and how good the model is."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from certified_unlearning.commands.keeping.copies import lines_about
from certified_unlearning.commands.keeping.restores import as_json as restores_as_json
from certified_unlearning.commands.keeping.restores import lines_about_the_log
from certified_unlearning.commands.ledger.use import NOT_FOR_PUBLICATION, look_at_quality, print_quality, warnings_about
from certified_unlearning.commands.ledger.words import (
    command,
    guarantee_as_json,
    guarantee_in_words,
    labels_in_words,
    print_head,
    records_of_people,
    version_in_words,
)
from certified_unlearning.commands.options import AsJson, ModelDir, WithQuality
from certified_unlearning.data.tables.declaration import in_words
from certified_unlearning.ledger import requests
from certified_unlearning.ledger.requests import Status
from certified_unlearning.ledger.state import State, Version
from certified_unlearning.ledger.terms.deadlines import OpenRequest, late, today
from certified_unlearning.text import counted

MOST_LINES = 20
"""The largest number of late and held requests that `status` lists."""
LATE = 3
"""Exit status of `status --fail-when-late` if a request is late. The statuses 1 and 2 indicate a user error."""


def status(
    model_dir: ModelDir,
    quality: WithQuality = True,
    as_json: AsJson = False,
    fail_when_late: Annotated[
        bool,
        typer.Option("--fail-when-late", help=f"Exit with {LATE} if a request is late, so that cron reports it."),
    ] = False,
) -> None:
    """Show a model's requests and versions, its guarantee, its quality, and the path of its weights."""
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
        + (f"; added since: {records_of_people(state.records_added, state.people_added)}" if state.people_added else "")
    )
    print(labels_in_words(found.classes_from, found.target_range))
    if found.class_weight is not None:
        weights = in_words(found.class_weight)
        print(f"weights of classes: {weights} (fixed at `init`; the comparator uses the same weights)")
    print(f"requests: {state.pending:,} pending, {people:,} applied ({counted(records, 'record')} removed)")
    if found.absent:
        print(f"not in this model's data when they asked: {counted(found.absent, 'person')}")
    _print_open(found.open_requests)
    print("".join(f"{line}\n" for line in lines_about(found.copies, state, model_dir)), end="")
    for version in state.versions:
        print(version_in_words(version))
    print("".join(f"{line}\n" for line in lines_about_the_log(found.log, state, model_dir)), end="")
    if not _is_old(found):
        print(guarantee_in_words(state.current))
    print(f"weights: {_weights(model_dir, state) if state.current.certificate.publishes_weights else 'secret'}")
    if quality:
        print_quality(model_dir)
    _print_notes(found, model_dir)
    print_head(found.head)


def _is_old(found: Status) -> bool:
    """Return whether the log's second copy may have a newer version of the model than the directory.

    If so, the numbers that the certificate gives for all versions may be wrong.
    """
    return found.log is not None and found.log.may_have_newer_version


def _print_open(open_requests: Sequence[OpenRequest]) -> None:
    """Print the requests that are late or on hold."""
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
        print(f"{len(lines) - MOST_LINES:,} more are late or on hold: `status --json` lists all of them")


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


def _removed(state: State) -> tuple[int, int]:
    """Return the numbers of people and of records that were removed."""
    return sum(batch.requests for batch in state.batches), sum(batch.records for batch in state.batches)


def _weights(model_dir: Path, state: State) -> Path:
    return model_dir / f"weights-{state.current.version}.safetensors"


def _status_as_json(found: Status, model_dir: Path, with_quality: bool) -> dict[str, Any]:
    """Return the output of `status --json`; docs/howto/ledger.md lists its keys."""
    state = found.state
    people, removed = _removed(state)
    quality = look_at_quality(model_dir) if with_quality else "it was not requested"
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


def _print_notes(found: Status, model_dir: Path) -> None:
    if found.is_busy:
        print("an `apply` or an `add` is running")
    elif found.interruption is not None:
        print(found.interruption)
    if found.source is not None:
        print(f"note: {found.source}")
    if found.in_clear:
        print(f"note: the ledger has plain identifiers: {command('migrate', model_dir)} replaces them by pseudonyms")
