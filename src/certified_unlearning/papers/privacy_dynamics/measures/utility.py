"""Measures of the excess risk: Lemma 6, Theorem 4, the lower bound of Theorem 5, and Table 1."""

import math
from typing import Literal

import numpy as np

from certified_unlearning.accounting.core.conversion import order_overhead
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.papers.privacy_dynamics.settings import bounded
from certified_unlearning.papers.privacy_dynamics.theory.private_erm import (
    ComparedMethod,
    Recipe,
    lemma_6,
    recipe_for_dp,
    recipe_for_renyi,
    table_1,
)
from certified_unlearning.papers.privacy_dynamics.theory.quadrature import projected_risks
from certified_unlearning.reproduction.claims.registry import changes_in_units_of_first, measure, over_first, sweep
from certified_unlearning.reproduction.claims.relations import Quantity

Target = Literal["renyi", "dp"]
_DELTA = 1e-5
_DIMENSION = 10


def _recipe(target: Target, *, strong_convexity: float = 1.0, smoothness: float = 4.0, n: int = 5000) -> Recipe:
    """Return Theorem 4's recipe for d = 10, L = 1, and epsilon = 1 at the order 10 or with delta = 1e-5."""
    if target == "renyi":
        return recipe_for_renyi(
            n=n, dimension=_DIMENSION, lipschitz=1.0, strong_convexity=strong_convexity, smoothness=smoothness,
            alpha=10.0, epsilon=1.0,
        )  # fmt: skip
    return recipe_for_dp(
        n=n, dimension=_DIMENSION, lipschitz=1.0, strong_convexity=strong_convexity, smoothness=smoothness,
        epsilon=1.0, delta=_DELTA,
    )  # fmt: skip


def _certified(recipe: Recipe, bound: str) -> float:
    return bounded(bound, recipe.problem, steps=recipe.steps, alpha=recipe.alpha, sigma=recipe.sigma)


@measure
def recipe_over_target(*, target: Target, bound: str) -> Quantity:
    """Return the value that a bound certifies at Theorem 4's noise and steps, divided by Theorem 4's target."""
    recipe = _recipe(target)
    return Quantity(_certified(recipe, bound) / recipe.epsilon, bound)


@measure
def recipe_epsilon() -> Quantity:
    """Return the epsilon that Theorem 7 gives for the bound of Corollary 1, at the recipe's own order.

    The target epsilon is 1.
    """
    recipe = _recipe("dp")
    excess = np.array([math.log(recipe.alpha - 1)])
    overhead = float(order_overhead(excess, -math.log(_DELTA), "paper")[0])
    return Quantity(_certified(recipe, "corollary-1") + overhead, "epsilon")


@sweep("{target}")
def recipe_risk_over_promise(*, target: Target) -> float:
    """Return Lemma 6's bound divided by Theorem 4's promised excess risk.

    The number of steps is the recipe's, rounded up to a whole number.
    """
    recipe = _recipe(target)
    risk = lemma_6(recipe.problem, sigma=recipe.sigma, steps=recipe.steps, dimension=_DIMENSION, lipschitz=1.0)
    return risk / recipe.risk_bound


@sweep("beta = {smoothness:g}", then=over_first)
def steps_by_condition_number(*, smoothness: float) -> float:
    """Return Theorem 4's steps divided by the steps for the first smoothness, with strong convexity 1."""
    return _recipe("dp", smoothness=smoothness).real_steps


@sweep("lambda = {curvature[0]:g}, beta = {curvature[1]:g}, n = {n:g}", then=changes_in_units_of_first)
def changes_of_risk_over_lower_bound(*, n: int, curvature: tuple[float, float]) -> float:
    """Return how Theorem 4's risk changes with the constants, after division by Theorem 5's bound.

    The risk is also divided by ``log(1 / delta)``. The constants are lambda, beta and n. Theorem 5's lower bound, ``d /
    (n epsilon)^2``, depends on n, but not on lambda and beta. Changes are in units of the first value.
    """
    recipe = _recipe("dp", strong_convexity=curvature[0], smoothness=curvature[1], n=n)
    return recipe.risk_bound / (_DIMENSION / n**2 * -math.log(_DELTA))


@measure
def projected_risk_over_lemma_6(*, sigma: float, minimiser: float, steps: list[int]) -> list[Quantity]:
    """Return the excess risk on squared distances, computed by quadrature, divided by Lemma 6's bound.

    Steps and records are in the interval from -1 to 1, so gradients are at most 2. The step size is the largest that
    the lemma allows.
    """
    problem = Problem(n=100, strong_convexity=1.0, smoothness=1.0, lipschitz=2.0, step_size=0.5)
    risks = projected_risks(step_size=0.5, sigma=sigma, steps=steps, radius=1.0, minimiser=minimiser)
    return [
        Quantity(risk / lemma_6(problem, sigma=sigma, steps=count, dimension=1, lipschitz=2.0), f"K = {count}")
        for count, risk in zip(steps, risks, strict=True)
    ]


def _table(n: int, smoothness: float) -> dict[str, ComparedMethod]:
    rows = table_1(n=n, dimension=_DIMENSION, strong_convexity=1.0, smoothness=smoothness, epsilon=1.0)
    return {row.method: row for row in rows}


@sweep("beta = {smoothness:g}")
def noisy_gd_over_method(*, method: str, smoothness: float) -> dict[str, float]:
    """Return noisy gradient descent's excess risk and number of gradients, each divided by another method's value.

    Constant factors are left out.
    """
    own, other = _table(5000, smoothness)["noisy GD"], _table(5000, smoothness)[method]
    found = {"excess risk": own.utility / other.utility}
    if own.gradients and other.gradients:
        found["gradients"] = own.gradients / other.gradients
    return found


@sweep("n = {n:g}")
def utility_gain_over_sgd(*, n: int) -> float:
    """Return noisy SGD's excess risk, divided by noisy gradient descent's excess risk and by ``log(n)^2``.

    The smoothness and the strong convexity are equal: ``beta = lambda``.
    """
    return _table(n, 1.0)["noisy SGD"].utility / _table(n, 1.0)["noisy GD"].utility / math.log(n) ** 2


@sweep("n = {n:g}", then=over_first)
def gradient_gain_over_sgd(*, n: int, order: Literal["n", "n / log n"]) -> float:
    """Return the ratio of noisy SGD's number of gradients to noisy gradient descent's, divided by ``order``.

    The result is divided by the result for the first ``n``.
    """
    rows = _table(n, 1.0)
    gain = (rows["noisy SGD"].gradients or math.nan) / (rows["noisy GD"].gradients or math.nan)
    return gain / (n if order == "n" else n / math.log(n))
