"""The command `unlearn track`: MLflow brought in line with the results on disk."""

from pathlib import Path
from typing import Annotated

import typer

from certified_unlearning.commands.options import OthersPapers
from certified_unlearning.commands.output import after
from certified_unlearning.errors import ParameterError, TrackingError
from certified_unlearning.text import counted


def track(
    sync: Annotated[bool, typer.Option("--sync", help="Send every result that MLflow does not know yet.")] = False,
    results: Annotated[Path, typer.Option(help="Directory of all results.")] = Path("results"),
    other: OthersPapers = None,
) -> None:
    """Bring MLflow (MLFLOW_TRACKING_URI, else sqlite:///mlflow.db) in line with the results on disk."""
    from certified_unlearning.papers import all
    from certified_unlearning.reproduction import tracking

    if not sync:
        raise ParameterError("the pipeline tracks by itself; say `unlearn track --sync` to send what was missed")
    tracked = tracking.sync(all.papers(other or ()), results, patience=tracking.PATIENCE_SECONDS)
    with after("MLflow was brought in line"):
        print(f"{counted(tracked.added, 'run')} added, {tracked.updated} updated, {tracked.unchanged} unchanged")
    if tracked.warning is not None:
        raise TrackingError(tracked.warning)
    for preset, page in tracking.pages(results).items():
        print(f"{preset}: {page}")
