"""Measures of formulas that cannot be meant as they are printed: each is computed both as printed and as meant."""

import math

import numpy as np

from certified_unlearning.papers.privacy_dynamics.settings import SIGMA, Steps, bounded, figure_1, figure_2
from certified_unlearning.papers.privacy_dynamics.theory.dynamics import theorem_2
from certified_unlearning.papers.privacy_dynamics.theory.private_erm import lemma_6, risk_from_start
from certified_unlearning.reproduction.claims.registry import measure, sweep
from certified_unlearning.reproduction.claims.relations import Quantity


@sweep("K = {steps}")
def quoted_over_corollary_1(*, steps: int) -> float:
    """Return Corollary 1 as Section 4 quotes it, with the exponent ``eta K``, divided by Corollary 1."""
    problem = figure_2()
    limit = bounded("corollary-1", problem, steps=math.inf)
    return -limit * math.expm1(-problem.step_size * steps) / bounded("corollary-1", problem, steps=steps)


@sweep("gamma = {gamma:g}, K = {steps:g}")
def gamma_over_half(*, gamma: float, steps: Steps) -> float:
    """Return the bound of Eq. 68 with ``gamma``, divided by the bound of Theorem 2.

    Theorem 2 has ``gamma = 1 / 2``. The constants of the problem are those of Fig. 1.
    """
    problem = figure_1(1.0)
    curve = theorem_2(problem, sigma=SIGMA, steps=steps, gamma=gamma)
    return float(curve(np.array([10.0]))[0]) / bounded("theorem-2", problem, steps=steps)


@sweep("to alpha = {alpha:g}")
def printed_characteristic(*, alpha: float, time: float) -> float:
    """Return the order, by Eqs. 62 to 66 as printed, on a characteristic that reaches ``alpha`` after ``time``."""
    rate = figure_1(1.0).strong_convexity / 2
    return float(1 + (alpha - 1) ** (-rate * time))


@measure
def gibbs_rate(*, sign: int) -> Quantity:
    """Return the rate at which Eq. 9 changes the density of the Gibbs distribution, divided by the density.

    The diffusion should preserve this distribution. The point is the minimiser of ``theta^2 / 2``, and the field ``V``
    is the gradient times ``sign``. At this point, ``(p V)' = p V'`` and ``sigma^2 p'' = -p``.
    """
    return Quantity(sign - 1.0, f"V = {sign:+d} times the gradient")


@sweep("lambda = {strong_convexity:g}")
def printed_start_over_lemma_5(*, strong_convexity: float) -> float:
    """Return the variance of Lemma 5's start, ``2 sigma^2 / lambda``, divided by that of the proof's base step.

    In the paper's proof by induction, the base step gives the variance of the start as ``lambda / (2 sigma^2)``.
    """
    return (2 * SIGMA**2 / strong_convexity) / (strong_convexity / (2 * SIGMA**2))


@sweep("K = {steps}")
def printed_unrolling_over_lemma_6(*, steps: int, dimension: int) -> float:
    """Return the noise term of Lemma 6's unrolled recursion as printed, divided by the noise term of the lemma."""
    problem = figure_2()
    kept = 1 - problem.step_size * problem.strong_convexity
    unrolled = 2 * problem.smoothness * dimension * SIGMA**2
    return unrolled * sum(kept**k for k in range(steps)) / _noise_term(dimension)


@sweep("K = {steps}")
def unrolling_over_lemma_6(*, steps: int, dimension: int) -> float:
    """Return the noise term that Eq. 81 gives when unrolled, divided by that of Lemma 6."""
    risk = risk_from_start(figure_2(), sigma=SIGMA, steps=steps, dimension=dimension, squared_distance=0.0)
    return risk / _noise_term(dimension)


@sweep("K = {steps}")
def inline_objective_variance(*, steps: int) -> float:
    """Return the variance under Section 4's inline objective, divided by the variance that Section 4 prints.

    The objective, the sum of squared distances divided by n, lacks the factor 1 / 2. It has the curvature 2, and gives
    powers of ``1 - 2 eta``, whereas Section 4 prints powers of ``1 - eta``.
    """
    step_size = figure_2().step_size

    def powers(curvature: int, count: int) -> float:
        return math.fsum((1 - curvature * step_size) ** (2 * k) for k in range(count))

    return powers(2, steps) / powers(1, steps)


def _noise_term(dimension: int) -> float:
    """Return the noise term of Lemma 6.

    The noise term is the lemma's bound after so many steps that the start no longer matters.
    """
    return lemma_6(figure_2(), sigma=SIGMA, steps=1e9, dimension=dimension, lipschitz=1.0)
