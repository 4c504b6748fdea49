"""Severity of contradictions: from the measured gap, so that a rounding in print is not a broken theorem."""

import math

import pytest

from certified_unlearning.reproduction.claims import findings, ranked, severities
from certified_unlearning.reproduction.claims.ending import ending
from certified_unlearning.reproduction.claims.findings import KeyFinding
from certified_unlearning.reproduction.claims.relations import (
    AtMost,
    Between,
    Equals,
    PrintedOverExact,
    Quantity,
    Truncated,
)
from certified_unlearning.reproduction.claims.severity import Miss, missed_bound, missed_range, missed_value, worst
from certified_unlearning.reproduction.claims.verdicts import Verdict, worst_contradictions, write
from certified_unlearning.reproduction.tracking import TrackResult


@pytest.mark.parametrize(
    ("printed", "measured", "severity", "gap"),
    [
        (0.0499, 0.05, "rounding", 0.002),
        (0.0012, 0.001226531, "rounding", 0.0221),
        (0.0005, 0.00056, "large", 0.12),  # Within one unit, but no small part of what is printed.
        (4461.0, 4462.0, "rounding", 0.000224),
        (1.0, 1.05, "small", 0.05),  # A whole number that is compared with a fraction is meant exactly.
        (90.0, 123.0, "large", 0.3667),
        (2.0, -2.0, "different in kind", 2.0),
        (0.0, -2.0, "large", None),
    ],
)
def test_numbers_that_should_be_equal(printed: float, measured: float, severity: str, gap: float | None) -> None:
    miss = missed_value(printed, measured)
    assert miss.severity == severity
    assert miss.gap == (None if gap is None else pytest.approx(gap, rel=1e-2))


@pytest.mark.parametrize(
    ("bound", "measured", "severity", "gap"),
    [
        (5.0, 5.195, "small", 0.039),
        (1.0, 2.5, "different in kind", 1.5),
        (0.0, 0.8259, "different in kind", None),  # A direction.
    ],
)
def test_an_inequality_that_fails(bound: float, measured: float, severity: str, gap: float | None) -> None:
    miss = missed_bound(bound, measured)
    assert miss == (severity, None if gap is None else pytest.approx(gap))


@pytest.mark.parametrize(
    ("low", "high", "measured", "severity"),
    [
        (2.0, 4.0, 1.0, "large"),
        (2.0, 4.0, 1.9, "small"),
        (2.0, 4.0, -1.0, "different in kind"),
        (-2.0, 2.0, -180.0, "large"),
        (0.0, math.inf, -0.69, "different in kind"),
        (-math.inf, 1.0, 2.0, "different in kind"),
    ],
)
def test_a_range(low: float, high: float, measured: float, severity: str) -> None:
    assert missed_range(low, high, measured).severity == severity


@pytest.mark.parametrize(
    ("relation", "measured", "severity"),
    [
        (Truncated(relation="truncated", values=(0.0499,), digits=4), 0.05, "rounding"),
        (PrintedOverExact(relation="printed over exact", values=(0.2431,), low=1, high=1.04, why="x"), 0.25, "small"),
        (AtMost(relation="at most", values=(2.0,)), 2.046, "small"),
        (Between(relation="between", low=0.9, why="x"), 0.45, "different in kind"),
        (Equals(relation="equals", values=(1.0,)), 1.99, "large"),
    ],
)
def test_every_relation_says_by_how_much_it_fails(relation, measured: float, severity: str) -> None:
    (finding,) = relation.findings([Quantity(measured)])
    assert finding.agrees is False
    assert finding.miss is not None
    assert finding.miss.severity == severity


def test_what_agrees_has_no_severity() -> None:
    relation = Equals(relation="equals", values=(1.0,))
    assert relation.findings([Quantity(1.0)])[0].miss is None
    undecided = Between(relation="between", low=0.0, why="x").findings([Quantity(0.1, uncertainty=1.0)])
    assert (undecided[0].agrees, undecided[0].miss) == (None, None)


def test_a_sampled_number_misses_by_what_is_certain() -> None:
    (finding,) = Equals(relation="equals", values=(1.0,), relative=0.1, why="x").findings([Quantity(2.0, "", 0.5)])
    assert finding.miss == Miss("large", pytest.approx(0.5))


def test_the_worst_is_by_severity_and_then_by_gap() -> None:
    misses = [Miss("large", 900.0), Miss("different in kind", 0.2), Miss("different in kind", 0.3), Miss("small", 0.0)]
    assert worst(misses) == Miss("different in kind", 0.3)
    assert worst([*misses, Miss("different in kind", None)]).gap is None


def verdict(name: str, kind: str = "contradicted", severity: str | None = None, **other: object) -> Verdict:
    words = dict.fromkeys(("source", "statement", "expected", "measured", "tolerance", "reason"), f"of {name}")
    return Verdict.model_validate({"id": name, "verdict": kind, "severity": severity, **words, **other})


VERDICTS = [
    verdict("fine", "reproduced"),
    verdict("rounded", severity="rounding", gap=0.01, paper="p"),
    verdict("absent", "not run"),
    verdict("table", severity="different in kind", gap=9.0, paper="p", source="Table 2"),
    verdict("theorem", severity="different in kind", gap=0.5, paper="p", source="Theorem 3"),
    verdict("theorem-sign", severity="different in kind", gap=None, paper="p", source="Theorem 4"),
    verdict("other-paper", severity="large", gap=3.0, paper="q"),
    verdict("ours", severity="different in kind", gap=3.0, paper="r", source="derived here"),
]


def test_verdicts_are_ranked_with_the_worst_first() -> None:
    order = ["theorem-sign", "theorem", "table", "ours", "other-paper", "rounded", "absent", "fine"]
    found = [each.id for each in ranked(VERDICTS)]
    assert [name for name in found if name != "ours"] == [name for name in order if name != "ours"]
    assert severities(VERDICTS) == {"different in kind": 4, "large": 1, "small": 0, "rounding": 1}


def test_the_worst_contradictions_are_one_of_each_paper_first() -> None:
    assert [each.id for each in worst_contradictions(VERDICTS, 3)] == ["theorem-sign", "other-paper", "theorem"]


def test_a_statement_that_refers_to_another_is_no_good_finding() -> None:
    referring = verdict("referring", severity="large", gap=9.0, paper="q", statement="It does so with two classes.")
    assert worst_contradictions([*VERDICTS, referring], 2)[1].id == "other-paper"


FOUND = [
    KeyFinding(text="Removing takes 19 steps, retraining 252."),
    KeyFinding(text="Theorem 4: of theorem-sign", expected="at most 0", measured="0.8", claim="theorem-sign"),
    KeyFinding(text="A third."),
    KeyFinding(text="A fourth, for the report."),
]


def test_a_run_ends_with_numbers_the_first_findings_and_the_report(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    write(tmp_path / "some" / "claims.json", VERDICTS)
    findings.write(tmp_path / "some" / "findings.json", FOUND)
    assert ending(tmp_path, "some").splitlines() == [
        "some: 8 claims: 1 reproduced, 6 contradicted, 1 not run (4 different in kind, 1 large, 1 rounding)",
        "1. Removing takes 19 steps, retraining 252.",
        "2. contradicted: Theorem 4: of theorem-sign",
        "   -> expected at most 0; measured 0.8",
        "3. A third.",
        "All verdicts: unlearn claims --preset some",
        f"Report: {tmp_path / 'some' / 'report.html'}",
    ]


def test_a_run_ends_with_what_is_not_in_mlflow_and_why(tmp_path) -> None:
    write(tmp_path / "all" / "claims.json", VERDICTS)
    findings.write(tmp_path / "all" / "findings.json", [])
    why = "MLflow at http://there:5000 is not available (no answer within 20 s); run `unlearn track --sync`"
    TrackResult(added=3).write(tmp_path / "one/tracking/p_q-fig1.json")
    for name in ("fig2", "two_sets"):
        TrackResult(warning=why).write(tmp_path / f"two/tracking/p_q-{name}.json")
    told = " ".join(ending(tmp_path, "all", ["one", "two"]).splitlines())
    assert f"warning: two: not in MLflow: fig2, two_sets. {why}. All verdicts" in told
    assert "warning: one" not in told
    assert "warning" not in ending(tmp_path, "all", ["one"])


def test_verdicts_of_before_there_was_a_severity_are_read(tmp_path) -> None:
    old = [each.model_dump(exclude={"severity", "gap", "paper"}) for each in VERDICTS]
    write(tmp_path / "some" / "claims.json", [Verdict.model_validate(each) for each in old])
    findings.write(tmp_path / "some" / "findings.json", [])
    assert "6 contradicted" in ending(tmp_path, "some")
