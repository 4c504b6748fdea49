"""Measures of the experiment `measured`: runs on two neighbouring data sets, compared with bounds.

The probability that any interval of a table misses the exact value is at most the sweep's probability of a false
alarm, which is one in a million by default. Therefore, claims need no correction for the number of intervals.
"""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.errors import ParameterError
from certified_unlearning.papers.privacy_dynamics.theory.gaussians import lower_bound
from certified_unlearning.reproduction.claims.evidence import Evidence, table_of
from certified_unlearning.reproduction.claims.registry import measure
from certified_unlearning.reproduction.claims.relations import Quantity

Row = dict[str, Any]


@measure
def measured_off_exact(evidence: Sequence[Evidence]) -> list[Quantity]:
    """Return how far the exact divergence is outside the runs' confidence interval; below 0 if it is inside."""
    return [
        Quantity(max(row["low"] - row["exact"], row["exact"] - row["high"]), _name(row)) for row in _sampled(evidence)
    ]


@measure
def measured_over_dynamics(evidence: Sequence[Evidence], *, bound: str, last_only: bool) -> list[Quantity]:
    """Return the ratio of the measured divergence to a bound.

    There is one ratio for every number of steps or, with ``last_only``, only for the largest number of steps.
    """
    rows = _sampled(evidence)
    last = max(row["steps"] for row in rows)
    return [_quotient(row, row[bound]) for row in rows if row["steps"] == last or not last_only]


@measure
def measured_surely_over_dynamics(evidence: Sequence[Evidence], *, bound: str) -> list[Quantity]:
    """Return the lower end of the runs' confidence interval minus a bound."""
    return [Quantity(row["low"] - row[bound], _name(row)) for row in _sampled(evidence)]


@measure
def measured_surely_under_lower_bound(evidence: Sequence[Evidence]) -> list[Quantity]:
    """Return the lower bound of Theorem 3, minus the upper end of the runs' confidence interval.

    The bound is evaluated for the strong convexity of the runs.
    """
    found = []
    for row in _sampled(evidence):
        curve = lower_bound(_problem(row), sigma=row["sigma"], steps=row["steps"])
        found.append(Quantity(float(curve(np.array([row["alpha"]]))[0]) - row["high"], _name(row)))
    return found


@measure
def changes_of_measured_over_composition(evidence: Sequence[Evidence]) -> list[Quantity]:
    """Return how the ratio of the measured divergence to composition's bound changes.

    The change is from the middle number of steps to the largest number of steps. A change below 0 means that the
    divergence grows more slowly than composition.

    Raises:
        ParameterError: Only one number of steps was sampled.
    """
    rows, found = _sampled(evidence), []
    for alpha in dict.fromkeys(row["alpha"] for row in rows):
        of_alpha = sorted((row for row in rows if row["alpha"] == alpha), key=lambda row: int(row["steps"]))
        if len(of_alpha) < 2:
            raise ParameterError("a change needs runs that are sampled after two or more numbers of steps, got one")
        before, after = (
            _quotient(row, row["composition"]) for row in (of_alpha[(len(of_alpha) - 1) // 2], of_alpha[-1])
        )
        # The two shares are not independent, so their errors add up.
        uncertainty = before.uncertainty + after.uncertainty
        found.append(Quantity(after.value - before.value, f"{before.name} to {after.name}", uncertainty))
    return found


@measure
def measured_divergences(evidence: Sequence[Evidence]) -> Quantity:
    """Return the measured divergence after the largest number of steps, at the smallest order."""
    row = _last(evidence)
    return Quantity(row["renyi"], _name(row), max(row["high"] - row["renyi"], row["renyi"] - row["low"]))


@measure
def measured_over_inline_variance(evidence: Sequence[Evidence]) -> list[Quantity]:
    """Return the measured divergence divided by that of Gaussians with the variance of Section 4's inline formula."""
    row = _last(evidence)
    problem, steps = _problem(row), row["steps"]
    kept = 1 - problem.step_size * problem.strong_convexity
    gap = problem.sensitivity(1) / problem.strong_convexity * (1 - kept**steps)
    variance = 2 * problem.step_size * (row["sigma"] / problem.n) ** 2 * sum(kept ** (2 * k) for k in range(steps))
    return [_quotient(row, row["alpha"] * gap**2 / (2 * variance))]


def _sampled(evidence: Sequence[Evidence]) -> list[Row]:
    """Return the sampled rows, each with the values of the bounds at its order and steps."""
    table = table_of(evidence, "measured")
    point = ["alpha", "steps"]
    bounds = table[table["bound"] != "sampled"].pivot_table("renyi", index=point, columns="bound")
    rows = table[table["bound"] == "sampled"].join(bounds, on=point)
    return cast(list[Row], rows.to_dict("records"))


def _last(evidence: Sequence[Evidence]) -> Row:
    return min(_sampled(evidence), key=lambda row: (-int(row["steps"]), float(row["alpha"])))


def _problem(row: Row) -> Problem:
    return Problem(row["n"], row["strong_convexity"], row["smoothness_constant"], row["lipschitz"], row["step_size"])


def _name(row: Row) -> str:
    return f"alpha = {row['alpha']:g}, K = {row['steps']}"


def _quotient(row: Row, by: float) -> Quantity:
    reach = max(row["high"] - row["renyi"], row["renyi"] - row["low"])
    return Quantity(row["renyi"] / by, _name(row), reach / by)
