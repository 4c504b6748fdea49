"""Where Langevin learning starts, how long it takes to forget that, and what stopping earlier costs. Free of torch."""

import math
from typing import TypedDict

from certified_unlearning import accounting

BETA = 1e-12
"""Probability with which each of the two random distances to stationarity may be exceeded."""


def starting_std(*, sigma: float, strong_convexity: float) -> float:
    """Return the standard deviation of a start that is ``C_LSI``-LSI, ``C_LSI = 2 sigma^2 / m``: its square root."""
    return sigma * math.sqrt(2 / strong_convexity)


def learned_steps(
    problem: accounting.Problem, *, sigma: float, dimension: int, start: float, mu_tolerance: float
) -> int:
    """Return the least learning steps after which the law is ``mu_tolerance``-Gaussian-DP from stationarity.

    Args:
        problem: The constants.
        sigma: Noise scale.
        dimension: ``d``.
        start: Mean of every coordinate of the start.
        mu_tolerance: The largest distance that counts as none.
    """
    return accounting.learned_steps(problem, mu_tolerance=mu_tolerance, **_start(problem, sigma, dimension, start))


def extra_delta(
    problem: accounting.Problem,
    *,
    sigma: float,
    dimension: int,
    start: float,
    learning_steps: int,
    epsilon: float,
) -> float:
    """Return what learning for ``learning_steps`` only, not to stationarity, adds to delta.

    Args:
        problem: The constants.
        sigma: Noise scale.
        dimension: ``d``.
        start: Mean of every coordinate of the start.
        learning_steps: ``T``.
        epsilon: The epsilon of the guarantee.
    """
    distance = accounting.starting_distance(problem, **_start(problem, sigma, dimension, start))
    mu = accounting.residual_mu(problem, sigma=sigma, distance=distance, steps=learning_steps)
    return accounting.extra_delta(mu=mu, betas_total=2 * BETA, epsilon=epsilon)


class _Start(TypedDict):
    sigma: float
    dimension: int
    start_norm: float
    start_std: float
    beta: float


def _start(problem: accounting.Problem, sigma: float, dimension: int, start: float) -> _Start:
    return {
        "sigma": sigma,
        "dimension": dimension,
        "start_norm": abs(start) * math.sqrt(dimension),
        "start_std": starting_std(sigma=sigma, strong_convexity=problem.strong_convexity),
        "beta": BETA,
    }
