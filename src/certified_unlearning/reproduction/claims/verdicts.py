"""Verdicts: what became of every claim, and whether it is what the committed baseline says."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
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
from certified_unlearning.reproduction.claims.model import CheckableClaim
from certified_unlearning.reproduction.claims.relations import Finding, Quantity
from certified_unlearning.reproduction.claims.severity import Miss, Severity, badness, worst
from certified_unlearning.text import counted

VerdictName = Literal["reproduced", "contradicted", "not run"]
NARROWEST_TABLE = 60
"""Columns of the narrowest terminal that shows a table."""
_PROVEN = re.compile(r"\b(Theorem|Lemma|Corollary|Proposition|Algorithm)")
"""What a paper proves, in a claim's source."""
_REFERRING = re.compile(r"(They|It|This|That|These|Those)\b")
_COLOURS: dict[VerdictName, str] = {"reproduced": "green", "contradicted": "red", "not run": "yellow"}


class Verdict(BaseModel):
    """Verdict on a claim: all texts, ready to be shown.

    Attributes:
        id: The claim's name.
        source: Where the paper makes it.
        statement: What is claimed.
        expected: The claimed numbers or their range.
        measured: What was measured; empty where nothing was.
        tolerance: How far apart they may be, and why.
        verdict: ``reproduced``, ``contradicted`` or ``not run``.
        reason: The entries that contradict, with both numbers; what is missing; what explains it, if known.
        paper: The paper's name; empty where it is not known.
        severity: Of a contradicted claim, how badly it fails (`claims.severity`); None of another.
        gap: Of a contradicted claim, the largest gap of that severity, relative to what is stated; None where zero is.
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


class Change(NamedTuple):
    """A claim whose verdict differs from the baseline; None where one of the two does not have it."""

    id: str
    before: VerdictName | None
    after: VerdictName | None

    def __str__(self) -> str:
        return f"{self.id}: {self.before or 'not in the baseline'} -> {self.after or 'no longer claimed'}"


def evaluate(claims: Sequence[CheckableClaim], evidence: Sequence[Evidence], *, paper: str = "") -> list[Verdict]:
    """Judge every claim.

    Args:
        claims: The table of claims.
        evidence: The results there are, at most one preset for each data set. Claims about formulas need none.
        paper: The name of the paper that makes them.

    Raises:
        DataError: Results are damaged.
        ParameterError: A claim cannot be computed as it is written down; the message names its id.
        AssumptionError: Likewise.
        InfeasibleError: Likewise.
    """
    return [_judge(claim, evidence, paper) for claim in claims]


def write(path: str | Path, verdicts: Sequence[Verdict]) -> None:
    """Write verdicts as a JSON list, atomically."""
    write_json(path, [verdict.model_dump() for verdict in verdicts])


def read(path: str | Path) -> list[Verdict]:
    """Read what `write` wrote.

    Raises:
        DataError: The file is missing or is no list of verdicts.
    """
    content = read_json(path)
    try:
        return TypeAdapter(list[Verdict]).validate_python(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise DataError(f"{path} is not a list of verdicts: {where}: {first['msg']}") from error


def compare_with_baseline(verdicts: Sequence[Verdict], baseline: Path) -> list[Change]:
    """Return the claims whose verdicts differ from the accepted ones, new and vanished claims included.

    Args:
        verdicts: The verdicts of now.
        baseline: A file that `accept` wrote.

    Raises:
        DataError: The baseline is missing or is something else.
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
    """Return verdicts in the order in which they are worth reading.

    Contradicted claims first: by severity, then theorems before tables and text, then by gap; then what was not run,
    then what was reproduced, each in the papers' order.
    """
    order: tuple[VerdictName, ...] = ("contradicted", "not run", "reproduced")

    def key(verdict: Verdict) -> tuple[int, float, bool, float]:
        place = order.index(verdict.verdict)
        if verdict.severity is None:
            return place, 0.0, False, 0.0
        severity, gap = badness(Miss(verdict.severity, verdict.gap))
        return place, -severity, _PROVEN.search(verdict.source) is None, -gap

    return sorted(verdicts, key=key)


def worst_contradictions(verdicts: Sequence[Verdict], number: int) -> list[Verdict]:
    """Return the contradicted claims that matter most, to be read alone: the first of each paper, then others.

    Their order is that of `ranked`, but among those of one severity a statement that refers to the one before it
    ("It does so for ...") comes later. A failed self-check is ours to repair, and what was only "derived here" no paper
    claims: neither is a finding.
    """
    contradicted = [
        verdict
        for verdict in ranked(verdicts)
        if verdict.verdict == "contradicted" and not verdict.source.startswith(("Self-check", "derived here"))
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
    """Return how many contradicted claims have which severity, the worst first."""
    found = Counter(verdict.severity for verdict in verdicts)
    return {name: found[name] for name in reversed(get_args(Severity))}


def counts(verdicts: Sequence[Verdict]) -> str:
    """Return how many claims have which verdict: ``3 claims: 2 reproduced, 1 contradicted, 0 not run``."""
    return f"{counted(len(verdicts), 'claim')}: " + ", ".join(
        f"{count} {name}" for name, count in numbers(verdicts).items()
    )


def numbers(verdicts: Sequence[Verdict]) -> dict[VerdictName, int]:
    """Return how many claims have which verdict."""
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
    """Return a table for the terminal, or plain lines below `NARROWEST_TABLE` columns; readable without colours too."""
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
    return f"{verdict.verdict}\n{verdict.severity}" if verdict.severity else verdict.verdict


def _numbers(verdict: Verdict) -> list[str]:
    lines = [f"expected {verdict.expected}"]
    lines += [f"measured {verdict.measured}"] if verdict.measured else []
    lines += [verdict.reason] if verdict.reason else []
    return lines


def _judge(checkable: CheckableClaim, evidence: Sequence[Evidence], paper: str) -> Verdict:
    claim = checkable.claim
    measured: list[Quantity] = []
    misses: list[Miss] = []
    try:
        measured = checkable.measured(evidence)
        findings = claim.expected.findings(measured)
        misses = [finding.miss for finding in findings if finding.miss is not None]
        verdict, reason = _verdict(findings)
    except MissingEvidence as missing:
        verdict, reason = "not run", str(missing)
    except (ParameterError, AssumptionError, InfeasibleError) as error:
        raise type(error)(f"claim {claim.id}: {error}") from error
    return Verdict(
        id=claim.id,
        source=claim.source,
        statement=claim.statement,
        expected=claim.expected.expected_text(),
        measured=claim.expected.measured_text(measured) if measured else "",
        tolerance=claim.expected.tolerance_text(),
        verdict=verdict,
        reason=f"{reason}. {claim.note[:1].upper()}{claim.note[1:]}"
        if claim.note and verdict == "contradicted"
        else reason,
        paper=paper,
        severity=worst(misses).severity if misses else None,
        gap=worst(misses).gap if misses else None,
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
