"""The command `unlearn release`."""

from pathlib import Path
from typing import Annotated

import typer

from certified_unlearning.commands.options import ModelDir
from certified_unlearning.commands.output import after, interruptible
from certified_unlearning.ledger.directory import shell_command
from certified_unlearning.ledger.terms import release as releasing
from certified_unlearning.text import counted


def release(
    model_dir: ModelDir,
    identifier: Annotated[
        list[str] | None,
        typer.Option("--id", help="Identifier of a person whose request is released from its hold; repeatable."),
    ] = None,
    file: Annotated[Path | None, typer.Option(help="CSV file of identifiers, as for `request`.")] = None,
) -> None:
    """Release requests from their hold, so that the next `apply` answers them. All requests are released, or none."""
    with interruptible(lambda: f"`{shell_command('status', model_dir)}` says whether the request was released"):
        recorded = releasing.release(model_dir, identifier or [], file)
        said = "the request was" if recorded.people == 1 else f"all {recorded.people:,} requests were"
        with after(f"{said} released (head: {recorded.head})"):
            print(
                f"released: {counted(recorded.people, 'request')}, {counted(recorded.records, 'record')}; "
                f"{recorded.pending:,} pending, `{shell_command('apply', model_dir)}` answers them"
            )
            print(f"head: {recorded.head}")
