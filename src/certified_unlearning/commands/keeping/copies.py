"""The command `unlearn export`, and the lines that `unlearn status` prints about copies."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from certified_unlearning.commands.options import ModelDir
from certified_unlearning.commands.output import after, interruptible
from certified_unlearning.errors import ParameterError
from certified_unlearning.ledger.copies import exports
from certified_unlearning.ledger.copies.exports import Copy
from certified_unlearning.ledger.directory import shell_command
from certified_unlearning.ledger.state import State


def export(
    model_dir: ModelDir,
    to: Annotated[
        Path | None,
        typer.Option(
            help="Directory for the weights, the certificate and the columns. The command creates or replaces it."
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="Name of the copy, such as 'mlflow: churn 3'; by default the path of its directory."),
    ] = None,
    withdraw: Annotated[str | None, typer.Option(metavar="NAME", help="Name of a copy to record as gone.")] = None,
) -> None:
    """Copy the current version to another place and record the place, so that `status` says when the copy is too old.

    With --name alone, nothing is copied: the command records a copy that you make yourself.
    """
    with interruptible(lambda: f"`{shell_command('status', model_dir)}` lists the copies that were recorded"):
        if withdraw is not None:
            if to is not None or name is not None:
                raise ParameterError("--withdraw records that a copy is gone: leave out --to and --name")
            done = exports.withdraw(model_dir, withdraw)
            said = f"the copy {done.name!r} of version {done.version} was recorded as gone"
        else:
            done = exports.export(model_dir, to=to, name=name)
            said = f"the copy {done.name!r} of version {done.version} was recorded"
            said += "" if to is None else f", and written to {to}"
        with after(f"{said} (head: {done.head})"):
            print(said)
            print(f"head: {done.head}")


def lines_about(copies: Sequence[Copy], state: State, model_dir: Path) -> list[str]:
    """Return the lines that `status` prints about copies, one for each copy."""
    lines = []
    for each in copies:
        trouble = each.trouble()
        line = f"copy {each.name!r}: version {each.version}"
        if each.is_outdated(state):
            why = "which still knows records that were removed since"
            if each.is_lost(state):
                why = "which was lost when the directory was restored from a backup, and may know removed records"
            line += f", {why}: {_remedy(each, state, model_dir)}"
        elif each.version != state.current.version:
            line += f" (the current one is {state.current.version}; nothing was removed in between)"
        lines.append(line + ("" if trouble is None else f"; {trouble}"))
    return lines


def _remedy(copy: Copy, state: State, model_dir: Path) -> str:
    """Return what the operator should do about a copy that still knows removed records."""
    if copy.registered is not None:
        again = f"{shell_command('track', model_dir)} --name {shlex.quote(copy.registered.model)} --delete-old"
        return (
            f"`{again}` adds version {state.current.version} and deletes this copy; if the copy is gone, use "
            f"`{shell_command('export', model_dir)} --withdraw {shlex.quote(copy.name)}`"
        )
    where = "" if copy.path is None else f"--to {shlex.quote(str(copy.path))} "
    again = f"{shell_command('export', model_dir)} {where}--name {shlex.quote(copy.name)}"
    return f"`{again}` replaces it with version {state.current.version}; use --withdraw if the copy is gone"
