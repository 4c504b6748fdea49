"""Measures that compare bounds on the divergence with exact values, with each other, and with Figs. 1 and 2."""

import math
from collections.abc import Callable
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
from certified_unlearning.reproduction.claims.registry import changes, changes_in_units_of_first, measure, sweep
from certified_unlearning.reproduction.claims.relations import Quantity

_LONG = 100_000
"""The largest number of steps in a search for a crossing."""

Curve = tuple[float, float]


def _in_figure(figure: Literal[1, 2], strong_convexity: float, bound: str, steps: Steps, alpha: float) -> float:
    problem = figure_1(strong_convexity) if figure == 1 else figure_2()
    return bounded(bound, problem, steps=steps, alpha=alpha)


@sweep("alpha = {curve[0]:g}, K = {steps:g}")
def dynamics_curve(*, figure: Literal[1, 2], bound: str, curve: Curve, steps: Steps) -> float:
    """Return points of the curves of Fig. 1 or 2, each with an order and a strong convexity."""
    alpha, curvature = curve
    return _in_figure(figure, curvature, bound, steps, alpha)


@sweep("alpha = {alpha:g}", then=changes_in_units_of_first)
def changes_of_dynamics_by_order(*, bound: str, alpha: float, steps: Steps) -> float:
    """Return how much a bound of Fig. 1, divided by its order, changes between each order and the next.

    The changes are in units of the first value.
    """
    return _in_figure(1, 1.0, bound, steps, alpha) / alpha


@sweep("lambda = {strong_convexity:g}", then=changes)
def changes_of_dynamics_by_curvature(*, strong_convexity: float, steps: Steps) -> float:
    """Return how much Corollary 1 in Fig. 1 changes between each strong convexity and the next."""
    return _in_figure(1, strong_convexity, "corollary-1", steps, 10.0)


@sweep("lambda = {strong_convexity:g}", then=changes)
def steps_to_share_of_plateau(*, strong_convexity: float, share: float) -> float:
    """Return the changes in the first step at which Corollary 1 reaches a share of its limit.

    The changes are from each strong convexity to the next.
    """
    problem = figure_1(strong_convexity)
    target = share * bounded("corollary-1", problem, steps=math.inf)
    return _first(lambda count: bounded("corollary-1", problem, steps=count) >= target)


@sweep("K = {steps}")
def quotients_of_increments(*, bound: str, steps: int) -> float:
    """Return the increment of a bound of Fig. 1 in a step, divided by the increment in the preceding step."""
    problem = figure_1(1.0)

    def added(count: int) -> float:
        return bounded(bound, problem, steps=count) - bounded(bound, problem, steps=count - 1)

    return added(steps) / added(steps - 1)


@sweep("alpha = {alpha:g}")
def first_steps_below_composition(*, bound: str, strong_convexity: float, alpha: float) -> float:
    """Return the first number of steps after which a bound is below composition, one value for each order."""
    problem = figure_2() if bound == "corollary-2" else figure_1(strong_convexity)

    def below(count: int) -> bool:
        composed = bounded("composition", problem, steps=count, alpha=alpha)
        return bounded(bound, problem, steps=count, alpha=alpha) < composed

    return _first(below)


@measure
def changes_of_steps_below_composition(*, bound: str, strong_convexity: float, alpha: list[float]) -> list[Quantity]:
    """Return how the result of `first_steps_below_composition` changes from each order to the next."""
    return changes(first_steps_below_composition(bound=bound, strong_convexity=strong_convexity, alpha=alpha))


@sweep("lambda = {strong_convexity:g}, K = {steps:g}")
def exact_over_dynamics_bound(
    *, bound: str, strong_convexity: float, steps: Steps, start: Literal["point", "gaussian"] = "point"
) -> float:
    """Return the ratio of the exact divergence on quadratic losses to a bound.

    The start is a point or Corollary 1's Gaussian.
    """
    problem = figure_2() if bound in ("corollary-2", "theorem-3") else figure_1(strong_convexity)
    variance = 2 * SIGMA**2 / strong_convexity if start == "gaussian" else 0.0
    return exact(problem, steps=steps, start_variance=variance) / bounded(bound, problem, steps=steps)


@sweep("alpha = {alpha:g}")
def logistic_over_dynamics_bound(*, bound: str, alpha: float, steps: list[int]) -> list[Quantity]:
    """Return the divergence on a logistic loss divided by a bound.

    The divergence is computed by quadrature, and the start is Corollary 1's Gaussian.
    """
    start_variance = 2 * LOGISTIC_SIGMA**2 / LOGISTIC.strong_convexity
    divergences = logistic_divergences(alpha, steps, start_variance=start_variance)
    return [
        Quantity(
            divergence / bounded(bound, LOGISTIC, steps=count, alpha=alpha, sigma=LOGISTIC_SIGMA),
            f"alpha = {alpha:g}, K = {count}",
        )
        for count, divergence in zip(steps, divergences, strict=True)
    ]


@sweep("lambda = {strong_convexity:g}, K = {steps:g}")
def quotient_of_dynamics_bounds(
    *, above: str, below: str, strong_convexity: float, steps: Steps, step_size: float = 0.02
) -> float:
    """Return one bound divided by another.

    Curvature 1 is the setting of Fig. 2; other curvatures are those of Fig. 1.
    """
    problem = figure_2(step_size) if strong_convexity == 1 else figure_1(strong_convexity)
    return bounded(above, problem, steps=steps) / bounded(below, problem, steps=steps)


@sweep("K = {steps}")
def exact_over_general_start(*, start_gap: float, start_variance: float, steps: int) -> float:
    """Return the exact divergence of quadratic losses divided by Eq. 67, for distributions that diverge at the start.

    The starts are Gaussians with the same variance, and their means differ in the direction in which the data sets
    differ.
    """
    problem = figure_2()
    slope = start_gap**2 / (2 * start_variance)
    gap, variance = start_gap, start_variance
    for _ in range(steps):
        gap = (1 - problem.step_size) * gap + problem.step_size * problem.sensitivity(1)
        variance = (1 - problem.step_size) ** 2 * variance + 2 * problem.step_size * SIGMA**2
    start = RenyiCurve(lambda alpha: np.log(alpha) + math.log(slope))
    bound = float(theorem_2_from(start, problem, sigma=SIGMA, steps=steps)(np.array([10.0]))[0])
    return 10 * gap**2 / (2 * variance) / bound


def _first(holds: Callable[[int], bool]) -> int:
    """Return the smallest number of steps, at least 1, that meets a condition; all larger numbers also meet it."""
    low, high = 0, _LONG
    if not holds(high):
        raise ParameterError(f"the condition is not met within {_LONG} steps")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
