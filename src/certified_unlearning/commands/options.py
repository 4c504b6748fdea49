"""Options that several commands share, and where results and baselines lie."""

from pathlib import Path
from typing import Annotated

import typer

from certified_unlearning.errors import DataError

Results = Annotated[Path, typer.Option(help="Directory of all results.")]
ModelDir = Annotated[Path, typer.Argument(metavar="MODEL_DIR", help="The model directory.")]
WithQuality = Annotated[
    bool,
    typer.Option(
        "--quality/--no-quality",
        help="Whether to say how good the model is on the training records that are left: for you, not for a log.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
OthersPapers = Annotated[
    list[str] | None,
    typer.Option("--other", help="A paper of others, such as my_package.my_paper:PAPER; repeatable."),
]


def active(preset: str | None) -> str:
    """Return the named preset, or else the active one of the parameter file in this directory."""
    from certified_unlearning.papers import parameters

    return parameters.load().preset if preset is None else preset


def made(results: Path, name: str, file: str) -> Path:
    """Return the path of a result that the workflow makes."""
    path = results / name / file
    if not path.exists():
        raise DataError(f"{path} does not exist; `snakemake --cores all --config preset={name}` makes it")
    return path


def require_baseline(path: Path, command: str, name: str) -> None:
    """Raise `DataError` unless the baseline is there; the message says how to make one."""
    if not path.exists():
        raise DataError(
            f"preset {name} has no baseline yet ({path} does not exist); "
            f"`unlearn {command} --preset {name} --accept` makes one of the results at hand"
        )
