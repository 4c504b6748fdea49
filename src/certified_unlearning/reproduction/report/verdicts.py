"""The table of claims for the page: by paper, the worst claims first; our own claims are separate."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from certified_unlearning.reproduction.claims.model import Whose
from certified_unlearning.reproduction.claims.severity import Severity
from certified_unlearning.reproduction.claims.verdicts import (
    OWNERS,
    Tally,
    Verdict,
    counts,
    ranked,
    read,
    read_again,
    severities,
    tallies,
)
from certified_unlearning.reproduction.paper import Paper


@dataclass(frozen=True)
class ShownClaim:
    """A verdict, with the parts of the paper that its source names."""

    verdict: Verdict
    places: tuple[str, ...]

    @property
    def owner(self) -> str:
        """Owner of the claim, in words; empty for a paper's own claim."""
        return "" if self.verdict.whose == "paper" else OWNERS[self.verdict.whose]

    @property
    def reading(self) -> dict[str, str]:
        """Findings of a second reader about a contradiction, keyed by heading; empty if there was no second reading."""
        found = self.verdict.reading
        return {} if found is None else {words.capitalize(): text for words, text in read_again(found).items()}


@dataclass(frozen=True)
class PapersClaims:
    """The claims about one paper.

    Attributes:
        title: Short title of the paper.
        citation: Authors of the paper, and where it appeared; may be empty.
        claims: Claims of the paper and of its authors' code, in the order of `claims.ranked`.
        ours: Claims of this project about the paper, in the same order.
        own: Numbers of the paper's own claims by verdict and severity; None if the paper has no claims.
        apart: Text with the numbers of all other claims, by owner and verdict; empty if there are none.
    """

    title: str
    citation: str
    claims: tuple[ShownClaim, ...]
    ours: tuple[ShownClaim, ...]
    own: Tally | None
    apart: str


@dataclass(frozen=True)
class Verdicts:
    """All claims by paper; the paper of the worst claim comes first.

    Attributes:
        papers: Papers with their claims.
        total: Number of all claims, of any owner.
        own: Numbers of the papers' own claims by verdict and severity; None if there are none.
        apart: Text with the numbers of all other claims, by owner and verdict; empty if there are none.
        owners: Name for the claims of each owner, keyed by owner.
        severities: Severities that occur, from the worst to the mildest.
        places: Theorems and other parts of papers that are named in the sources of claims, in order of appearance.
    """

    papers: tuple[PapersClaims, ...]
    total: int
    own: Tally | None
    apart: str
    owners: Mapping[Whose, str]
    severities: tuple[Severity, ...]
    places: tuple[str, ...]


def verdicts(path: Path, papers: Sequence[Paper]) -> Verdicts | None:
    """Return the verdicts in ``claims.json``; None if there is no such file.

    Args:
        path: Path of the file.
        papers: Papers of the report, whose titles and citations are shown above their claims.

    Raises:
        DataError: The file is not a list of claims; the message names the first invalid field.
    """
    if not path.exists():
        return None
    found = read(path)
    by_paper: dict[str, list[Verdict]] = {}
    for verdict in ranked(found):
        by_paper.setdefault(verdict.paper, []).append(verdict)
    known = {paper.name: paper for paper in papers}
    return Verdicts(
        papers=tuple(_of_paper(known.get(name), name, about) for name, about in by_paper.items()),
        total=len(found),
        own=tallies(found).get("paper"),
        apart=_apart(found),
        owners={whose: OWNERS[whose] for whose in tallies(found)},
        severities=tuple(name for name, number in severities(found).items() if number),
        places=tuple(dict.fromkeys(place for verdict in found for place in places(verdict.source))),
    )


def _of_paper(paper: Paper | None, name: str, about: Sequence[Verdict]) -> PapersClaims:
    shown = [ShownClaim(verdict, places(verdict.source)) for verdict in about]
    return PapersClaims(
        # A paper without runs may have claims that formulas decide.
        title=paper.title if paper is not None else name.replace("_", " ").capitalize() or "Claims",
        citation=paper.citation if paper is not None else "",
        claims=tuple(each for each in shown if each.verdict.whose != "ours"),
        ours=tuple(each for each in shown if each.verdict.whose == "ours"),
        own=tallies(about).get("paper"),
        apart=_apart(about),
    )


def _apart(found: Sequence[Verdict]) -> str:
    others = [verdict for verdict in found if verdict.whose != "paper"]
    return counts(others) if others else ""


_NUMBER = r"(?:[A-Z](?:\.\d+)?|\d+(?:\.\d+)*)[a-z]?\b"
_PLACES = re.compile(
    rf"(Algorithm|Appendix|Corollary|Fig\.|Lemma|Proposition|Section|Table|Theorem)"
    rf"(?: ({_NUMBER})|s ({_NUMBER}(?:(?:, | and ){_NUMBER})*))"
)


def places(source: str) -> tuple[str, ...]:
    """Return a tuple of the parts of a paper that a source names.

    If the source names no parts, the tuple contains only the text before the first comma or semicolon. For example,
    ``Theorems 3.2, N.1, Corollary 3.4`` gives ``Theorem 3.2``, ``Theorem N.1`` and ``Corollary 3.4``. ``Algorithms 4 to
    6`` gives ``Algorithm 4``, ``Algorithm 5`` and ``Algorithm 6``.
    """
    listed = re.sub(r"(\d+) to (\d+)", lambda ends: ", ".join(map(str, range(int(ends[1]), int(ends[2]) + 1))), source)
    found = [
        f"{kind} {number}"
        for kind, one, several in _PLACES.findall(listed)
        for number in re.findall(_NUMBER, one or several)
    ]
    return tuple(dict.fromkeys(found)) or (re.split("[,;]", source)[0],)
