"""Measures of the experiment `wide`: quantities compared with their bounds, and passes of a request and of a refit.

No measure uses times. Passes and distances are the same in every run of the same code, even on a busy machine.
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
    """Return, for each table, the gradient or the distance to the minimiser as a share of its certified bound."""
    own = _of(evidence, system, least_n)
    return _quantities(own, own[share])


@measure
def wide_passes(
    evidence: Sequence[Evidence], *, beside: str, most_classes: int, least_classes: int = 2, rows: str = "embeddings"
) -> list[Quantity]:
    """Return, for each table, a certified request's passes divided by the passes of a refit by the model ``beside``."""
    both = _of(evidence, "certified").merge(_of(evidence, beside), on=_POINT, suffixes=("", "_beside"))
    both = both[both["classes"].between(least_classes, most_classes) & (both["rows"] == rows)]
    return _quantities(both, both["passes"] / both["passes_beside"])


@measure
def wide_lost_accuracy(evidence: Sequence[Evidence], *, beside: str) -> list[Quantity]:
    """Return how much less accurate the certified model is than another one after the last request."""
    both = _of(evidence, "certified").merge(_of(evidence, beside), on=_POINT, suffixes=("", "_beside"))
    return _quantities(both, both["accuracy_beside"] - both["accuracy"])


def _of(evidence: Sequence[Evidence], system: str, least_n: int = 1) -> pd.DataFrame:
    table: pd.DataFrame = table_of(evidence, "wide")
    return table[(table["system"] == system) & (table["n"] >= least_n)]


def _quantities(rows: pd.DataFrame, values: "pd.Series[float]") -> list[Quantity]:
    known = values.notna()
    if not known.any():
        raise MissingEvidence(
            "the results of wide contain no tables like those in the claim; run `snakemake --config preset=cost`"
        )
    return [
        Quantity(float(value), title_of(row))
        for value, (_, row) in zip(values[known], rows[known].iterrows(), strict=True)
    ]
