"""The command `unlearn receipt`, and the lines that `unlearn verify` prints about a receipt."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from certified_unlearning.commands.options import ModelDir
from certified_unlearning.errors import ParameterError, UnlearningError
from certified_unlearning.text import rounded_up

if TYPE_CHECKING:
    from certified_unlearning.ledger.proofs.receipt import Receipt


def receipt(
    model_dir: ModelDir,
    identifier: Annotated[
        str | None, typer.Option("--id", help="Identifier of the person whose request the receipt is for.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(help="Head that a command printed earlier: the receipt proves that nothing was rewritten since."),
    ] = None,
    signing_key: Annotated[
        Path | None, typer.Option(help="File with an Ed25519 private key in PEM, which signs the head.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File for the receipt; by default it is printed.")
    ] = None,
) -> None:
    """Write a receipt: a proof that a request was recorded and answered, for people without the model directory.

    `unlearn verify FILE` checks the receipt. With --since, the receipt also proves that the log begins with the log of
    an earlier head.
    """
    from certified_unlearning.ledger.proofs.receipt import make_receipt

    if output is not None and output.resolve().is_relative_to(model_dir.resolve()):
        raise ParameterError(f"{output} lies in the model directory, which may hold only files of the ledger")
    made = make_receipt(model_dir, identifier, since=since, signing_key=signing_key)
    if output is None:
        print(json.dumps(made.as_json(), indent=2, sort_keys=True))
        return
    made.write(output)
    for line in _lines(made):
        print(line)


def is_receipt(path: Path) -> bool:
    """Return whether a file says that it is a receipt."""
    from certified_unlearning.ledger.proofs.receipt import FORMAT

    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("format") == FORMAT


def verify_receipt(path: Path, head: str | None, public_key: Path | None) -> None:
    """Check a receipt, and print what it proves.

    Raises:
        UnlearningError: The receipt does not prove what it states.
    """
    found = _checked(path, head, public_key)
    for line in _lines(found):
        print(f"{path}: {line}")


def verify_receipt_as_json(path: Path, head: str | None, public_key: Path | None) -> bool:
    """Print what a receipt proves, as one JSON object; return whether its proofs hold."""
    try:
        found = _checked(path, head, public_key)
    except UnlearningError as error:
        print(json.dumps({"receipt": str(path), "verified": False, "error": str(error)}, indent=2))
        return False
    proved: dict[str, Any] = {
        "receipt": str(path),
        "verified": True,
        "error": None,
        "head": str(found.head),
        "pseudonym": found.pseudonym,
        "events": {kind: each.leaf.as_json() for kind, each in found.events.items()},
        "since": None if found.since is None else str(found.since[0]),
        "signed_by": None if found.signed is None else found.signed.public_key.hex(),
    }
    print(json.dumps(proved, indent=2))
    return True


def _checked(path: Path, head: str | None, public_key: Path | None) -> "Receipt":
    """Return the receipt that a file holds; raise an error if one of its proofs fails."""
    from certified_unlearning.ledger.proofs.receipt import check, read_receipt

    found = read_receipt(path)
    check(found, head=head, public_key=public_key)
    return found


def _lines(found: "Receipt") -> list[str]:
    """Return the lines that say what a receipt proves."""
    lines = [] if found.pseudonym is None else _story(found)
    if found.since is not None:
        lines.append(f"the log with the head {found.head} begins with the log of the head {found.since[0]}, unchanged")
    if found.signed is not None:
        lines.append(f"the head is signed with the Ed25519 key {found.signed.public_key.hex()}")
    return [*lines, f"head: {found.head}"]


def _story(found: "Receipt") -> list[str]:
    """Return the lines that say what became of a receipt's request."""
    events = {kind: each.leaf for kind, each in found.events.items()}
    if "absent" in events:
        told = events["absent"]
        received = f", received {told.shown['received']}" if "received" in told.shown else ""
        return [
            f"person {found.pseudonym}: removal requested {told.time} (event {told.sequence}){received}; the data had "
            "no records of this person"
        ]
    lines = []
    for kind, what in (("held", "removal requested, and put on hold,"), ("requested", "removal requested")):
        if kind in events:
            asked = events[kind]
            said = "released from its hold" if kind == "requested" and "held" in events else what
            lines.append(f"{said} {asked.time} (event {asked.sequence})")
            lines[-1] += "".join(f", {name} {asked.shown[name]}" for name in ("received", "due") if name in asked.shown)
    if "applied" in events:
        answer = events["applied"]
        lines.append(
            f"answered {answer.time} (event {answer.sequence}) by version {answer.shown['version']} of the model, "
            f"whose certificate has the SHA-256 {answer.shown['certificate_sha256']}"
        )
        epsilon, delta = answer.shown.get("epsilon"), answer.shown.get("delta")
        if epsilon is not None and delta is not None:
            lines[-1] += f" and states epsilon {rounded_up(epsilon)}"
    elif "requested" in events:
        lines.append("no answer is shown: there was none when the receipt was made, or it was left out")
    else:
        lines.append("no release is shown: there was none when the receipt was made, or it was left out")
    return [f"person {found.pseudonym}: {lines[0]}", *lines[1:]]
