"""The command `declare`: a draft of a table's declaration."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from certified_unlearning.commands.output import after, print_data
from certified_unlearning.errors import ParameterError
from certified_unlearning.text import counted

if TYPE_CHECKING:
    from certified_unlearning.data.tables.draft import Draft


def declare(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Table to declare: a .csv, .csv.gz or .parquet file.")],
    label: Annotated[
        str | None,
        typer.Option(
            "--label",
            "--target",
            help="Column to predict. Without this option, the command lists the possible columns.",
        ),
    ] = None,
    regression: Annotated[bool, typer.Option("--regression", help="Predict numbers instead of classes.")] = False,
    identifier: Annotated[
        str | None,
        typer.Option("--id", help="Column that identifies each record's person; the ledger needs such a column."),
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(help="Column of free text; repeatable."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="New YAML file for the draft; by default it is printed."),
    ] = None,
) -> None:
    """Draft the declaration of a table for `init --table` or own_data, and list everything that you must check.

    Ranges and constants in a draft are taken from the data, so they are not public. The draft marks them. It also marks
    lists with values that few people have. Each mark says what to write instead.
    """
    from certified_unlearning.data.tables.drafting import draft
    from certified_unlearning.data.tables.notes import which
    from certified_unlearning.files import write_text

    if output is not None:
        if output.suffix not in (".yaml", ".yml"):
            raise ParameterError(f"--output is {output}, but its name must end in .yaml or .yml")
        if output.exists():
            raise ParameterError(f"--output is {output}, which exists already; name another file, or delete it")
    beside = None if output is None else output.parent
    made = draft(str(file), label, identifier, beside=beside, regression=regression, texts=text or ())
    for columns, sentence in made.said:
        print(f"note: {which(columns)}: {sentence}", file=sys.stderr)
    for key, need in made.marks:
        print(f"marked: {key}: {need}", file=sys.stderr)
    if output is None:
        print_data(made.text)
        return
    write_text(output, made.text)
    with after(f"{output} was written"):
        print(
            f"{output}: {counted(len(made.features), 'feature')}, {counted(len(made.left_out), 'column')} left out; "
            f"{_next(made)}`unlearn init MODEL_DIR --table {shlex.quote(str(output))} --epsilon 1`"
        )


def _next(made: "Draft") -> str:
    if not made.marks:
        return "read it, then "
    *others, last = [key for key, _ in made.marks]
    keys = f"{', '.join(others)} and {last}" if others else last
    return f"read it, replace the marked values under {keys}, and remove the marks; then "
