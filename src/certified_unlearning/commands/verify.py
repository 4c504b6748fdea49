"""The commands `unlearn verify`, which recomputes certificates, and `unlearn audit`, which attacks a model."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from certified_unlearning.commands.keeping import receipts
from certified_unlearning.commands.ledger import verification
from certified_unlearning.commands.options import AsJson, ModelDir
from certified_unlearning.commands.output import interruptible
from certified_unlearning.errors import ParameterError, UnlearningError
from certified_unlearning.ledger.copies.exports import CERTIFICATE
from certified_unlearning.text import seconds_in_words

VIOLATED = 3
"""Exit status of an audit that finds more than is certified. The statuses 1 and 2 indicate a user error."""


def verify(
    paths: Annotated[
        list[Path], typer.Argument(help="Certificates, receipts, or model directories made by `unlearn init`.")
    ],
    head: Annotated[
        str | None,
        typer.Option(
            help="Head that a command printed earlier. A log must begin with the events of this head, and a receipt "
            "must refer to this head."
        ),
    ] = None,
    public_key: Annotated[
        Path | None,
        typer.Option(
            help="Ed25519 public key of the operator, in PEM: receipts must be signed with the matching private key."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object, for one certificate, receipt or model directory.")
    ] = False,
) -> None:
    """Recompute what certificates, receipts and model directories state, and exit with 1 if something is wrong."""
    from certified_unlearning import certificate

    # An exported copy holds a certificate and no ledger.
    paths = [path / CERTIFICATE if (path / CERTIFICATE).is_file() else path for path in paths]
    of_receipts = {path for path in paths if receipts.is_receipt(path)}
    if head is not None and not all(path.is_dir() or path in of_receipts for path in paths):
        raise ParameterError("--head is for a model directory or a receipt; a certificate has no head")
    if public_key is not None and len(of_receipts) < len(paths):
        raise ParameterError("--public-key is for receipts; nothing else is signed")
    if as_json:
        if len(paths) != 1:
            raise ParameterError(f"--json is for one certificate, receipt or model directory, got {len(paths)}")
        if paths[0] in of_receipts:
            verified = receipts.verify_receipt_as_json(paths[0], head, public_key)
        elif paths[0].is_dir():
            verified = verification.verify_as_json(paths[0], head)
        else:
            verified = _verify_as_json(paths[0])
        if not verified:
            raise typer.Exit(1)
        return
    wrong = 0
    for path in paths:
        try:
            if path.is_dir():
                verification.verify(path, head)
                continue
            if path in of_receipts:
                receipts.verify_receipt(path, head, public_key)
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
    """Print what a certificate states and what was recomputed, as one JSON object; return whether the two agree.

    ``epsilon`` is None if nothing was removed, because nothing is guaranteed then.
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
        "lost_releases": certified.lost,
        "checked": [each.statement for each in certified.assumptions if each.status == "checked"],
        "assumed": [each.statement for each in certified.unchecked],
    }
    print(json.dumps(found, indent=2))
    return True


def audit(
    model_dir: ModelDir,
    canaries: Annotated[
        int, typer.Option(help="Number of made-up records; half of them, drawn at random, are learned and removed.")
    ] = 50,
    request_size: Annotated[
        int,
        typer.Option(
            help="Number of made-up records in one request; choose the number that you usually remove at once."
        ),
    ] = 1,
    runs: Annotated[
        int,
        typer.Option(
            help="Number of times that the model is learned again, each time with other records. More runs give "
            "stronger evidence."
        ),
    ] = 1,
    device: Annotated[
        str | None, typer.Option(help="Device for the computation: auto, cpu or cuda; by default the device of `init`.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Attack removed records in a scratch copy, and compare what the attack shows with what is certified.

    The model is learned again by its own mechanism and constants, with made-up records in place of some records. The
    made-up records are removed, and the attack guesses from the published output which of them were learned. The model
    directory does not change. The exit status is 3 if the attack shows more than is certified.
    """
    from certified_unlearning.audit.directories import audit_directory

    def announce(seconds: float) -> None:
        if sys.stderr.isatty():
            print(f"learning again takes about {seconds_in_words(seconds)}", file=sys.stderr)

    with interruptible(lambda: "the scratch copy was deleted; the model is unchanged"):
        found = audit_directory(
            model_dir, canaries=canaries, request_size=request_size, runs=runs, device=device, announce=announce
        )
    if as_json:
        print(json.dumps({"model": str(model_dir), **found.to_dict()}, indent=2))
    else:
        headline, *rest = str(found).splitlines()
        print("\n".join([*rest, headline]))
    if found.verdict == "violated":
        raise typer.Exit(VIOLATED)
