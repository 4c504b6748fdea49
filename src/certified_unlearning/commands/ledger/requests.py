"""The command `unlearn request`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from certified_unlearning.commands.ledger.use import print_warnings
from certified_unlearning.commands.options import AsJson, ModelDir
from certified_unlearning.commands.output import after, interruptible
from certified_unlearning.ledger import requests
from certified_unlearning.ledger.directory import shell_command
from certified_unlearning.ledger.requests import Answer, Recorded, Skipped
from certified_unlearning.ledger.terms.deadlines import Terms
from certified_unlearning.text import counted

_MOST_NAMED = 20
"""Largest number of identifiers that a line of text names."""
_SUSPICIOUS = 10
"""If at least this many people are named and none was ever in the data, the identifiers may be of another kind."""


def request(
    model_dir: ModelDir,
    identifier: Annotated[
        list[str] | None,
        typer.Option("--id", help="Identifier of a person whose records are to be removed; repeatable."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            help="CSV file of identifiers. It has only one column, or one of its columns has the name of the "
            "identifier column."
        ),
    ] = None,
    one_spelling: Annotated[
        bool,
        typer.Option(
            "--one-spelling",
            help="Record requests even if the data have similar identifiers, which differ only in blanks, case or "
            "encoding; use this option if the similar identifiers belong to other people.",
        ),
    ] = False,
    skip_unknown: Annotated[
        bool,
        typer.Option(
            "--skip-unknown",
            help="Report people who are not in the data or were named before, and record requests for all others. The "
            "log also records which people were not in the data.",
        ),
    ] = False,
    received: Annotated[
        str | None, typer.Option(metavar="DATE", help="Day on which the people asked, such as 2026-11-26.")
    ] = None,
    due: Annotated[
        str | None,
        typer.Option(
            metavar="PERIOD",
            help="Time limit for the answer: a date, or 1month (a calendar month) or 30 (days) after --received or "
            "today.",
        ),
    ] = None,
    hold: Annotated[
        str | None,
        typer.Option(metavar="REASON", help="Reason for a legal hold: requests wait until `release` names the people."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Record requests to remove people's records, which `apply` then removes. All requests are recorded, or none."""
    with interruptible(lambda: f"`{shell_command('status', model_dir)}` says whether the request was recorded"):
        terms = Terms.of(received, due, hold)
        recorded = requests.request(
            model_dir, identifier or [], file, one_spelling=one_spelling, skip_unknown=skip_unknown, terms=terms
        )
        said = "the request was" if recorded.people == 1 else f"all {recorded.people:,} requests were"
        with after(f"{said} recorded (head: {recorded.head})"):
            if as_json:
                print(json.dumps(_as_json(recorded, model_dir), indent=2))
            else:
                _print(recorded, model_dir, is_held=hold is not None)


def _print(recorded: Recorded, model_dir: Path, *, is_held: bool) -> None:
    print(
        f"recorded: {counted(recorded.people, 'request')}, {counted(recorded.records, 'record')}"
        + (f", on hold until `{shell_command('release', model_dir)}` names them" if is_held else "")
        + f"; {recorded.pending:,} pending"
        + (f", `{shell_command('apply', model_dir)}` answers them" if recorded.pending else "")
    )
    absent = [repr(each.identifier) for each in _answered(recorded, requests.NOT_IN_DATA)]
    if absent:
        print(f"recorded as not in this model's data: {_listed(absent)}")
    before = [f"{each.identifier!r} ({_done(each)})" for each in _answered(recorded, "requested before")]
    if before:
        print(f"requested before: {_listed(before)}")
    held = [f"{each.identifier!r} (since {each.recorded})" for each in _answered(recorded, "on hold")]
    if held:
        print(f"on hold, as before: {_listed(held)}")
    if recorded.repeated:
        print(f"named more than once, and counted once: {_listed([repr(each) for each in recorded.repeated])}")
    print_warnings(_warnings(recorded))
    print(f"head: {recorded.head}")


def _done(request_before: Skipped) -> str:
    if request_before.version is None:
        return "waits for `apply`"
    return f"removed with version {request_before.version}, {request_before.applied}"


def _listed(named: Sequence[str]) -> str:
    """Return how many people are named, and the first of them."""
    more = f" and {len(named) - _MOST_NAMED:,} more, which --json lists" if len(named) > _MOST_NAMED else ""
    return f"{counted(len(named), 'person')}: {', '.join(named[:_MOST_NAMED])}{more}"


def _answered(recorded: Recorded, answer: Answer) -> list[Skipped]:
    return [each for each in recorded.skipped if each.answer == answer]


def _warnings(recorded: Recorded) -> list[str]:
    absent = len(_answered(recorded, requests.NOT_IN_DATA))
    if absent < max(_SUSPICIOUS, recorded.people + len(recorded.skipped)):
        return []
    return [
        f"none of the {absent:,} people is or was in this model's data: check whether these identifiers are of the "
        "same kind as the identifiers in the data"
    ]


def _as_json(recorded: Recorded, model_dir: Path) -> dict[str, Any]:
    """Return the output of `request --json`; docs/howto/ledger.md lists its keys."""
    return {
        "model": str(model_dir),
        "requests": recorded.people,
        "records": recorded.records,
        "pending": recorded.pending,
        "requested": [{"identifier": each, "records": count} for each, count in recorded.requested.items()],
        "not_in_data": [
            {"identifier": each.identifier, "recorded": each.recorded}
            for each in _answered(recorded, requests.NOT_IN_DATA)
        ],
        "requested_before": [
            {
                "identifier": each.identifier,
                "recorded": each.recorded,
                "version": each.version,
                "applied": each.applied,
            }
            for each in _answered(recorded, "requested before")
        ],
        "on_hold": [
            {"identifier": each.identifier, "recorded": each.recorded} for each in _answered(recorded, "on hold")
        ],
        "repeated": list(recorded.repeated),
        "warnings": _warnings(recorded),
        "head": recorded.head,
    }
