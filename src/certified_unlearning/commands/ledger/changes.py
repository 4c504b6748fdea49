"""The commands `apply` and `add`, which carry out removals and add records."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from certified_unlearning.commands.ledger.use import print_left_out, print_quality, print_warnings
from certified_unlearning.commands.ledger.words import command, guarantee_in_words, print_head, version_in_words
from certified_unlearning.commands.options import ModelDir, WithQuality
from certified_unlearning.commands.output import after, interruptible
from certified_unlearning.ledger.state import Version
from certified_unlearning.text import counted, seconds_in_words

if TYPE_CHECKING:
    from certified_unlearning.ledger.adding.reading import NewRecords
    from certified_unlearning.ledger.application import Applied


def apply(
    model_dir: ModelDir,
    device: Annotated[
        str | None, typer.Option(help="Device for the computation: auto, cpu or cuda; by default the device of `init`.")
    ] = None,
    quality: WithQuality = True,
) -> None:
    """Answer all pending requests with a new version, its certificate, and a training copy without the records.

    After a crash or a full disk, run the command again: it finishes the work, and does nothing twice.
    """
    from certified_unlearning.ledger.application import apply as apply_requests

    with interruptible(lambda: f"nothing is lost; {command('apply', model_dir)} finishes the work"):
        applied = apply_requests(model_dir, device=device)
        made = f"version {applied.versions[-1].version} was made" if applied.versions else "no request is pending"
        with after(f"{made} (head: {applied.head})"):
            _print_applied(applied, model_dir, quality)


def add(
    model_dir: ModelDir,
    data: Annotated[
        Path, typer.Option(help="New records: a .csv, .csv.gz or .parquet file with the columns that `init` read.")
    ],
    one_spelling: Annotated[
        bool,
        typer.Option(
            "--one-spelling",
            help="Accept new identifiers even if they differ from removed ones only in blanks, case or encoding; use "
            "this if they belong to other people.",
        ),
    ] = False,
    quality: WithQuality = True,
) -> None:
    """Add new people's records, and answer all pending requests, with one new version of the model and its certificate.

    All records are added, or none. After a crash or a full disk, run the command again: it finishes the work, and does
    nothing twice.
    """
    from certified_unlearning.ledger.adding.addition import add as add_records

    with interruptible(lambda: f"{command('status', model_dir)} says whether the records were added"):
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
                    answers = f"{command('apply', model_dir)} answers {'it' if added.pending == 1 else 'them'}"
                    print(f"{counted(added.pending, 'request')} still {wait}: {answers}")
            else:
                if quality:
                    print_quality(model_dir, again=True)
                print(f"{data} still exists: when you remove records from the model, remove them from this file, too")
            print_head(added.head)


def _announce_new(data: Path, new: "NewRecords", seconds: float) -> None:
    """Describe the new records that were read from a file, before the model learns from them."""
    from certified_unlearning.data.tables.spellings import described
    from certified_unlearning.data.tables.table_values import listed

    with after("nothing was added"):
        print(f"{data}: {counted(new.records, 'record')} of {counted(new.people, 'new person')}")
        if new.classes:
            print("classes: " + ", ".join(f"{name!r} {count:,}" for name, count in new.classes.items()))
        if new.outside:
            print(f"label outside its range: {counted(new.outside, 'record')} (the nearer end of the range is used)")
        print_left_out(new.left_out)
        warnings = described(new.spellings)
        if new.unnamed:
            several = counted(len(new.unnamed), "new identifier")
            warnings.append(
                f"{several} may be in the model in another spelling, such as {new.unnamed[0]!r}: different spellings "
                "count as different people, so a request for one spelling must name the other spelling, too"
            )
        if new.absent:
            warnings.append(
                f"in {counted(len(new.absent), 'row')}, the identifier is {listed(new.absent)}: if this means that the "
                "identifier is missing, request the removal of such identifiers with `unlearn request`"
            )
        if new.first_of_several_rows is not None:
            warnings.append(
                f"several new rows have the identifier {new.first_of_several_rows!r}, and count as rows of one person; "
                "until now, each person had one row"
            )
        print_warnings(warnings)
        if new.answers:
            print(f"{counted(new.answers, 'pending request')} {'is' if new.answers == 1 else 'are'} answered, too")
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
        print("Remove the records from your own data file, too.")
    else:
        print("no request is pending")
    print_head(applied.head)


def _print_deleted(paths: Sequence[Path]) -> None:
    if paths:
        print(f"deleted the files that an interrupted command had left: {', '.join(path.name for path in paths)}")


def _print_version(version: Version) -> None:
    print(version_in_words(version))
    print(f"  {guarantee_in_words(version)}")
    if version.batch is not None and version.batch.addition is not None:
        print("  A later removal is compared with learning from all records that are left, including the added ones.")
        covered = "covered only by the statement on adaptive requests" if version.scope.adaptive else "not covered"
        print(
            "  New records that depend on an earlier model, such as offers that followed its predictions, are "
            f"{covered}."
        )
