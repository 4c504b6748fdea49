"""The commands of the request ledger: `init`, `request`, `apply`, `status`, and `verify` for a model directory."""

from pathlib import Path
from typing import Annotated

import typer

from certified_unlearning.commands.ledger_init import init
from certified_unlearning.ledger import requests
from certified_unlearning.ledger.requests import Status
from certified_unlearning.ledger.state import Batch, Version
from certified_unlearning.text import counted, rounded_up

ModelDir = Annotated[Path, typer.Argument(metavar="MODEL_DIR", help="The model directory.")]


def register(app: typer.Typer) -> None:
    """Add the commands, but for `verify`, which verifies files too."""
    for command in (init, request, apply, status):
        app.command(command.__name__)(command)


def request(
    model_dir: ModelDir,
    identifier: Annotated[
        list[str] | None, typer.Option("--id", help="Whose records are to be removed; repeatable.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(help="A CSV file of identifiers: one column, or the identifier column among others."),
    ] = None,
) -> None:
    """Record that people's records are to be removed; `apply` removes them. All requests are recorded, or none."""
    receipt = requests.request(model_dir, identifier or [], file)
    print(
        f"recorded: {counted(receipt.people, 'request')}, {counted(receipt.records, 'record')}; "
        f"{receipt.pending:,} pending, `unlearn apply {model_dir}` answers them"
    )
    _print_receipt(receipt.head)


def apply(
    model_dir: ModelDir,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda; by default as `init` was told.")] = None,
) -> None:
    """Answer all pending requests: a new version of the model, its certificate, a training copy without the records.

    After a crash or a full disk, run it again: it finishes what was begun, once.
    """
    from certified_unlearning.ledger.application import apply as apply_requests

    applied = apply_requests(model_dir, device=device)
    if applied.source is not None:
        print(f"note: {applied.source}")
    if applied.deleted:
        print(f"deleted what an interrupted `apply` had left: {', '.join(path.name for path in applied.deleted)}")
    for version in applied.versions:
        print(_version(version))
        print(f"  {_epsilon(version)}")
    if applied.versions:
        print("The file that the data came from is yours: remove the records there too.")
    else:
        print("no request is pending")
    _print_receipt(applied.head)


def status(model_dir: ModelDir) -> None:
    """Say where a model stands: requests, versions, what is guaranteed, where its weights lie."""
    found = requests.status(model_dir)
    state = found.state
    people, records = (sum(getattr(batch, name) for batch in state.batches) for name in ("requests", "records"))
    print(
        f"{model_dir}: learned from {counted(state.start.records, 'record')} of {counted(state.start.people, 'person')}"
    )
    print(f"requests: {state.pending:,} pending, {people:,} applied ({counted(records, 'record')} removed)")
    for version in state.versions:
        print(_version(version))
    print(_epsilon(state.current))
    print(f"weights: {model_dir / f'weights-{state.current.version}.safetensors'}")
    _print_notes(found, model_dir)
    _print_receipt(found.head)


def verify(model_dir: Path, head: str | None) -> None:
    """Recompute everything that a model directory states.

    Raises:
        UnlearningError: Something is not what the ledger recorded.
    """
    from certified_unlearning.ledger.verification import verify as verify_directory

    verified = verify_directory(model_dir, head)
    state = verified.state
    print(
        f"{model_dir}: {counted(verified.events, 'event')} in one chain, version {state.current.version} of the model, "
        f"{counted(len(state.versions), 'certificate')}, the training copy and who has which rows are as recorded"
        + ("; the receipt is in the chain" if head else "")
    )
    print(_epsilon(state.current))
    if verified.source is not None:
        print(f"note: {verified.source}")
    for path in verified.strangers:
        print(f"note: {path} is no part of the model; what it holds was not checked")
    _print_receipt(verified.head)


def _version(version: Version) -> str:
    """Return what a version did."""
    if version.batch is None:
        return f"version 1 ({version.time}): learned"
    batch = version.batch
    return (
        f"version {version.version} ({version.time}): removed {counted(batch.records, 'record')} of "
        f"{counted(batch.requests, 'person')} by {_means(version, batch)}"
    )


def _means(version: Version, batch: Batch) -> str:
    if version.reading is None:
        return f"K = {batch.steps:,} steps"
    how = {
        "none": "a Newton step",
        "scheduled": "reading the data again, as planned",
        "unscheduled": "reading the data again, earlier than planned",
    }
    return how[version.reading]


def _epsilon(version: Version) -> str:
    """Return what is guaranteed of a version."""
    if version.batch is None:
        return "nothing was removed yet, so there is nothing to guarantee"
    delta = rounded_up(version.delta + version.extra_delta)
    last = f"epsilon = {rounded_up(version.epsilon)} at delta = {delta} for whoever sees version {version.version} only"
    if version.reading is not None:
        last = f"against an exact refit with the same noise, requests fixed in advance: {last}"
    if version.epsilon_all_published is None:
        return f"{last}; nothing for whoever kept earlier ones"
    everything, delta = rounded_up(version.epsilon_all_published), rounded_up(version.delta)
    last = f"{last}; epsilon = {everything} at delta = {delta} for whoever kept all versions"
    return last if version.reading is None else f"{last}, adaptive requests, too. Nothing is promised to who stays"


def _print_notes(found: Status, model_dir: Path) -> None:
    if found.is_busy:
        print("an `apply` is at work")
    elif found.state.planned is not None or found.leftovers:
        print(f"an `apply` was interrupted: `unlearn apply {model_dir}` finishes it")
    if found.source is not None:
        print(f"note: {found.source}")


def _print_receipt(head: str) -> None:
    print(f"receipt: {head}")
