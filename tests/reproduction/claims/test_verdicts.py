"""Verdicts on disk, against their baseline, and in the terminal."""

import io
import json

import pytest
from rich.console import Console

from certified_unlearning.errors import DataError
from certified_unlearning.papers.langevin_unlearning.paper import PAPER
from certified_unlearning.reproduction.claims.model import CheckableClaim, Claim, Reading, claims_of
from certified_unlearning.reproduction.claims.relations import Quantity
from certified_unlearning.reproduction.claims.verdicts import (
    Verdict,
    accept,
    as_table,
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


def reading_lines(reading):
    if reading is None:
        return []
    return [
        *([f"the cause, shared with other claims: {reading.cause}"] if reading.cause else []),
        f"the paper assumes: {reading.assumes}",
        f"the setting: {reading.setting}",
        f"what would make it right: {reading.right_if}",
    ]


def with_verdict(verdict, name):
    return verdict.model_copy(update={"verdict": name})


def test_verdicts_are_a_json_list_of_texts_and_gaps(verdicts, tmp_path):
    write(tmp_path / "claims.json", verdicts)
    content = json.loads((tmp_path / "claims.json").read_text())
    assert len(content) == len(verdicts)
    every = [*KEYS, "paper", "severity", "gap", "whose", "reading"]
    assert {frozenset(entry) for entry in content} == {frozenset(every)}
    assert {type(entry[key]) for entry in content for key in (*KEYS, "paper", "whose")} == {str}
    assert all((entry["severity"] is not None) == (entry["verdict"] == "contradicted") for entry in content)
    assert all(entry["reading"] is None or entry["verdict"] == "contradicted" for entry in content)
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
    own = [each.model_copy(update={"whose": "paper", "severity": None}) for each in three]
    assert counts(own) == "the papers' own: 2 reproduced, 0 contradicted, 1 not run"


READING = Reading(assumes="A step of 1/L.", setting="Digits, our choice.", right_if="The bound were doubled.")


@pytest.fixture
def judged():
    """Return a function that judges a made-up claim with these fields, of which 2 is measured."""

    def judge(**fields):
        words = dict.fromkeys(("id", "source", "statement", "measure"), "made-up")
        claim = Claim.model_validate(words | {"expected": {"relation": "equals", "values": [1.0]}} | fields)
        (verdict,) = evaluate([CheckableClaim(claim, lambda evidence: [Quantity(2.0)])], [])
        return verdict

    return judge


def test_a_verdict_says_whose_the_claim_is_and_of_a_contradiction_what_a_second_reader_found(judged, tmp_path):
    contradicted = judged(whose="ours", reading=READING.model_dump())
    assert (contradicted.verdict, contradicted.whose, contradicted.reading) == ("contradicted", "ours", READING)
    agreed = judged(expected={"relation": "equals", "values": [2.0]}, reading=READING.model_dump())
    assert (agreed.verdict, agreed.whose, agreed.reading) == ("reproduced", "paper", None)
    write(tmp_path / "claims.json", [contradicted, agreed])
    assert read(tmp_path / "claims.json") == [contradicted, agreed]


def test_a_contradiction_that_the_table_calls_a_misprint_is_one_however_large_its_gap(judged):
    assert (judged().severity, judged().gap) == ("large", 1.0)
    assert (judged(misprint=True).severity, judged(misprint=True).gap) == ("misprint", 1.0)
    assert judged(misprint=True, expected={"relation": "equals", "values": [2.0]}).severity is None


def test_verdicts_of_before_claims_had_an_owner_are_read(verdicts, tmp_path):
    old = [each.model_dump(exclude={"whose", "reading"}) for each in verdicts]
    (tmp_path / "claims.json").write_text(json.dumps(old))
    assert {(each.whose, each.reading) for each in read(tmp_path / "claims.json")} == {("paper", None)}


@pytest.mark.parametrize("width", [40, 80, 160])
def test_the_terminal_shows_whose_a_claim_is_and_the_second_reading(judged, width):
    console = Console(file=io.StringIO(), width=width)
    console.print(as_table([judged(whose="authors' code", reading=READING.model_dump())]))
    text = " ".join(console.file.getvalue().replace("│", " ").split())
    assert "authors' code" in text
    if width != 80:  # There the lines of two columns alternate.
        assert "the paper assumes: A step of 1/L. the setting: Digits, our choice." in text
        assert "what would make it right: The bound were doubled." in text


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
            "" if each.whose == "paper" else each.whose,
            each.id,
            each.source,
            each.statement,
            f"expected {each.expected}",
            each.measured and f"measured {each.measured}",
            each.reason,
            *reading_lines(each.reading),
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
