"""Verdicts on the paper's claims: all are decided, and planted faults change them."""

import pytest

from certified_unlearning.papers.noisy_sgd.measures import comparisons, distance_bounds
from certified_unlearning.papers.noisy_sgd.paper import PAPER
from certified_unlearning.papers.noisy_sgd.theory import bounds, distances, planning
from certified_unlearning.reproduction.claims.model import load_claims
from certified_unlearning.reproduction.claims.registry import measures
from certified_unlearning.reproduction.claims.verdicts import evaluate

MEASURES = measures(PAPER.measures)
CLAIMS = load_claims(PAPER.claims, MEASURES)
CONTRADICTED = {
    "noisy-sgd-averaged-person": "l = 20, k = 5, alpha = 1.5: 2.493538, expected at most 1",
    "noisy-sgd-smaller-batches-convex": "K = 1, b = 32 to K = 1, b = 128: -0.6931472, expected above 0",
    "noisy-sgd-full-batch-langevin-early": "K = 1: 2.332315, expected below 1",
    "noisy-sgd-tight-early": "b = 32, K = 0.00284: 0.7225101, expected at least 0.9",
    "noisy-sgd-noisy-cgd-epoch": "b = 5632: 2.27759, expected below 1",
    "noisy-sgd-noisy-cgd-step": "b = 512: 1.515664, expected below 1",
}
"""Claims that are wrong, with the number that says so."""


@pytest.fixture(scope="module")
def verdicts():
    return {verdict.id: verdict for verdict in evaluate(CLAIMS, [])}


def judged(*names: str) -> dict[str, str]:
    """Return the verdicts on the claims of these names, or on all."""
    claims = [each for each in CLAIMS if not names or each.claim.id in names]
    assert len(claims) == len(names or CLAIMS)
    return {verdict.id: verdict.verdict for verdict in evaluate(claims, [])}


def test_there_are_at_least_12_claims_and_all_are_decided_without_results(verdicts):
    assert len(verdicts) >= 12
    assert {verdict.verdict for verdict in verdicts.values()} == {"reproduced", "contradicted"}


def test_what_is_wrong_is_contradicted_and_nothing_else(verdicts):
    assert {name for name, verdict in verdicts.items() if verdict.verdict == "contradicted"} == set(CONTRADICTED)


@pytest.mark.parametrize("name", CONTRADICTED)
def test_contradictions_name_the_number_and_what_explains_it(verdicts, name):
    claim = next(each.claim for each in CLAIMS if each.claim.id == name)
    assert CONTRADICTED[name] in verdicts[name].reason
    assert claim.note
    assert claim.note[1:] in verdicts[name].reason


def test_every_claim_says_where_it_is_from():
    read = {"paper": ("Abstract", "Figure 1, caption", "Theorem 3.1"), "authors' code": ("Graph-COM/SGD_unlearning, ",)}
    assert all(each.claim.source.startswith(read.get(each.claim.whose, "derived here")) for each in CLAIMS)


def test_nothing_that_is_contradicted_is_the_papers_own():
    assert {each.claim.whose for each in CLAIMS if each.claim.id in CONTRADICTED} == {"ours"}
    assert all(each.claim.reading for each in CLAIMS if each.claim.id in CONTRADICTED)


def test_claims_and_measures_share_no_names_with_those_of_other_papers():
    assert all(each.claim.id.startswith("noisy-sgd-") for each in CLAIMS)
    assert set(MEASURES) == {each.claim.measure for each in CLAIMS}


# --- Planted faults --------------------------------------------------------------------------------------------------


def replace_distance(monkeypatch, faulty):
    for module in (bounds, comparisons, distance_bounds, planning, distances):
        monkeypatch.setattr(module, "learned_distance", faulty)


def test_a_forgotten_place_contradicts_the_claims_of_distances(monkeypatch):
    real = distances.learned_distance

    def first(problem, cycle, *, position=None, **options):
        return real(problem, cycle, position=1, **options)

    replace_distance(monkeypatch, first)
    names = ("noisy-sgd-distance", "noisy-sgd-distance-finite", "noisy-sgd-enumerated-ours")
    assert judged(*names) == dict.fromkeys(names, "contradicted")


def test_all_records_in_the_place_of_a_batch_contradict_ours_below_theirs(monkeypatch):
    real = distances.learned_distance

    def of_all(problem, cycle, **options):
        return real(problem, cycle, **options) / cycle.batches

    replace_distance(monkeypatch, of_all)
    names = ("noisy-sgd-distance", "noisy-sgd-ours-below", "noisy-sgd-enumerated-ours", "noisy-sgd-sequential-ours")
    assert judged(*names) == dict.fromkeys(names, "contradicted")


def test_the_codes_factor_left_out_contradicts_nothing_but_what_it_is_about(monkeypatch):
    monkeypatch.setattr(comparisons, "CODE_FACTOR", 1.0)
    before, after = judged(), set(CONTRADICTED) | {"noisy-sgd-code-least"}
    assert {name for name, verdict in before.items() if verdict == "contradicted"} == after


def test_half_a_shift_contradicts_what_ours_is_compared_with(monkeypatch):
    real = comparisons.pooled
    monkeypatch.setattr(comparisons, "pooled", lambda *arguments, **options: real(*arguments, **options) / 2)
    names = ("noisy-sgd-enumerated-exact", "noisy-sgd-noisy-cgd")
    assert judged(*names) == dict.fromkeys(names, "contradicted")
