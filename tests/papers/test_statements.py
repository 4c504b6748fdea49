"""Statements of claims are read alone, in tables: each names its own subject and what is divided by what."""

import re

import pytest

from certified_unlearning.papers.all import PAPERS
from certified_unlearning.reproduction.claims.model import claims_of

STATEMENTS = {each.claim.id: each.claim.statement for claims in claims_of(PAPERS).values() for each in claims}
LEANING = re.compile(
    r"^(?:It|Its|They|Their|This|That|These|Those|So|Nor|The same)\b|\(the same\b"  # The subject is in another claim.
    r"|\b(?:over|less) (?:it|that|them|theirs|bound|certified)\b"  # A quotient or a difference without its parts.
    r"|\b(?:computes?|learns?|come|trained) again\b|\b(?:at least|at most)\.$"
)


def test_every_statement_stands_alone():
    assert {name: text for name, text in STATEMENTS.items() if LEANING.search(text)} == {}


def test_every_statement_is_made_of_whole_sentences():
    assert {name: text for name, text in STATEMENTS.items() if not re.fullmatch(r"(?:\w|\().*\.", text)} == {}


@pytest.mark.parametrize(
    "text",
    [
        "It is below from about 89 000 records on.",
        "So it does where requests depend on the learned model.",
        "It holds them (the same, four points in batches of two).",
        "Composed releases have at most the epsilon of advanced composition (exact Gaussian releases over it).",
        "The measured divergence nowhere exceeds composition (lower end less bound).",
        "For one deletion quantised SGD computes again with probability at most 4 G d T / (n tau).",
    ],
)
def test_a_statement_that_leans_on_another_is_found(text):
    assert LEANING.search(text)
