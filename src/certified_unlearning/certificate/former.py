"""Sentences of earlier releases, each with its present wording, so that old certificates still verify.

Only the wording changed, never the promise or the assumption: both sentences of a pair mean the same.
"""

from collections.abc import Mapping
from typing import Any

FORMER = (
    (
        "whoever knows it can subtract the noise, as can whoever tries all seeds, where they are numbers of 32 bits, "
        "and two models made with one seed cancel each other's",
        "the noise can be subtracted by anybody who knows the seed, or who tries all seeds if they are numbers of 32 "
        "bits, and the noises of two models made with one seed cancel each other",
    ),
    ("its key was given by whoever learned, who says that it came", "the caller gave its key, and states that it came"),
    ("whoever kept it has a model of the removed records", "a kept copy is a model of the removed records"),
    ("whoever holds the records trains again and compares", "somebody with the records can train again and compare"),
    (
        "whoever knows it, or tries all seeds of 32 bits, and has the records, knows the state",
        "somebody with the records who knows the seed, or tries all seeds of 32 bits, knows the state",
    ),
    ("whoever holds both trains again and compares", "somebody with both can train again and compare"),
    ("whoever cuts batches anew has other neighbours", "batches that are cut anew have other neighbours"),
)
"""Pairs of a sentence that earlier releases wrote and its present wording."""


def in_present_words(content: Any) -> Any:
    """Return a certificate file's content, with assumptions and limits in the wording of this release.

    Args:
        content: The parsed file. A value that is not a mapping is returned unchanged.
    """
    if not isinstance(content, Mapping):
        return content
    return dict(content) | {key: _present(content[key]) for key in ("assumptions", "not_promised") if key in content}


def _present(stated: Any) -> Any:
    if isinstance(stated, str):
        for former, present in FORMER:
            stated = stated.replace(former, present)
        return stated
    if isinstance(stated, Mapping):
        return {key: _present(value) for key, value in stated.items()}
    return [_present(each) for each in stated] if isinstance(stated, list) else stated
