"""Mean accuracies and their differences, with confidence intervals, so that noise is not mistaken for a finding."""

import math
from collections.abc import Sequence
from typing import Any

from certified_unlearning.reproduction.claims.relations import Quantity

FALSE_ALARMS = 1e-3
"""Largest probability that at least one of a claim's intervals misses the true value."""
FEWEST_TRIALS = 30
"""Smallest number of trials for which an interval is computed. With fewer trials, means are not normal enough for
Student's intervals at this level.
"""
ONE_POINT = 0.01
"""Resolution of a figure, one percentage point."""


def mean_accuracy(row: dict[str, Any], *, name: str, comparisons: int) -> Quantity:
    """Return a sweep point's mean accuracy with a Student's t-interval.

    Args:
        row: A row of `reproduction.summaries.summarise`.
        name: Name of the quantity.
        comparisons: Number of intervals of the claim; the probability that any of them misses the true value is at most
            `FALSE_ALARMS`.
    """
    return Quantity(row["accuracy_mean"], name, _half_width([row], comparisons))


def accuracy_gap(row: dict[str, Any], other: dict[str, Any], *, name: str, comparisons: int) -> Quantity:
    """Return the mean accuracy of one sweep point minus that of another, with a Welch interval.

    Trials are assumed to be independent. If two points share a learned model, they are positively correlated, and the
    interval is wider than necessary.

    Args:
        row: A row of `reproduction.summaries.summarise`.
        other: The row whose accuracy is subtracted.
        name: Name of the difference.
        comparisons: Number of intervals of the claim; the probability that any of them misses the true value is at most
            `FALSE_ALARMS`.
    """
    half_width = _half_width([row, other], comparisons)
    return Quantity(row["accuracy_mean"] - other["accuracy_mean"], name, half_width)


def gap_in_deviations(row: dict[str, Any], other: dict[str, Any], *, name: str, comparisons: int) -> Quantity:
    """Return `accuracy_gap` divided by the trials' standard deviation, or by `ONE_POINT` if that is larger.

    If the result is between -1 and 1, a figure with bands of one standard deviation cannot show a difference.
    """
    deviation = math.sqrt((row["accuracy_std"] ** 2 + other["accuracy_std"] ** 2) / 2)
    gap = accuracy_gap(row, other, name=name, comparisons=comparisons)
    unit = max(deviation, ONE_POINT)
    return Quantity(gap.value / unit, name, gap.uncertainty / unit)


def _half_width(rows: Sequence[dict[str, Any]], comparisons: int) -> float:
    """Return half the width of the interval of a mean, or of a difference of two means (Welch and Satterthwaite)."""
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
