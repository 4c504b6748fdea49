"""The command `unlearn schema`: write a schema of `params.yaml` for editors."""

import json
from pathlib import Path
from typing import Annotated

import typer

from certified_unlearning.commands.options import OthersPapers
from certified_unlearning.commands.output import after


def schema(
    output: Annotated[
        Path, typer.Option(help="File for the JSON schema. The first line of params.yaml names the default file.")
    ] = Path("workflow/schemas/params.schema.json"),
    other: OthersPapers = None,
) -> None:
    """Write the JSON schema of params.yaml, with which an editor completes and checks keys."""
    from certified_unlearning.files import write_text
    from certified_unlearning.papers import all, parameters

    write_text(output, json.dumps(parameters.schema(all.papers(other or ())), indent=2, ensure_ascii=False) + "\n")
    with after(f"{output} was written"):
        print(f"written: {output}")
