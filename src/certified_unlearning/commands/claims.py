"""The command `unlearn claims`: verdicts on what papers claim, against the committed ones."""

from pathlib import Path
from typing import Annotated

import typer

from certified_unlearning.commands.options import Results, active, made, require_baseline
from certified_unlearning.errors import ChangedVerdictsError, ParameterError


def show_claims(
    preset: Annotated[str | None, typer.Option(help="A preset or collection; by default that of params.yaml.")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Exit with 1 when a verdict differs from the baseline.")
    ] = False,
    accept: Annotated[bool, typer.Option("--accept", help="Make these verdicts the baseline.")] = False,
    results: Results = Path("results"),
    baselines: Annotated[Path, typer.Option(help="Directory of the baselines.")] = Path("workflow/baselines/claims"),
) -> None:
    """Print every claim of the paper with its verdict: reproduced, contradicted or not run; the workflow found them."""
    from rich.console import Console

    from certified_unlearning.reproduction import claims

    if check and accept:
        raise ParameterError("say --check or --accept, not both")
    name = active(preset)
    baseline = baselines / f"{name}.json"
    verdicts = claims.read(made(results, name, "claims.json"))
    if accept:
        claims.accept(verdicts, baseline)
        print(f"accepted in {baseline}: {claims.counts(verdicts)}")
    elif check:
        require_baseline(baseline, "claims", name)
        changed = claims.compare_with_baseline(verdicts, baseline)
        for change in changed:
            print(change)
        print(claims.counts(verdicts))
        if changed:
            raise ChangedVerdictsError(
                f"{len(changed)} verdicts differ from {baseline}; if that is right, say --accept and commit the file"
            )
    else:
        Console().print(claims.as_table(verdicts))
        print(claims.counts(verdicts))
