"""The command `unlearn verify`: certificates and model directories recomputed."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from certified_unlearning.commands import ledger
from certified_unlearning.errors import ParameterError, UnlearningError


def verify(
    paths: Annotated[list[Path], typer.Argument(help="Certificates, or model directories of `unlearn init`.")],
    head: Annotated[
        str | None,
        typer.Option(help="A receipt that a command on the model directory printed: it must be in the ledger."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Of one certificate or model directory: print one JSON object.")
    ] = False,
) -> None:
    """Recompute what certificates and model directories state; exit with 1 when something is not as stated."""
    from certified_unlearning import certificate

    if head is not None and not all(path.is_dir() for path in paths):
        raise ParameterError("--head is a receipt of a model directory; a certificate has none")
    if as_json:
        if len(paths) != 1:
            raise ParameterError(f"--json is for one certificate or model directory, got {len(paths)}")
        verified = ledger.verify_as_json(paths[0], head) if paths[0].is_dir() else _verify_as_json(paths[0])
        if not verified:
            raise typer.Exit(1)
        return
    wrong = 0
    for path in paths:
        try:
            if path.is_dir():
                ledger.verify(path, head)
                continue
            certified = certificate.read_any(path)
            certificate.verify(certified)
        except UnlearningError as error:
            message = str(error) if str(path) in str(error) else f"{path}: {error}"
            print(f"error: {message}", file=sys.stderr)
            wrong += 1
            continue
        print(f"{path}: {certified.summary()}")
    if wrong:
        raise typer.Exit(1)


def _verify_as_json(path: Path) -> bool:
    """Print what is found of a certificate as one JSON object; return whether it is as stated.

    ``epsilon``, at ``delta``, is None where nothing was removed, so that nothing is guaranteed.
    """
    from certified_unlearning import certificate

    try:
        certified = certificate.read_any(path)
        certificate.verify(certified)
    except UnlearningError as error:
        print(json.dumps({"certificate": str(path), "verified": False, "error": str(error)}, indent=2))
        return False
    stated = certified.stated()
    found = {
        "certificate": str(path),
        "verified": True,
        "error": None,
        "mechanism": certified.mechanism,
        "accountant": stated.accountant,
        "guarantee": certified.guarantee,
        "comparator": certified.comparator,
        "adjacency": stated.adjacency,
        "epsilon": None if certified.is_empty else stated.epsilon,
        "delta": stated.whole_delta,
        "epsilon_all_published": None if certified.is_empty else stated.epsilon_all_published,
        "checked": [each.statement for each in certified.assumptions if each.status == "checked"],
        "assumed": [each.statement for each in certified.unchecked],
    }
    print(json.dumps(found, indent=2))
    return True
