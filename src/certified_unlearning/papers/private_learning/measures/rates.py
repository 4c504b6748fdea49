"""Measures of rows: slopes with intervals, errors over bounds, and errors beside each other."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from certified_unlearning.papers.private_learning.experiments import PRIVATE_RISK
from certified_unlearning.papers.private_learning.fits import LEAST_RANGE, Statistic, cells, fitted
from certified_unlearning.papers.private_learning.names import PARTS
from certified_unlearning.reproduction.claims.evidence import Evidence, MissingEvidence, with_table
from certified_unlearning.reproduction.claims.registry import measure
from certified_unlearning.reproduction.claims.relations import Quantity
from certified_unlearning.reproduction.summaries import Row

FEWEST_TRIALS = 20
"""Fewer trials are no evidence of a mean, by section 8's rules."""
STANDARD_ERRORS = 3
"""A mean is above a bound if it is by so many standard errors."""
REMEDY = "run `snakemake --config preset=private`"


@measure
def slope(
    evidence: Sequence[Evidence],
    *,
    part: str,
    method: str,
    of: str = "error",
    statistic: Statistic = "mean",
    epsilon: list[float] | None = None,
) -> list[Quantity]:
    """Return the slope of a line on logarithmic axes, with its 95 % bootstrap interval."""
    rows = rows_of(evidence, part, method)
    x = PARTS[part].x
    found = []
    for value in epsilon or sorted(set(rows["epsilon"])):
        own = rows[rows["epsilon"] == value]
        fit = fitted(own, x=x, y=of, statistic=statistic) if len(set(own[x])) > 1 else None
        if fit is None or fit.reach < LEAST_RANGE:
            raise MissingEvidence(f"{part} is run over less than a {LEAST_RANGE}-fold range of {x}; {REMEDY}")
        found.append(Quantity(fit.slope, f"epsilon = {value:g}", fit.half_width))
    return found


@measure
def error_over_bound(evidence: Sequence[Evidence], *, part: str, methods: list[str]) -> list[Quantity]:
    """Return the mean error of every setting over its explicit bound, with three standard errors."""
    found = []
    for method in methods:
        rows = rows_of(evidence, part, method)
        for _, own in rows.groupby(["n", "features", "epsilon", "level"]):
            ratio = own["error"].to_numpy() / own["bound"].to_numpy()
            found.append(_mean(ratio, f"{method}, {_where(own.iloc[0])}"))
    return found


@measure
def growth(evidence: Sequence[Evidence], *, part: str, method: str) -> list[Quantity]:
    """Return the largest mean error over the least, over what is swept; with three standard errors of both."""
    rows = rows_of(evidence, part, method)
    across, trials = cells(rows, x=PARTS[part].x)
    if across[-1] < LEAST_RANGE * across[0]:
        raise MissingEvidence(f"{part} is run over less than a {LEAST_RANGE}-fold range; {REMEDY}")
    means = [each.mean() for each in trials]
    least, largest = trials[int(np.argmin(means))], trials[int(np.argmax(means))]
    return [_ratio(largest, least, method)]


def rows_of(evidence: Sequence[Evidence], part: str, method: str) -> pd.DataFrame:
    """Return the rows of a method in a part.

    Raises:
        MissingEvidence: There are none, or too few trials.
    """
    name = PRIVATE_RISK.name
    rows = with_table(evidence, name).table(name)
    rows = rows[(rows["part"] == part) & (rows["method"] == method)]
    if rows.empty:
        raise MissingEvidence(f"no results of {part}, {method}; {REMEDY}")
    if len(set(rows["trial"])) < FEWEST_TRIALS:
        raise MissingEvidence(f"{part} has {len(set(rows['trial']))} trials, fewer than {FEWEST_TRIALS}; {REMEDY}")
    return rows


def _where(row: Row) -> str:
    level = f", at {row['level']:g}" if row["level"] else ""
    return f"n = {row['n']}, d = {row['features']}, epsilon = {row['epsilon']:g}{level}"


def _mean(values: np.ndarray, name: str) -> Quantity:
    return Quantity(float(values.mean()), name, STANDARD_ERRORS * _standard_error(values))


def _ratio(above: np.ndarray, below: np.ndarray, name: str) -> Quantity:
    """Return a quotient of means with the errors of both, by their relative variances."""
    value = float(above.mean() / below.mean())
    relative = np.hypot(_standard_error(above) / above.mean(), _standard_error(below) / below.mean())
    return Quantity(value, name, STANDARD_ERRORS * value * float(relative))


def _standard_error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))
