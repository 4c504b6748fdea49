"""Verdicts on the claims of certified predictions: decided where their rows are there, turned by planted faults."""

import pandas as pd
import pytest

from certified_unlearning.papers.gradient_certificates.paper import PAPER
from certified_unlearning.papers.gradient_certificates.tables.shares import shares_table
from certified_unlearning.reproduction.claims import evaluate, load_claims
from certified_unlearning.reproduction.claims.registry import measures
from tests.support.planning import sweep_of

MEASURES = measures(PAPER.measures)
CLAIMS = load_claims(PAPER.claims, MEASURES)
BY_ID = {each.claim.id: each for each in CLAIMS}


class Tables:
    """Evidence of tables by the names of experiments."""

    def __init__(self, **tables: pd.DataFrame) -> None:
        self._tables = tables

    def has_table(self, experiment: str) -> bool:
        return experiment in self._tables

    def table(self, experiment: str) -> pd.DataFrame:
        return self._tables[experiment]


def judged(*evidence: Tables) -> dict[str, str]:
    return {verdict.id: verdict.verdict for verdict in evaluate(CLAIMS, evidence)}


@pytest.fixture(scope="module")
def shares() -> pd.DataFrame:
    return shares_table(sweep_of("smoke", "shares"))


def test_claims_and_measures_share_no_names_with_those_of_other_papers():
    assert all(name.startswith("gc-") for name in BY_ID)
    assert set(MEASURES) == {each.claim.measure for each in CLAIMS}


def test_shares_that_rise_with_k_are_contradicted(shares):
    assert judged(Tables(shares=shares))["gc-shares-fall"] == "reproduced"
    wrong = shares.assign(share=1 - shares["share"])
    assert judged(Tables(shares=wrong))["gc-shares-fall"] == "contradicted"


def test_what_was_not_run_is_said():
    (verdict,) = (each for each in evaluate(CLAIMS, []) if each.id == "gc-blobs-near-50")
    assert verdict.verdict == "not run"
    assert "run `snakemake" in verdict.reason
