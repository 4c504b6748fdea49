"""Reading certificates of earlier releases: their sentences are replaced by the present ones, so they still verify.

Only the wording changed, never the promise or the assumption: both sentences of a pair mean the same.
"""

from collections.abc import Mapping
from typing import Any

from certified_unlearning.certificate.former_words import FORMER

IN_WORDS = ("comparator", "hidden", "observers", "not_promised", "sampling", "assumptions")
"""The fields of certificates that consist of sentences."""
_LONGEST_FIRST = sorted(FORMER, key=lambda pair: -len(pair[0]))
"""A former sentence may contain a shorter one of another pair. No present sentence contains a former one."""


def in_present_words(content: Any) -> Any:
    """Return a certificate file's content, with the sentences in the wording of this release.

    Args:
        content: The parsed file. A value that is not a mapping is returned unchanged.
    """
    if not isinstance(content, Mapping):
        return content
    return dict(content) | {key: _present(content[key]) for key in IN_WORDS if key in content}


def _present(stated: Any) -> Any:
    if isinstance(stated, str):
        for former, present in _LONGEST_FIRST:
            stated = stated.replace(former, present)
        return stated
    if isinstance(stated, Mapping):
        return {key: _present(value) for key, value in stated.items()}
    return [_present(each) for each in stated] if isinstance(stated, list) else stated
