"""Options that several commands share, and where results and baselines lie."""

from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from certified_unlearning.accounting.core.checks import require_positive
from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.vocabulary import Delta, NamedDelta

Results = Annotated[Path, typer.Option(help="Directory of all results.")]


def _no_file(path: Path) -> Path:
    """Return the path of a model directory; refuse a file, such as a certificate, and name what reads it."""
    if path.is_file():
        # Not at the top: a job of the workflow imports nothing of the ledger.
        from certified_unlearning.ledger.directory import shell_command

        raise ParameterError(
            f"{path} is a file, and no model directory; `{shell_command('verify', path)}` checks a certificate or a "
            "receipt"
        )
    return path


ModelDir = Annotated[Path, typer.Argument(metavar="MODEL_DIR", help="The model directory.", callback=_no_file)]
WithQuality = Annotated[
    bool,
    typer.Option(
        "--quality/--no-quality",
        help="Print how good the model is on the remaining training records. Use --no-quality where logs are kept.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
OthersPapers = Annotated[
    list[str] | None,
    typer.Option("--other", help="Paper of others, such as my_package.my_paper:PAPER; repeatable."),
]

ADVANCED = "Advanced options"
"""Heading of the options that few people need, in the help."""
KEEP_THE_KEY = "keep a copy in a safe place, and none beside the model"
"""The advice about a key of pseudonyms that lies outside its model directory."""
LARGEST_EPSILON = 350
"""The sampler of noise leaves out a probability of 2^-512, which adds exp(epsilon) times as much to delta."""


def positive(option: typer.CallbackParam, value: float | None) -> float | None:
    """Return an option's value, as typer's callback: before the command does anything.

    Raises:
        ParameterError: It is no finite number above 0.
    """
    if value is not None:
        require_positive(**{option.opts[0]: value})
    return value


def target(option: typer.CallbackParam, value: float | None) -> float | None:
    """Return an option's value as `positive` does, refused where no noise can meet it, whatever the data are.

    Raises:
        ParameterError: It is no number above 0, or above `LARGEST_EPSILON`.
    """
    if value is not None and value > LARGEST_EPSILON:
        raise ParameterError(
            f"{option.opts[0]} must be at most {LARGEST_EPSILON}, got {value!r}: above that nothing can be guaranteed"
        )
    return positive(option, value)


def delta_of(text: str) -> Delta:
    """Return what ``--delta`` says.

    Raises:
        ParameterError: It is no number and none of the words.
    """
    if text in get_args(NamedDelta):
        return cast(NamedDelta, text)
    try:
        return float(text)
    except ValueError as error:
        raise ParameterError(f"--delta must be auto, 1/n or a number, got {text!r}") from error


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
