"""The start of Langevin learning, the number of steps that is needed to forget it, and the cost of fewer steps.

PyTorch is not needed.
"""

import math
import sys
from typing import TypedDict

import numpy as np

from certified_unlearning import accounting

DELTA_SHARE = 0.01
"""Share of delta reserved for learning that stops before stationarity, if the number of learning steps is planned."""


def starting_std(*, sigma: float, strong_convexity: float) -> float:
    """Return the standard deviation of a ``C_LSI``-LSI start, the square root of ``C_LSI = 2 sigma^2 / m``."""
    return sigma * math.sqrt(2 / strong_convexity)


def learned_steps(
    problem: accounting.Problem, *, sigma: float, dimension: int, start: float, epsilon: float, delta: float
) -> int:
    """Return the fewest learning steps after which stopping increases delta by at most the share `DELTA_SHARE`.

    Args:
        problem: The constants.
        sigma: Noise scale.
        dimension: Number of parameters, ``d``.
        start: Mean of every coordinate of the start.
        epsilon: The largest epsilon that will be certified.
        delta: Delta of the guarantee.
    """
    beta = _beta(epsilon, delta)
    # erf(mu / sqrt(8)) is at most mu / sqrt(2 pi). The two betas together use as much total variation as mu is allowed
    # to use.
    return accounting.learned_steps(
        problem, mu_tolerance=math.sqrt(2 * math.pi) * 2 * beta, **_start(problem, sigma, dimension, start, beta)
    )


def extra_delta(
    problem: accounting.Problem,
    *,
    sigma: float,
    dimension: int,
    start: float,
    learning_steps: int,
    epsilon: float,
    delta: float,
    beta: float | None = None,
) -> float:
    """Return the addition to delta for stopping after ``learning_steps``, before stationarity.

    Args:
        problem: The constants.
        sigma: Noise scale.
        dimension: Number of parameters, ``d``.
        start: Mean of every coordinate of the start.
        learning_steps: Number of learning steps, ``T``.
        epsilon: The epsilon of the guarantee.
        delta: Delta of the guarantee at stationarity.
        beta: Probability with which the bound on each of the two random distances may fail. None: the probability with
            which both bounds together use half of the share `DELTA_SHARE` of delta.
    """
    beta = _beta(epsilon, delta) if beta is None else beta
    distance = accounting.starting_distance(problem, **_start(problem, sigma, dimension, start, beta))
    mu = accounting.residual_mu(problem, sigma=sigma, distance=distance, steps=learning_steps)
    return accounting.extra_delta(mu=mu, betas_total=2 * beta, epsilon=epsilon)


class _Start(TypedDict):
    sigma: float
    dimension: int
    start_norm: float
    start_std: float
    beta: float


def _beta(epsilon: float, delta: float) -> float:
    """Return the probability with which the bound on each of the two random distances to stationarity may fail.

    Together, the two probabilities use half of the share `DELTA_SHARE` of delta, if they are counted as in
    `accounting.extra_delta`.
    """
    return max(DELTA_SHARE * delta / 4 * math.exp(-float(np.logaddexp(0.0, epsilon))), sys.float_info.min)


def _start(problem: accounting.Problem, sigma: float, dimension: int, start: float, beta: float) -> _Start:
    return {
        "sigma": sigma,
        "dimension": dimension,
        "start_norm": abs(start) * math.sqrt(dimension),
        "start_std": starting_std(sigma=sigma, strong_convexity=problem.strong_convexity),
        "beta": beta,
    }
