"""Sentences about the rows of exact unlearning."""

import pandas as pd

from certified_unlearning.papers.tv_stability.experiments import DELETIONS, EDITS
from certified_unlearning.papers.tv_stability.figures import frontier
from certified_unlearning.papers.tv_stability.names import SYSTEMS
from certified_unlearning.reproduction.claims.evidence import Evidence
from certified_unlearning.reproduction.figures.wording import title_of
from certified_unlearning.reproduction.summaries import Row
from certified_unlearning.text import unbroken

CLOSE = 0.01
"""The largest allowed loss in validation accuracy, compared with plain SGD's best setting."""


def findings(evidence: Evidence) -> list[str]:
    """Return sentences about the cost of a deletion on each data set, and about the effect of noise in a stream.

    Raises:
        MissingEvidence: There are no rows.
        DataError: The rows are damaged.
    """
    of_deletions, of_edits = evidence.table(DELETIONS.name), evidence.table(EDITS.name)
    names = dict.fromkeys(of_deletions["data"])
    return [*(deletion(of_deletions[of_deletions["data"] == name]) for name in names), stream(of_edits)]


def deletion(rows: pd.DataFrame) -> str:
    """Return a sentence about the cheapest exact system whose accuracy is close to plain SGD's best.

    Settings are chosen by validation accuracy; the reported accuracy is the test accuracy of other runs.

    Args:
        rows: The rows of ``deletions`` on one data set, including retraining.
    """
    best = frontier(rows[rows["system"] == "retraining"]).iloc[-1]
    close = rows[(rows["guarantee"] == "exact") & (rows["validation_accuracy"] >= best["validation_accuracy"] - CLOSE)]
    cheapest = close.sort_values(["gradients", "system"]).groupby("system", sort=False).head(1)
    again = cheapest[cheapest["system"] == "retraining"].iloc[0]
    first = cheapest.iloc[0]
    data = title_of(str(rows["data"].iloc[0]))
    start = (
        f"Exact deletion from {data}: at an accuracy within {CLOSE:g} of plain SGD's best "
        f"({best['accuracy']:.1%} of test records right), "
    )
    if first["system"] == "retraining":
        return f"{start}no system needs fewer gradients than retraining, {again['gradients']:,.0f}."
    sharded = cheapest[cheapest["system"] == "sisa"]
    sisa = "SISA does not reach this accuracy"
    if first["system"] == "sisa":
        sisa = "no other system needs fewer gradients"
    elif not sharded.empty:
        sisa = f"SISA takes {_gradients(sharded.iloc[0])}"
    return (
        f"{start}{SYSTEMS[str(first['system'])]} takes {_gradients(first)} gradients per deleted record "
        f"({first['accuracy']:.1%} right), and retraining takes {_gradients(again)}, "
        f"{unbroken(format(again['gradients'] / first['gradients'], '.2g') + ' times')} as many; {sisa}."
    )


def stream(rows: pd.DataFrame) -> str:
    """Return sentences about recomputations at the smallest and the largest sigma, and about the cost of retraining.

    Args:
        rows: The rows of ``edits``.
    """
    ordered = rows.sort_values("sigma")
    first, last = ordered.iloc[0], ordered.iloc[-1]
    data = title_of(str(rows["data"].iloc[0]))
    gradients = last["edits"] * last["steps"] * last["batch_size"] / last["gradients"]
    seconds = last["edits"] * last["learning_seconds"] / last["seconds"]
    return (
        f"Of {first['edits']:,} exact edits of {data}, {first['unstable_edits']:.1f} recomputed a part of the run at "
        f"{_sigma(first)} and {last['unstable_edits']:.1f} at {_sigma(last)}; test accuracy after the edits is "
        f"{first['accuracy']:.1%} and {last['accuracy']:.1%}. Without noise, "
        f"{first['expected_without_noise']:.1f} such edits are expected. Compared with the stream at "
        f"{_sigma(last)}, retraining after every edit takes {_times(gradients)} as many gradients and "
        f"{_times(seconds)} as much time."
    )


def _times(factor: float) -> str:
    return unbroken(f"{factor:,.0f} times" if factor >= 10 else f"{factor:.1f} times")


def _gradients(row: Row) -> str:
    return f"{row['gradients']:,.0f}" if row["gradients"] >= 10 else f"{row['gradients']:.1f}"


def _sigma(row: Row) -> str:
    return unbroken(f"σ = {row['sigma']:g}")
