"""Measures of formulas as they are printed where they cannot be meant so: each is computed both ways."""

import math
from collections.abc import Sequence

import numpy as np

from certified_unlearning.papers.privacy_dynamics.settings import SIGMA, Steps, bounded, figure_1, figure_2
from certified_unlearning.papers.privacy_dynamics.theory.dynamics import theorem_2
from certified_unlearning.papers.privacy_dynamics.theory.private_erm import lemma_6, risk_from_start
from certified_unlearning.reproduction.claims.evidence import Evidence
from certified_unlearning.reproduction.claims.registry import measure
from certified_unlearning.reproduction.claims.relations import Quantity


@measure
def quoted_over_corollary_1(evidence: Sequence[Evidence], *, steps: list[int]) -> list[Quantity]:
    """Return Corollary 1 as Section 4 quotes it, with the exponent ``eta K``, over Corollary 1."""
    problem = figure_2()
    limit = bounded("corollary-1", problem, steps=math.inf)
    return [
        Quantity(
            -limit * math.expm1(-problem.step_size * count) / bounded("corollary-1", problem, steps=count),
            f"K = {count}",
        )
        for count in steps
    ]


@measure
def gamma_over_half(evidence: Sequence[Evidence], *, gamma: list[float], steps: list[Steps]) -> list[Quantity]:
    """Return Eq. 68 with a balancing constant over that with one half, Theorem 2, in Fig. 1."""
    problem = figure_1(1.0)
    return [
        Quantity(
            float(theorem_2(problem, sigma=SIGMA, steps=count, gamma=each)(np.array([10.0]))[0])
            / bounded("theorem-2", problem, steps=count),
            f"gamma = {each:g}, K = {count:g}",
        )
        for each in gamma
        for count in steps
    ]


@measure
def printed_characteristic(evidence: Sequence[Evidence], *, alpha: list[float], time: float) -> list[Quantity]:
    """Return the order from which a characteristic comes by Eqs. 62 to 66 as printed, a time before it is ``alpha``."""
    rate = figure_1(1.0).strong_convexity / 2
    return [Quantity(1 + (each - 1) ** (-rate * time), f"to alpha = {each:g}") for each in alpha]


@measure
def gibbs_rate(evidence: Sequence[Evidence], *, sign: int) -> list[Quantity]:
    """Return the rate of change under Eq. 9, over the density, of the law that the diffusion is known to keep.

    At the minimiser of ``theta^2 / 2``, with the field ``V`` equal to the gradient times ``sign``: there
    ``(p V)' = p V'`` and ``sigma^2 p'' = -p``.
    """
    return [Quantity(sign - 1.0, f"V = {sign:+d} times the gradient")]


@measure
def printed_start_over_lemma_5(evidence: Sequence[Evidence], *, strong_convexity: list[float]) -> list[Quantity]:
    """Return the variance of Lemma 5's start, ``2 sigma^2 / lambda``, over the one that the proof's base step prints.

    That is ``lambda / (2 sigma^2)``.
    """
    return [
        Quantity((2 * SIGMA**2 / each) / (each / (2 * SIGMA**2)), f"lambda = {each:g}") for each in strong_convexity
    ]


@measure
def printed_unrolling_over_lemma_6(evidence: Sequence[Evidence], *, steps: list[int], dimension: int) -> list[Quantity]:
    """Return the noise term of Lemma 6's unrolled recursion as printed over that of the lemma."""
    problem = figure_2()
    kept = 1 - problem.step_size * problem.strong_convexity
    unrolled = 2 * problem.smoothness * dimension * SIGMA**2
    return [
        Quantity(unrolled * sum(kept**k for k in range(count)) / _noise_term(dimension), f"K = {count}")
        for count in steps
    ]


@measure
def unrolling_over_lemma_6(evidence: Sequence[Evidence], *, steps: list[int], dimension: int) -> list[Quantity]:
    """Return the noise term that Eq. 81 gives when unrolled over that of Lemma 6."""
    return [
        Quantity(
            risk_from_start(figure_2(), sigma=SIGMA, steps=count, dimension=dimension, squared_distance=0.0)
            / _noise_term(dimension),
            f"K = {count}",
        )
        for count in steps
    ]


@measure
def inline_objective_variance(evidence: Sequence[Evidence], *, steps: list[int]) -> list[Quantity]:
    """Return the variance under Section 4's inline objective, without the half, over that of the powers it prints.

    The sum of squared distances over n has the curvature 2, and powers of ``1 - 2 eta``.
    """
    step_size = figure_2().step_size

    def powers(curvature: int, count: int) -> float:
        return math.fsum((1 - curvature * step_size) ** (2 * k) for k in range(count))

    return [Quantity(powers(2, count) / powers(1, count), f"K = {count}") for count in steps]


def _noise_term(dimension: int) -> float:
    """Return Lemma 6's bound after so many steps that nothing of the start is left."""
    return lemma_6(figure_2(), sigma=SIGMA, steps=1e9, dimension=dimension, lipschitz=1.0)
