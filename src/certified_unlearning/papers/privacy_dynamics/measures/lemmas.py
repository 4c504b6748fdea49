"""Measures of the lemmas behind the bounds: on Gaussians, where all that they speak of is known."""

from collections.abc import Sequence

import numpy as np

from certified_unlearning.papers.privacy_dynamics.settings import SIGMA, Steps, bounded, figure_1
from certified_unlearning.papers.privacy_dynamics.theory.dynamics import theorem_2
from certified_unlearning.papers.privacy_dynamics.theory.gaussian_pairs import Gaussian, information_ratio, lemma_3_left
from certified_unlearning.papers.privacy_dynamics.theory.gaussians import inverse_lsi
from certified_unlearning.reproduction.claims.evidence import Evidence
from certified_unlearning.reproduction.claims.registry import measure
from certified_unlearning.reproduction.claims.relations import Quantity

Law = tuple[float, float]


@measure
def lemma_3_quotients(
    evidence: Sequence[Evidence], *, alpha: list[float], pairs: list[tuple[Law, Law]]
) -> list[Quantity]:
    """Return the right side of Lemma 3 over its left, with the second law's own log-Sobolev constant.

    A law is its mean and its variance.
    """
    found = []
    for first, second in ((Gaussian(*one), Gaussian(*other)) for one, other in pairs):
        for order in alpha:
            right = order**2 / 2 * second.variance * information_ratio(order, first, second)
            name = f"alpha = {order:g}, variances {first.variance:g} and {second.variance:g}"
            found.append(Quantity(right / lemma_3_left(order, first, second), name))
    return found


@measure
def lemma_2_excess(
    evidence: Sequence[Evidence], *, gamma: list[float], time: list[float], start_variance: float
) -> list[Quantity]:
    """Return how much faster the divergence of two diffusions grows than Lemma 2 allows, in units of Theorem 1's rate.

    Their drifts are constant and opposite, so that they stay Gaussians of one variance.
    """
    found = []
    for balance in gamma:
        for moment in time:
            rate, information = _diffusions(moment, start_variance)
            found.append(
                Quantity(rate - 1 / balance + (1 - balance) * information, f"gamma = {balance:g}, t = {moment:g}")
            )
    return found


@measure
def lemma_2_bound_over_half(
    evidence: Sequence[Evidence], *, gamma: list[float], time: list[float], start_variance: float
) -> list[Quantity]:
    """Return Lemma 2's bound on the rate over that with ``gamma = 1 / 2``, for the same two diffusions."""

    def bound(balance: float, information: float) -> float:
        return 1 / balance - (1 - balance) * information

    found = []
    for balance in gamma:
        for moment in time:
            _, information = _diffusions(moment, start_variance)
            quotient = bound(balance, information) / bound(0.5, information)
            found.append(Quantity(quotient, f"gamma = {balance:g}, t = {moment:g}"))
    return found


@measure
def dynamics_rate_excess(
    evidence: Sequence[Evidence],
    *,
    gamma: list[float],
    time: list[float],
    start_variance: float,
    share_of_lsi_constant: float,
) -> list[Quantity]:
    """Return the same with Lemma 3 put in for the information (Eq. 13), and a share of the laws' constant for ``c``.

    A law that is ``c``-LSI is so with every smaller constant.
    """
    found = []
    for balance in gamma:
        for moment in time:
            rate, information = _diffusions(moment, start_variance)
            # Lemma 3 is an equality here.
            damping = (1 - balance) * share_of_lsi_constant * information
            found.append(Quantity(rate - 1 / balance + damping, f"gamma = {balance:g}, t = {moment:g}"))
    return found


def _diffusions(time: float, start_variance: float) -> tuple[float, float]:
    """Return the divergence's rate, and ``sigma^2 alpha I / E``, in units of ``alpha S_v^2 / (4 sigma^2)``.

    ``R = alpha (S_v t)^2 / (2 v)`` with ``v = v_0 + 2 sigma^2 t``, here for ``sigma = S_v = 1``.
    """
    variance = start_variance + 2 * time
    rate = time / variance - time**2 / variance**2
    return 4 * rate, 4 * (time / variance) ** 2


@measure
def lsi_constant_over_lemma_5(
    evidence: Sequence[Evidence], *, strong_convexity: list[float], steps: list[Steps]
) -> list[Quantity]:
    """Return the tracked log-Sobolev constant, from Lemma 5's start, over the one that Lemma 5 states."""
    return [
        Quantity(
            2
            * SIGMA**2
            / curvature
            / inverse_lsi(figure_1(curvature), sigma=SIGMA, steps=count, start=2 * SIGMA**2 / curvature),
            f"lambda = {curvature:g}, K = {count:g}",
        )
        for curvature in strong_convexity
        for count in steps
    ]


@measure
def theorem_2_over_corollary_1(
    evidence: Sequence[Evidence], *, strong_convexity: list[float], steps: list[Steps]
) -> list[Quantity]:
    """Return Theorem 2 with the constant ``lambda / (2 sigma^2)``, given as a number, over Corollary 1."""
    found = []
    for curvature in strong_convexity:
        problem = figure_1(curvature)
        for count in steps:
            curve = theorem_2(problem, sigma=SIGMA, steps=count, lsi_constant=curvature / (2 * SIGMA**2))
            quotient = float(curve(np.array([10.0]))[0]) / bounded("corollary-1", problem, steps=count)
            found.append(Quantity(quotient, f"lambda = {curvature:g}, K = {count:g}"))
    return found
