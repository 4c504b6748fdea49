"""The commands of the program `unlearn`, one module each; what they run is imported when they are called."""

import shlex
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from certified_unlearning.commands import (
    claims,
    data,
    declare,
    ledger,
    pipeline,
    plan,
    regression,
    schema,
    track,
    verify,
)
from certified_unlearning.engine.processes import is_launched
from certified_unlearning.errors import ParameterError

_MEANT = {
    **dict.fromkeys(
        ("delete", "erase", "forget", "remove", "unlearn"),
        "`unlearn request MODEL_DIR --id ID`, and then `unlearn apply MODEL_DIR`, which removes the records",
    ),
    **dict.fromkeys(
        ("create", "fit", "learn", "new", "train"),
        "`unlearn init MODEL_DIR`, which learns a model that records can be removed from",
    ),
    **dict.fromkeys(
        ("append", "extend", "insert", "update"),
        "`unlearn add MODEL_DIR --data FILE`, which adds new people's records to a model",
    ),
    **dict.fromkeys(
        ("move-key", "rotate-key"),
        "`unlearn migrate MODEL_DIR --key-file NEW`, which moves the key of pseudonyms; the key cannot change, for "
        "heads and receipts rest on it",
    ),
    "check": "`unlearn verify PATH`, which recomputes what a certificate or a model directory states",
}
"""What people look for, by what they type."""


class _Commands(TyperGroup):
    """The commands; names that people try in vain are answered with the command that does it."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] in _MEANT and args[0] not in self.commands:
            raise ParameterError(f"there is no command {args[0]!r}; you may mean {_MEANT[args[0]]}")
        return super().resolve_command(ctx, args)


app = typer.Typer(cls=_Commands, no_args_is_help=True, pretty_exceptions_enable=False)
app.add_typer(data.app, name="data")
app.add_typer(pipeline.app, name="pipeline")
app.add_typer(plan.app, name="plan")
app.command("audit")(verify.audit)
app.command("claims")(claims.show_claims)
app.command("declare")(declare.declare)
app.command("regression")(regression.check_regression)
app.command("schema")(schema.schema)
app.command("track")(track.track)
app.command("verify")(verify.verify)
ledger.register(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        from certified_unlearning.version import code_version

        print(f"unlearn {code_version()}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version, and end.")
    ] = False,
) -> None:
    """The command line `unlearn`: what the workflow's rules call, and people can call too."""


@data.app.callback()
@pipeline.app.callback()
def show_command() -> None:
    """Print the command itself first, once: a job's log says how to repeat the job by hand."""
    if is_launched():
        return
    print("$", shlex.join(["unlearn", *sys.argv[1:]]), flush=True)
