"""Measures of audits: shown epsilons divided by stated epsilons, and the number of planted faults that audits miss."""

from collections.abc import Sequence

import pandas as pd

from certified_unlearning.papers.private_learning.private_audits import PRIVATE_AUDITS
from certified_unlearning.reproduction.claims.evidence import Evidence, MissingEvidence, table_of
from certified_unlearning.reproduction.claims.registry import measure
from certified_unlearning.reproduction.claims.relations import Quantity

FEWEST_RUNS = 20_000


@measure
def shown_over_stated(evidence: Sequence[Evidence]) -> list[Quantity]:
    """Return the shown value divided by the stated value, for every audit of a mechanism without a fault."""
    rows = _rows(evidence)
    rows = rows[rows["planted"] == ""]
    return [
        Quantity(float(row["shown"] / row["stated"]), f"{row['mechanism']}, {row['method']}")
        for _, row in rows.iterrows()
    ]


@measure
def faults_not_caught(evidence: Sequence[Evidence]) -> Quantity:
    """Return the number of planted faults that no audit finds."""
    planted = _rows(evidence)
    planted = planted[planted["planted"] != ""]
    caught = planted.groupby(["mechanism", "planted"])["caught"].any()
    return Quantity(float((~caught).sum()), f"of {len(caught)}")


def _rows(evidence: Sequence[Evidence]) -> pd.DataFrame:
    name = PRIVATE_AUDITS.name
    rows = table_of(evidence, name)
    runs = int(rows["runs"].max())
    if runs < FEWEST_RUNS:
        raise MissingEvidence(
            f"the audits have only {runs} runs each, fewer than {FEWEST_RUNS}; run `snakemake --config preset=private`"
        )
    return rows
