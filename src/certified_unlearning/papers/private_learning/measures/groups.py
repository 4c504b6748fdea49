"""Measures of the deletions that a private model covers, of its accuracy, and of the gradients of requests."""

import math
from collections.abc import Sequence

import pandas as pd

from certified_unlearning.papers.private_learning.covered import CLOSE, covered_deletions
from certified_unlearning.papers.private_learning.group_privacy import GROUP_PRIVACY
from certified_unlearning.reproduction.claims.evidence import Evidence, MissingEvidence, table_of
from certified_unlearning.reproduction.claims.registry import measure, sweep
from certified_unlearning.reproduction.claims.relations import Quantity

REMEDY = "run `snakemake --config preset=private`"


@sweep("epsilon = {epsilon:g}")
def deletions_covered(evidence: Sequence[Evidence], *, data: str, epsilon: float, beside: str) -> float:
    """Return how many deletions a private model covers while it is about as accurate as another system.

    The private model may be less accurate by at most one percentage point.
    """
    return float(covered_deletions(_rows(evidence, data, epsilon), beside=beside))


@sweep("epsilon = {epsilon:g}")
def private_below_retraining(evidence: Sequence[Evidence], *, data: str, epsilon: float, deletions: int) -> Quantity:
    """Return retraining's accuracy minus that of a private model that covers ``deletions`` deletions."""
    rows = _rows(evidence, data, epsilon)
    (again, again_error), (private, private_error) = (
        [_value(rows, system, deletions, column) for column in ("accuracy", "accuracy_error")]
        for system in ("retraining", "private")
    )
    return Quantity(again - private, uncertainty=3 * math.hypot(again_error, private_error))


@measure
def renewal_over_request(evidence: Sequence[Evidence], *, data: str, epsilon: float) -> Quantity:
    """Return the number of gradients for learning a private model anew, divided by that for one Langevin request.

    The request deletes as many records as the private model covers. This is the largest number of deletions at which
    the private model's accuracy is at least that of Langevin unlearning minus one percentage point.
    """
    rows = _rows(evidence, data, epsilon)
    most = covered_deletions(rows, beside="langevin")
    if not most:
        raise MissingEvidence(
            f"no private model comes within {CLOSE:g} of the accuracy of Langevin unlearning on {data}; {REMEDY}"
        )
    again, request = (
        _value(rows, system, most, column)
        for system, column in (("private", "learning_gradients"), ("langevin", "gradients"))
    )
    return Quantity(again / request, f"k = {most}")


@sweep("{system}")
def request_over_retraining(
    evidence: Sequence[Evidence], *, data: str, epsilon: float, system: str, deletions: int
) -> float:
    """Return the number of gradients for a request, divided by that for retraining by SGD."""
    rows = _rows(evidence, data, epsilon)
    again = _value(rows, "retraining", deletions, "gradients")
    return _value(rows, system, deletions, "gradients") / again


def _value(rows: pd.DataFrame, system: str, deletions: int, column: str) -> float:
    own = rows.loc[(rows["system"] == system) & (rows["deletions"] == deletions), column]
    if own.empty:
        raise MissingEvidence(f"there are no results of {system} for {deletions} deletions; {REMEDY}")
    return float(own.iloc[0])


def _rows(evidence: Sequence[Evidence], data: str, epsilon: float) -> pd.DataFrame:
    name = GROUP_PRIVACY.name
    rows = pd.concat([each.table(name) for each in evidence if each.has_table(name)] or [table_of(evidence, name)])
    rows = rows[(rows["data"] == data) & (rows["epsilon"] == epsilon)]
    if rows.empty:
        raise MissingEvidence(f"there are no results on {data} at epsilon = {epsilon:g}; {REMEDY}")
    return rows
