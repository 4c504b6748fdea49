"""Measures of the experiment `audit`: what attacks showed, compared with the certificates."""

from collections.abc import Sequence

import pandas as pd

from certified_unlearning.papers.cheaper_than_retraining.audits.names import ONE_RUN, TWO_LAWS
from certified_unlearning.reproduction.claims.evidence import Evidence, MissingEvidence, table_of
from certified_unlearning.reproduction.claims.registry import measure
from certified_unlearning.reproduction.claims.relations import Quantity


@measure
def audit_violated(
    evidence: Sequence[Evidence],
    *,
    guarantees: list[str] | None = None,
    systems: list[str] | None = None,
    least_n: int = 0,
) -> Quantity:
    """Return the share of audits that find a violation, among audits of the given guarantees, systems and sizes."""
    rows = _rows(evidence)
    rows = rows[rows["guarantee"].isin(guarantees or list(rows["guarantee"]))]
    rows = rows[rows["system"].isin(systems or list(rows["system"])) & (rows["n"] >= least_n)]
    if rows.empty:
        raise MissingEvidence(
            "the results of audit contain no rows of the sizes in the claim; run `snakemake --config preset=cost`"
        )
    return Quantity(float(rows["violated"].mean()), f"{len(rows)} audits at {rows['alpha'].iloc[0]:g} each")


@measure
def audit_power(evidence: Sequence[Evidence]) -> Quantity:
    """Return the share of one-run audits that would detect that a system has unlearned nothing.

    The audits are those of exact and certified systems.
    """
    rows = _rows(evidence)
    rows = rows[(rows["kind"] == ONE_RUN) & (rows["guarantee"] != "none")]
    return Quantity(float(rows["has_power"].mean()), f"{len(rows)} audits")


@measure
def audit_tightness(evidence: Sequence[Evidence], *, system: str, least_mu: float) -> list[Quantity]:
    """Return the estimated ``mu`` divided by the certified one, for every certified ``mu`` of at least ``least_mu``."""
    rows = _rows(evidence)
    rows = rows[(rows["kind"] == TWO_LAWS) & (rows["system"] == system) & (rows["mu"] >= least_mu)]
    if rows.empty:
        raise MissingEvidence(f"the results of audit contain no rows of {system} with a mu as large as in the claim")
    return [
        Quantity(float(row["mu_estimated"] / row["mu"]), f"epsilon {row['target']:g}") for _, row in rows.iterrows()
    ]


def _rows(evidence: Sequence[Evidence]) -> pd.DataFrame:
    rows = table_of(evidence, "audit")
    run: pd.DataFrame = rows[rows["skipped"] == ""]
    return run
