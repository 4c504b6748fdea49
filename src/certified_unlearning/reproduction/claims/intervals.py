"""Mean accuracies and their differences with confidence intervals, so that noise is not mistaken for a finding."""

import math
from collections.abc import Sequence
from typing import Any

from certified_unlearning.reproduction.claims.relations import Quantity

FALSE_ALARMS = 1e-3
"""Largest probability that at least one of a claim's intervals misses the true value."""
FEWEST_TRIALS = 30
"""With fewer trials, means are not normal enough for Student's intervals at this level, so they say nothing."""
ONE_POINT = 0.01
"""Resolution of a figure: one percentage point."""


def mean_accuracy(row: dict[str, Any], *, name: str, comparisons: int) -> Quantity:
    """Return a sweep point's mean accuracy with a Student interval.

    Args:
        row: A row of `reproduction.summaries.summarise`.
        name: What to call it.
        comparisons: How many intervals the claim has; together they miss with probability `FALSE_ALARMS`.
    """
    return Quantity(row["accuracy_mean"], name, _half_width([row], comparisons))


def accuracy_gap(row: dict[str, Any], other: dict[str, Any], *, name: str, comparisons: int) -> Quantity:
    """Return how much more accurate one sweep point is than another, with a Welch interval.

    Trials count as independent. Two points that share a learned model are positively correlated, and then the interval
    is wider than necessary.

    Args:
        row: A row of `reproduction.summaries.summarise`.
        other: The row to subtract.
        name: What to call the difference.
        comparisons: How many intervals the claim has; together they miss with probability `FALSE_ALARMS`.
    """
    half_width = _half_width([row, other], comparisons)
    return Quantity(row["accuracy_mean"] - other["accuracy_mean"], name, half_width)


def gap_in_deviations(row: dict[str, Any], other: dict[str, Any], *, name: str, comparisons: int) -> Quantity:
    """Return `accuracy_gap` in units of the trials' standard deviation, or of `ONE_POINT` if that is larger.

    From -1 to 1 the two are as close as a figure with bands of one standard deviation can show.
    """
    deviation = math.sqrt((row["accuracy_std"] ** 2 + other["accuracy_std"] ** 2) / 2)
    gap = accuracy_gap(row, other, name=name, comparisons=comparisons)
    unit = max(deviation, ONE_POINT)
    return Quantity(gap.value / unit, name, gap.uncertainty / unit)


def _half_width(rows: Sequence[dict[str, Any]], comparisons: int) -> float:
    """Return half the width of the interval of a mean, or of the difference of two (Welch and Satterthwaite)."""
    from scipy.special import stdtrit

    if min(row["trials"] for row in rows) < FEWEST_TRIALS:
        return math.inf
    squared_errors = [row["accuracy_std"] ** 2 / row["trials"] for row in rows]
    squared_error = sum(squared_errors)
    if squared_error == 0:
        return 0.0
    spread = sum(error**2 / (row["trials"] - 1) for error, row in zip(squared_errors, rows, strict=True))
    quantile = -float(stdtrit(squared_error**2 / spread, FALSE_ALARMS / (2 * comparisons)))
    return quantile * math.sqrt(squared_error)
