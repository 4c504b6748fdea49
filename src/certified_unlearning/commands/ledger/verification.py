"""The part of the command `verify` that verifies model directories."""

import json
from pathlib import Path

from certified_unlearning.commands.keeping.restores import as_json as restores_as_json
from certified_unlearning.commands.keeping.restores import lines_about_the_log
from certified_unlearning.commands.ledger.words import (
    guarantee_as_json,
    guarantee_in_words,
    labels_in_words,
    print_head,
)
from certified_unlearning.errors import UnlearningError
from certified_unlearning.text import counted


def verify_as_json(model_dir: Path, head: str | None) -> bool:
    """Verify a model directory, print the result as one JSON object, and return whether the verification succeeded."""
    from certified_unlearning.ledger.verification import verify as verify_directory

    try:
        verified = verify_directory(model_dir, head)
    except UnlearningError as error:
        print(json.dumps({"model": str(model_dir), "verified": False, "error": str(error)}, indent=2))
        return False
    state = verified.state
    found = {
        "model": str(model_dir),
        "verified": True,
        "error": None,
        "events": verified.events,
        "version": state.current.version,
        "certificates": len(state.versions),
        "head_in_log": True if head else None,
        "classes_from": verified.classes_from,
        "target_range": verified.target_range,
        "text": verified.text,
        "guarantee": guarantee_as_json(state.current),
        "source": verified.source,
        "not_checked": [str(path) for path in verified.strangers],
        "unchecked": verified.unchecked,
        **restores_as_json(verified.log, state, model_dir),
        "head": verified.head,
    }
    print(json.dumps(found, indent=2))
    return True


def verify(model_dir: Path, head: str | None) -> None:
    """Recompute all statements of a model directory, and print the results.

    Raises:
        UnlearningError: Something is not what the ledger recorded.
    """
    from certified_unlearning.ledger.verification import verify as verify_directory

    verified = verify_directory(model_dir, head)
    state, meaning = verified.state, verified.current.meaning()
    owned = "and the owners of its rows are" if verified.unchecked is None else "is"
    if meaning is not None:
        print(meaning)
    print(
        f"{model_dir}: {counted(verified.events, 'event')} in one chain, version {state.current.version} of the model, "
        f"{counted(len(state.versions), 'certificate')}, the training copy {owned} as recorded"
        + ("; the log begins with the events of the head that you named" if head else "")
    )
    print(labels_in_words(verified.classes_from, verified.target_range))
    for column, width in verified.text.items():
        print(f"text: {column!r}, hashed into {width:,} columns, without a vocabulary")
    print("".join(f"{line}\n" for line in lines_about_the_log(verified.log, state, model_dir)), end="")
    if state.lost:
        print("note: certificates of lost versions are not in the directory, and were not verified")
    print(guarantee_in_words(state.current))
    if verified.source is not None:
        print(f"note: {verified.source}")
    if verified.unchecked is not None:
        print(f"note: {verified.unchecked}")
    for path in verified.strangers:
        print(f"note: {path} is not part of the model; its content was not checked")
    print_head(verified.head)
