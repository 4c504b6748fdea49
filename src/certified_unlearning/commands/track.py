"""The command `unlearn track`: update MLflow from results on disk, or from a ledger's model."""

from pathlib import Path
from typing import Annotated

import typer

from certified_unlearning.commands.options import OthersPapers
from certified_unlearning.commands.output import after
from certified_unlearning.errors import ParameterError, TrackingError
from certified_unlearning.text import counted


def track(
    model_dir: Annotated[
        Path | None,
        typer.Argument(
            metavar="[MODEL_DIR]", help="Model directory whose current version is sent to MLflow's registry."
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the registered model in MLflow; by default the directory's name.")
    ] = None,
    delete_old: Annotated[
        bool, typer.Option("--delete-old", help="Delete all other versions of the model from MLflow, with their files.")
    ] = False,
    sync: Annotated[bool, typer.Option("--sync", help="Send every result that MLflow does not have yet.")] = False,
    results: Annotated[Path, typer.Option(help="Directory of all results.")] = Path("results"),
    other: OthersPapers = None,
) -> None:
    """Update MLflow from a model directory, or from results. MLFLOW_TRACKING_URI is MLflow's address.

    With MODEL_DIR, the current version becomes a version of a registered model: weights, certificate and columns. The
    alias `current` moves to this version, and versions from before a removal are marked. With --sync, results are sent;
    without MLFLOW_TRACKING_URI, they are sent to sqlite:///mlflow.db.
    """
    if model_dir is not None and not sync:
        from certified_unlearning.commands.keeping.registry import track_model

        track_model(model_dir, name, delete_old)
    elif model_dir is None and sync:
        if name is not None or delete_old:
            raise ParameterError("--name and --delete-old are for a model directory: give MODEL_DIR in place of --sync")
        _sync(results, other)
    else:
        raise ParameterError(
            "give MODEL_DIR or --sync: `unlearn track MODEL_DIR` sends a ledger's model to MLflow; the pipeline sends "
            "its results itself, and `unlearn track --sync` sends the results that are missing"
        )


def _sync(results: Path, other: list[str] | None) -> None:
    from certified_unlearning.papers import all
    from certified_unlearning.reproduction import tracking

    tracked = tracking.sync(all.papers(other or ()), results, patience=tracking.PATIENCE_SECONDS)
    with after("MLflow was updated"):
        print(f"{counted(tracked.added, 'run')} added, {tracked.updated} updated, {tracked.unchanged} unchanged")
    if tracked.warning is not None:
        raise TrackingError(tracked.warning)
    for preset, page in tracking.pages(results).items():
        print(f"{preset}: {page}")
