"""Noisy gradient descent on the line with non-Gaussian distributions, computed by quadrature without sampling.

The module has three cases: the logistic loss with a regulariser, for divergences on non-quadratic losses; squared
distances with a projection, for the excess risk; and two logistic records of different slopes, for the fields of Lemma
4. The grid is fine compared with the noise: in the first two cases, twice as many nodes give the same nine digits.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from certified_unlearning.accounting.core.problem import Problem

Array = npt.NDArray[np.float64]

LOGISTIC = Problem(n=10, strong_convexity=1.0, smoothness=1.25, lipschitz=0.5, step_size=0.2)
"""The constants of the logistic problem, with the loss ``log(1 + exp(-y theta)) + theta^2 / 2``.

In one data set, 6 of 10 labels ``y`` are +1; in the other, 5 of 10 are +1.
"""
LOGISTIC_SIGMA = 0.1
_SHARES = (0.6, 0.5)


def logistic_divergences(alpha: float, steps: Sequence[int], *, start_variance: float = 0.0) -> list[float]:
    """Return the divergences after the given number of steps, from the point 0 or a Gaussian around it.

    Args:
        alpha: The Rényi order, above 1.
        steps: The numbers of steps, each at least 1.
        start_variance: The variance of the start.
    """
    first, second = (_logistic_log_densities(share, max(steps), start_variance) for share in _SHARES)
    _, spacing = _grid()
    found = []
    for count in steps:
        logs = alpha * first[count - 1] + (1 - alpha) * second[count - 1]
        found.append(float(np.logaddexp.reduce(logs) + math.log(spacing)) / (alpha - 1))
    return found


def projected_risks(
    *, step_size: float, sigma: float, steps: Sequence[int], radius: float, minimiser: float
) -> list[float]:
    """Return the mean excess risks of projected descent on ``(theta - x)^2 / 2`` after the given number of steps.

    Steps are projected onto ``[-radius, radius]`` and start from Corollary 1's start, the projected ``N(0, 2
    sigma^2)``.

    Args:
        step_size: The step size ``eta``, below 1.
        sigma: The noise scale.
        steps: The numbers of steps, each at least 1.
        radius: Half the width of the set.
        minimiser: The mean of the records, inside the set.
    """
    nodes, weights = np.polynomial.legendre.leggauss(400)
    points, weights = np.concatenate([[-radius, radius], radius * nodes]), np.concatenate([[1, 1], radius * weights])
    moved = points - step_size * (points - minimiser)
    # Each column is the distribution after a step from a point: both atoms, then the density at the nodes.
    kernel = np.stack([_projected(mean, 2 * step_size * sigma**2, radius, points[2:]) for mean in moved], axis=1)
    law = _projected(0.0, 2 * sigma**2, radius, points[2:])
    risks = {}
    for count in range(1, max(steps) + 1):
        law = kernel @ (weights * law)
        risks[count] = float(np.sum(weights * law * (points - minimiser) ** 2 / 2))
    return [risks[count] for count in steps]


def field_difference(*, steps: int, share: float) -> float:
    """Return the largest distance between Lemma 1's two vector fields within a step, divided by Lemma 4's ``S_g / n``.

    The losses of two records are ``log(1 + exp(-x theta)) + theta^2 / 2``. One record is ``x = 1`` in both data sets.
    The other record is 2 in one data set and -1 in the other, so that the difference of the gradients depends on
    ``theta``. The largest difference on the grid is ``S_g``, about 2.09. The step size is 0.2, ``sigma`` is 1/2, and
    the start is Corollary 1's Gaussian.

    Args:
        steps: The number ``k`` of whole steps before the step of interest, at least 0.
        share: The elapsed share of this step, above 0 and at most 1.
    """
    theta, step_size, variance = np.linspace(-5, 5, 501), 0.2, 0.25
    gradients = [(theta - 1 / (1 + np.exp(theta)) + theta - x / (1 + np.exp(x * theta))) / 2 for x in (2.0, -1.0)]
    mean, half = (gradients[0] + gradients[1]) / 2, (gradients[0] - gradients[1]) / 2

    def kernel(sign: int, time: float) -> Array:
        moved = theta - step_size * mean - sign * time * half
        laws: Array = np.exp(-((theta - moved[:, np.newaxis]) ** 2) / (4 * time * variance))
        laws /= laws.sum(axis=1, keepdims=True)
        return laws

    expectations = []
    for sign in (1, -1):
        law = np.exp(-(theta**2) / (4 * variance))
        for _ in range(steps):
            law = law @ kernel(sign, step_size)
        within = law[:, np.newaxis] * kernel(sign, share * step_size)
        expectations.append((half @ within) / within.sum(axis=0))
    # V is the mean of `half` given the position of one diffusion, and V' is the mean of -`half` given the position of
    # the other diffusion.
    furthest = np.abs(expectations[0] + expectations[1]).max()
    return float(furthest / (2 * np.abs(half).max()))


def _grid() -> tuple[Array, float]:
    x, spacing = np.linspace(-1.2, 1.2, 601, retstep=True)
    return x, float(spacing)


def _logistic_log_densities(share: float, steps: int, start_variance: float) -> list[Array]:
    x, spacing = _grid()
    variance = 2 * LOGISTIC.step_size * LOGISTIC_SIGMA**2

    def log_transition(start: Array) -> Array:
        moved = start - LOGISTIC.step_size * (1 / (1 + np.exp(-start)) - share + start)
        logs: Array = -((x[:, np.newaxis] - moved) ** 2) / (2 * variance) - math.log(2 * math.pi * variance) / 2
        return logs

    kernel = np.exp(log_transition(x)) * spacing

    def moved(logs: Array) -> Array:
        largest = logs.max()
        after: Array = np.log(kernel @ np.exp(logs - largest)) + largest
        return after

    if start_variance:
        logs = [moved(-(x**2) / (2 * start_variance) - math.log(2 * math.pi * start_variance) / 2)]
    else:
        logs = [log_transition(np.zeros(1))[:, 0]]
    for _ in range(steps - 1):
        logs.append(moved(logs[-1]))
    return logs


def _projected(mean: float, variance: float, radius: float, nodes: Array) -> Array:
    """Return the projection of ``N(mean, variance)``: its masses at both ends, and its density at nodes in between."""
    deviation = math.sqrt(2 * variance)
    ends = [math.erfc((radius + mean) / deviation) / 2, math.erfc((radius - mean) / deviation) / 2]
    density = np.exp(-((nodes - mean) ** 2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)
    return np.concatenate([ends, density])
