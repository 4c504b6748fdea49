"""Measures of the lemmas behind the bounds.

Most of these measures use Gaussians, for which all quantities of the lemmas are known.
"""

import numpy as np

from certified_unlearning.papers.privacy_dynamics.settings import SIGMA, Steps, bounded, figure_1
from certified_unlearning.papers.privacy_dynamics.theory.dynamics import theorem_2
from certified_unlearning.papers.privacy_dynamics.theory.gaussian_pairs import Gaussian, information_ratio, lemma_3_left
from certified_unlearning.papers.privacy_dynamics.theory.gaussians import inverse_lsi
from certified_unlearning.papers.privacy_dynamics.theory.log_sobolev import (
    FunctionName,
    MapName,
    log_sobolev_quotient,
)
from certified_unlearning.papers.privacy_dynamics.theory.quadrature import field_difference
from certified_unlearning.reproduction.claims.registry import sweep

Law = tuple[float, float]


@sweep("alpha = {alpha:g}, variances {pair[0][1]:g} and {pair[1][1]:g}")
def lemma_3_quotients(*, pair: tuple[Law, Law], alpha: float) -> float:
    """Return the right side of Lemma 3 divided by its left side, with the second distribution's log-Sobolev constant.

    A distribution is given by its mean and its variance.
    """
    first, second = Gaussian(*pair[0]), Gaussian(*pair[1])
    right = alpha**2 / 2 * second.variance * information_ratio(alpha, first, second)
    return right / lemma_3_left(alpha, first, second)


@sweep("gamma = {gamma:g}, t = {time:g}")
def lemma_2_excess(*, gamma: float, time: float, start_variance: float) -> float:
    """Return the growth rate of two diffusions' divergence, minus Lemma 2's bound on this rate.

    The unit is Theorem 1's rate. The drifts are constant and opposite, so the distributions stay Gaussians with the
    same variance.
    """
    rate, information = _diffusions(time, start_variance)
    return rate - 1 / gamma + (1 - gamma) * information


@sweep("gamma = {gamma:g}, t = {time:g}")
def lemma_2_bound_over_half(*, gamma: float, time: float, start_variance: float) -> float:
    """Return the ratio of Lemma 2's bound on the rate to the same bound for ``gamma = 1 / 2``.

    The diffusions are those of `lemma_2_excess`.
    """

    def bound(balance: float, information: float) -> float:
        return 1 / balance - (1 - balance) * information

    _, information = _diffusions(time, start_variance)
    return bound(gamma, information) / bound(0.5, information)


@sweep("gamma = {gamma:g}")
def lemma_2_bound_less_half(*, gamma: float) -> float:
    """Return Lemma 2's bound on the rate at convergence, minus the same bound for ``gamma = 1 / 2``.

    The unit is Theorem 1's rate.

    The diffusions are Langevin diffusions on quadratic losses. Their stationary distributions are ``N(mean, sigma^2 /
    lambda)``, and the means are ``S_v / lambda`` apart. ``sigma^2 alpha I / E`` is then 4 units, and the growth rate
    itself is 0.
    """

    def bound(balance: float) -> float:
        return 1 / balance - (1 - balance) * 4

    return bound(gamma) - bound(0.5)


@sweep("k = {steps}, {share:g} of a step")
def field_difference_over_lemma_4(*, steps: int, share: float) -> float:
    """Return the distance between the vector fields of coupled diffusions, divided by Lemma 4's bound.

    The distance is computed by quadrature.
    """
    return field_difference(steps=steps, share=share)


@sweep("{map_name}, v = {noise_variance:g}, {function}")
def lsi_quotients(*, map_name: MapName, noise_variance: float, function: FunctionName) -> float:
    """Return a log-Sobolev inequality's left side divided by its right side, with the constant of Lemmas 8 and 9."""
    return log_sobolev_quotient(map_name=map_name, noise_variance=noise_variance, function=function)


@sweep("gamma = {gamma:g}, t = {time:g}")
def dynamics_rate_excess(*, gamma: float, time: float, start_variance: float, share_of_lsi_constant: float) -> float:
    """Return the growth rate minus Lemma 2's bound, in which Lemma 3's bound replaces the information (Eq. 13).

    The diffusions and the unit are those of `lemma_2_excess`, and ``c`` is a share of the best log-Sobolev constant. A
    ``c``-LSI distribution satisfies the inequality with every smaller constant.
    """
    rate, information = _diffusions(time, start_variance)
    # In this case, Lemma 3 is an equality.
    damping = (1 - gamma) * share_of_lsi_constant * information
    return rate - 1 / gamma + damping


def _diffusions(time: float, start_variance: float) -> tuple[float, float]:
    """Return the rate of the divergence and the quantity ``sigma^2 alpha I / E``.

    Both values are in units of ``alpha S_v^2 / (4 sigma^2)``. The divergence is ``R = alpha (S_v t)^2 / (2 v)`` with
    ``v = v_0 + 2 sigma^2 t``, for ``sigma = S_v = 1``.
    """
    variance = start_variance + 2 * time
    rate = time / variance - time**2 / variance**2
    return 4 * rate, 4 * (time / variance) ** 2


@sweep("lambda = {strong_convexity:g}, K = {steps:g}")
def lsi_constant_over_lemma_5(*, strong_convexity: float, steps: Steps) -> float:
    """Return the tracked log-Sobolev constant from Lemma 5's start, divided by the constant in Lemma 5."""
    stated = 2 * SIGMA**2 / strong_convexity
    return stated / inverse_lsi(figure_1(strong_convexity), sigma=SIGMA, steps=steps, start=stated)


@sweep("lambda = {strong_convexity:g}, K = {steps:g}")
def theorem_2_over_corollary_1(*, strong_convexity: float, steps: Steps) -> float:
    """Return the bound of Theorem 2, for the constant ``lambda / (2 sigma^2)``, divided by the bound of Corollary 1."""
    problem = figure_1(strong_convexity)
    curve = theorem_2(problem, sigma=SIGMA, steps=steps, lsi_constant=strong_convexity / (2 * SIGMA**2))
    return float(curve(np.array([10.0]))[0]) / bounded("corollary-1", problem, steps=steps)
