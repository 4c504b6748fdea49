"""Measures of the rows of experiments."""

from collections.abc import Sequence

import pandas as pd

from certified_unlearning.papers.gradient_certificates.shares import SHARES
from certified_unlearning.reproduction.claims.evidence import Evidence, MissingEvidence, with_table
from certified_unlearning.reproduction.claims.registry import measure
from certified_unlearning.reproduction.claims.relations import Quantity

STANDARD_ERRORS = 5
"""Half the width of intervals of means over trials."""


@measure
def certified_share(
    evidence: Sequence[Evidence], *, case: str, k: list[int], bounds: str = "tighter"
) -> list[Quantity]:
    """Return the mean share of certified test predictions of a case of ``shares``."""
    rows = _shares(evidence)
    return [Quantity(_at(rows, case, each, bounds)["share"], f"k = {each}") for each in k]


@measure
def share_changes(evidence: Sequence[Evidence]) -> list[Quantity]:
    """Return by how much shares change from each k to the next one, of every line of ``shares``."""
    found = []
    for (case, gamma, bounds), line in _shares(evidence).groupby(["case", "gamma", "bounds"], sort=False):
        ordered = line.sort_values("k")
        changes = ordered["share"].diff().iloc[1:]
        found += [
            Quantity(float(change), f"{case}, gamma = {gamma:g}, {bounds}, k = {k}")
            for change, k in zip(changes, ordered["k"].iloc[1:], strict=True)
        ]
    return found


@measure
def tighter_less_published(evidence: Sequence[Evidence]) -> list[Quantity]:
    """Return by how much shares by our bounds are above those by the published ones, wherever both were run."""
    rows = _shares(evidence)
    keys = ["case", "gamma", "k"]
    both = rows[rows["bounds"] == "tighter"].merge(rows[rows["bounds"] == "published"], on=keys)
    if both.empty:
        raise MissingEvidence("no case of shares has both ways of bounding; run `snakemake --config preset=certified`")
    return [
        Quantity(row["share_x"] - row["share_y"], f"{row['case']}, gamma = {row['gamma']:g}, k = {row['k']}")
        for _, row in both.iterrows()
    ]


def _shares(evidence: Sequence[Evidence]) -> pd.DataFrame:
    return with_table(evidence, SHARES.name).table(SHARES.name)


def _at(rows: pd.DataFrame, case: str, k: int, bounds: str) -> pd.Series:
    found = rows[(rows["case"] == case) & (rows["k"] == k) & (rows["bounds"] == bounds)]
    if found.empty:
        raise MissingEvidence(f"no case {case} with k = {k}, {bounds}; run `snakemake --config preset=certified`")
    return found.iloc[0]
