"""`unlearn show`: what one person can be told, of every mechanism."""

import calendar
import html
import json
import math
import re
import sqlite3
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import pytest

from certified_unlearning import certificate
from certified_unlearning.accounting.accountant import Assumption
from certified_unlearning.certificate.ensemble import EnsembleCertificate
from certified_unlearning.certificate.exact import ExactCertificate
from certified_unlearning.certificate.guesses import Share, so_many_of_1000_are_right
from certified_unlearning.certificate.residual import ResidualCertificate
from certified_unlearning.certificate.steps.model import StepsCertificate
from certified_unlearning.data.tables.declaration import Table
from certified_unlearning.errors import LedgerError, ParameterError
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.initialisation import initialise
from certified_unlearning.ledger.personal.plain_words import LEFT_OUT, PLAIN_WORDS
from certified_unlearning.ledger.personal.report import FOR_THE_OPERATOR, PersonalReport, report_on
from certified_unlearning.ledger.requests import request, status
from certified_unlearning.ledger.terms.deadlines import Terms
from certified_unlearning.ledger.terms.release import release
from certified_unlearning.mechanisms import refit_plan
from tests.ledger.conftest import Original, Unlearn
from tests.ledger.tables import make_regression, write_table

MECHANISMS: dict[str, dict[str, Any]] = {
    "langevin": {"epsilon": 1.0},
    "newton-removal": {"epsilon": 1.0},
    "noisy-sgd": {"steps": 20, "batch_size": 4, "sigma": 0.3},
    "certified-ensemble": {"budgets": (1, 2)},
    "federated-averaging": {"recompute": 0.9},
}


@pytest.fixture(scope="module", params=MECHANISMS)
def removed(request: pytest.FixtureRequest, original: Original, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of each mechanism from which p1 was removed, and from which p2 waits to be."""
    path = tmp_path_factory.mktemp("removed") / "model"
    table = Table(path=str(original.data), label="ill", identifier="person")
    initialise(path, table, mechanism=request.param, **MECHANISMS[request.param])
    _removed(path, "p1")
    _requested(path, "p2")
    return path


@pytest.fixture
def made_of_three_classes(original: Original, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model whose records leave by passes, as where learning anew is dear, and which is learned anew after 4."""
    table = original.table.copy()
    table.loc[table["weight"] > 0.3, "ill"] = "perhaps"
    table.to_csv(tmp_path / "three.csv", index=False)
    declared = Table(path=str(tmp_path / "three.csv"), label="ill", identifier="person")
    monkeypatch.setattr(refit_plan, "DEAR", 1.0)
    initialise(tmp_path / "model", declared, epsilon=1.0, C=0.1, sigma=0.003, records_between_reads=4)
    return tmp_path / "model"


SHOWS = "What the current version may still show"
_SECRET_FILES_KEEP = (
    "Not finished: secret files in the model's folder may still contain information from the {}; see "
    '"What was asked and done".'
)
_LONGEST = 35
"""Words of a sentence."""


def _section(report: PersonalReport, heading: str) -> tuple[str, ...]:
    return next(sentences for each, sentences in report.sections if each == heading)


def _result(report: PersonalReport) -> str:
    """Return the sentence with the share of right guesses, or what takes its place."""
    (found,) = (each for each in _section(report, SHOWS) if re.match("Someone sees|Every answer that", each))
    return found


def _requested(path: Path, person: str) -> None:
    request(path, [person])


def _removed(path: Path, person: str) -> None:
    _requested(path, person)
    apply(path)


def test_a_removed_person_is_told_what_was_asked_done_and_guaranteed(removed: Path) -> None:
    report = report_on(removed, "p1")
    assert (report.stage, report.version, report.current) == ("removed", 2, 2)
    assert [heading for heading, _ in report.sections] == [
        "In short",
        "About this page",
        "What was asked and done",
        "What stays",
        SHOWS,
        "What the result does not cover",
        "How it can be checked, and numbers for experts",
    ]
    assert report.requested is not None
    day = datetime.fromisoformat(report.requested)
    assert f"On {day.day} {calendar.month_name[day.month]} {day.year} at " in report.sections[2].sentences[0]
    assert all(
        sentences and all(each[0].isupper() or each[0] == "`" for each in sentences) for _, sentences in report.sections
    )


def test_terms_and_hashes_stand_in_the_last_section_only(removed: Path) -> None:
    *letter, experts = report_on(removed, "p1").sections
    terms = r"epsilon|delta|\bmu\b|minimiser|normaliser|SHA|hash|`|[0-9a-f]{20}"
    assert [each for _, sentences in letter for each in sentences if re.search(terms, each)] == []
    assert re.search(terms, " ".join(experts.sentences))


@pytest.mark.parametrize("person", ["p1", "p2", "p3"])
def test_what_the_operator_does_stands_beside_the_page_and_not_on_it(
    removed: Path, tmp_path: Path, unlearn: Unlearn, person: str
) -> None:
    report, page = report_on(removed, person), tmp_path / "answer.html"
    printed = unlearn("show", removed, "--id", person, "-o", page).stdout
    command = {"p1": "verify", "p2": "apply", "p3": "request"}[person]
    assert f"`unlearn {command} {removed}" in printed
    assert FOR_THE_OPERATOR in printed
    assert report.for_operator in report.as_text()
    # Nor is the folder, which may tell of the operator's computer.
    assert not re.search(r"unlearn (apply|request|verify [^c])", page.read_text())
    assert str(removed) not in page.read_text()


def test_every_assumption_and_limit_that_a_person_reads_has_plain_words(removed: Path) -> None:
    certified = certificate.read_any(removed / "certificate-2.json")
    shown = [*(each.statement for each in certified.unchecked), *certified.not_promised]
    assert shown
    assert [each for each in shown if each not in PLAIN_WORDS] == []


def test_the_share_of_right_bets_is_that_of_the_certificate_rounded_up(removed: Path) -> None:
    report, stated = report_on(removed, "p1"), certificate.read_any(removed / "certificate-2.json").stated()
    sentence = _result(report)
    if stated.epsilon is None:
        assert report.share is None
        assert sentence.startswith("Every answer that the current model gives is the one that it would give")
        return
    assert report.share is not None
    with mpmath.workdps(50):
        if stated.mu is not None:
            exact = mpmath.ncdf(mpmath.mpf(stated.mu) / 2)
        else:
            odds = mpmath.exp(stated.epsilon)
            exact = mpmath.mpf("0.5") + (odds - 1 + 2 * mpmath.mpf(stated.whole_delta)) / (2 * (odds + 1))
    assert exact <= report.share <= exact + 1e-9
    if report.share == 0.5:
        assert "500 of 1,000 such guesses (50 %) are right on average, as with a coin" in sentence
    else:
        printed = re.search(r"At most (\d+) of 1,000 such guesses \(([0-9.]+) %\) are right on average", sentence)
        assert printed is not None
        assert exact * 1000 <= int(printed[1]) < exact * 1000 + 1
        assert float(printed[2]) == int(printed[1]) / 10


def test_who_waits_is_told_that_the_model_still_knows(removed: Path) -> None:
    report = report_on(removed, "p2")
    assert (report.stage, report.share, report.applied) == ("waiting", None, None)
    assert SHOWS not in [heading for heading, _ in report.sections]
    text = report.as_text()
    assert "Version 2 of the model, the current one, was made with the record, and may still be in use." in text
    assert "The record is still in this software's copy of the data." in text
    assert "say when this will be done, or why not, and where you can complain." in text


def test_a_page_about_somebody_who_stays_says_that_nothing_was_requested(removed: Path) -> None:
    report = report_on(removed, "p3")
    assert (report.stage, report.share, report.requested) == ("no request", None, None)
    assert report.sections[1].sentences == (
        "Versions 1 and 2 of the model, the current one among them, were made with 2 records with the identifier p3. "
        "The records are still in this software's copy of the data.",
        "The log holds no request to remove them. This does not mean that you sent none. If you sent one, ask the "
        "operator; its answer should say where you can complain.",
    )
    assert report.operator[-1] == f"`unlearn request {removed} --id p3` requests the removal."


def test_status_verify_and_the_certificates_summary_open_with_the_same_sentence(
    removed: Path, unlearn: Unlearn
) -> None:
    sentence = certificate.read_any(removed / "certificate-2.json").meaning()
    assert sentence is not None
    shown, share = _result(report_on(removed, "p1")), certificate.read_any(removed / "certificate-2.json").share()
    assert sentence.startswith(shown.partition(". ")[0])
    # The page counts guesses, and the sentence has the percentage; both are rounded up alike.
    assert share is None or share.value == 0.5 or (f"most {share.percent} %" in sentence and share.percent in shown)
    assert certificate.read_any(removed / "certificate-2.json").summary().startswith(sentence)
    for command in ("status", "verify"):
        assert unlearn(command, removed).stdout.splitlines()[0] == sentence
    printed = unlearn("verify", removed / "certificate-2.json").stdout
    assert printed.startswith(f"{removed / 'certificate-2.json'}: {sentence} ")


def test_nothing_is_promised_before_the_first_removal(model: Path, unlearn: Unlearn) -> None:
    assert certificate.read_any(model / "certificate-1.json").meaning() is None
    assert "guesses" not in unlearn("status", model).stdout
    assert report_on(model, "p1").stage == "no request"


def test_an_unknown_person_is_one_sentence(model: Path, unlearn: Unlearn) -> None:
    with pytest.raises(
        ParameterError, match=r"^identifier 'P1' is not in the training data, .* \(did you mean 'p1'\?\)$"
    ):
        report_on(model, "P1")
    with pytest.raises(ParameterError, match=r"^identifier 'nobody' is not in the training data, and its removal was"):
        unlearn("show", model, "--id", "nobody")


def test_a_changed_certificate_is_shown_to_nobody(model: Path) -> None:
    _removed(model, "p1")
    path = model / "certificate-2.json"
    path.write_text(path.read_text().replace('"epsilon": ', '"epsilon": 0'))
    with pytest.raises(LedgerError, match=r"certificate-2\.json was tampered with"):
        report_on(model, "p1")


def test_the_page_can_be_printed_and_needs_no_network(removed: Path, tmp_path: Path, unlearn: Unlearn) -> None:
    page = tmp_path / "answer.html"
    assert unlearn("show", removed, "--id", "p1", "-o", page).exit_code == 0
    text = page.read_text()
    assert text.startswith("<!DOCTYPE html>")
    assert not re.search(r"https?://|<script|<link|<img|url\(", text)
    assert "<code>unlearn verify" in text
    words = html.unescape(re.sub("<[^>]*>", " ", text).replace("  ", " "))
    shown = [each for _, sentences in report_on(removed, "p1").sections[1:] for each in sentences]
    assert all(each.replace("`", "") in re.sub(" +", " ", words).replace(" ,", ",") or "`" in each for each in shown)


def test_a_page_is_named_html_and_nothing_else_is_written(model: Path, tmp_path: Path, unlearn: Unlearn) -> None:
    with pytest.raises(ParameterError, match=r"^--output must name a file that ends with \.html, got"):
        unlearn("show", model, "--id", "p1", "-o", tmp_path / "answer.pdf")
    assert not list(tmp_path.glob("answer*"))


def test_an_identifier_with_angle_brackets_is_text_on_the_page(original: Original, tmp_path: Path) -> None:
    table = original.table.copy()
    table.loc[table["person"] == "p1", "person"] = "<b>p1</b>"
    data = tmp_path / "people.csv"
    table.to_csv(data, index=False)
    path = tmp_path / "model"
    initialise(path, Table(path=str(data), label="ill", identifier="person"), epsilon=1.0)
    assert "<b>" not in report_on(path, "<b>p1</b>").as_html()


def test_json_has_the_same_facts(removed: Path, unlearn: Unlearn) -> None:
    report = report_on(removed, "p1")
    found = json.loads(unlearn("show", removed, "--id", "p1", "--json").stdout)
    assert (found["stage"], found["share"], found["head"]) == (report.stage, report.share, report.head)
    assert found["sections"][1][1] == list(report.sections[1].sentences)


def test_files_that_an_interrupted_apply_left_are_not_said_to_be_deleted(model: Path) -> None:
    _removed(model, "p1")
    assert "were deleted from the model's folder" in report_on(model, "p1").as_text()
    (model / "weights-1.safetensors").write_bytes(b"left")
    text = report_on(model, "p1").as_text()
    assert "Not finished: files of earlier versions" in _section(report_on(model, "p1"), "In short")[-2]
    assert "were deleted" not in text
    assert "may still be in the model's folder. The operator still has to delete them." in text
    assert f"`unlearn apply {model}` deletes what is left of earlier versions." in text


def test_a_log_that_was_changed_is_shown_to_nobody(model: Path) -> None:
    _removed(model, "p1")
    with sqlite3.connect(model / "ledger.sqlite") as connection:
        connection.execute("DROP TRIGGER events_are_not_edited")
        connection.execute("""UPDATE events SET payload = '{"records":77}' WHERE kind = 'requested'""")
    with pytest.raises(LedgerError, match="was tampered with: event 2 is not what was recorded"):
        report_on(model, "p1")


def test_records_that_look_alike_and_stay_are_named_to_the_operator_only(
    original: Original, tmp_path: Path, unlearn: Unlearn
) -> None:
    table = original.table.copy()
    table.loc[table["person"] == "p2", "person"] = "P1"
    data, path = tmp_path / "people.csv", tmp_path / "model"
    table.to_csv(data, index=False)
    initialise(path, Table(path=str(data), label="ill", identifier="person"), epsilon=1.0)
    request(path, ["p1"], one_spelling=True)
    apply(path)
    report = report_on(path, "p1")
    assert report.like == "P1"
    # The page goes to one person, and the other one is none of theirs.
    assert not re.search(r"\bP1\b", report.as_text() + report.as_html())
    said = unlearn("show", path, "--id", "p1")
    assert "the data have records with a similar identifier ('P1'); do not disclose this to the person" in said.stderr
    assert "P1" not in said.stdout
    _removed(path, "P1")
    with pytest.raises(ParameterError, match=r"never requested \(did you mean '[pP]1'\?\)$"):
        report_on(path, "\N{FULLWIDTH LATIN SMALL LETTER P}1")


def test_backticks_of_an_identifier_are_no_command(original: Original, tmp_path: Path) -> None:
    table = original.table.copy()
    table.loc[table["person"] == "p1", "person"] = "`rm`"
    data, path = tmp_path / "people.csv", tmp_path / "a`b"
    table.to_csv(data, index=False)
    initialise(path, Table(path=str(data), label="ill", identifier="person"), epsilon=1.0)
    _removed(path, "`rm`")
    page = report_on(path, "`rm`").as_html()
    assert "<code>rm" not in page
    assert "<code>unlearn verify certificate-2.json</code>" in page


@pytest.mark.parametrize("name", ["page.html", "training/page.html"])
def test_a_page_is_not_written_into_the_model_directory(model: Path, unlearn: Unlearn, name: str) -> None:
    with pytest.raises(ParameterError, match=r"^--output must lie outside the model directory"):
        unlearn("show", model, "--id", "p1", "-o", model / name)


def test_an_identifier_that_is_no_text_is_one_sentence(model: Path) -> None:
    with pytest.raises(ParameterError, match=r"is not UTF-8 text$"):
        report_on(model, "\udcff")


def test_status_says_that_a_certificate_is_missing(model: Path, unlearn: Unlearn) -> None:
    _removed(model, "p1")
    (model / "certificate-2.json").unlink()
    first, second, *_ = unlearn("status", model, "--no-quality").stdout.splitlines()
    assert first.startswith("note: the guarantee cannot be read: cannot read")
    assert second.startswith(f"{model}: learned from")


def test_the_weaker_result_for_requests_that_react_is_no_smaller_than_an_exact_oracle(removed: Path) -> None:
    certified = certificate.read_any(removed / "certificate-2.json")
    said = " ".join(each for _, sentences in report_on(removed, "p1").sections for each in sentences)
    if certified.kind == "ensemble":
        assert "No removal was requested" not in said  # Answers are equal whatever was asked, and why.
        return
    assert "No removal was requested" in said
    if not isinstance(certified, ResidualCertificate):
        assert "experts can find a different and weaker statement" not in said
        return
    printed = re.search(r"Someone has both versions .*? At most ([0-9.]+) % of such guesses are right", said)
    assert printed is not None
    with mpmath.workdps(50):
        exact = mpmath.ncdf(mpmath.mpf(certified.mu) * mpmath.sqrt(2) / 2) * 100
    assert exact <= float(printed[1]) <= exact + 0.1


def test_what_earlier_versions_show_is_bounded_where_every_step_has_noise(removed: Path) -> None:
    certified = certificate.read_any(removed / "certificate-2.json")
    report = report_on(removed, "p1")
    assert "Version 1 of the model had been made with the records" in _section(report, "In short")[2]
    no_limit = "No limit is given for what earlier versions show of the removed records."
    if not isinstance(certified, StepsCertificate):
        assert _section(report, "What the result does not cover")[0] == no_limit
        assert ("not about people who have an earlier version" in report.as_text()) == (certified.share() is not None)
        return
    assert no_limit not in report.as_text()
    assert "people who have an earlier version" not in report.as_text()
    (said,) = (each for each in _section(report, SHOWS) if "has all versions" in each)
    printed = re.search(r"Under the same conditions, at most (\d+) of 1,000 such guesses \(([0-9.]+) %\) are", said)
    assert printed is not None
    odds = math.exp(certified.stated().epsilon_all_published or math.nan)
    assert odds / (1 + odds) * 1000 <= int(printed[1]) <= odds / (1 + odds) * 1000 + 1
    assert float(printed[2]) == int(printed[1]) / 10


def test_a_page_says_what_stays_why_and_how_long_and_the_operator_is_asked_for_the_legal_basis(removed: Path) -> None:
    report = report_on(removed, "p1")
    kept, how_long = _section(report, "What stays")
    assert "keeps a pseudonym of the identifier p1, the number of records, and the dates" in kept
    assert "documents the removal, and ensures that no record with this identifier is added again" in kept
    assert "the same data under another identifier would not be recognised" in kept.lower()
    assert how_long.startswith("These entries are kept as long as the model's folder is")
    assert "legal basis" not in " ".join(each for _, sentences in report.sections for each in sentences)
    assert any("how long you keep the folder, and on what legal basis" in each for each in report.operator)


def test_the_page_opens_with_facts_and_has_no_share_before_its_conditions(removed: Path) -> None:
    report = report_on(removed, "p1")
    done, how, earlier, others, *_, answer = _section(report, "In short")
    assert "2 records with the identifier p1 were removed" in done
    assert how == certificate.read_any(removed / "certificate-2.json").done(
        0 if (batch := status(removed).state.versions[1].batch) is None else batch.steps,
        status(removed).state.versions[1].reading,
    )
    assert earlier.startswith("Version 1 of the model had been made with the records")
    assert "other copies" in others
    assert answer.endswith("where you can complain.")
    shows = [heading for heading, _ in report.sections].index(SHOWS)
    before = " ".join(each for _, sentences in report.sections[:shows] for each in sentences)
    assert not re.search(r"%|1,000|guess", before)
    section = _section(report, SHOWS)
    assert section[1].startswith("The result at the end of this section holds only if the software ran as described")
    conditions = [PLAIN_WORDS[each.statement] for each in _conditions(removed)]
    assert max(map(section.index, conditions), default=0) < section.index(_result(report))


@pytest.mark.parametrize("person", ["p1", "p2", "p3"])
def test_no_sentence_outside_the_part_for_experts_is_long(removed: Path, person: str) -> None:
    assert _too_long(report_on(removed, person)) == []


def test_no_plain_word_for_an_assumption_or_a_limit_is_a_long_sentence() -> None:
    said = [each for text in PLAIN_WORDS.values() for each in _sentences(text)]
    assert [each for each in said if len(each.split()) > _LONGEST] == []


def test_a_long_sentence_is_found() -> None:
    assert _sentences("It is so. " + "word " * _LONGEST + "word. So, it ends.")[1].count(" ") == _LONGEST


def _conditions(path: Path) -> list[Assumption]:
    unchecked = certificate.read_any(path / "certificate-2.json").unchecked
    return [each for each in unchecked if each.statement not in LEFT_OUT]


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.!?]) +", text)


def _too_long(report: PersonalReport) -> list[str]:
    """Return the sentences of a page that are too long, but for those for experts."""
    texts = [each for heading, sentences in report.sections for each in sentences if "for experts" not in heading]
    return [each for text in texts for each in _sentences(text) if len(each.split()) > _LONGEST]


@pytest.mark.parametrize("value", [0.5471, math.nextafter(0.548, 0), 0.548, math.nextafter(0.548, 1), 0.9469, 0.9981])
def test_figures_of_1000_guesses_are_rounded_up_as_percentages_are(value: float) -> None:
    share = Share(value, "", "")
    assert Fraction(value) * 1000 <= share.of_1000 < Fraction(value) * 1000 + 1
    assert float(share.percent) == share.of_1000 / 10
    assert str(share.of_1000) in so_many_of_1000_are_right(share)


def test_each_percentage_of_the_page_follows_from_the_terms_for_experts(removed: Path) -> None:
    *letter, (_, experts) = report_on(removed, "p1").sections
    terms = [each for each in experts if "rounded up, with" in each]
    recomputed = set()
    for each in terms:
        percent, first, second = map(float, re.findall(r"(?:share of | = )([0-9.e-]+)(?= %| and|\.$)", each))
        with mpmath.workdps(50):
            if "Phi" in each:
                exact = mpmath.ncdf(mpmath.mpf(first) / 2) + mpmath.mpf(second) / 2
            else:
                odds = mpmath.exp(first)
                exact = mpmath.mpf("0.5") + (odds - 1 + 2 * mpmath.mpf(second)) / (2 * (odds + 1))
        assert percent == math.ceil(exact * 1000) / 10
        recomputed.add(percent)
    said = " ".join(each for _, sentences in (*letter, ("", experts)) for each in sentences if each not in terms)
    named = {float(each) for each in re.findall(r"most ([0-9.]+) %", said)}
    assert named <= recomputed
    assert bool(recomputed) == (certificate.read_any(removed / "certificate-2.json").stated().epsilon is not None)


def test_the_counts_of_assumptions_agree_and_each_is_a_sentence_of_the_page(removed: Path) -> None:
    certified, report = certificate.read_any(removed / "certificate-2.json"), report_on(removed, "p1")
    text = " ".join(each for _, sentences in report.sections for each in sentences)
    counted = re.search(
        r"(\d+) assumptions are not checked: (\d+) (?:is|are) among .*, and (\d+) (?:is|are) left", text
    )
    assert counted is not None
    every, conditions, gaps = map(int, counted.groups())
    assert every == len(certified.unchecked) == conditions + gaps
    assert f"{every} assumptions not checked)" in text
    left = 'The result leaves some points open. They are under "What the result does not cover".'
    assert (left in text) == (gaps > 0)
    left_open = [each for each in certified.unchecked if each.statement in LEFT_OUT]
    assert len(left_open) == gaps
    not_covered = _section(report, "What the result does not cover")
    assert all(PLAIN_WORDS[each.statement] in not_covered for each in left_open)
    said = _section(report, SHOWS)
    closes = next(number for number, each in enumerate(said) if each.startswith("No software can check these cond"))
    assert closes == 2 + conditions
    assert all(PLAIN_WORDS[each.statement] in text for each in certified.unchecked)


def test_no_lawyer_reads_law_where_a_distribution_is_meant(removed: Path) -> None:
    text = " ".join(each for _, sentences in report_on(removed, "p1").sections for each in sentences)
    assert re.findall(r"\b(?:in|the same) law\b", text) == []


def test_secret_files_that_still_know_removed_records_stand_under_what_was_done(tmp_path: Path) -> None:
    write_table(tmp_path / "people.csv", numbers=True)
    make_regression(tmp_path / "model", tmp_path / "people.csv")
    _removed(tmp_path / "model", "p1")
    report = report_on(tmp_path / "model", "p1")
    assert _section(report, "In short")[1].startswith("The model was corrected for what was removed")
    done = _section(report, "What was asked and done")
    assert any(each.startswith("Not done yet: secret files") for each in done)
    assert _section(report, "In short")[-2] == _SECRET_FILES_KEEP.format("records")
    assert "secret files may" not in " ".join(_section(report, "What the result does not cover"))


def test_secret_files_that_were_made_anew_are_not_said_to_be_left(removed: Path) -> None:
    certified = certificate.read_any(removed / "certificate-2.json")
    if isinstance(certified, ResidualCertificate):
        assert certified.scheduled_reads == 1
    text = report_on(removed, "p1").as_text()
    assert "Not done yet" not in text
    kept = isinstance(certified, EnsembleCertificate) and sum(certified.pending) > 0
    assert (_SECRET_FILES_KEEP.format("records") in text) == kept


def test_a_reading_after_a_removal_finishes_it_and_not_the_next_one(made_of_three_classes: Path) -> None:
    """Two people's records left by passes, the third one's by learning anew, the last one's by a pass again."""
    path, said = made_of_three_classes, {}
    for person in ("p1", "p2", "p3", "p4"):
        _removed(path, person)
        report = report_on(path, person)
        said[person] = ("Not finished: secret files" in report.as_text(), "Not done yet" in report.as_text())
        if person == "p1":
            assert _section(report, "In short")[1].startswith("The model was corrected for what was removed")
    assert said == {"p1": (True, True), "p2": (True, True), "p3": (False, False), "p4": (True, True)}
    assert [version.reading for version in status(path).state.versions[1:]] == ["pass", "pass", "scheduled", "pass"]
    for person in ("p1", "p2", "p3"):
        text = report_on(path, person).as_text()
        assert "Not finished" not in text
        assert "Not done yet" not in text


def test_each_sentence_about_a_model_of_three_classes_has_plain_words(made_of_three_classes: Path) -> None:
    certified = certificate.read_any(made_of_three_classes / "certificate-1.json")
    assert isinstance(certified, ResidualCertificate)
    assert certified.loss == "softmax"
    shown = [*(each.statement for each in certified.unchecked), *certified.not_promised]
    assert [each for each in shown if each not in PLAIN_WORDS] == []


def test_only_mechanisms_that_test_their_steps_say_so(removed: Path) -> None:
    certified = certificate.read_any(removed / "certificate-2.json")
    if not isinstance(certified, ExactCertificate):
        return
    tested = certified.done(0, None)
    assert "decided by chance whether the model's training was done again" in tested
    assert "If no training was done again, the new version has the same numbers as the old version" in tested
    # There a step that had used the record is always taken again.
    assert "by chance" not in certified.model_copy(update={"mechanism": "subsample-gd"}).done(0, None)


def test_the_number_of_removed_records_counts_as_known(removed: Path) -> None:
    certified = certificate.read_any(removed / "certificate-2.json")
    compared = " ".join(report_on(removed, "p1").sections[-1].sentences)
    number = compared[compared.index("The number of removed records is assumed to be known") :]
    # Where a normaliser counts the removed records, the model compared with has it, too.
    assert ("a number that includes the removed records" in number) == (certified.stated().adjacency == "zero-out")


def test_a_request_on_hold_is_no_promise_and_its_reason_is_for_the_operator(model: Path) -> None:
    request(model, ["p1"], terms=Terms.of("2026-11-02", "30", "case 12"))
    report = report_on(model, "p1")
    assert (report.stage, report.share, report.applied) == ("on hold", None, None)
    page = report.as_html()
    assert "the request was received on 2 November 2026." in page
    assert re.search(
        r"The request has been on hold since \d+ \w+ \d{4}\. The operator&#x27;s answer should say why", page
    )
    assert _too_long(report) == []
    assert report.title == "Request to remove the records of p1 from a model"
    assert "case 12" not in page
    assert "The request is on hold (case 12): `unlearn release" in str(report.operator)
    release(model, ["p1"])
    assert report_on(model, "p1").stage == "waiting"
    apply(model)
    report = report_on(model, "p1")
    assert report.stage == "removed"
    assert report.requested is not None
    assert "2 November 2026." in report.as_html()
