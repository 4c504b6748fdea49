"""Verdicts on disk, against their baseline, and in the terminal."""

import io
import json

import pytest
from rich.console import Console

from certified_unlearning.errors import DataError
from certified_unlearning.papers.langevin_unlearning.paper import PAPER
from certified_unlearning.reproduction.claims import (
    Verdict,
    accept,
    as_table,
    claims_of,
    compare_with_baseline,
    counts,
    evaluate,
    read,
    write,
)

CLAIMS = claims_of([PAPER])[PAPER.name]
KEYS = {"id", "source", "statement", "expected", "measured", "tolerance", "verdict", "reason"}


@pytest.fixture(scope="module")
def verdicts():
    return evaluate(CLAIMS, [])


def with_verdict(verdict, name):
    return verdict.model_copy(update={"verdict": name})


def test_verdicts_are_a_json_list_of_texts_and_gaps(verdicts, tmp_path):
    write(tmp_path / "claims.json", verdicts)
    content = json.loads((tmp_path / "claims.json").read_text())
    assert len(content) == len(verdicts)
    assert {frozenset(entry) for entry in content} == {frozenset([*KEYS, "paper", "severity", "gap"])}
    assert {type(entry[key]) for entry in content for key in (*KEYS, "paper")} == {str}
    assert all((entry["severity"] is not None) == (entry["verdict"] == "contradicted") for entry in content)
    assert [entry["id"] for entry in content] == [each.claim.id for each in CLAIMS]


def test_what_was_written_is_read(verdicts, tmp_path):
    write(tmp_path / "claims.json", verdicts)
    assert read(tmp_path / "claims.json") == verdicts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "is not a list of verdicts"),
        ('[{"id": "x"}]', "is not a list of verdicts: 0.source: Field required"),
        ("[", "is not valid JSON"),
    ],
)
def test_what_are_no_verdicts_is_refused(tmp_path, text, message):
    (tmp_path / "claims.json").write_text(text)
    with pytest.raises(DataError, match=message):
        read(tmp_path / "claims.json")


def test_accepted_verdicts_have_not_changed(verdicts, tmp_path):
    accept(verdicts, tmp_path / "baselines" / "smoke.json")
    assert compare_with_baseline(verdicts, tmp_path / "baselines" / "smoke.json") == []
    content = json.loads((tmp_path / "baselines" / "smoke.json").read_text())
    assert content["table-1-delta"] == "reproduced"


def test_changed_missing_and_new_verdicts_are_named(verdicts, tmp_path):
    accept(verdicts[:-1], tmp_path / "baseline.json")
    now = [with_verdict(verdicts[0], "reproduced"), *verdicts[2:]]
    changes = compare_with_baseline(now, tmp_path / "baseline.json")
    assert [str(change) for change in changes] == [
        "table-1-strong-convexity: contradicted -> reproduced",
        f"{verdicts[-1].id}: not in the baseline -> not run",
        "table-1-delta: reproduced -> no longer claimed",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [('{"x": "maybe"}', "is not a baseline of verdicts"), ("[]", "is not a baseline"), ("", "JSON")],
)
def test_what_is_no_baseline_is_refused(verdicts, tmp_path, text, message):
    (tmp_path / "baseline.json").write_text(text)
    with pytest.raises(DataError, match=message):
        compare_with_baseline(verdicts, tmp_path / "baseline.json")


def test_a_missing_baseline_is_refused(verdicts, tmp_path):
    with pytest.raises(DataError, match=r"cannot read .*baseline\.json"):
        compare_with_baseline(verdicts, tmp_path / "baseline.json")


def test_counts_add_up(verdicts):
    three = [with_verdict(verdicts[0], name) for name in ("reproduced", "not run", "reproduced")]
    assert counts(three) == "3 claims: 2 reproduced, 0 contradicted, 1 not run"


@pytest.mark.parametrize("width", [60, 80, 160])
def test_the_table_fits_a_terminal_and_holds_every_claim(verdicts, width):
    console = Console(file=io.StringIO(), width=width)
    console.print(as_table(verdicts))
    text = console.file.getvalue()
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= width
    cells = "".join(line.split("│")[2].strip() for line in text.splitlines() if line.count("│") == 4)
    assert all(verdict.id in cells for verdict in verdicts)
    assert text.count("contradicted") >= sum(verdict.verdict == "contradicted" for verdict in verdicts)


@pytest.mark.parametrize("width", [20, 59])
def test_a_terminal_too_narrow_for_a_table_gets_lines_that_lose_nothing(verdicts, width):
    console = Console(file=io.StringIO(), width=width)
    console.print(as_table(verdicts))
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= width
    shown = [
        [
            each.verdict,
            each.severity or "",
            each.id,
            each.source,
            each.statement,
            f"expected {each.expected}",
            each.measured and f"measured {each.measured}",
            each.reason,
        ]
        for each in verdicts
    ]
    assert "".join(text.split()) == "".join("".join(part.split()) for parts in shown for part in parts)


def test_brackets_of_a_text_are_no_markup():
    verdict = Verdict(
        id="a",
        source="[red]",
        statement="[b]x[/b]",
        expected="[1]",
        measured="",
        tolerance="",
        verdict="not run",
        reason="[/x]",
    )
    console = Console(file=io.StringIO(), width=80)
    console.print(as_table([verdict]))
    assert all(part in console.file.getvalue() for part in ("[red]", "[b]x[/b]", "[1]", "[/x]"))
