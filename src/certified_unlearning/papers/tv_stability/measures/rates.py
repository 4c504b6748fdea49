"""Measures of measured rates: slopes of excess risk on logarithmic axes, and excess risk over the stated rate."""

from collections.abc import Sequence

import pandas as pd

from certified_unlearning.papers.tv_stability.experiments import EXACT_RATES
from certified_unlearning.papers.tv_stability.names import RATE_PARTS
from certified_unlearning.reproduction.claims.evidence import Evidence, MissingEvidence, table_of
from certified_unlearning.reproduction.claims.registry import sweep
from certified_unlearning.reproduction.claims.relations import Quantity
from certified_unlearning.reproduction.simulation.power_laws import LEAST_RANGE, fitted

FEWEST_TRIALS = 20
"""Fewer trials are no evidence of a mean."""
REMEDY = "run `snakemake --config preset=rates`"


@sweep("{part}")
def exact_slope(evidence: Sequence[Evidence], *, part: str, method: str, over_rate: bool = False) -> Quantity:
    """Return the slope of a learner's line on logarithmic axes, with its 95 % bootstrap interval.

    ``over_rate``: of the excess risk over the rate of its theorem, which is no power of what is swept.
    """
    rows, x = _rows(evidence, part, method), RATE_PARTS[part].x
    if over_rate:
        rows = rows.assign(error=rows["error"] / rows["rate"])
    fit = fitted(rows, x=x) if len(set(rows[x])) > 1 else None
    if fit is None or fit.reach < LEAST_RANGE:
        raise MissingEvidence(f"{part} is run over less than a {LEAST_RANGE}-fold range of {x}; {REMEDY}")
    return Quantity(fit.slope, "", fit.half_width)


def _rows(evidence: Sequence[Evidence], part: str, method: str) -> pd.DataFrame:
    rows = table_of(evidence, EXACT_RATES.name)
    rows = rows[(rows["part"] == part) & (rows["method"] == method)]
    if rows.empty:
        raise MissingEvidence(f"no results of {part}, {method}; {REMEDY}")
    if rows["trial"].nunique() < FEWEST_TRIALS:
        raise MissingEvidence(f"{part} has {rows['trial'].nunique()} trials, fewer than {FEWEST_TRIALS}; {REMEDY}")
    return rows
