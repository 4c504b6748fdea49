"""Measures of bounds on the divergence: against exact values, against each other, and as Figs. 1 and 2 show them."""

import math
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from certified_unlearning.accounting.core.curves import RenyiCurve
from certified_unlearning.errors import ParameterError
from certified_unlearning.papers.privacy_dynamics.settings import SIGMA, Steps, bounded, exact, figure_1, figure_2
from certified_unlearning.papers.privacy_dynamics.theory.dynamics import theorem_2_from
from certified_unlearning.papers.privacy_dynamics.theory.quadrature import (
    LOGISTIC,
    LOGISTIC_SIGMA,
    logistic_divergences,
)
from certified_unlearning.reproduction.claims.evidence import Evidence
from certified_unlearning.reproduction.claims.registry import changes, measure
from certified_unlearning.reproduction.claims.relations import Quantity

_LONG = 100_000
"""Crossings are looked for up to so many steps."""

Curve = tuple[float, float]


def _in_figure(figure: Literal[1, 2], strong_convexity: float, bound: str, steps: Steps, alpha: float) -> float:
    problem = figure_1(strong_convexity) if figure == 1 else figure_2()
    return bounded(bound, problem, steps=steps, alpha=alpha)


@measure
def dynamics_curve(
    evidence: Sequence[Evidence],
    *,
    figure: Literal[1, 2],
    bound: str,
    steps: list[Steps],
    curves: list[Curve],
) -> list[Quantity]:
    """Return points of curves of Fig. 1 or 2, each of an order and a strong convexity."""
    return [
        Quantity(_in_figure(figure, curvature, bound, count, alpha), f"alpha = {alpha:g}, K = {count:g}")
        for alpha, curvature in curves
        for count in steps
    ]


@measure
def changes_of_dynamics_by_order(
    evidence: Sequence[Evidence], *, bound: str, alpha: list[float], steps: Steps
) -> list[Quantity]:
    """Return how a bound of Fig. 1, divided by its order, changes from order to order, in units of the first."""
    by_order = [_in_figure(1, 1.0, bound, steps, each) / each for each in alpha]
    return changes(
        [Quantity(value / by_order[0], f"alpha = {each:g}") for value, each in zip(by_order, alpha, strict=True)]
    )


@measure
def changes_of_dynamics_by_curvature(
    evidence: Sequence[Evidence], *, strong_convexity: list[float], steps: Steps
) -> list[Quantity]:
    """Return how Corollary 1 changes in Fig. 1 from one strong convexity to the next."""
    return changes(
        [Quantity(_in_figure(1, each, "corollary-1", steps, 10.0), f"lambda = {each:g}") for each in strong_convexity]
    )


@measure
def steps_to_share_of_plateau(
    evidence: Sequence[Evidence], *, strong_convexity: list[float], share: float
) -> list[Quantity]:
    """Return how the first step at which Corollary 1 reaches a share of its limit changes with strong convexity."""

    def first(curvature: float) -> int:
        problem = figure_1(curvature)
        target = share * bounded("corollary-1", problem, steps=math.inf)
        return _first(lambda count: bounded("corollary-1", problem, steps=count) >= target)

    return changes([Quantity(first(each), f"lambda = {each:g}") for each in strong_convexity])


@measure
def quotients_of_increments(evidence: Sequence[Evidence], *, bound: str, steps: list[int]) -> list[Quantity]:
    """Return what a step adds to a bound in Fig. 1 over what the step before added."""
    problem = figure_1(1.0)

    def added(count: int) -> float:
        return bounded(bound, problem, steps=count) - bounded(bound, problem, steps=count - 1)

    return [Quantity(added(count) / added(count - 1), f"K = {count}") for count in steps]


@measure
def first_steps_below_composition(
    evidence: Sequence[Evidence], *, bound: str, strong_convexity: float, alpha: list[float]
) -> list[Quantity]:
    """Return the first number of steps after which a bound is below composition, one for each order."""
    problem = figure_2() if bound == "corollary-2" else figure_1(strong_convexity)

    def first(order: float) -> int:
        def below(count: int) -> bool:
            composed = bounded("composition", problem, steps=count, alpha=order)
            return bounded(bound, problem, steps=count, alpha=order) < composed

        return _first(below)

    return [Quantity(first(each), f"alpha = {each:g}") for each in alpha]


@measure
def changes_of_steps_below_composition(
    evidence: Sequence[Evidence], *, bound: str, strong_convexity: float, alpha: list[float]
) -> list[Quantity]:
    """Return how the first number of steps after which a bound is below composition changes with the order."""
    return changes(first_steps_below_composition(evidence, bound=bound, strong_convexity=strong_convexity, alpha=alpha))


@measure
def exact_over_dynamics_bound(
    evidence: Sequence[Evidence],
    *,
    bound: str,
    strong_convexity: list[float],
    steps: list[Steps],
    start: Literal["point", "gaussian"] = "point",
) -> list[Quantity]:
    """Return the exact divergence on quadratic losses over a bound, from a point or from Corollary 1's Gaussian."""
    found = []
    for curvature in strong_convexity:
        problem = figure_2() if bound in ("corollary-2", "theorem-3") else figure_1(curvature)
        variance = 2 * SIGMA**2 / curvature if start == "gaussian" else 0.0
        for count in steps:
            quotient = exact(problem, steps=count, start_variance=variance) / bounded(bound, problem, steps=count)
            found.append(Quantity(quotient, f"lambda = {curvature:g}, K = {count:g}"))
    return found


@measure
def logistic_over_dynamics_bound(
    evidence: Sequence[Evidence], *, bound: str, alpha: list[float], steps: list[int]
) -> list[Quantity]:
    """Return the divergence on a logistic loss, from Corollary 1's Gaussian and by quadrature, over a bound."""
    start_variance = 2 * LOGISTIC_SIGMA**2 / LOGISTIC.strong_convexity
    found = []
    for order in alpha:
        divergences = logistic_divergences(order, steps, start_variance=start_variance)
        for count, divergence in zip(steps, divergences, strict=True):
            limit = bounded(bound, LOGISTIC, steps=count, alpha=order, sigma=LOGISTIC_SIGMA)
            found.append(Quantity(divergence / limit, f"alpha = {order:g}, K = {count}"))
    return found


@measure
def quotient_of_dynamics_bounds(
    evidence: Sequence[Evidence],
    *,
    above: str,
    below: str,
    steps: list[Steps],
    strong_convexity: list[float],
    step_size: float = 0.02,
) -> list[Quantity]:
    """Return one bound over another; of curvature 1 as in Fig. 2, of another as in Fig. 1."""
    found = []
    for curvature in strong_convexity:
        problem = figure_2(step_size) if curvature == 1 else figure_1(curvature)
        for count in steps:
            quotient = bounded(above, problem, steps=count) / bounded(below, problem, steps=count)
            found.append(Quantity(quotient, f"lambda = {curvature:g}, K = {count:g}"))
    return found


@measure
def exact_over_general_start(
    evidence: Sequence[Evidence], *, start_gap: float, start_variance: float, steps: list[int]
) -> list[Quantity]:
    """Return the exact divergence of quadratic losses over Eq. 67, where the laws already diverge at the start.

    The starts are Gaussians of one variance whose means differ in the direction in which the data sets push.
    """
    problem = figure_2()
    slope = start_gap**2 / (2 * start_variance)
    gap, variance, found = start_gap, start_variance, {}
    for count in range(1, max(steps) + 1):
        gap = (1 - problem.step_size) * gap + problem.step_size * problem.sensitivity(1)
        variance = (1 - problem.step_size) ** 2 * variance + 2 * problem.step_size * SIGMA**2
        found[count] = 10 * gap**2 / (2 * variance)
    start = RenyiCurve(lambda alpha: np.log(alpha) + math.log(slope))
    return [
        Quantity(
            found[count] / float(theorem_2_from(start, problem, sigma=SIGMA, steps=count)(np.array([10.0]))[0]),
            f"K = {count}",
        )
        for count in steps
    ]


def _first(holds: Callable[[int], bool]) -> int:
    """Return the least number of steps from 1 on at which something holds, that once it holds stays so."""
    low, high = 0, _LONG
    if not holds(high):
        raise ParameterError(f"nothing is reached within {_LONG} steps")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
