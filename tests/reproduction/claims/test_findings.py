"""Findings: sentences of papers about their runs and the worst contradictions, in one order for page and terminal."""

from pathlib import Path

import pytest

from certified_unlearning.data.sets import DATA_SETS
from certified_unlearning.errors import DataError
from certified_unlearning.papers.all import PAPERS
from certified_unlearning.reproduction.claims import findings
from certified_unlearning.reproduction.claims.evidence import Evidence, MissingEvidence
from certified_unlearning.reproduction.claims.findings import KeyFinding
from certified_unlearning.reproduction.claims.model import Claim, claims_of, claims_on
from certified_unlearning.reproduction.claims.verdicts import Verdict
from certified_unlearning.reproduction.paper import Paper

TOLD = {"one": ["one.1", "one.2", "one.3"], "two": ["two.1"]}


def told(evidence: Evidence) -> list[str]:
    """Sentences of a preset; of one there are no results."""
    if evidence.preset not in TOLD:
        raise MissingEvidence("nothing was run")
    return TOLD[evidence.preset]


PAPER = Paper("mine", "My paper", (), findings=f"{__name__}:told")
SILENT = Paper("other", "Another paper", ())


def contradicted(name: str, paper: str, source: str = "Theorem 1") -> Verdict:
    words = dict.fromkeys(("expected", "measured", "tolerance", "reason"), f"of {name}")
    return Verdict(
        id=name, source=source, statement=f"{name} holds.", verdict="contradicted", paper=paper, severity="large",
        gap=1.0, **words,
    )  # fmt: skip


def found(*presets: str, verdicts: list[Verdict]) -> list[KeyFinding]:
    evidence = {"mine": [Evidence.read(Path("nowhere"), preset, PAPER) for preset in presets]}
    return findings.findings(verdicts, [PAPER, SILENT], evidence)


def test_what_runs_say_and_the_worst_contradiction_come_first() -> None:
    verdicts = [contradicted(name, paper) for name, paper in (("a", "mine"), ("b", "other"), ("c", "other"))]
    order = [each.text for each in found("one", "two", verdicts=[*verdicts, contradicted("d", "other")])]
    assert order == [
        "one.1", "one.2", "My paper, Theorem 1: a holds.", "one.3", "two.1", "Another paper, Theorem 1: b holds.",
        "Another paper, Theorem 1: c holds.",
    ]  # fmt: skip


def test_sentences_for_newcomers_come_before_all_others_and_are_marked() -> None:
    plain = Paper("plain", "A plain paper", (), findings=f"{__name__}:told", newcomers=f"{__name__}:told")
    evidence = {"plain": [Evidence.read(Path("nowhere"), preset, plain) for preset in ("two", "unrun")]}
    found = findings.findings([contradicted("a", "plain")], [SILENT, plain], evidence)
    assert [(each.text, each.newcomers) for each in found] == [
        ("two.1", True), ("two.1", False), ("A plain paper, Theorem 1: a holds.", False),
    ]  # fmt: skip


def test_a_contradiction_brings_its_numbers_and_names_its_paper_once() -> None:
    (one,) = found(verdicts=[contradicted("a", "mine", source="My paper, Lemma 2")])
    assert one == KeyFinding(
        text="My paper, Lemma 2: a holds.", expected="of a", measured="of a", claim="a", severity="large"
    )


def test_a_sentence_without_results_is_left_out() -> None:
    assert found("one", "unrun", verdicts=[]) == found("one", verdicts=[])


def test_what_was_written_is_read_and_what_are_no_findings_is_refused(tmp_path: Path) -> None:
    written = found("one", verdicts=[contradicted("a", "mine")])
    findings.write(tmp_path / "findings.json", written)
    assert findings.read(tmp_path / "findings.json") == written
    (tmp_path / "findings.json").write_text('[{"texts": "x"}]')
    with pytest.raises(DataError, match=r"findings.json is not a list of findings: 0.text"):
        findings.read(tmp_path / "findings.json")


def test_claims_on_own_data_are_about_no_other_data() -> None:
    every = claims_of(PAPERS)
    for name, claims in every.items():
        kept = claims_on(claims, {"loans"})
        text = " ".join(f"{each.claim.source} {each.claim.statement} {each.claim.arguments}" for each in kept)
        assert not any(data in text for data in ("MNIST", "CIFAR", "Adult", "digits", "mnist", "cifar", "adult")), name
    langevin = every["langevin_unlearning"]
    on_mnist = claims_on(langevin, {"mnist-3-vs-8"})
    assert len(claims_on(langevin, {"loans"})) < len(on_mnist) < len(langevin)
    assert len(claims_on(langevin, {each.name for each in DATA_SETS})) == len(langevin)


def test_a_claim_is_about_the_data_that_its_arguments_or_itself_name() -> None:
    claim = Claim.model_validate({
        "id": "a", "source": "Table 1", "statement": "It holds.", "measure": "some",
        "expected": {"relation": "equals", "values": [1.0]},
    })  # fmt: skip
    assert claim.data_sets == frozenset()
    named = claim.model_copy(update={"arguments": {"dataset": "adult"}, "data": "digits"})
    assert named.data_sets == {"adult", "digits"}
    assert claim.model_copy(update={"arguments": {"datasets": ["x", "y"]}}).data_sets == {"x", "y"}
