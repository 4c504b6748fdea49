"""Measures of how many deletions a private model covers, and what answering them takes otherwise."""

import math
from collections.abc import Sequence

import pandas as pd

from certified_unlearning.papers.private_learning.covered import CLOSE, covered_deletions
from certified_unlearning.papers.private_learning.group_privacy import GROUP_PRIVACY
from certified_unlearning.reproduction.claims.evidence import Evidence, MissingEvidence, with_table
from certified_unlearning.reproduction.claims.registry import measure
from certified_unlearning.reproduction.claims.relations import Quantity

REMEDY = "run `snakemake --config preset=private`"


@measure
def deletions_covered(evidence: Sequence[Evidence], *, data: str, epsilon: list[float], beside: str) -> list[Quantity]:
    """Return how many deletions a private model covers at the accuracy of another system, less a point."""
    return [
        Quantity(float(covered_deletions(_rows(evidence, data, each), beside=beside)), f"epsilon = {each:g}")
        for each in epsilon
    ]


@measure
def private_below_retraining(
    evidence: Sequence[Evidence], *, data: str, epsilon: list[float], deletions: int
) -> list[Quantity]:
    """Return by how much retraining is more accurate than a private model that covers so many deletions."""
    found = []
    for each in epsilon:
        rows = _rows(evidence, data, each)
        values = {
            (system, column): _value(rows, system, deletions, column)
            for system in ("retraining", "private")
            for column in ("accuracy", "accuracy_error")
        }
        gap = values["retraining", "accuracy"] - values["private", "accuracy"]
        error = math.hypot(values["retraining", "accuracy_error"], values["private", "accuracy_error"])
        found.append(Quantity(gap, f"epsilon = {each:g}", 3 * error))
    return found


@measure
def renewal_over_request(evidence: Sequence[Evidence], *, data: str, epsilon: float) -> list[Quantity]:
    """Return the gradients of learning a private model anew over those of one Langevin request for as many records.

    It covers the most that it can at Langevin unlearning's accuracy, less a point.
    """
    rows = _rows(evidence, data, epsilon)
    most = covered_deletions(rows, beside="langevin")
    if not most:
        raise MissingEvidence(f"no private model is within {CLOSE:g} of Langevin unlearning on {data}; {REMEDY}")
    again, request = (
        _value(rows, system, most, column)
        for system, column in (("private", "learning_gradients"), ("langevin", "gradients"))
    )
    return [Quantity(again / request, f"k = {most}")]


@measure
def request_over_retraining(
    evidence: Sequence[Evidence], *, data: str, epsilon: float, systems: list[str], deletions: int
) -> list[Quantity]:
    """Return the gradients of a request over those of retraining by SGD."""
    rows = _rows(evidence, data, epsilon)
    again = _value(rows, "retraining", deletions, "gradients")
    return [Quantity(_value(rows, each, deletions, "gradients") / again, each) for each in systems]


def _value(rows: pd.DataFrame, system: str, deletions: int, column: str) -> float:
    own = rows.loc[(rows["system"] == system) & (rows["deletions"] == deletions), column]
    if own.empty:
        raise MissingEvidence(f"no results of {system} for {deletions} deletions; {REMEDY}")
    return float(own.iloc[0])


def _rows(evidence: Sequence[Evidence], data: str, epsilon: float) -> pd.DataFrame:
    name = GROUP_PRIVACY.name
    rows = pd.concat(
        [each.table(name) for each in evidence if each.has_table(name)] or [with_table(evidence, name).table(name)]
    )
    rows = rows[(rows["data"] == data) & (rows["epsilon"] == epsilon)]
    if rows.empty:
        raise MissingEvidence(f"no results on {data} at epsilon = {epsilon:g}; {REMEDY}")
    return rows
