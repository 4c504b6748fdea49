"""Langevin unlearning after learning that stopped early, and the Gibbs distributions that small steps approach.

Source: Section 3.3 (insufficient training), Appendix E (Eq. 6, Proposition E.1) and Proposition I.2 of Chien, Wang,
Chen, Li, Langevin unlearning (NeurIPS 2024). The notation is that of `lsi`.
"""

import math

import numpy as np
import numpy.typing as npt

from certified_unlearning.accounting.core.checks import require_count, require_positive
from certified_unlearning.accounting.core.curves import RenyiCurve
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.core.search import Array
from certified_unlearning.errors import ParameterError


def after_finite_learning(remaining: RenyiCurve, unlearned: RenyiCurve) -> RenyiCurve:
    """Return the bound of Section 3.3 if both learning and retraining stop after ``T`` steps.

    The bound is ``(a - 1/2) / (a - 1) (eps_T(2 a) + (2 a - 1/2) / (2 a - 1) (eps_T(4 a) + d(4 a)))``, from two
    applications of the weak triangle inequality of Proposition I.2 with ``p = q = 2``. The two directions of the
    divergence put the factors on different terms. Here, a factor is on a term if either direction puts it there.
    Therefore, the bound is two-sided if ``eps_T`` and ``d`` are two-sided.

    Args:
        remaining: ``eps_T``, the divergence between the distribution after ``T`` steps and the stationary distribution,
            on any data set.
        unlearned: ``d``, the divergence of Theorem 3.2 between two distributions. The first is the distribution of a
            model that was unlearned after learning had converged. The second is the stationary distribution on the data
            without the removed records.
    """

    def log_divergence(alpha: Array) -> Array:
        inner = np.logaddexp(remaining.log_divergence(4 * alpha), unlearned.log_divergence(4 * alpha))
        inner = inner + _log_factor(2 * alpha)
        logs: Array = _log_factor(alpha) + np.logaddexp(remaining.log_divergence(2 * alpha), inner)
        return logs

    return RenyiCurve(log_divergence)


def remaining_curve(problem: Problem, *, sigma: float, learning_steps: int, distance: float) -> RenyiCurve:
    """Return ``eps_T`` by Eq. 6, from a Gaussian start whose mean is ``distance`` away from the stationary mean.

    The value is ``exp(-m eta T / alpha) alpha m distance^2 / (4 sigma^2)``. The value is an idealisation, because the
    stationary distribution is treated as a Gaussian with the same variance as the start, ``2 sigma^2 / m``, as in
    `extras.gaussian_start_divergence`.

    Args:
        problem: The constants of the problem.
        sigma: The noise scale.
        learning_steps: The number ``T`` of learning steps.
        distance: The distance between the means, above 0.

    Raises:
        AssumptionError: ``strong_convexity`` is 0.
    """
    require_positive(sigma=sigma, distance=distance)
    require_count(least=0, learning_steps=learning_steps)
    problem.require_strong_convexity()
    log_start = math.log(problem.strong_convexity / 4) + 2 * math.log(distance / sigma)
    decay = problem.strong_convexity * problem.step_size * learning_steps
    return RenyiCurve(lambda alpha: np.log(alpha) + log_start - decay / alpha)


def gibbs_divergence(*, loss_range: float, n: int, sigma: float = 1.0) -> float:
    """Return Proposition E.1's bound on the divergence of two data sets' Gibbs distributions, ``2 F / (sigma^2 n)``.

    The bound holds at any order.

    The Gibbs distributions are proportional to ``exp(-f_D / sigma^2)``; the proposition has ``sigma = 1``. A
    discretised run has another stationary distribution, so the bound is no guarantee for it.

    Args:
        loss_range: The largest difference ``F`` between the losses of two records, at any parameters.
        n: The number of records.
        sigma: The noise scale.
    """
    require_positive(loss_range=loss_range, sigma=sigma)
    require_count(least=1, n=n)
    return 2 * loss_range / (sigma**2 * n)


# --- The line, by quadrature -----------------------------------------------------------------------------------------

_GRID = np.linspace(-7, 7, 561)
_CHAIN_GRID = np.linspace(-7, 7, 281)
_SQUARINGS = 14


def exact_gibbs_divergence(*, alpha: float, loss_range: float, n: int) -> float:
    """Return the larger of the two directed divergences between two Gibbs distributions on the line.

    It is computed by quadrature. Of the records, ``n - 1`` have the loss ``(F / 2) sin(x - 1)``, and one has ``(F / 2)
    sin(x)`` or ``-(F / 2) sin(x)``. The regulariser is ``x^2 / 2``.

    Args:
        alpha: The Rényi order, above 1.
        loss_range: The range ``F``.
        n: The number of records.
    """
    require_positive(loss_range=loss_range)
    require_count(least=1, n=n)
    shared = _GRID**2 / 2 + loss_range * (n - 1) / (2 * n) * np.sin(_GRID - 1)
    own = loss_range / (2 * n) * np.sin(_GRID)
    return _two_sided(alpha, -shared - own, -shared + own)


def exact_stationary_divergence(*, alpha: float, loss_range: float, step_size: float) -> float:
    """Return the divergence of the stationary distributions of noisy gradient steps, in its larger direction.

    The losses are those of `exact_gibbs_divergence` with ``n = 1``. ``sigma`` is 1. Each stationary distribution is
    computed as the distribution after ``2^14`` steps.

    Args:
        alpha: The Rényi order, above 1.
        loss_range: The range ``F``.
        step_size: The step size ``eta``, from 0.01 to 0.2; the grid does not resolve smaller steps.
    """
    require_positive(loss_range=loss_range)
    if not 0.01 <= step_size <= 0.2:
        raise ParameterError(f"step_size must be from 0.01 to 0.2, got {step_size}")
    return _two_sided(alpha, *(_log_stationary(half, step_size) for half in (loss_range / 2, -loss_range / 2)))


def _log_stationary(amplitude: float, step_size: float) -> npt.NDArray[np.float64]:
    moved = _CHAIN_GRID - step_size * (_CHAIN_GRID + amplitude * np.cos(_CHAIN_GRID))
    kernel = np.exp(-((_CHAIN_GRID - moved[:, np.newaxis]) ** 2) / (4 * step_size))
    kernel /= kernel.sum(axis=1, keepdims=True)
    for _ in range(_SQUARINGS):
        kernel = kernel @ kernel
    logs: npt.NDArray[np.float64] = np.log(kernel[len(kernel) // 2])
    return logs


def _two_sided(alpha: float, log_first: npt.NDArray[np.float64], log_second: npt.NDArray[np.float64]) -> float:
    """Return the larger of the two directed divergences on a grid, from log densities that need not be normalised."""
    first, second = (logs - np.logaddexp.reduce(logs) for logs in (log_first, log_second))
    return max(
        float(np.logaddexp.reduce(alpha * p + (1 - alpha) * q)) / (alpha - 1)
        for p, q in ((first, second), (second, first))
    )


def _log_factor(alpha: Array) -> Array:
    """Return ``log((a - 1/2) / (a - 1))``."""
    logs: Array = np.log1p(0.5 / (alpha - 1))
    return logs
