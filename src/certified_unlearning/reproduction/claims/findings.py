"""The most important results of a run in sentences, computed once for both the report and the terminal.

Each paper has a function that writes sentences about runs from the numbers in the rows (`Paper.findings`).
Each of the worst contradicted claims gives one more sentence. No sentence is written by hand. A sentence is left out if
its numbers are missing.
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
    """One finding of a run.

    Attributes:
        text: Sentence that states the finding.
        newcomers: Whether the sentence is for the top of the report, for readers who do not know the paper.
        expected: Statement of a contradicted claim; empty for other findings.
        measured: Measured value of a contradicted claim.
        claim: Id of a contradicted claim.
        severity: Severity of a contradicted claim.
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
    """Return the findings in the order of the report.

    Findings for newcomers come first. Then come two findings of runs, the worst contradiction, the other findings of
    runs, and the other contradictions.

    Args:
        verdicts: Verdicts on all claims.
        papers: All papers.
        evidence: Available results, by the papers' names.

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
    """Read the findings in a file that `write` created.

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
    """Return the paper, and the place in the paper that the claim names.

    If the place begins with the paper's name, this name is not repeated.
    """
    title = titles.get(verdict.paper, "")
    return verdict.source if not title or verdict.source.startswith(title) else f"{title}, {verdict.source}"
