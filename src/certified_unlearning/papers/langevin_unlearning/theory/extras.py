"""Additions to `lsi` from Langevin unlearning's appendices: too few learning steps, exact Gibbs laws, the steps saved.

Source and notation as in `lsi`.
"""

import math
from dataclasses import replace

import numpy as np

from certified_unlearning.accounting.core.checks import require_positive
from certified_unlearning.accounting.core.curves import RenyiCurve
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.core.search import Array
from certified_unlearning.accounting.langevin import lsi
from certified_unlearning.errors import ParameterError


def insufficient_training_curve(unlearning: RenyiCurve, residual: RenyiCurve) -> RenyiCurve:
    """Return bounds on the Rényi divergence between unlearned and retrained model where learning stopped early.

    The weak triangle inequality (Hölder exponent 2) twice: from the unlearned model to the one unlearned from
    stationarity, to retraining at stationarity, to retraining that stopped early. With
    ``f(alpha) = (alpha - 1/2) / (alpha - 1)`` it is
    ``f(alpha) (eps_T(2 alpha) + f(2 alpha) (eps_T(4 alpha) + eps(4 alpha)))``. Unlearning brings the first two no
    further apart than learning left them.

    Args:
        unlearning: ``eps``, between unlearned and retrained model at stationarity: `lsi.curve`.
        residual: ``eps_T``, two-sided, between the law after ``T`` steps and the stationary one, on any admissible
            data. It is ``alpha mu^2 / 2`` for a `stationarity.residual_mu` of a distance that is never exceeded
            (``W_infinity``): ``R + ||x_0||`` where every step projects on a ball of radius ``R``. The distance of
            `stationarity.starting_distance` is exceeded with probability ``beta``, which no Rényi divergence forgives:
            on quadratics, without a ball, that of a run from a point is infinite from the order ``c^(-2T)`` on. With
            that distance use `stationarity.extra_delta`.

    Raises:
        ParameterError: A curve is known at some orders only.
    """
    if unlearning.orders is not None or residual.orders is not None:
        raise ParameterError("insufficient training needs curves that are known at all orders, not on a grid of orders")

    def log_divergence(alpha: Array) -> Array:
        after_learning = np.logaddexp(residual.log_divergence(4 * alpha), unlearning.log_divergence(4 * alpha))
        logs: Array = _log_hoelder(alpha) + np.logaddexp(
            residual.log_divergence(2 * alpha), _log_hoelder(2 * alpha) + after_learning
        )
        return logs

    return RenyiCurve(log_divergence)


def gibbs_curve(problem: Problem, *, loss_range: float, records: int, temperature: float = 1.0) -> RenyiCurve:
    """Return the bound on the Rényi divergence between Gibbs laws ``exp(-f_D / temperature)`` on neighbouring data.

    Proposition E.1: ``2 F S / (n temperature)``, at every order; for each adjacency it is `Problem.sensitivity` with
    ``F`` for ``M``, over the temperature. The difference of the two exponents has at most that range, hence the log
    ratio of the normalised laws at most that absolute value. Langevin dynamics with noise scale ``sigma`` has the
    temperature ``sigma^2`` as ``eta`` goes to 0.

    Args:
        problem: The constants; only ``n`` and ``adjacency`` are used.
        loss_range: ``F``, largest minus smallest value of a record's loss, over all records and parameters.
        records: ``S``.
        temperature: Divides the exponent.

    Raises:
        ParameterError: A value makes no sense.
    """
    require_positive(loss_range=loss_range, temperature=temperature)
    log_bound = math.log(replace(problem, lipschitz=loss_range).sensitivity(records) / temperature)
    return RenyiCurve(lambda alpha: np.full_like(alpha, log_bound))


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
        ParameterError: A value makes no sense.
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
        ParameterError: A value makes no sense.
        AssumptionError: ``strong_convexity`` is 0.
    """
    require_positive(sigma=sigma, distance=distance)
    _require_order(alpha)
    problem.require_strong_convexity()
    return alpha * problem.strong_convexity * (distance / sigma) ** 2 / 4


def _log_hoelder(alpha: Array) -> Array:
    """Return ``log((alpha - 1/2) / (alpha - 1))``."""
    logs: Array = np.log1p(0.5 / (alpha - 1))
    return logs


def _require_order(alpha: float) -> None:
    if not (math.isfinite(alpha) and alpha > 1):
        raise ParameterError(f"alpha must be a finite number above 1, got {alpha}")
