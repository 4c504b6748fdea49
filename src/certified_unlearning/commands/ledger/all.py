"""The list of a ledger's commands."""

import typer

from certified_unlearning.commands.keeping.copies import export
from certified_unlearning.commands.keeping.holds import release
from certified_unlearning.commands.keeping.migration import migrate
from certified_unlearning.commands.keeping.receipts import receipt
from certified_unlearning.commands.keeping.restores import log, replay
from certified_unlearning.commands.ledger import init
from certified_unlearning.commands.ledger.changes import add, apply
from certified_unlearning.commands.ledger.requests import request
from certified_unlearning.commands.ledger.status import status
from certified_unlearning.commands.ledger.use import evaluate, predict, show


def register(app: typer.Typer) -> None:
    """Add all commands of a ledger except `verify`, which also verifies single files."""
    init.register(app)
    commands = (request, release, apply, add, status, show, receipt, export, log, replay, predict, evaluate, migrate)
    for each in commands:
        app.command(each.__name__)(each)
