"""Noisy gradient descent on the line whose law is no Gaussian, followed by quadrature: nothing is sampled.

Two cases: the logistic loss with a regulariser, for divergences on losses that are not quadratic, and squared distances
with a projection, for the excess risk. Spacings are so small against the noise that both agree with twice as many
nodes to nine digits.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from certified_unlearning.accounting.core.problem import Problem

Array = npt.NDArray[np.float64]

LOGISTIC = Problem(n=10, strong_convexity=1.0, smoothness=1.25, lipschitz=0.5, step_size=0.2)
"""``log(1 + exp(-y theta)) + theta^2 / 2``; 6 of 10 labels ``y`` are +1 in the one data set and 5 in the other."""
LOGISTIC_SIGMA = 0.1
_SHARES = (0.6, 0.5)


def logistic_divergences(alpha: float, steps: Sequence[int], *, start_variance: float = 0.0) -> list[float]:
    """Return the divergences after so many steps, from the point 0 or a Gaussian around it.

    Args:
        alpha: Rényi order, above 1.
        steps: Numbers of steps, each at least 1.
        start_variance: Variance of the start.
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
    """Return the mean excess risks of projected descent on ``(theta - x)^2 / 2`` after so many steps.

    Steps are projected on ``[-radius, radius]`` and start from the projected ``N(0, 2 sigma^2)``, Corollary 1's law.

    Args:
        step_size: ``eta``, below 1.
        sigma: Noise scale.
        steps: Numbers of steps, each at least 1.
        radius: Half the width of the set.
        minimiser: The mean of the records, inside the set.
    """
    nodes, weights = np.polynomial.legendre.leggauss(400)
    points, weights = np.concatenate([[-radius, radius], radius * nodes]), np.concatenate([[1, 1], radius * weights])
    moved = points - step_size * (points - minimiser)
    # Column by column the law of a step from a point: both atoms, then the density at the nodes.
    kernel = np.stack([_projected(mean, 2 * step_size * sigma**2, radius, points[2:]) for mean in moved], axis=1)
    law = _projected(0.0, 2 * sigma**2, radius, points[2:])
    risks = {}
    for count in range(1, max(steps) + 1):
        law = kernel @ (weights * law)
        risks[count] = float(np.sum(weights * law * (points - minimiser) ** 2 / 2))
    return [risks[count] for count in steps]


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
    """Return ``N(mean, variance)`` projected: its masses at both ends and its density at nodes between them."""
    deviation = math.sqrt(2 * variance)
    ends = [math.erfc((radius + mean) / deviation) / 2, math.erfc((radius - mean) / deviation) / 2]
    density = np.exp(-((nodes - mean) ** 2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)
    return np.concatenate([ends, density])
