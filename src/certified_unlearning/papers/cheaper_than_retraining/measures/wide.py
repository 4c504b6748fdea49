"""Measures of the experiment `wide`: bounds against what they bound, and passes of a request beside those of a refit.

None of them is of seconds: passes and distances are the same whenever the same is run, on a busy machine, too.
"""

from collections.abc import Sequence
from typing import Literal

import pandas as pd

from certified_unlearning.papers.cheaper_than_retraining.wide.names import title_of
from certified_unlearning.reproduction.claims.evidence import Evidence, MissingEvidence, table_of
from certified_unlearning.reproduction.claims.registry import measure
from certified_unlearning.reproduction.claims.relations import Quantity

Share = Literal["gradient_share", "distance_share"]
_POINT = ["rows", "n", "d", "classes", "strength"]


@measure
def wide_share(
    evidence: Sequence[Evidence], *, share: Share, system: str = "certified", least_n: int = 1
) -> list[Quantity]:
    """Return what the gradient, or the distance to the minimiser, is of what is certified, table by table."""
    own = _of(evidence, system, least_n)
    return _quantities(own, own[share])


@measure
def wide_passes(
    evidence: Sequence[Evidence], *, beside: str, most_classes: int, least_classes: int = 2, rows: str = "embeddings"
) -> list[Quantity]:
    """Return passes of a request, divided by those of a refit by another model, table by table."""
    both = _of(evidence, "certified").merge(_of(evidence, beside), on=_POINT, suffixes=("", "_beside"))
    both = both[both["classes"].between(least_classes, most_classes) & (both["rows"] == rows)]
    return _quantities(both, both["passes"] / both["passes_beside"])


@measure
def wide_lost_accuracy(evidence: Sequence[Evidence], *, beside: str) -> list[Quantity]:
    """Return by how much the certified model is less accurate than another after the last request."""
    both = _of(evidence, "certified").merge(_of(evidence, beside), on=_POINT, suffixes=("", "_beside"))
    return _quantities(both, both["accuracy_beside"] - both["accuracy"])


def _of(evidence: Sequence[Evidence], system: str, least_n: int = 1) -> pd.DataFrame:
    table: pd.DataFrame = table_of(evidence, "wide")
    return table[(table["system"] == system) & (table["n"] >= least_n)]


def _quantities(rows: pd.DataFrame, values: "pd.Series[float]") -> list[Quantity]:
    known = values.notna()
    if not known.any():
        raise MissingEvidence("the results of wide hold no such table; run `snakemake --config preset=cost`")
    return [
        Quantity(float(value), title_of(row))
        for value, (_, row) in zip(values[known], rows[known].iterrows(), strict=True)
    ]
