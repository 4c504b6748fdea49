"""Identifiers that a person would take for one: they differ only in blanks, case, or how a letter is encoded.

No rule says whether two such spellings are one person's, so they are named, for the owner of the table to decide. Free
of heavy imports.
"""

import re
import sqlite3
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import NamedTuple, Self

from certified_unlearning.data.tables.declaration import text_of
from certified_unlearning.text import counted

ROUNDED = re.compile(r"\s*[+-]?(\d\.\d+[eE][+-]?\d+|\d{16,}\.0*)\s*", re.ASCII)
"""How programs write long numbers whose last digits they have lost: 1.23457E+15, 9007199254740992.0."""
_PLAIN = re.compile(r"[A-Za-z1-9][A-Za-z0-9_-]*")
"""Spellings that differ from their `folded` form in case alone."""
_INVISIBLE = re.compile(r"[\s\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]+")
_MARKS = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe63\uff0d", "-")
    | dict.fromkeys("\u2018\u2019\u201b\u02bc\u2032`", "'")
    | dict.fromkeys("\u201c\u201d\u201f", '"')
)
_LONE_NUMBER = re.compile(r"([+-]?)0*(\d+?)(\.0*)?", re.ASCII)


def _without_blanks(text: str) -> str:
    return _INVISIBLE.sub("", text)


def _with_plain_marks(text: str) -> str:
    return text.translate(_MARKS)


def _normalised(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _as_number(text: str) -> str:
    number = _LONE_NUMBER.fullmatch(text)
    return text if number is None else f"{number[1]}{number[2]}"


_DIFFERENCES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("blanks", _without_blanks),
    ("Unicode normalisation", _normalised),
    ("case", str.casefold),
    ("the form of dashes or quotation marks", _with_plain_marks),
    ("leading zeros or a trailing .0", _as_number),
)


def folded(text: str) -> str:
    """Return what all spellings have in common that a person would take for one."""
    if _PLAIN.fullmatch(text):
        return text.lower()
    text = _without_blanks(_normalised(_with_plain_marks(text))).casefold()
    # Once more, for a letter's lower case may be another combination of characters.
    return _as_number(_without_blanks(_with_plain_marks(_normalised(text))))


class Group(NamedTuple):
    """Spellings that a person would take for one.

    Attributes:
        folded: What they have in common.
        spellings: They, sorted.
    """

    folded: str
    spellings: tuple[str, ...]

    @property
    def difference(self) -> str:
        """What they differ in."""
        for name, fold in _DIFFERENCES:
            if len({fold(each) for each in self.spellings}) == 1:
                return name
        return "more than one of blanks, case and encoding"

    @property
    def people(self) -> tuple[str, ...]:
        """The identifiers that the spellings become: one, where the rules of tables take them for the same."""
        return tuple(dict.fromkeys(str(text_of(each)) for each in self.spellings))


class Spellings:
    """All spellings of identifiers seen so far, in a temporary file: they may be more than memory holds."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect("", isolation_level=None)

    def __enter__(self) -> Self:
        self._connection.execute("PRAGMA journal_mode = OFF")
        self._connection.execute(
            "CREATE TABLE spellings (folded TEXT, spelling TEXT, PRIMARY KEY (folded, spelling)) WITHOUT ROWID"
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def add(self, spellings: Iterable[str]) -> None:
        """Add the spellings of some rows."""
        pairs = ((folded(each), each) for each in set(spellings))
        self._connection.execute("BEGIN")
        self._connection.executemany("INSERT OR IGNORE INTO spellings VALUES (?, ?)", pairs)
        self._connection.execute("COMMIT")

    def groups(self) -> Iterator[Group]:
        """Yield every group of two or more spellings that a person would take for one."""
        query = (
            "SELECT folded, spelling FROM spellings WHERE folded IN "
            "(SELECT folded FROM spellings GROUP BY folded HAVING count(*) > 1) ORDER BY folded, spelling"
        )
        key, members = "", list[str]()
        for fold, spelling in self._connection.execute(query):
            if fold != key and members:
                yield Group(key, tuple(members))
                members = []
            key = fold
            members.append(spelling)
        if members:
            yield Group(key, tuple(members))


def described(groups: Sequence[Group]) -> list[str]:
    """Return sentences that name the groups, one for each difference, and say what becomes of them."""
    sentences = []
    for merged in (False, True):
        for difference in dict.fromkeys(group.difference for group in groups):
            some = [group for group in groups if group.difference == difference and (len(group.people) == 1) == merged]
            if not some:
                continue
            count = counted(sum(len(group.spellings) for group in some), "identifier")
            example = " and ".join(map(repr, some[0].spellings[:3]))
            means = (
                "they count as one person"
                if merged
                else "they count as different people, so a request for one must name the others, too"
            )
            sentences.append(f"{count} differ only in {difference}, such as {example}: {means}")
    return sentences
