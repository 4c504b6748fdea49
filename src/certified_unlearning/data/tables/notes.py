"""Sentences about columns. Sentences that differ only in numbers are combined."""

import re
from collections.abc import Iterable, Sequence

_NUMBER = re.compile(r"(?<![\w.,'\"])\d+(?:,\d{3})*(?:\.\d+)?(?![\w'\"])")
_NAMED = 4
"""If a sentence concerns more columns than this, only the first ones and the last are named."""


def which(columns: Sequence[str]) -> str:
    """Return columns as the subject of a sentence: their number, the first few names and the last."""
    if len(columns) == 1:
        return columns[0]
    named = columns if len(columns) <= _NAMED else [*columns[: _NAMED - 2], f"... {columns[-1]}"]
    return f"{len(columns):,} columns ({', '.join(named)})"


def grouped(notes: Iterable[tuple[str, str]]) -> list[tuple[list[str], str]]:
    """Return each sentence once, together with all columns to which it applies.

    The order is that in which the sentences first occur.

    Sentences that differ only in numbers are combined; each number becomes a range, such as 2 to 10.
    """
    alike: dict[str, list[tuple[str, str]]] = {}
    for column, sentence in notes:
        alike.setdefault(_NUMBER.sub("#", sentence), []).append((column, sentence))
    return [
        (list(dict.fromkeys(column for column, _ in same)), _joined([sentence for _, sentence in same]))
        for same in alike.values()
    ]


def _joined(sentences: Sequence[str]) -> str:
    """Return one sentence for several that differ only in numbers."""
    spreads = iter([_spread(numbers) for numbers in zip(*map(_NUMBER.findall, sentences), strict=True)])
    return _NUMBER.sub(lambda _: next(spreads), sentences[0])


def _spread(numbers: Sequence[str]) -> str:
    least, most = (by(numbers, key=lambda text: float(text.replace(",", ""))) for by in (min, max))
    return least if least == most else f"{least} to {most}"
