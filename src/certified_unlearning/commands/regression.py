"""The command `unlearn regression`: compare a preset's records with the committed ones."""

from pathlib import Path
from typing import Annotated

import typer

from certified_unlearning.commands.options import Results, active, made, require_baseline
from certified_unlearning.commands.output import after


def check_regression(
    preset: Annotated[str | None, typer.Option(help="Preset; by default, the preset of params.yaml.")] = None,
    accept: Annotated[bool, typer.Option("--accept", help="Make these records the baseline.")] = False,
    results: Results = Path("results"),
    baselines: Annotated[Path, typer.Option(help="Directory of the baselines.")] = Path("workflow/baselines/metrics"),
) -> None:
    """Compare a preset's records with the committed baseline; if values have changed, print a table and exit with 1."""
    from certified_unlearning.reproduction import regression

    name = active(preset)
    made(results, name, "records.parquet")
    baseline = baselines / f"{name}.json"
    if not accept:
        require_baseline(baseline, "regression", name)
    found = regression.run(results, name, baseline, accept)
    if not accept:
        print(found)
        return
    with after(f"{baseline} was written"):
        print(found)
