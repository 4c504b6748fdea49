"""Sentences about the timings of the analysis *Cheaper than retraining*."""

import pandas as pd

from certified_unlearning.papers.cheaper_than_retraining.experiments import COST
from certified_unlearning.papers.cheaper_than_retraining.names import SPECTRA, SYSTEMS
from certified_unlearning.reproduction.claims.evidence import Evidence
from certified_unlearning.reproduction.summaries import Row
from certified_unlearning.text import counted, rounded_up, unbroken


def findings(evidence: Evidence) -> list[str]:
    """Return a sentence on the costs of a certified request and of a new fit, at the largest number of rows.

    Raises:
        MissingEvidence: There are no rows.
        DataError: The rows are damaged.
    """
    rows = evidence.table(COST.name)
    certified = rows[(rows["skipped"] == "") & (rows["guarantee"] == "upper bound")]
    return [] if certified.empty else [cost(rows)]


def newcomers(evidence: Evidence) -> list[str]:
    """Return a sentence on the costs, as `plainly` writes it, for readers who know none of the papers.

    Raises:
        MissingEvidence: There are no rows.
        DataError: The rows are damaged.
    """
    rows = evidence.table(COST.name)
    run = rows[(rows["skipped"] == "") & (rows["data"] == rows["data"].iloc[0])]
    return [plainly(run)] if (run["guarantee"] == "upper bound").any() else []


def plainly(run: pd.DataFrame) -> str:
    """Return the cost of the smallest request at the largest size, and the size from which such requests are cheaper.

    Args:
        run: Rows of ``cost`` that were not skipped, with at least one certified system.
    """
    certified, again = _at_most_rows(run)
    fastest = certified.iloc[0]
    return (
        f"With {fastest['n']:,} records, a certified removal takes {_seconds(fastest)} ({_name(fastest)}). "
        f"Fitting again with scikit-learn takes {_seconds(again)}{_pays_from(run, int(fastest['records']))}."
    )


def _pays_from(run: pd.DataFrame, records: int) -> str:
    """Return the end of a sentence that states with how many records a certified system is faster than a new fit.

    The sentence states the least such number of records.
    """
    same = run[run["records"] == records]
    least = same[same["guarantee"] == "upper bound"].groupby("n")["seconds"].min()
    again = same[(same["guarantee"] == "exact") & same["adaptive"]].groupby("n")["seconds"].min()
    slower = [n for n in least.index if least[n] >= again[n]]
    larger = [n for n in least.index if n > max(slower, default=0)]
    return f"; a removal is faster with {min(larger):,} or more records" if slower and larger else ""


def _at_most_rows(run: pd.DataFrame) -> tuple[pd.DataFrame, Row]:
    """Return the rows of the certified systems, in the order of their times, and the row of the fastest new fit.

    All these rows are those at the largest number of records.
    """
    run = run.sort_values(["n", "records"], ascending=[False, True], kind="stable")
    first = run[run["guarantee"] == "upper bound"].iloc[0]
    own = run[(run[["data", "n", "records"]] == first[["data", "n", "records"]]).all(axis=1)]
    certified = own[own["guarantee"] == "upper bound"].sort_values("seconds")
    again = own[(own["guarantee"] == "exact") & own["adaptive"]].sort_values("seconds").iloc[0]
    return certified, again


def cost(rows: pd.DataFrame) -> str:
    """Return the cost of the smallest request at the largest number of rows, for the first of several data sets.

    Args:
        rows: Rows of ``cost``. At least one row must be that of a certified system that was run.
    """
    certified, again = _at_most_rows(rows[rows["skipped"] == ""])
    epsilon = unbroken(f"ε = {rounded_up(float(certified.iloc[0]['epsilon']), 3)}")
    fastest, slower = certified.iloc[0], int((certified["seconds"] > again["seconds"]).sum())
    data = str(fastest["data"])
    return (
        f"Timed with {fastest['n']:,} {SPECTRA.get(data, f'rows of {data}')}: a request for "
        f"{counted(int(fastest['records']), 'record')} takes {_seconds(fastest)} by {_name(fastest)}, "
        f"the fastest certified system at {epsilon}. Refitting from scratch takes {_seconds(again)} "
        f"({_name(again)}), {again['seconds'] / fastest['seconds']:.2g} times as long. Of {len(certified)} "
        f"certified systems timed there, {slower or 'none'} {'are' if slower > 1 else 'is'} slower than fitting again."
    )


def _seconds(row: Row) -> str:
    return unbroken(f"{row['seconds']:.2g} s")


def _name(row: Row) -> str:
    return SYSTEMS.get(str(row["system"]), str(row["system"]))
