"""Additions to `lsi` from the appendices of Langevin unlearning: how many steps unlearning saves.

The saved steps are counted in comparison with retraining. The source and the notation are those of `lsi`.
"""

import math

import numpy as np

from certified_unlearning.accounting.core.checks import require_positive
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.langevin import lsi
from certified_unlearning.errors import ParameterError


def saved_steps(problem: Problem, *, alpha: float, sigma: float, records: int, start_divergence: float) -> float:
    """Return how many steps unlearning saves against retraining, for the same Rényi divergence of order ``alpha``.

    Appendix E gives the number of saved steps: ``(alpha / (m eta)) log(d_alpha(nu_0, nu_D') / eps0(alpha))``. The
    bounds of retraining and unlearning decay at the same rate. Retraining begins with the start's divergence from the
    stationary distribution on the new data, and unlearning with the learned model's divergence from this distribution.
    The number is negative if the start is nearer to this distribution than the learned model.

    Args:
        problem: The constants of the problem.
        alpha: The Rényi order, above 1.
        sigma: The noise scale.
        records: The number ``S`` of records that are removed at once.
        start_divergence: The divergence ``d_alpha(nu_0, nu_D')``, above 0; see `gaussian_start_divergence`.

    Raises:
        AssumptionError: ``step_size`` exceeds ``1 / smoothness``, or ``strong_convexity`` is 0.
    """
    require_positive(start_divergence=start_divergence)
    _require_order(alpha)
    log_initial = float(lsi.initial_curve(problem, sigma=sigma, records=records).log_divergence(np.array(alpha)))
    rate = problem.strong_convexity * problem.step_size
    return alpha / rate * (math.log(start_divergence) - log_initial)


def gaussian_start_divergence(problem: Problem, *, alpha: float, sigma: float, distance: float) -> float:
    """Return ``d_alpha(nu_0, nu_D') = alpha m distance^2 / (4 sigma^2)`` for Gaussians of variance ``2 sigma^2 / m``.

    This is an idealisation: the stationary distribution is Gaussian only for quadratic losses. Appendix E prints the
    norm ``distance`` without its square. At a distance of 1, `saved_steps` becomes ``(alpha / (m eta)) log(m^2 n^2 /
    (16 M^2))``.

    Args:
        problem: The constants of the problem.
        alpha: The Rényi order, above 1.
        sigma: The noise scale.
        distance: The distance between the start's mean and the optimum on the new data.

    Raises:
        AssumptionError: ``strong_convexity`` is 0.
    """
    require_positive(sigma=sigma, distance=distance)
    _require_order(alpha)
    problem.require_strong_convexity()
    return alpha * problem.strong_convexity * (distance / sigma) ** 2 / 4


def _require_order(alpha: float) -> None:
    if not (math.isfinite(alpha) and alpha > 1):
        raise ParameterError(f"alpha must be a finite number above 1, got {alpha}")
