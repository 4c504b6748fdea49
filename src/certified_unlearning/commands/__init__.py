"""The commands of the program `unlearn`, one module each. A command imports its code only when it is called."""

import functools
import sys
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.models import CommandInfo, TyperInfo

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
        "`unlearn migrate MODEL_DIR --key-file NEW`, which moves the key of pseudonyms; the key cannot change, "
        "because heads and receipts depend on it",
    ),
    **dict.fromkeys(
        ("backup", "recover", "restore"),
        "`unlearn replay MODEL_DIR --from LOG`, which brings a directory up to date after a restore from a backup",
    ),
    "check": "`unlearn verify PATH`, which recomputes what a certificate or a model directory states",
}
"""Words that people type in place of a command, each with the command that they need."""

JOBS: Mapping[str, Mapping[str, str]] = {
    "Your model": {
        "declare": "unlearn declare customers.csv --label churned --id customer_id",
        "init": "unlearn init model --data customers.csv --label churned --id customer_id --range age=0:120",
        "request": "unlearn request model --id 1234",
        "release": "unlearn release model --id 1234",
        "apply": "unlearn apply model",
        "add": "unlearn add model --data new-customers.csv",
        "status": "unlearn status model",
        "show": "unlearn show model --id 1234",
        "verify": "unlearn verify model",
        "predict": "unlearn predict model customers.csv --output predictions.csv",
        "evaluate": "unlearn evaluate model held-out.csv",
        "audit": "unlearn audit model",
    },
    "Keeping it running": {
        "receipt": "unlearn receipt model --id 1234 --output receipt.json",
        "export": "unlearn export model --to /srv/churn",
        "track": "unlearn track model --name churn --delete-old",
        "log": "unlearn log model --to /mnt/elsewhere/churn.jsonl",
        "replay": "unlearn replay model --from /mnt/elsewhere/churn.jsonl",
        "migrate": "unlearn migrate model --key-file /secure/model.key",
    },
    "Planning": {
        "plan": "unlearn plan removal --n 100000 --C 0.001 --epsilon 1 --sigma 0.01 --records 10",
    },
    "The papers": {
        "claims": "unlearn claims --preset digits",
        "regression": "unlearn regression --preset digits",
        "data": "unlearn data fetch digits",
        "pipeline": "unlearn pipeline --help",
        "schema": "unlearn schema",
    },
}
"""All commands in the order of the help, grouped by their use, each with an example."""


_OF_THE_WORKFLOW = ("data", "pipeline")
"""Groups of commands that the workflow's jobs run."""


class _Commands(TyperGroup):
    """The group of all commands. For a word in `_MEANT`, an error names the right command."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of `JOBS`."""
        return [name for commands in JOBS.values() for name in commands]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] in _MEANT and args[0] not in self.commands:
            raise ParameterError(f"there is no command {args[0]!r}; you may mean {_MEANT[args[0]]}")
        return super().resolve_command(ctx, args)


@functools.cache
def program() -> typer.Typer:
    """Import the modules of all commands, and return the program."""
    from certified_unlearning.commands import (
        claims,
        data,
        declare,
        pipeline,
        plan,
        regression,
        schema,
        track,
        verify,
    )
    from certified_unlearning.commands.ledger.all import register

    app = typer.Typer(cls=_Commands, no_args_is_help=True, pretty_exceptions_enable=False)
    app.callback()(_main)
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
    register(app)
    _arrange(app)
    return app


def run() -> None:
    """Run the command that the command line names.

    A run of the workflow starts more than a hundred jobs, so a job does not import the ledger's commands.
    """
    group, *arguments = sys.argv[1:] or [""]
    if group in _OF_THE_WORKFLOW and arguments and not arguments[0].startswith("-"):
        jobs: ModuleType = import_module(f"{__name__}.{group}")
        jobs.app(arguments, prog_name=f"unlearn {group}")
    else:
        program()()


def _arrange(app: typer.Typer) -> None:
    """Give each command its heading and its example from `JOBS`."""
    job_of = {name: job for job, commands in JOBS.items() for name in commands}
    registered: list[CommandInfo | TyperInfo] = [*app.registered_commands, *app.registered_groups]
    for each in registered:
        job = job_of[str(each.name)]
        each.rich_help_panel, each.epilog = job, f"Example: `{JOBS[job][str(each.name)]}`"


def _print_version(wanted: bool) -> None:
    if wanted:
        from certified_unlearning.version import code_version

        print(f"unlearn {code_version()}")
        raise typer.Exit


def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Remove people's records from trained models, with a certificate; reproduce the papers of the field.

    Begin with `unlearn init`. `unlearn COMMAND --help` explains a command and shows an example.
    """
