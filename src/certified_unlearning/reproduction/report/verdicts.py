"""The table of claims, as the page shows it."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, JsonValue, RootModel

from certified_unlearning.files import read_model

Verdict = Literal["reproduced", "contradicted", "not run"]


class _Claim(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    source: str
    statement: str
    expected: JsonValue
    measured: JsonValue
    tolerance: JsonValue
    verdict: Verdict
    reason: str | None
    paper: str = ""
    severity: str | None = None
    gap: float | None = None


class _Claims(RootModel[list[_Claim]]):
    pass


@dataclass(frozen=True)
class ShownClaim:
    """One claim in words; attributes are those of ``claims.json``, and ``places`` those that the source names."""

    id: str
    source: str
    places: tuple[str, ...]
    statement: str
    expected: str
    measured: str
    tolerance: str
    verdict: Verdict
    reason: str


@dataclass(frozen=True)
class Verdicts:
    """All claims in their order, how many have each verdict, and their places in order of appearance."""

    claims: tuple[ShownClaim, ...]
    counts: dict[str, int]
    places: tuple[str, ...]


def verdicts(path: Path) -> Verdicts | None:
    """Read ``claims.json``; None where there is none.

    Raises:
        DataError: The file is no list of claims; the message names the first field that is wrong.
    """
    if not path.exists():
        return None
    claims = tuple(_shown(claim) for claim in read_model(path, _Claims, "a list of claims").root)
    counts = Counter(claim.verdict for claim in claims)
    return Verdicts(
        claims=claims,
        counts={verdict: counts[verdict] for verdict in get_args(Verdict)},
        places=tuple(dict.fromkeys(place for claim in claims for place in claim.places)),
    )


def words(value: JsonValue) -> str:
    """Return a JSON value for people: numbers to six digits, lists with commas, nothing as a dash."""
    match value:
        case None:
            return "–"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:.6g}"
        case list():
            return ", ".join(words(each) for each in value)
        case dict():
            return "; ".join(f"{key}: {words(each)}" for key, each in value.items())
        case str():
            return value


_NUMBER = r"(?:[A-Z](?:\.\d+)?|\d+(?:\.\d+)*)[a-z]?\b"
_PLACES = re.compile(
    rf"(Algorithm|Appendix|Corollary|Fig\.|Lemma|Proposition|Section|Table|Theorem)"
    rf"(?: ({_NUMBER})|s ({_NUMBER}(?:(?:, | and ){_NUMBER})*))"
)


def places(source: str) -> tuple[str, ...]:
    """Return the parts of a paper that a source names, each once and alone, or else the source up to a comma.

    ``Theorems 3.2, N.1, Corollary 3.4`` are ``Theorem 3.2``, ``Theorem N.1`` and ``Corollary 3.4``;
    ``Algorithms 4 to 6`` are ``Algorithm 4``, ``Algorithm 5`` and ``Algorithm 6``.
    """
    listed = re.sub(r"(\d+) to (\d+)", lambda ends: ", ".join(map(str, range(int(ends[1]), int(ends[2]) + 1))), source)
    found = [
        f"{kind} {number}"
        for kind, one, several in _PLACES.findall(listed)
        for number in re.findall(_NUMBER, one or several)
    ]
    return tuple(dict.fromkeys(found)) or (re.split("[,;]", source)[0],)


def _shown(claim: _Claim) -> ShownClaim:
    return ShownClaim(
        id=claim.id,
        source=claim.source,
        places=places(claim.source),
        statement=claim.statement,
        expected=words(claim.expected),
        measured=words(claim.measured),
        tolerance=words(claim.tolerance),
        verdict=claim.verdict,
        reason=claim.reason or "",
    )
