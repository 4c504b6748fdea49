"""The commands `unlearn log` and `unlearn replay`, and what `unlearn status` prints about the log's second copy."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from certified_unlearning.commands.options import ModelDir
from certified_unlearning.commands.output import after, interruptible
from certified_unlearning.errors import ParameterError
from certified_unlearning.ledger.directory import shell_command
from certified_unlearning.ledger.log import setting
from certified_unlearning.ledger.log.second_place import Standing, problem_of
from certified_unlearning.ledger.state import State
from certified_unlearning.text import counted, noun_of

if TYPE_CHECKING:
    from certified_unlearning.ledger.log.replay import Replayed


def log(
    model_dir: ModelDir,
    to: Annotated[
        Path | None, typer.Option(help="File on another disk or machine: a new one, or a log of this directory.")
    ] = None,
    stop: Annotated[bool, typer.Option("--stop", help="Keep the log in the model directory only.")] = False,
) -> None:
    """Keep a second copy of the log in another place. Every event is written there before it is confirmed.

    If the directory is lost and restored from a backup, `unlearn replay` then brings it up to date. The copy of the log
    has pseudonyms of the people who requested a removal: keep it as secret as the directory.
    """
    if (to is None) != stop:
        raise ParameterError("give either --to with a file or --stop")
    with interruptible(lambda: f"`{shell_command('status', model_dir)}` says where the log is kept"):
        moved = setting.set_log(model_dir, to)
        said = (
            "the log is kept in the model directory only"
            if moved.path is None
            else f"from now on, the log is also kept in {moved.path}"
        )
        with after(f"{said} (head: {moved.head})"):
            print(said)
            if moved.ahead:
                print(
                    f"{moved.before} has {counted(moved.ahead, 'event')} that {model_dir} lacks, as after a restore. "
                    "These events cannot be combined later with events that are recorded from now on, and no "
                    "certificate counts the versions that these events made. If this directory replaces a lost one, "
                    "restore it again, and run `unlearn replay`"
                )
            elif moved.before is not None and moved.before != moved.path:
                print(f"{moved.before} gets no more events, but still exists: delete it when you no longer need it")
            print(f"head: {moved.head}")


def replay(
    model_dir: ModelDir,
    source: Annotated[
        Path,
        typer.Option("--from", help="Second copy of the log, or ledger.sqlite of the directory that was lost."),
    ],
    log: Annotated[
        Path | None,
        typer.Option(
            help="File in which the second copy of the log is kept from now on; by default, the same file as before."
        ),
    ] = None,
    head: Annotated[
        str | None,
        typer.Option(help="Head that a command printed before the loss; the log must have all events of this head."),
    ] = None,
) -> None:
    """Bring a model directory up to date after a restore from a backup, and answer all requests since then.

    After a crash or a full disk, run the command again: it finishes the work, and does nothing twice.
    """
    from certified_unlearning.ledger.log.replay import replay as replay_log

    with interruptible(lambda: f"nothing is lost; `{shell_command('replay', model_dir)} --from ...` finishes the work"):
        done = replay_log(model_dir, source, log=log, head=head)
        with after(f"{model_dir} has all events of {source} (head: {done.applied.head})"):
            for line in _lines(done, model_dir, source):
                print(line)
            print(f"head: {done.applied.head}")


def _lines(done: "Replayed", model_dir: Path, source: Path) -> list[str]:
    """Return lines that say what `replay` did, and what is left for the operator to do."""
    lines = []
    if done.half_written:
        lines.append(
            f"{source} ends with an incomplete line, which was left out: nothing in this line was ever confirmed"
        )
    if done.unknown:
        lines.append(
            f"{source} is older: it lacks {counted(done.unknown, 'event')} that {model_dir} has. If "
            f"{model_dir} was restored from a backup, look for a newer log"
        )
    elif not done.events:
        lines.append(f"{model_dir} has all events of {source}: nothing was missing")
    else:
        lines.append(f"{counted(done.events, 'event')} of {source} {_were(done.events)} appended as recorded")
    if done.back_to is not None:
        lines.append(f"files that belong to these events are gone: the model continues from event {done.back_to:,}")
    if done.lost:
        names = ", ".join(map(str, done.lost))
        lines.append(
            f"lost: {noun_of(len(done.lost), 'version')} {names} of the model. Copies that others have cannot be "
            "recalled; the certificates of new versions state how this affects the guarantee"
        )
        lines.append("destroy the backup when you no longer need it: it holds records and secrets from before removals")
    for addition in done.additions:
        lines.append(
            f"gone: {counted(addition.records, 'record')} of {counted(addition.people, 'person')} that were added from "
            f"{addition.source}. Add these records again, except those of people who have requested a removal since "
            "then; `unlearn add` names these people"
        )
    applied = done.applied
    for version in applied.versions:
        batch = version.batch
        people = 0 if batch is None else batch.requests
        lines.append(
            f"version {version.version} ({version.time}) answers {counted(people, 'request')}; {version.scope.sentence}"
        )
    if not applied.versions:
        lines.append("no request is pending")
    return lines


def lines_about_the_log(standing: Standing | None, state: State, model_dir: Path) -> list[str]:
    """Return the lines that `status` prints about the log's second copy and about lost versions."""
    lines = []
    if standing is not None:
        trouble = _trouble(standing, model_dir)
        lines.append(f"log: {standing.path}" + ("" if trouble is None else f"; {trouble}"))
    if state.lost:
        numbers = ", ".join(str(version.version) for version in state.lost)
        lines.append(
            f"lost: {noun_of(len(state.lost), 'version')} {numbers}, published before the directory was restored from "
            "a backup"
        )
    return lines


def as_json(standing: Standing | None, state: State, model_dir: Path) -> dict[str, Any]:
    """Return what `status --json` prints about the log's second copy and about lost versions."""
    found = None if standing is None else {"path": str(standing.path), "trouble": _trouble(standing, model_dir)}
    return {"log": found, "lost_versions": [version.version for version in state.lost]}


def _trouble(standing: Standing, model_dir: Path) -> str | None:
    """Return a sentence about what is wrong with the log's second copy, or None if nothing is."""
    if standing.behind:
        return f"it lacks {counted(standing.behind, 'event')}; the next command that records an event adds them"
    return problem_of(standing, model_dir)


def _were(number: int) -> str:
    return "was" if number == 1 else "were"
