"""Measures of the experiment `cost` that compare systems: rows read, seconds, accuracy after requests.

Passes and accuracies are the same in every run of the same code. Times in seconds were measured on one machine, and
claims about them leave wide margins. Unless stated otherwise, the rows are synthetic rows of the first kind.
"""

from collections.abc import Sequence

import pandas as pd

from certified_unlearning.papers.cheaper_than_retraining.names import SPECTRA
from certified_unlearning.reproduction.claims.evidence import Evidence, MissingEvidence, table_of
from certified_unlearning.reproduction.claims.registry import measure
from certified_unlearning.reproduction.claims.relations import Quantity


@measure
def cost_passes(
    evidence: Sequence[Evidence], *, system: str, least_n: int, records: list[int] | None = None
) -> list[Quantity]:
    """Return how many passes over the data a system needs for a request, at every size from ``least_n`` on."""
    own = _of(_rows(evidence), system)
    own = own[(own["n"] >= least_n) & (own["records"].isin(records or list(own["records"])))]
    return _quantities(own, own["passes"])


@measure
def cost_quotients(
    evidence: Sequence[Evidence],
    *,
    quantity: str,
    above: str,
    below: str,
    least_n: int,
    records: list[int] | None = None,
) -> list[Quantity]:
    """Return a quantity of one system divided by that of another, at every size at which both were run."""
    rows = _rows(evidence)
    point = ["data", "n", "records"]
    both = _of(rows, above).merge(_of(rows, below), on=point, suffixes=("_above", "_below"))
    both = both[(both["n"] >= least_n) & (both["records"].isin(records or list(both["records"])))]
    return _quantities(both, both[f"{quantity}_above"] / both[f"{quantity}_below"])


@measure
def cost_lost_accuracy(evidence: Sequence[Evidence], *, system: str, beside: str, least_n: int) -> list[Quantity]:
    """Return how much less accurate a system is than another one after the last request."""
    rows = _rows(evidence)
    both = _of(rows, beside).merge(_of(rows, system), on=["data", "n", "records"], suffixes=("_beside", ""))
    both = both[both["n"] >= least_n]
    return _quantities(both, both["accuracy_beside"] - both["accuracy"])


@measure
def cost_growth_of_rows_read(evidence: Sequence[Evidence], *, system: str, records: int) -> Quantity:
    """Return the rows that a request reads at the largest size, divided by the rows that it reads at the smallest size.

    The sizes are those at which the system was run.
    """
    own = _of(_rows(evidence), system)
    own = own[own["records"] == records].sort_values("n")
    if own["n"].nunique() < 2:
        raise MissingEvidence(f"{system} was run at fewer than two sizes; run `snakemake --config preset=cost`")
    read = own["passes"] * own["n"]
    return Quantity(read.iloc[-1] / read.iloc[0], f"n = {own['n'].iloc[0]:,} to n = {own['n'].iloc[-1]:,}")


@measure
def cost_requests_that_moved(evidence: Sequence[Evidence], *, system: str, records: int) -> list[Quantity]:
    """Return the share of requests that changed the model, among the requests at the largest ``n``."""
    own = _of(_rows(evidence), system)
    own = own[own["records"] == records].sort_values("n").tail(1)
    return _quantities(own, own["requests_that_moved"] / own["rounds"])


def _rows(evidence: Sequence[Evidence]) -> pd.DataFrame:
    """Return the rows of systems that were run on the first kind of synthetic data."""
    table = table_of(evidence, "cost")
    made = table[table["data"].isin(SPECTRA) & table["seconds"].notna()]
    if made.empty:
        raise MissingEvidence(
            "the results of cost contain nothing on synthetic data; run `snakemake --config preset=cost`"
        )
    first: pd.DataFrame = made[made["data"] == made["data"].iloc[0]]
    return first


def _of(rows: pd.DataFrame, system: str) -> pd.DataFrame:
    return rows[rows["system"] == system]


def _quantities(rows: pd.DataFrame, values: "pd.Series[float]") -> list[Quantity]:
    if rows.empty:
        raise MissingEvidence(
            "the results of cost contain no rows of the sizes in the claim; run `snakemake --config preset=cost`"
        )
    return [
        Quantity(float(value), f"n = {n:,}, {records} records")
        for value, n, records in zip(values, rows["n"], rows["records"], strict=True)
    ]
