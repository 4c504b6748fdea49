"""Additions to `lsi` from Langevin unlearning's appendices: the steps that are saved against retraining.

Source and notation as in `lsi`.
"""

import math

import numpy as np

from certified_unlearning.accounting.core.checks import require_positive
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.langevin import lsi
from certified_unlearning.errors import ParameterError


def saved_steps(problem: Problem, *, alpha: float, sigma: float, records: int, start_divergence: float) -> float:
    """Return how many fewer steps unlearning takes than retraining, to the same Rényi divergence of order ``alpha``.

    Appendix E: ``(alpha / (m eta)) log(d_alpha(nu_0, nu_D') / eps0(alpha))``. The bounds decay alike, from the start's
    and from the learned model's divergence from the stationary law on the new data. Negative where the start is nearer.

    Args:
        problem: The constants.
        alpha: Rényi order, above 1.
        sigma: Noise scale.
        records: ``S``, removed at once.
        start_divergence: ``d_alpha(nu_0, nu_D')``, above 0; see `gaussian_start_divergence`.

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

    An idealisation: the stationary law is Gaussian for quadratic losses only. Appendix E prints the norm ``distance``
    without its square. At a distance of 1 `saved_steps` becomes ``(alpha / (m eta)) log(m^2 n^2 / (16 M^2))``.

    Args:
        problem: The constants.
        alpha: Rényi order, above 1.
        sigma: Noise scale.
        distance: Between the means: the start's and the optimum on the new data.

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
