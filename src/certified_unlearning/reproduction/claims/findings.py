"""The most important results of a run in sentences, computed once for both the report and the terminal.

A paper makes the sentences about runs (`Paper.findings`) from the numbers of the rows. A contradicted claim is a
sentence of its own. No sentence is written by hand, and one whose numbers are missing is left out.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, RootModel

from certified_unlearning.files import read_model, write_json
from certified_unlearning.reproduction import declared
from certified_unlearning.reproduction.claims.evidence import Evidence, MissingEvidence
from certified_unlearning.reproduction.claims.severity import Severity
from certified_unlearning.reproduction.claims.verdicts import Verdict, worst_contradictions
from certified_unlearning.reproduction.paper import Paper

CONTRADICTIONS = 3
"""Largest number of contradicted claims among the findings."""
_BEFORE_THE_FIRST_CONTRADICTION = 2


class KeyFinding(BaseModel):
    """One finding.

    Attributes:
        text: The sentence.
        newcomers: Whether it is for the top of the report, for readers who know no paper.
        expected: What a contradicted claim states; empty for other findings.
        measured: What was measured for a contradicted claim.
        claim: The id of a contradicted claim.
        severity: How badly a contradicted claim fails.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str
    newcomers: bool = False
    expected: str = ""
    measured: str = ""
    claim: str = ""
    severity: Severity | None = None


class _Findings(RootModel[list[KeyFinding]]):
    pass


def findings(
    verdicts: Sequence[Verdict], papers: Sequence[Paper], evidence: Mapping[str, Sequence[Evidence]]
) -> list[KeyFinding]:
    """Return findings in order: for newcomers, costs and quality, the worst contradictions, the rest.

    Args:
        verdicts: The verdicts on all claims.
        papers: All papers.
        evidence: The present results, by the papers' names.

    Raises:
        DataError: Results are damaged.
    """
    of_runs, newcomers = (
        [
            KeyFinding(text=text, newcomers=first)
            for paper in papers
            for each in evidence.get(paper.name, ())
            for text in _sentences(paper.newcomers if first else paper.findings, each)
        ]
        for first in (False, True)
    )
    titles = {paper.name: paper.title for paper in papers}
    contradicted = [
        KeyFinding(
            text=f"{_place(verdict, titles)}: {verdict.statement}",
            expected=verdict.expected,
            measured=verdict.measured,
            claim=verdict.id,
            severity=verdict.severity,
        )
        for verdict in worst_contradictions(verdicts, CONTRADICTIONS)
    ]
    first = _BEFORE_THE_FIRST_CONTRADICTION
    return [*newcomers, *of_runs[:first], *contradicted[:1], *of_runs[first:], *contradicted[1:]]


def write(path: str | Path, found: Sequence[KeyFinding]) -> None:
    """Write findings as a JSON list, atomically."""
    write_json(path, [each.model_dump() for each in found])


def read(path: Path) -> list[KeyFinding]:
    """Read what `write` wrote.

    Raises:
        DataError: The file is missing, or is not a list of findings.
    """
    return read_model(path, _Findings, "a list of findings").root


def _sentences(reference: str | None, evidence: Evidence) -> list[str]:
    if reference is None:
        return []
    try:
        found: list[str] = declared.function(reference)(evidence)
    except MissingEvidence:
        return []
    return found


def _place(verdict: Verdict, titles: Mapping[str, str]) -> str:
    """Return the paper and the source within it; name the paper only once if the source begins with it."""
    title = titles.get(verdict.paper, "")
    return verdict.source if not title or verdict.source.startswith(title) else f"{title}, {verdict.source}"
