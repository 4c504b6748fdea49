"""Spellings that a reader would take for the same identifier: they differ in blanks, case or a letter's encoding.

No rule decides whether two such spellings belong to one person, so they are reported, and the owner of the table
decides. The module has no heavy imports.
"""

import re
import sqlite3
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import NamedTuple, Self

from certified_unlearning.data.tables.declaration import text_of
from certified_unlearning.text import counted

ROUNDED = re.compile(
    r"\s*[+-]?(\d[.,]\d+[eE][+-]?\d+|\d[eE]\+\d+|\d([.,]\d+)?\s?[x*×]\s?10\^?\d+|\d{16,}\.0*)\s*", re.ASCII
)
"""Spellings of long numbers whose last digits a program has lost: 1.23457E+15, 1E+11, 9007199254740992.0."""
_ABSENT = frozenset(
    [
        "na",
        "n/a",
        "n.a.",
        "nan",
        "-nan",
        "nat",
        "null",
        "(null)",
        "[null]",
        "none",
        "nil",
        "\\n",
        "#n/a",
        "#value!",
        "#ref!",
        "#name?",
        "#num!",
        "#div/0!",
        "1.#qnan",
        "tbd",
        "unknown",
        "missing",
        "(blank)",
        "''",
        "00000000-0000-0000-0000-000000000000",
    ]
)
_PLACEHOLDER = re.compile(r"[#\-\u2013\u2014._?*]+|not available|not applicable")
_PLAIN = re.compile(r"[A-Za-z1-9][A-Za-z0-9_-]*")
"""Spellings that differ from their `folded` form only in case."""
_INVISIBLE = re.compile(r"[\s\x00-\x1f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff]+")
_MARKS = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe63\uff0d", "-")
    | dict.fromkeys("\u2018\u2019\u201b\u02bc\u2032`", "'")
    | dict.fromkeys("\u201c\u201d\u201f", '"')
)
_LONE_NUMBER = re.compile(r"\+?(-?)0*(\d+?)(?:\.0*|(\.\d*[1-9])0*)?", re.ASCII)
_MOST_DIGITS = 20
"""Identifiers with leading zeros are tried up to this number of digits."""
_GROUPED = re.compile(r"[+-]?\d{1,3}([,.' ]\d{3})+", re.ASCII)
_UUID = re.compile(r"\{?([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{12})\}?", re.IGNORECASE)
_QUOTED = re.compile(r"""=?"(.*)"|'(.*?)'?""", re.DOTALL)
_ALIKE = str.maketrans(
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a7\u03bf\u0131",
    "ABEKMHOPCTXaeopcyxABEZHIKMNOPTXoi",
)
"""Cyrillic and Greek letters that look like Latin ones, and the dotless i."""


def is_absent(identifier: str) -> bool:
    """Return whether this is a usual spelling of a missing identifier."""
    text = _INVISIBLE.sub(" ", identifier).strip().lower()
    return not text or text in _ABSENT or _PLACEHOLDER.fullmatch(text) is not None


def _without_blanks(text: str) -> str:
    return _INVISIBLE.sub("", text)


def _with_plain_marks(text: str) -> str:
    return text.translate(_MARKS)


def _normalised(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _as_number(text: str) -> str:
    number = _LONE_NUMBER.fullmatch(re.sub(r"[,.' ]", "", text) if _GROUPED.fullmatch(text) else text)
    if number is None:
        return text
    digits = f"{number[2]}{number[3] or ''}"
    return digits if digits == "0" else f"{number[1]}{digits}"


def _unwrapped(text: str) -> str:
    """Return a text without the marks that programs add, such as braces or a spreadsheet's quotes around it."""
    if parts := _UUID.fullmatch(text):
        return "".join(parts.groups())
    quoted = _QUOTED.fullmatch(text)
    return text if quoted is None else quoted[1] if quoted[1] is not None else quoted[2]


def _in_latin(text: str) -> str:
    return text.translate(_ALIKE)


def _in_one_case(text: str) -> str:
    # The dotted capital I becomes an i and a dot.
    return text.casefold().replace("i\u0307", "i")


_DIFFERENCES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("blanks", _without_blanks),
    ("Unicode normalisation", _normalised),
    ("case", _in_one_case),
    ("the form of dashes or quotation marks", _with_plain_marks),
    ("how a number is written", _as_number),
    ("surrounding characters, such as quotes or braces", _unwrapped),
    ("letters of another alphabet that look alike", _in_latin),
)


def folded(text: str) -> str:
    """Return the common form of all spellings that a human reader would take for the same identifier."""
    if _PLAIN.fullmatch(text):
        return text.lower()
    before = None
    while text != before:  # Repeated, because one rule may enable another, such as for a number within quotes.
        before = text
        for _, fold in _DIFFERENCES:
            text = fold(text)
    return text


def likely_spellings(text: str) -> Iterator[str]:
    """Yield a few likely alternatives to an identifier, with different case, blanks or leading zeros."""
    number = folded(text)
    if re.fullmatch(r"\d+", number, re.ASCII):
        yield from (number.zfill(width) for width in range(len(number), _MOST_DIGITS + 1))
    bare = _without_blanks(text)
    for plain in (text, folded(text), text.strip(), " ".join(text.split()), bare, _normalised(text)):
        for form in (plain, unicodedata.normalize("NFD", plain)):
            yield from (form, form.lower(), form.upper(), form.title(), form.capitalize())


class Group(NamedTuple):
    """Spellings that a human reader would take for the same identifier.

    Attributes:
        folded: The common form of the spellings.
        spellings: The spellings, sorted.
    """

    folded: str
    spellings: tuple[str, ...]

    @property
    def difference(self) -> str:
        """How the spellings differ, in words."""
        for name, fold in _DIFFERENCES:
            if len({fold(each) for each in self.spellings}) == 1:
                return name
        return "blanks, case and the like"

    @property
    def people(self) -> tuple[str, ...]:
        """The distinct identifiers that tables make of the spellings; one if the rules treat the spellings as equal."""
        return tuple(dict.fromkeys(str(text_of(each)) for each in self.spellings))


class Spellings:
    """All spellings of identifiers seen so far, in a temporary file, because they may exceed memory."""

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
        """Yield every group of two or more spellings that a human reader would take for the same identifier."""
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


def groups_of(spellings: Iterable[str]) -> list[Group]:
    """Return the groups of similar spellings, for spellings that fit in memory."""
    with Spellings() as seen:
        seen.add(spellings)
        return list(seen.groups())


def described(groups: Sequence[Group]) -> list[str]:
    """Return one sentence for all groups that have the same kind of difference and the same consequence."""
    by_kind: dict[tuple[str, str], list[Group]] = {}
    for group in groups:
        by_kind.setdefault((group.difference, _becomes(group)), []).append(group)
    return [
        f"{counted(sum(len(group.spellings) for group in some), 'identifier')} differ only in {difference}, such as "
        f"{' and '.join(map(repr, some[0].spellings[:3]))}: {becomes}"
        for (difference, becomes), some in by_kind.items()
    ]


def _becomes(group: Group) -> str:
    if len(group.people) == 1:
        return "they count as one person"
    people = "different people" if len(group.people) == len(group.spellings) else "one person in part"
    return f"they count as {people}, so a request for one must name the others, too"
