"""Verdicts on the paper's claims: which hold, and which measurement contradicts the others."""

from dataclasses import replace

import pytest

from certified_unlearning.errors import DataError
from certified_unlearning.papers.all import PAPERS
from certified_unlearning.papers.forget_unlearning.experiments import ATTACK_ROWS, RISK_ROWS
from certified_unlearning.papers.forget_unlearning.paper import PAPER
from certified_unlearning.reproduction.claims.evidence import Evidence
from certified_unlearning.reproduction.claims.model import claims_of
from certified_unlearning.reproduction.claims.verdicts import evaluate
from certified_unlearning.reproduction.layout import Layout
from certified_unlearning.reproduction.rows import write_table

CLAIMS = claims_of([PAPER])[PAPER.name]
CONTRADICTED = {
    "forget-theorem-3-2-construction": "own: 0.4",
    "forget-theorem-3-2-limit": "epsilon = 1: 0.5339734, expected at least 1",
    "forget-theorem-4-1-stream": "own: 0.",
    "forget-theorem-4-3-general": "own: 0.6",
    "forget-theorem-4-5-product": "entry 1 (Adv(Test) = 0.1): printed 1, computed 0",
    "forget-section-5-1-small-batches": "entry 1 (C1, r = 28, 56 steps for privacy, ",
    "forget-section-5-2-threshold": "1 of the threshold: 0, expected above 0",
    "forget-theorem-5-2-step-size": "printed over allowed: 16",
    "forget-section-5-2-saving": "entry 4 (r / n = 1e-06): printed 13.81551, computed 0.6931432",
    "forget-figure-1-asymptote": "exact over printed: 1.916667",
    "forget-remark-g-8": "printed 1, computed 2.5",
    "forget-lemma-f-3": "least eigenvalue: -0.4015838",
    "forget-lemma-f-4": "after 100 periods: -180",
}
"""Claims that do not hold, with the number that says so."""
OURS = {"forget-section-5-1-small-batches"}
"""Our own questions among them."""
MISPRINTS = {"forget-figure-1-asymptote", "forget-remark-g-8", "forget-section-5-2-threshold"}


@pytest.fixture(scope="module")
def verdicts(attacks, risks, tmp_path_factory):
    results = tmp_path_factory.mktemp("results")
    layout = Layout(results, "any")
    write_table(layout.rows(PAPER.name, "deletion"), attacks, ATTACK_ROWS)
    write_table(layout.rows(PAPER.name, "risk"), risks, RISK_ROWS)
    found = evaluate(CLAIMS, [Evidence.read(results, "any", PAPER)])
    return {verdict.id: verdict for verdict in found}


def test_there_are_at_least_25_claims_and_all_are_decided(verdicts):
    assert len(verdicts) >= 25
    assert {verdict.verdict for verdict in verdicts.values()} == {"reproduced", "contradicted"}


def test_what_does_not_hold_is_contradicted_and_nothing_else(verdicts):
    assert {name for name, verdict in verdicts.items() if verdict.verdict == "contradicted"} == set(CONTRADICTED)


@pytest.mark.parametrize("name", CONTRADICTED)
def test_contradictions_name_the_number_and_what_explains_it(verdicts, name):
    claim = next(each.claim for each in CLAIMS if each.claim.id == name)
    assert claim.whose == ("ours" if name in OURS else "paper")
    assert claim.reading is not None
    assert claim.misprint == (name in MISPRINTS)
    assert CONTRADICTED[name] in verdicts[name].reason
    assert claim.note
    assert claim.note[1:] in verdicts[name].reason


def test_without_results_attacks_are_not_run_and_formulas_are():
    verdicts = {verdict.id: verdict for verdict in evaluate(CLAIMS, [])}
    assert verdicts["forget-theorem-3-1"].verdict == "not run"
    assert verdicts["forget-remark-g-8"].verdict == "contradicted"


def test_a_preset_without_the_experiment_says_how_to_get_it(tmp_path):
    (verdict,) = [
        verdict
        for verdict in evaluate(CLAIMS, [Evidence.read(tmp_path, "digits", PAPER)])
        if verdict.id == "forget-theorem-5-1-risk"
    ]
    assert "no results of risk; run `snakemake --config preset=digits`" in verdict.reason


def test_no_two_papers_share_the_name_of_a_claim():
    names = [each.claim.id for of_paper in claims_of(PAPERS).values() for each in of_paper]
    assert len(names) == len(set(names))
    assert all(each.claim.id.startswith("forget-") for each in CLAIMS)
    with pytest.raises(DataError, match="occurs in two tables of claims"):
        claims_of([*PAPERS, replace(PAPER, name="twin")])
