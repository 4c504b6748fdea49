"""The command `unlearn claims`: print verdicts on the papers' claims, the worst first, and compare with a baseline."""

import json
from pathlib import Path
from typing import Annotated

import typer

from certified_unlearning.commands.options import Results, active, made, require_baseline
from certified_unlearning.commands.output import after
from certified_unlearning.errors import ChangedVerdictsError, ParameterError


def show_claims(
    preset: Annotated[
        str | None, typer.Option(help="Preset or collection; by default, the preset of params.yaml.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 if a verdict differs from the baseline.")] = False,
    accept: Annotated[bool, typer.Option("--accept", help="Make these verdicts the baseline.")] = False,
    brief: Annotated[
        bool, typer.Option("--brief", help="Print only counts, the first three findings, and the path of the report.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object; claims keep their order.")] = False,
    results: Results = Path("results"),
    baselines: Annotated[Path, typer.Option(help="Directory of the baselines.")] = Path("workflow/baselines/claims"),
) -> None:
    """Print every claim with its verdict: contradicted claims first, then claims not run, then reproduced claims.

    Contradicted claims are sorted by severity. Among claims with the same verdict, this project's claims come last.
    """
    from rich.console import Console

    from certified_unlearning.reproduction.claims import verdicts as claims
    from certified_unlearning.reproduction.claims.ending import ending

    chosen = [flag for flag, given in {"--check": check, "--accept": accept, "--brief": brief}.items() if given]
    if len(chosen) > 1:
        raise ParameterError(f"give {' or '.join(chosen)}, not {'both' if len(chosen) == 2 else 'all'}")
    if as_json and (accept or brief):
        raise ParameterError(f"{chosen[0]} has no --json")
    name = active(preset)
    baseline = baselines / f"{name}.json"
    verdicts = claims.ranked(claims.read(made(results, name, "claims.json")))
    if accept:
        claims.accept(claims.read(results / name / "claims.json"), baseline)
        with after(f"{baseline} was written"):
            print(f"accepted in {baseline}: {claims.counts(verdicts)}")
        return
    if brief:
        made(results, name, "findings.json")
        print(ending(results, name))
        return
    changed = []
    if check:
        require_baseline(baseline, "claims", name)
        changed = claims.compare_with_baseline(verdicts, baseline)
    if as_json:
        tallies = claims.tallies(verdicts)
        found = {
            "name": name,
            "counts": {whose: tally.counts for whose, tally in tallies.items()},
            "severities": {whose: tally.severities for whose, tally in tallies.items()},
            "claims": [verdict.model_dump() for verdict in verdicts],
        }
        print(json.dumps(found | ({"changes": [each._asdict() for each in changed]} if check else {}), indent=2))
    elif check:
        for change in changed:
            print(change)
        print(claims.counts(verdicts))
    else:
        Console().print(claims.as_table(verdicts))
        print(*claims.counted_by_owner(verdicts), sep="\n")
    if changed:
        raise ChangedVerdictsError(
            f"{len(changed)} verdicts differ from {baseline}; if the new ones are right, use --accept, and commit the "
            "file"
        )
