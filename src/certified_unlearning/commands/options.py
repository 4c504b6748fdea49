"""Options that several commands share, and the paths of results and baselines."""

from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from certified_unlearning.accounting.core.checks import require_positive
from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.vocabulary import Delta, NamedDelta

Results = Annotated[Path, typer.Option(help="Directory of all results.")]


def _no_file(path: Path) -> Path:
    """Return a model directory's path. Refuse a file, such as a certificate, and name the command that reads it."""
    if path.is_file():
        # Imported here because a job of the workflow imports nothing of the ledger.
        from certified_unlearning.ledger.directory import shell_command

        raise ParameterError(
            f"{path} is a file, not a model directory; `{shell_command('verify', path)}` checks a certificate or a "
            "receipt"
        )
    return path


ModelDir = Annotated[Path, typer.Argument(metavar="MODEL_DIR", help="The model directory.", callback=_no_file)]
WithQuality = Annotated[
    bool,
    typer.Option(
        "--quality/--no-quality",
        help="Print the quality on the remaining training records. Use --no-quality if output is kept in logs.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
OthersPapers = Annotated[
    list[str] | None,
    typer.Option("--other", help="Paper of another package, such as my_package.my_paper:PAPER; repeatable."),
]

ADVANCED = "Advanced options"
"""Heading, in help texts, above the options that few people need."""
KEEP_THE_KEY = "keep a copy in a safe place, but not next to the model"
"""Advice about the file that contains the key of pseudonyms, if this file is outside the model directory."""
LARGEST_EPSILON = 350
"""The largest target epsilon. The noise sampler leaves out a probability of 2^-512, and exp(epsilon) times that
probability is added to delta."""


def positive(option: typer.CallbackParam, value: float | None) -> float | None:
    """Return the value of an option; Typer calls this function before the command.

    Raises:
        ParameterError: The value is not a finite number above 0.
    """
    if value is not None:
        require_positive(**{option.opts[0]: value})
    return value


def target(option: typer.CallbackParam, value: float | None) -> float | None:
    """Return the value of an option as `positive` does; refuse an epsilon that no noise can meet, whatever the data.

    Raises:
        ParameterError: The value is not a number above 0, or is above `LARGEST_EPSILON`.
    """
    if value is not None and value > LARGEST_EPSILON:
        raise ParameterError(
            f"{option.opts[0]} must be at most {LARGEST_EPSILON}, got {value!r}: above that nothing can be guaranteed"
        )
    return positive(option, value)


def delta_of(text: str) -> Delta:
    """Return the delta that ``--delta`` gives.

    Raises:
        ParameterError: The text is neither a number nor one of the words.
    """
    if text in get_args(NamedDelta):
        return cast(NamedDelta, text)
    try:
        return float(text)
    except ValueError as error:
        raise ParameterError(f"--delta must be auto, 1/n or a number, got {text!r}") from error


def active(preset: str | None) -> str:
    """Return the preset that was named; by default the active preset of the parameter file in this directory."""
    from certified_unlearning.papers import parameters

    return parameters.load().preset if preset is None else preset


def made(results: Path, name: str, file: str) -> Path:
    """Return the path of a result that the workflow made; raise `DataError` if it does not exist."""
    path = results / name / file
    if not path.exists():
        raise DataError(f"{path} does not exist; `snakemake --cores all --config preset={name}` makes it")
    return path


def require_baseline(path: Path, command: str, name: str) -> None:
    """Raise `DataError` if the baseline does not exist; the message says how to make it."""
    if not path.exists():
        raise DataError(
            f"preset {name} has no baseline yet ({path} does not exist); "
            f"`unlearn {command} --preset {name} --accept` makes one from the present results"
        )
