"""The table of claims, as the page shows it: by paper, the worst first."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from certified_unlearning.reproduction.claims.severity import Severity
from certified_unlearning.reproduction.claims.verdicts import (
    Verdict,
    VerdictName,
    numbers,
    ranked,
    read,
    severities,
)
from certified_unlearning.reproduction.paper import Paper


@dataclass(frozen=True)
class ShownClaim:
    """A verdict, and the parts of the paper that its source names."""

    verdict: Verdict
    places: tuple[str, ...]


@dataclass(frozen=True)
class PapersClaims:
    """The claims of one paper.

    Attributes:
        title: What people call it.
        citation: Who wrote it, where it appeared; may be empty.
        claims: In the order of `claims.ranked`.
        counts: How many have which verdict.
        severities: How many contradicted ones have which severity, the worst first.
    """

    title: str
    citation: str
    claims: tuple[ShownClaim, ...]
    counts: Mapping[VerdictName, int]
    severities: Mapping[Severity, int]


@dataclass(frozen=True)
class Verdicts:
    """All claims by paper, that of the worst claim first.

    Attributes:
        papers: The papers.
        total: How many claims there are.
        counts: How many have which verdict.
        severities: How many contradicted ones have which severity, the worst first.
        places: Parts of papers that their sources name, in order of appearance.
    """

    papers: tuple[PapersClaims, ...]
    total: int
    counts: Mapping[VerdictName, int]
    severities: Mapping[Severity, int]
    places: tuple[str, ...]


def verdicts(path: Path, papers: Sequence[Paper]) -> Verdicts | None:
    """Read ``claims.json``; None where there is none.

    Args:
        path: The file.
        papers: Papers of the report, whose titles and citations head their claims.

    Raises:
        DataError: The file is no list of claims; the message names the first field that is wrong.
    """
    if not path.exists():
        return None
    found = read(path)
    by_paper: dict[str, list[Verdict]] = {}
    for verdict in ranked(found):
        by_paper.setdefault(verdict.paper, []).append(verdict)
    known = {paper.name: paper for paper in papers}
    return Verdicts(
        papers=tuple(_of_paper(known.get(name), name, own) for name, own in by_paper.items()),
        total=len(found),
        counts=numbers(found),
        severities=_some(severities(found)),
        places=tuple(dict.fromkeys(place for verdict in found for place in places(verdict.source))),
    )


def _of_paper(paper: Paper | None, name: str, own: Sequence[Verdict]) -> PapersClaims:
    return PapersClaims(
        # A paper that nothing here is run of has claims that formulas decide.
        title=paper.title if paper is not None else name.replace("_", " ").capitalize() or "Claims",
        citation=paper.citation if paper is not None else "",
        claims=tuple(ShownClaim(verdict, places(verdict.source)) for verdict in own),
        counts=numbers(own),
        severities=_some(severities(own)),
    )


def _some(counted: Mapping[Severity, int]) -> dict[Severity, int]:
    return {name: number for name, number in counted.items() if number}


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
