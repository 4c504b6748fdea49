"""Sentences about the rows of certified predictions."""

import pandas as pd

from certified_unlearning.papers.gradient_certificates.names import title_of
from certified_unlearning.papers.gradient_certificates.service import SERVICE
from certified_unlearning.papers.gradient_certificates.shares import SHARES
from certified_unlearning.reproduction.claims.evidence import Evidence
from certified_unlearning.text import unbroken


def findings(evidence: Evidence) -> list[str]:
    """Return a sentence about certified predictions, and one about shards with budgets if their experiment was run.

    Raises:
        MissingEvidence: There are no rows.
        DataError: The rows are damaged.
    """
    return [shares(evidence.table(SHARES.name)), *service(evidence)]


def shares(rows: pd.DataFrame) -> str:
    """Return a sentence about certified shares.

    For each mode, the sentence gives the share of the mode's first case at this case's largest k.

    Args:
        rows: The rows of ``shares``.
    """
    ours = rows[rows["bounds"] == "tighter"]
    said = []
    for _, own in ours.groupby("mode", sort=False):
        first = own[own["case"] == own["case"].iloc[0]]
        row = first.sort_values(["k", "share"]).iloc[-1]
        changes = "are removed" if row["mode"] == "unlearning" else "are removed and as many are added"
        records = unbroken(f"{row['k']:,} records")
        said.append(f"{row['share']:.0%} stay the same if any {records} of every batch {changes}")
    data = title_of(str(ours["data"].iloc[0]))
    return (
        f"Of a network's test predictions on {data}, {', and '.join(said)}. These predictions are certified, so they "
        "need no unlearning."
    )


def service(evidence: Evidence) -> list[str]:
    """Return a list of one sentence about the savings and cost of budgets; it is empty without random requests."""
    if not evidence.has_table(SERVICE.name):
        return []
    rows = evidence.table(SERVICE.name)
    own = rows[(rows["stream"] == "random") & rows["against_sisa"].notna()]
    if own.empty:
        return []
    row = own.sort_values("budget").iloc[-1]
    records = unbroken(f"{row['budget']:,} records")
    return [
        f"Shards that may lose {records} before they are trained again answer {1 - row['refused']:.1%} of the queries "
        f"on {title_of(str(row['data']))} under random deletion requests. Plain SISA computes "
        f"{row['against_sisa']:.1f} times as many gradients as these shards, but each gradient with boxes takes "
        f"{row['box_cost']:.0f} times as long; {int(rows['wrong'].sum())} of {int(rows['compared'].sum()):,} answers "
        "are wrong."
    ]
