"""Severity of contradictions: from the measured gap, so that a rounding in print is not a broken theorem."""

import math

import pytest

from certified_unlearning.files import write_json
from certified_unlearning.reproduction.claims import findings
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
from certified_unlearning.reproduction.claims.severity import Deviation, missed_bound, missed_range, missed_value, worst
from certified_unlearning.reproduction.claims.verdicts import (
    Verdict,
    counts,
    ranked,
    severities,
    tallies,
    worst_contradictions,
    write,
)
from certified_unlearning.reproduction.tracking import StoreStatus, TrackResult


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
    assert finding.miss == Deviation("large", pytest.approx(0.5))


def test_the_worst_is_by_severity_and_then_by_gap() -> None:
    misses = [
        Deviation("large", 900.0),
        Deviation("different in kind", 0.2),
        Deviation("different in kind", 0.3),
        Deviation("small", 0.0),
    ]
    assert worst(misses) == Deviation("different in kind", 0.3)
    assert worst([*misses, Deviation("different in kind", None)]).gap is None


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
    verdict("ours", severity="different in kind", gap=30.0, paper="r", source="Theorem 5", whose="ours"),
    verdict("code", severity="different in kind", gap=20.0, paper="p", source="stored.json", whose="authors' code"),
    verdict("slip", severity="misprint", gap=40.0, paper="s", source="Lemma 6"),
    verdict("checked", "reproduced", whose="ours"),
]


def test_verdicts_are_ranked_with_the_worst_of_the_papers_first_then_authors_code_misprints_and_ours() -> None:
    assert [each.id for each in ranked(VERDICTS)] == [
        "theorem-sign", "theorem", "table", "other-paper", "rounded", "code", "slip", "ours",
        "absent", "fine", "checked",
    ]  # fmt: skip
    assert severities(VERDICTS) == {"different in kind": 5, "large": 1, "small": 0, "rounding": 1, "misprint": 1}


def test_the_papers_own_are_counted_and_others_apart() -> None:
    assert counts(VERDICTS) == (
        "the papers' own: 1 reproduced, 6 contradicted (3 different in kind, 1 large, 1 rounding, 1 misprint), "
        "1 not run; "
        "authors' code: 0 reproduced, 1 contradicted (1 different in kind), 0 not run; "
        "ours: 1 reproduced, 1 contradicted (1 different in kind), 0 not run"
    )
    assert tallies(VERDICTS)["paper"].total == 8
    assert tallies([VERDICTS[-2]] * 2)["paper"].kinds == "2 misprints"
    assert counts([]) == "no claims"


@pytest.mark.parametrize(("whose", "counted"), [("ours", False), ("paper", True)], ids=["as it is", "planted fault"])
def test_a_claim_of_ours_is_no_number_and_no_finding_of_a_paper(whose: str, counted: bool) -> None:
    worst_of_all = verdict("asked", severity="different in kind", gap=None, source="Theorem 1", whose=whose)
    rest = [each for each in VERDICTS if each.whose == "paper"]
    assert (tallies([worst_of_all, *rest])["paper"] != tallies(rest)["paper"]) == counted
    assert (worst_contradictions([worst_of_all, *rest], 1) == [worst_of_all]) == counted
    contradicted = [each.id for each in ranked([worst_of_all, *rest]) if each.verdict == "contradicted"]
    assert contradicted[0 if counted else -1] == "asked"


@pytest.mark.parametrize(
    ("severity", "leads"), [("misprint", False), ("different in kind", True)], ids=["as it is", "planted fault"]
)
@pytest.mark.parametrize("other", [("rounding", "paper"), ("large", "authors' code")])
def test_a_misprint_leads_no_list(severity: str, leads: bool, other: tuple[str, str]) -> None:
    slip = verdict("slip", severity=severity, gap=None, paper="a", source="Theorem 1")
    rounded = verdict("other", severity=other[0], gap=0.001, whose=other[1])
    assert (ranked([slip, rounded])[0] is slip) == leads
    assert (worst_contradictions([slip], 1) == [slip]) == leads


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
        "some: the papers' own: 1 reproduced, 6 contradicted (3 different in kind, 1 large, 1 rounding, 1 misprint), "
        "1 not run",
        "authors' code: 0 reproduced, 1 contradicted (1 different in kind), 0 not run",
        "ours: 1 reproduced, 1 contradicted (1 different in kind), 0 not run",
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


def test_a_run_ends_with_what_to_start_and_to_open_to_see_its_runs_in_mlflow(tmp_path) -> None:
    write(tmp_path / "all" / "claims.json", VERDICTS)
    findings.write(tmp_path / "all" / "findings.json", [])
    page = "http://127.0.0.1:5000/#/experiments/1/runs?" + 60 * "x"
    known = {"tracking_uri": "sqlite:///mlflow.db", "reachable": True, "warning": None}
    StoreStatus(**known, experiment_id="1", page=page).write(tmp_path / "one/tracking/store.json")
    StoreStatus(**known | {"reachable": False}, experiment_id=None).write(tmp_path / "two/tracking/store.json")
    lines = ending(tmp_path, "all", ["one", "two", "three"]).splitlines()
    start = "To see the runs in MLflow: mlflow ui --backend-store-uri sqlite:///mlflow.db"
    assert [line for line in lines if "MLflow" in line] == [start, f"MLflow: {page}"]
    served = StoreStatus(
        tracking_uri="http://there", reachable=True, experiment_id="1", warning=None, page="http://there/"
    )
    served.write(tmp_path / "one/tracking/store.json")
    assert [line for line in ending(tmp_path, "all", ["one"]).splitlines() if "MLflow" in line] == [
        "MLflow: http://there/"
    ]


def test_verdicts_of_before_there_was_a_severity_or_an_owner_are_read(tmp_path) -> None:
    old = [each.model_dump(exclude={"severity", "gap", "paper", "whose", "reading"}) for each in VERDICTS]
    write_json(tmp_path / "some" / "claims.json", old)
    findings.write(tmp_path / "some" / "findings.json", [])
    assert "the papers' own: 2 reproduced, 8 contradicted, 1 not run\n" in ending(tmp_path, "some")
