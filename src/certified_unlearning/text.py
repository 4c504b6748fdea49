"""Texts for people: numbers rounded in the direction that promises less, nouns with numbers, tables as Markdown."""

import decimal
from collections.abc import Iterable, Sequence


def rounded_up(value: float, digits: int = 6) -> str:
    """Return a number with ``digits`` digits, rounded up, because a printed epsilon or sigma must still hold."""
    context = decimal.Context(prec=digits, rounding=decimal.ROUND_CEILING)
    return f"{float(context.create_decimal(repr(value))):.{digits}g}"


def with_commas(value: float, digits: int = 15) -> str:
    """Return a number with ``digits`` digits and, up to a trillion, with thousands separators: 1,234,500."""
    return f"{float(f'{value:.{digits}g}'):,.15g}"


def counted(number: int, noun: str) -> str:
    """Return a number together with its noun: 1 record, 2,000 people."""
    return f"{number:,} {noun_of(number, noun)}"


def capitalised(text: str) -> str:
    """Return a text whose first letter is a capital; the other letters do not change."""
    return text[:1].upper() + text[1:]


def noun_of(number: float, noun: str) -> str:
    """Return the form of a noun after a number: record after 1; records, classes, queries, people after 2."""
    if number == 1:
        return noun
    if noun.endswith("person"):
        return f"{noun.removesuffix('person')}people"
    if noun.endswith(("s", "x", "ch", "sh")):
        return f"{noun}es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}s"


def seconds_in_words(seconds: float) -> str:
    """Return an estimated duration in words: 1 second, 12 seconds, 3 minutes, 2 hours."""
    if seconds < 90:
        return counted(max(1, round(seconds)), "second")
    if seconds < 90 * 60:
        return counted(round(seconds / 60), "minute")
    return counted(round(seconds / 3600), "hour")


def unbroken(text: str) -> str:
    """Return a text that cannot be broken across lines, such as a number with its unit."""
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def table_lines(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]
