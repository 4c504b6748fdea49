"""Verdicts on all claims, and their comparison with the committed baseline."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from certified_unlearning.errors import AssumptionError, DataError, InfeasibleError, ParameterError
from certified_unlearning.files import read_json, write_json
from certified_unlearning.reproduction.claims.evidence import Evidence, MissingEvidence
from certified_unlearning.reproduction.claims.model import CheckableClaim, Reading, Whose
from certified_unlearning.reproduction.claims.relations import Finding, Quantity
from certified_unlearning.reproduction.claims.severity import Deviation, Severity, badness, worst
from certified_unlearning.text import capitalised

VerdictName = Literal["reproduced", "contradicted", "not run"]
OWNERS: Mapping[Whose, str] = {"paper": "the papers' own", "authors' code": "authors' code", "ours": "ours"}
"""Names for the claims of each owner, in the order in which owners are counted."""
READINGS = {
    "cause": "the cause, shared with other claims",
    "assumes": "the paper assumes",
    "setting": "the setting",
    "right_if": "what would make it right",
}
"""Headings of the parts of a second reading."""
NARROWEST_TABLE = 60
"""Smallest width of a terminal, in columns, for which a table is printed."""
_PROVEN = re.compile(r"\b(Theorem|Lemma|Corollary|Proposition|Algorithm)")
"""Words in a claim's source that mark a statement with a proof in the paper."""
_REFERRING = re.compile(r"(They|It|This|That|These|Those)\b")
_COLOURS: dict[VerdictName, str] = {"reproduced": "green", "contradicted": "red", "not run": "yellow"}


class Verdict(BaseModel):
    """The verdict on a claim, with all texts ready to be shown.

    Attributes:
        id: Name of the claim.
        source: Place of the claim in the paper.
        statement: The claim, in one sentence.
        expected: Claimed numbers, or their range.
        measured: Measured values; empty if nothing was measured.
        tolerance: Allowed difference, and the reason for it.
        verdict: ``reproduced``, ``contradicted`` or ``not run``.
        reason: The contradicting entries, each with the claimed and the measured number, or the evidence that is
            missing. An explanation of a contradiction follows if one is known.
        paper: Name of the paper; empty if it is unknown.
        severity: Severity of a contradicted claim (`claims.severity`); None for other claims.
        gap: Largest gap among the worst entries of a contradicted claim, divided by the stated value; None if that
            value is 0.
        whose: Owner of the claim: the paper, its authors' code, or this project.
        reading: Findings of a second reader about a contradicted claim, if there was a second reading.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    source: str
    statement: str
    expected: str
    measured: str
    tolerance: str
    verdict: VerdictName
    reason: str
    paper: str = ""
    severity: Severity | None = None
    gap: float | None = None
    whose: Whose = "paper"
    reading: Reading | None = None


class Change(NamedTuple):
    """A claim whose verdict differs from the baseline; ``before`` or ``after`` is None where the claim is missing."""

    id: str
    before: VerdictName | None
    after: VerdictName | None

    def __str__(self) -> str:
        return f"{self.id}: {self.before or 'not in the baseline'} -> {self.after or 'no longer claimed'}"


def evaluate(claims: Sequence[CheckableClaim], evidence: Sequence[Evidence], *, paper: str = "") -> list[Verdict]:
    """Judge every claim.

    Args:
        claims: Table of claims.
        evidence: Available results, at most one preset for each data set. Claims about formulas need no evidence.
        paper: Name of the paper that makes the claims.

    Raises:
        DataError: Results are damaged.
        ParameterError: A claim cannot be computed in the form in which it is written; the message names the claim's id.
        AssumptionError: An assumption of a claim does not hold; the message names the claim's id.
        InfeasibleError: A target of a claim cannot be met; the message names the claim's id.
    """
    return [_judge(claim, evidence, paper) for claim in claims]


def write(path: str | Path, verdicts: Sequence[Verdict]) -> None:
    """Write verdicts as a JSON list, atomically."""
    write_json(path, [verdict.model_dump() for verdict in verdicts])


def read(path: str | Path) -> list[Verdict]:
    """Read the verdicts from a file that `write` wrote.

    Raises:
        DataError: The file is missing or is not a list of verdicts.
    """
    content = read_json(path)
    try:
        return TypeAdapter(list[Verdict]).validate_python(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise DataError(f"{path} is not a list of verdicts: {where}: {first['msg']}") from error


def compare_with_baseline(verdicts: Sequence[Verdict], baseline: Path) -> list[Change]:
    """Return the claims whose verdicts differ from the accepted verdicts, including new and missing claims.

    Args:
        verdicts: Current verdicts.
        baseline: File that `accept` wrote.

    Raises:
        DataError: The baseline is missing, or is not a baseline.
    """
    accepted = _read_baseline(baseline)
    current = {verdict.id: verdict.verdict for verdict in verdicts}
    return [
        Change(name, accepted.get(name), current.get(name))
        for name in dict.fromkeys([*current, *accepted])
        if accepted.get(name) != current.get(name)
    ]


def accept(verdicts: Sequence[Verdict], baseline: Path) -> None:
    """Make these verdicts the baseline, atomically."""
    write_json(baseline, {verdict.id: verdict.verdict for verdict in verdicts})


def ranked(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return verdicts in reading order.

    Contradicted claims come first, then claims that were not run, then reproduced ones. Within each group, the papers'
    own claims come before those of the authors' code, and ours come last. Contradicted claims of the same owner are
    sorted by severity, then by kind (theorems before tables and text), and then by gap. Misprints of papers and of
    authors' code come after all other contradicted claims of papers and of authors' code. Claims that are not
    contradicted stay in the papers' order.
    """
    order: tuple[VerdictName, ...] = ("contradicted", "not run", "reproduced")

    def key(verdict: Verdict) -> tuple[int, int, float, bool, float]:
        place = order.index(verdict.verdict)
        if verdict.severity is None:
            return place, _standing(verdict), 0.0, False, 0.0
        severity, gap = badness(Deviation(verdict.severity, verdict.gap))
        return place, _standing(verdict), -severity, _PROVEN.search(verdict.source) is None, -gap

    return sorted(verdicts, key=key)


def _standing(verdict: Verdict) -> int:
    """Return a claim's rank among claims with the same verdict.

    The rank is 0 for claims of papers, 1 for claims of authors' code, 2 for misprints of papers and of authors' code,
    and 3 for our claims.
    """
    if verdict.whose == "ours":
        return 3
    return 2 if verdict.severity == "misprint" else get_args(Whose).index(verdict.whose)


def worst_contradictions(verdicts: Sequence[Verdict], number: int) -> list[Verdict]:
    """Return the papers' own contradictions that matter most: the first of each paper, then others.

    The order is that of `ranked`, with one change. Readers see each statement without the preceding statement.
    Therefore, among contradictions of equal severity, statements that refer to the preceding one ("It does so for ...")
    come last. Claims that are not a paper's own are not findings about the paper, and misprints are not findings at
    all.
    """
    contradicted = [
        verdict
        for verdict in ranked(verdicts)
        if verdict.verdict == "contradicted" and verdict.whose == "paper" and verdict.severity != "misprint"
    ]
    order = list(severities(verdicts))
    contradicted.sort(
        key=lambda each: (
            len(order) if each.severity is None else order.index(each.severity),
            _REFERRING.match(each.statement) is not None,
        )
    )
    first = {verdict.paper: verdict for verdict in reversed(contradicted)}
    of_papers = [verdict for verdict in contradicted if first[verdict.paper] is verdict]
    return [*of_papers, *(verdict for verdict in contradicted if verdict not in of_papers)][:number]


def severities(verdicts: Sequence[Verdict]) -> dict[Severity, int]:
    """Return the number of contradicted claims of each severity, from the worst to the mildest."""
    found = Counter(verdict.severity for verdict in verdicts)
    return {name: found[name] for name in reversed(get_args(Severity))}


@dataclass(frozen=True)
class Tally:
    """Number of claims with each verdict, and number of contradicted claims with each severity.

    The severities are ordered from the worst to the mildest.
    """

    counts: Mapping[VerdictName, int]
    severities: Mapping[Severity, int]

    @property
    def total(self) -> int:
        """Number of all claims."""
        return sum(self.counts.values())

    @property
    def kinds(self) -> str:
        """The contradicted claims by severity, as text such as ``2 different in kind, 3 misprints``."""
        found = {name: number for name, number in self.severities.items() if number}
        return ", ".join(
            f"{number} {'misprints' if name == 'misprint' and number > 1 else name}" for name, number in found.items()
        )

    def __str__(self) -> str:
        explained = {"contradicted": f" ({self.kinds})"} if self.kinds else {}
        return ", ".join(f"{number} {name}{explained.get(name, '')}" for name, number in self.counts.items())


def tallies(verdicts: Sequence[Verdict]) -> dict[Whose, Tally]:
    """Count the claims of each owner, beginning with the papers; owners without claims are left out."""
    by_owner = {whose: [each for each in verdicts if each.whose == whose] for whose in OWNERS}
    return {whose: Tally(numbers(own), severities(own)) for whose, own in by_owner.items() if own}


def counts(verdicts: Sequence[Verdict]) -> str:
    """Return `counted_by_owner` in one line."""
    return "; ".join(counted_by_owner(verdicts))


def counted_by_owner(verdicts: Sequence[Verdict]) -> list[str]:
    """Return a text for each owner of claims, which states how many of the owner's claims have each verdict.

    The papers come first. For example, the first text is ``the papers' own: 2 reproduced, 1 contradicted (1 large), 0
    not run``.
    """
    return [f"{OWNERS[whose]}: {tally}" for whose, tally in tallies(verdicts).items()] or ["no claims"]


def read_again(reading: Reading) -> dict[str, str]:
    """Return the non-empty parts of a second reading, keyed by their headings."""
    return {words: text for part, words in READINGS.items() if (text := getattr(reading, part))}


def numbers(verdicts: Sequence[Verdict]) -> dict[VerdictName, int]:
    """Return the number of claims for each verdict."""
    found = Counter(verdict.verdict for verdict in verdicts)
    return {name: found[name] for name in get_args(VerdictName)}


@dataclass(frozen=True)
class _Shown:
    verdicts: Sequence[Verdict]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        if options.max_width < NARROWEST_TABLE:
            yield from map(_paragraph, self.verdicts)
        else:
            yield _table(self.verdicts)


def as_table(verdicts: Sequence[Verdict]) -> RenderableType:
    """Return a table for the terminal, or plain lines if the terminal has fewer than `NARROWEST_TABLE` columns.

    Both forms can be read without colours.
    """
    return _Shown(verdicts)


def _table(verdicts: Sequence[Verdict]) -> Table:
    table = Table(show_lines=True, expand=False)
    table.add_column("Verdict", no_wrap=True)
    table.add_column("Claim", ratio=1, overflow="fold")
    table.add_column("Expected, measured", ratio=1, overflow="fold")
    for verdict in verdicts:
        claim = Text.assemble((verdict.source, "bold"), "\n", verdict.statement, "\n", (verdict.id, "dim"))
        table.add_row(Text(_title(verdict), _COLOURS[verdict.verdict]), claim, Text("\n".join(_numbers(verdict))))
    return table


def _paragraph(verdict: Verdict) -> Text:
    lines = [verdict.id, verdict.source, verdict.statement, *_numbers(verdict), ""]
    return Text.assemble((_title(verdict), _COLOURS[verdict.verdict]), "\n", "\n".join(lines), overflow="fold")


def _title(verdict: Verdict) -> str:
    owner = "" if verdict.whose == "paper" else OWNERS[verdict.whose]
    return "\n".join(filter(None, [verdict.verdict, verdict.severity, owner]))


def _numbers(verdict: Verdict) -> list[str]:
    lines = [f"expected {verdict.expected}"]
    lines += [f"measured {verdict.measured}"] if verdict.measured else []
    lines += [verdict.reason] if verdict.reason else []
    if verdict.reading is not None:
        lines += [f"{words}: {text}" for words, text in read_again(verdict.reading).items()]
    return lines


def _judge(checkable: CheckableClaim, evidence: Sequence[Evidence], paper: str) -> Verdict:
    claim = checkable.claim
    measured: list[Quantity] = []
    misses: list[Deviation] = []
    try:
        measured = checkable.measured(evidence)
        findings = claim.expected.findings(measured)
        misses = [finding.miss for finding in findings if finding.miss is not None]
        verdict, reason = _verdict(findings)
    except MissingEvidence as missing:
        verdict, reason = "not run", str(missing)
    except (ParameterError, AssumptionError, InfeasibleError) as error:
        raise type(error)(f"claim {claim.id}: {error}") from error
    missed = worst(misses) if misses else None
    return Verdict(
        id=claim.id,
        source=claim.source,
        statement=claim.statement,
        expected=claim.expected.expected_text(),
        measured=claim.expected.measured_text(measured) if measured else "",
        tolerance=claim.expected.tolerance_text(),
        verdict=verdict,
        reason=f"{reason}. {capitalised(claim.note)}" if claim.note and verdict == "contradicted" else reason,
        paper=paper,
        severity=None if missed is None else "misprint" if claim.misprint else missed.severity,
        gap=None if missed is None else missed.gap,
        whose=claim.whose,
        reading=claim.reading if verdict == "contradicted" else None,
    )


def _verdict(findings: Sequence[Finding]) -> tuple[VerdictName, str]:
    contrary = [finding.text for finding in findings if finding.agrees is False]
    if contrary:
        return "contradicted", "; ".join(contrary)
    undecided = [finding.text for finding in findings if finding.agrees is None]
    if undecided:
        return (
            "not run",
            f"too few trials to tell: {'; '.join(undecided)}; run a preset with more trials (100 as in the paper)",
        )
    return "reproduced", ""


def _read_baseline(path: Path) -> dict[str, VerdictName]:
    content = read_json(path)
    try:
        return TypeAdapter(dict[str, VerdictName]).validate_python(content)
    except ValidationError as error:
        raise DataError(f"{path} is not a baseline of verdicts: {error.errors()[0]['msg']}") from error
