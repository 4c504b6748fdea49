"""Verdicts on what our own analysis states, and that planted faults turn them."""

import pytest

from certified_unlearning.papers.cheaper_than_retraining.paper import PAPER
from certified_unlearning.reproduction.claims.model import load_claims
from certified_unlearning.reproduction.claims.registry import measures
from certified_unlearning.reproduction.claims.verdicts import evaluate
from tests.support.evidence import Tables

MEASURES = measures(PAPER.measures)
ALL = load_claims(PAPER.claims, MEASURES)
CLAIMS = [each for each in ALL if not each.claim.measure.startswith("wide_")]
"""Those about the experiment `cost`, and formulas."""
LARGE = {"cost-minibatch-million", "cost-certified-refit-wins", "cost-newton-removal-wins", "cost-audit-warm-start"}
"""They need more records than the preset smoke has."""
CONTRADICTED = {"cost-lbfgs-warm", "cost-lbfgs-warm-forgets"}
FORMULAS = {
    each.claim.id
    for each in CLAIMS
    if MEASURES[each.claim.measure].function.__module__.endswith("residuals_and_batches")
}


def judged(*evidence):
    return {verdict.id: verdict.verdict for verdict in evaluate(CLAIMS, evidence)}


def test_every_claim_is_decided_where_there_are_records_enough(cost, audits):
    verdicts = judged(Tables(cost=cost, audit=audits))
    assert {name for name, verdict in verdicts.items() if verdict == "not run"} == LARGE
    assert {name for name, verdict in verdicts.items() if verdict == "contradicted"} == CONTRADICTED


def test_without_results_formulas_are_decided_and_nothing_else():
    verdicts = judged()
    assert {name for name, verdict in verdicts.items() if verdict != "not run"} == FORMULAS
    assert {verdicts[name] for name in FORMULAS} == {"reproduced"}


def test_claims_share_no_names_with_those_of_other_papers():
    assert all(each.claim.id.startswith("cost-") for each in ALL)
    assert set(MEASURES) == {each.claim.measure for each in ALL}


def test_all_are_ours_and_what_is_contradicted_has_a_second_reading():
    assert {each.claim.whose for each in ALL} == {"ours"}
    assert {each.claim.id for each in ALL if each.claim.reading} == CONTRADICTED


SECONDS = {
    "langevin-full": 1.0,
    "lbfgs-cold": 0.03,
    "lbfgs-warm": 0.01,
    "certified-refit": 0.01,
    "newton-removal": 0.001,
}


def enlarged(rows):
    """Audits of 10 000 records as if there were ten times as many, where a warm start is found."""
    warm = (rows["system"] == "lbfgs-warm") & (rows["n"] == 10_000)
    return rows.assign(n=rows["n"].where(~warm, 100_000), violated=rows["violated"] | warm)


def larger(cost):
    """The rows of 30 000 records as if there were so many as the claims about large data need, on a quiet machine."""
    moved = cost.copy()
    moved.loc[moved["n"] == 30_000, "n"] = 1_000_000
    moved["seconds"] = moved["system"].map(SECONDS).fillna(0.1).where(moved["seconds"].notna())
    return moved


def test_claims_about_large_data_are_decided_by_large_data(cost, audits):
    verdicts = judged(Tables(cost=larger(cost), audit=enlarged(audits)))
    assert "not run" not in verdicts.values()
    assert verdicts["cost-minibatch-million"] == "contradicted"


@pytest.mark.parametrize(
    ("claim", "system", "column", "factor"),
    [
        ("cost-full-batch-loses", "langevin-full", "seconds", 1e-3),
        ("cost-full-batch-loses-to-a-fresh-fit", "langevin-full", "passes", 0.01),
        ("cost-full-batch-passes", "langevin-full", "passes", 0.1),
        ("cost-lbfgs-from-zero", "lbfgs-cold", "passes", 10),
        ("cost-certified-refit-passes", "certified-refit", "passes", 2),
        ("cost-certified-refit-wins", "certified-refit", "seconds", 1e3),
        ("cost-newton-removal-wins", "newton-removal", "seconds", 1e3),
        ("cost-newton-removal-accuracy", "newton-removal", "accuracy", 0.9),
        ("cost-minibatch-accuracy", "langevin-minibatch", "accuracy", 0.9),
    ],
)
def test_a_planted_fault_turns_the_verdict(cost, claim, system, column, factor):
    faulty = larger(cost)
    assert judged(Tables(cost=faulty))[claim] == "reproduced"
    faulty.loc[faulty["system"] == system, column] *= factor
    assert judged(Tables(cost=faulty))[claim] == "contradicted"


def test_a_newton_removal_that_reads_is_noticed(cost):
    faulty = cost.copy()
    faulty.loc[faulty["system"] == "newton-removal", "passes"] += 1
    assert judged(Tables(cost=faulty))["cost-newton-removal-reads-nothing"] == "contradicted"


def test_mini_batches_that_read_a_share_of_the_data_are_noticed(cost):
    faulty = cost.copy()
    faulty.loc[faulty["system"] == "langevin-minibatch", "passes"] = 5.0
    assert judged(Tables(cost=faulty))["cost-minibatch-rows"] == "contradicted"


@pytest.mark.parametrize(
    ("claim", "systems", "changes"),
    [
        ("cost-audit-certified", ["newton-removal"], {"violated": True}),
        ("cost-audit-certified", ["lbfgs-cold"], {"violated": True}),
        ("cost-audit-power", ["sisa"], {"has_power": False}),
        ("cost-audit-nothing", ["gradient-ascent"], {"violated": False}),
        ("cost-audit-warm-start", ["lbfgs-warm"], {"violated": False}),
        ("cost-audit-ridge", ["langevin-ridge"], {"mu_estimated": 1.4}),
        ("cost-audit-logistic", ["langevin-full"], {"mu_estimated": 0.0}),
    ],
)
def test_audits_that_turn_out_otherwise_turn_the_verdict(cost, audits, claim, systems, changes):
    faulty = enlarged(audits)
    assert judged(Tables(cost=cost, audit=faulty))[claim] == "reproduced"
    for name, value in changes.items():
        faulty.loc[faulty["system"].isin(systems), name] = value
    assert judged(Tables(cost=cost, audit=faulty))[claim] == "contradicted"
