"""What the paper claims, judged: which of it holds, and which measurement contradicts."""

import pytest

from certified_unlearning.claims import Evidence, all_claims, evaluate, load_claims
from certified_unlearning.claims import model as claims_model
from certified_unlearning.claims.model import FORGET_UNLEARNING
from certified_unlearning.errors import DataError
from certified_unlearning.results import ATTACK_SCHEMA, RISK_SCHEMA, write_table

CONTRADICTED = {
    "forget-theorem-3-2-construction": "own: 0.4",
    "forget-theorem-3-2-limit": "epsilon = 1: 0.5339734, expected at least 0.99",
    "forget-theorem-4-1-stream": "own: 0.",
    "forget-theorem-4-3-general": "own: 0.6",
    "forget-theorem-5-2-step-size": "printed over allowed: 16",
    "forget-section-5-2-saving": "entry 4 (r / n = 1e-06): printed 13.81551, computed 0.6931432",
    "forget-theorem-5-2-useful": "certified over constant model: 4073.",
    "forget-introduction-risk": "entry 1 (risk over that of a quarter of epsilon_dd): printed 1, computed 2",
    "forget-figure-1-asymptote": "exact over printed: 1.916667",
    "forget-remark-g-8": "printed 1, computed 2.5",
    "forget-lemma-f-3": "least eigenvalue: -0.4015838",
    "forget-lemma-f-4": "after 100 periods: -180",
}
"""What the specification says is wrong, with the number that says so."""


@pytest.fixture(scope="module")
def verdicts(attacks, risks, tmp_path_factory):
    results = tmp_path_factory.mktemp("results")
    write_table(results / "any" / "deletion" / "attacks.parquet", attacks, ATTACK_SCHEMA)
    write_table(results / "any" / "deletion" / "risk.parquet", risks, RISK_SCHEMA)
    found = evaluate(load_claims(FORGET_UNLEARNING), [Evidence.read(results, "any")])
    return {verdict.id: verdict for verdict in found}


def test_there_are_at_least_25_claims_and_all_are_decided(verdicts):
    assert len(verdicts) >= 25
    assert {verdict.verdict for verdict in verdicts.values()} == {"reproduced", "contradicted"}


def test_what_the_specification_calls_wrong_is_contradicted_and_nothing_else(verdicts):
    assert {name for name, verdict in verdicts.items() if verdict.verdict == "contradicted"} == set(CONTRADICTED)


@pytest.mark.parametrize("name", CONTRADICTED)
def test_contradictions_name_the_number_and_what_explains_it(verdicts, name):
    claim = next(claim for claim in load_claims(FORGET_UNLEARNING) if claim.id == name)
    assert CONTRADICTED[name] in verdicts[name].reason
    assert claim.note
    assert claim.note[1:] in verdicts[name].reason


def test_without_results_attacks_are_not_run_and_formulas_are():
    verdicts = {verdict.id: verdict for verdict in evaluate(load_claims(FORGET_UNLEARNING), [])}
    assert verdicts["forget-theorem-3-1"].verdict == "not run"
    assert verdicts["forget-remark-g-8"].verdict == "contradicted"


def test_a_preset_without_the_experiment_says_how_to_get_it(tmp_path):
    (verdict,) = [
        verdict
        for verdict in evaluate(load_claims(FORGET_UNLEARNING), [Evidence.read(tmp_path, "digits")])
        if verdict.id == "forget-theorem-5-1-risk"
    ]
    assert "risk.parquet is missing; run `snakemake --config preset=digits`" in verdict.reason


def test_no_two_papers_share_the_name_of_a_claim(monkeypatch):
    names = [claim.id for claim in all_claims()]
    assert len(names) == len(set(names))
    assert all(claim.id.startswith("forget-") for claim in load_claims(FORGET_UNLEARNING))
    monkeypatch.setattr(claims_model, "LANGEVIN_UNLEARNING", FORGET_UNLEARNING)
    with pytest.raises(DataError, match="occurs in two tables of claims"):
        all_claims()
