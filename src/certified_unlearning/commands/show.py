"""The command `unlearn show`: what can be said to one person."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from certified_unlearning.commands.options import AsJson, ModelDir
from certified_unlearning.errors import ParameterError


def show(
    model_dir: ModelDir,
    identifier: Annotated[str, typer.Option("--id", help="Whose records the report is about.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the report to this file: a page (.html) that can be printed."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say to one person what was asked, what was done, what is guaranteed, what is not, and how to check it."""
    from certified_unlearning.files import write_text
    from certified_unlearning.ledger.personal_report import report_on

    if output is not None and output.suffix.lower() not in (".html", ".htm"):
        raise ParameterError(f"--output must name a file that ends with .html, got {str(output)!r}")
    if output is not None and as_json:
        raise ParameterError("--json prints, and --output writes a page: leave one of them out")
    if output is not None and output.resolve().is_relative_to(model_dir.resolve()):
        raise ParameterError(f"--output must lie outside the model directory, got {str(output)!r}")
    report = report_on(model_dir, identifier)
    if output is not None:
        write_text(output, report.as_html())
        print(f"{output}: {report.title}, a page that can be printed")
    elif as_json:
        print(json.dumps(asdict(report), indent=2))
    else:
        print(report.as_text())
