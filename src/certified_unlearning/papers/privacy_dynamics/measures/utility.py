"""Measures of the excess risk: Lemma 6, Theorem 4, the lower bound that it is compared with, and Table 1."""

import math
from collections.abc import Sequence
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
from certified_unlearning.reproduction.claims.evidence import Evidence
from certified_unlearning.reproduction.claims.registry import changes, measure
from certified_unlearning.reproduction.claims.relations import Quantity

Target = Literal["renyi", "dp"]
_DELTA = 1e-5
_DIMENSION = 10


def _recipe(target: Target, *, strong_convexity: float = 1.0, smoothness: float = 4.0, n: int = 5000) -> Recipe:
    """Return Theorem 4's recipe for d = 10, L = 1: epsilon 1 at the order 10, or with delta = 1e-5."""
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
def recipe_over_target(evidence: Sequence[Evidence], *, target: Target, bound: str) -> list[Quantity]:
    """Return what a bound certifies at Theorem 4's noise and steps over what Theorem 4 aims at."""
    recipe = _recipe(target)
    return [Quantity(_certified(recipe, bound) / recipe.epsilon, bound)]


@measure
def recipe_epsilon(evidence: Sequence[Evidence]) -> list[Quantity]:
    """Return the epsilon that Theorem 7 makes of Corollary 1 at the recipe's own order; it aims at 1."""
    recipe = _recipe("dp")
    excess = np.array([math.log(recipe.alpha - 1)])
    overhead = float(order_overhead(excess, -math.log(_DELTA), "paper")[0])
    return [Quantity(_certified(recipe, "corollary-1") + overhead, "epsilon")]


@measure
def recipe_risk_over_promise(evidence: Sequence[Evidence], *, target: list[Target]) -> list[Quantity]:
    """Return Lemma 6's bound at the recipe's whole number of steps over the excess risk that Theorem 4 promises."""
    found = []
    for each in target:
        recipe = _recipe(each)
        risk = lemma_6(recipe.problem, sigma=recipe.sigma, steps=recipe.steps, dimension=_DIMENSION, lipschitz=1.0)
        found.append(Quantity(risk / recipe.risk_bound, each))
    return found


@measure
def steps_by_condition_number(evidence: Sequence[Evidence], *, smoothness: list[float]) -> list[Quantity]:
    """Return Theorem 4's steps over those for the first smoothness, with strong convexity 1."""
    steps = [_recipe("dp", smoothness=each).real_steps for each in smoothness]
    return [Quantity(each / steps[0], f"beta = {beta:g}") for each, beta in zip(steps, smoothness, strict=True)]


@measure
def changes_of_risk_over_lower_bound(
    evidence: Sequence[Evidence], *, curvatures: list[tuple[float, float]], n: list[int]
) -> list[Quantity]:
    """Return how Theorem 4's risk over ``log(1 / delta)`` times Theorem 5's changes with lambda, beta and n.

    In units of the first; Theorem 5's lower bound, ``d / (n epsilon)^2``, depends on n alone of these.
    """
    found = [
        Quantity(
            _recipe("dp", strong_convexity=convexity, smoothness=smoothness, n=count).risk_bound
            / (_DIMENSION / count**2 * -math.log(_DELTA)),
            f"lambda = {convexity:g}, beta = {smoothness:g}, n = {count:g}",
        )
        for count in n
        for convexity, smoothness in curvatures
    ]
    return changes([Quantity(each.value / found[0].value, each.name) for each in found])


@measure
def projected_risk_over_lemma_6(
    evidence: Sequence[Evidence], *, sigma: float, minimiser: float, steps: list[int]
) -> list[Quantity]:
    """Return the excess risk on squared distances over Lemma 6, by quadrature.

    On the interval from -1 to 1, which also holds the records: gradients are at most 2. The step is the largest
    that the lemma allows.
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


@measure
def noisy_gd_over_method(evidence: Sequence[Evidence], *, method: str, smoothness: list[float]) -> list[Quantity]:
    """Return noisy gradient descent's excess risk and gradients over another method's, without constants."""
    found = []
    for each in smoothness:
        own, other = _table(5000, each)["noisy GD"], _table(5000, each)[method]
        found.append(Quantity(own.utility / other.utility, f"excess risk, beta = {each:g}"))
        if own.gradients and other.gradients:
            found.append(Quantity(own.gradients / other.gradients, f"gradients, beta = {each:g}"))
    return found


@measure
def utility_gain_over_sgd(evidence: Sequence[Evidence], *, n: list[int]) -> list[Quantity]:
    """Return noisy SGD's excess risk over noisy gradient descent's, over ``log(n)^2``, where ``beta = lambda``."""
    return [
        Quantity(
            _table(each, 1.0)["noisy SGD"].utility / _table(each, 1.0)["noisy GD"].utility / math.log(each) ** 2,
            f"n = {each:g}",
        )
        for each in n
    ]


@measure
def gradient_gain_over_sgd(
    evidence: Sequence[Evidence], *, n: list[int], order: Literal["n", "n / log n"]
) -> list[Quantity]:
    """Return noisy SGD's gradients over noisy gradient descent's, over an order in n, in units of the first."""
    gains = []
    for each in n:
        rows = _table(each, 1.0)
        gain = (rows["noisy SGD"].gradients or math.nan) / (rows["noisy GD"].gradients or math.nan)
        gains.append(gain / (each if order == "n" else each / math.log(each)))
    return [Quantity(gain / gains[0], f"n = {each:g}") for gain, each in zip(gains, n, strict=True)]
