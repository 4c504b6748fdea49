"""The dissertation's claims on exact unlearning, and evidence made of tables."""

from certified_unlearning.papers.tv_stability.paper import PAPER
from certified_unlearning.reproduction.claims.model import load_claims
from certified_unlearning.reproduction.claims.registry import measures
from certified_unlearning.reproduction.claims.verdicts import evaluate
from tests.support.evidence import Tables

MEASURES = measures(PAPER.measures)
CLAIMS = load_claims(PAPER.claims, MEASURES)
BY_ID = {each.claim.id: each for each in CLAIMS}


def of_module(name: str) -> set[str]:
    """The claims whose measures stand in a module."""
    return {
        claim
        for claim, each in BY_ID.items()
        if MEASURES[each.claim.measure].function.__module__.rpartition(".")[2] == name
    }


OF_RATES = of_module("rates")
OF_ROWS = of_module("runs") | OF_RATES
"""They need results."""


def judged(*evidence: Tables, names: list[str] | None = None) -> dict[str, str]:
    claims = CLAIMS if names is None else [BY_ID[name] for name in names]
    return {verdict.id: verdict.verdict for verdict in evaluate(claims, evidence)}
