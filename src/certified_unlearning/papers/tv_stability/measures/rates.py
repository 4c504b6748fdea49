"""Measures of the experiment `exact_rates`: slopes on logarithmic axes, and excess risk divided by the stated rate."""

import math
from collections.abc import Sequence

import pandas as pd

from certified_unlearning.papers.tv_stability.experiments import EXACT_RATES
from certified_unlearning.papers.tv_stability.names import RATE_PARTS
from certified_unlearning.reproduction.claims.evidence import Evidence, MissingEvidence, table_of
from certified_unlearning.reproduction.claims.registry import measure, sweep
from certified_unlearning.reproduction.claims.relations import Quantity
from certified_unlearning.reproduction.simulation.power_laws import LEAST_RANGE, fitted

FEWEST_TRIALS = 20
"""The smallest number of trials whose mean is accepted as evidence."""
REMEDY = "run `snakemake --config preset=rates`"


@sweep("{part}")
def exact_slope(evidence: Sequence[Evidence], *, part: str, method: str) -> Quantity:
    """Return the slope of a learner's line on logarithmic axes, with its 95 % bootstrap interval."""
    rows, x = _rows(evidence, part, method), RATE_PARTS[part].x
    fit = fitted(rows, x=x) if len(set(rows[x])) > 1 else None
    if fit is None or fit.reach < LEAST_RANGE:
        raise MissingEvidence(f"the results of {part} cover less than a {LEAST_RANGE}-fold range of {x}; {REMEDY}")
    return Quantity(fit.slope, "", fit.half_width)


@measure
def exact_error_over_rate(evidence: Sequence[Evidence], *, part: str, method: str) -> list[Quantity]:
    """Return each setting's mean excess risk, divided by ``log2 n`` times the setting's rate.

    The uncertainty of each quotient is three standard errors.
    """
    found = []
    for n, own in _rows(evidence, part, method).groupby("n"):
        over = own["error"] / (own["rate"] * math.log2(float(str(n))))
        found.append(Quantity(float(over.mean()), f"n = {n}", 3 * float(over.std()) / math.sqrt(len(over))))
    return found


def _rows(evidence: Sequence[Evidence], part: str, method: str) -> pd.DataFrame:
    rows = table_of(evidence, EXACT_RATES.name)
    rows = rows[(rows["part"] == part) & (rows["method"] == method)]
    if rows.empty:
        raise MissingEvidence(f"no results of {part}, {method}; {REMEDY}")
    if rows["trial"].nunique() < FEWEST_TRIALS:
        raise MissingEvidence(f"{part} has {rows['trial'].nunique()} trials, fewer than {FEWEST_TRIALS}; {REMEDY}")
    return rows
