"""The accountant of the Langevin unlearning paper: privacy recuperation through a log-Sobolev inequality (LSI).

Source: Chien, Wang, Chen, Li, Langevin unlearning (NeurIPS 2024), strongly convex case, ``C_LSI = 2 sigma^2 / m``. The
paper's other two cases are in `theory.general`. A step is ``x <- x - eta grad f_D(x) + sqrt(2 eta) sigma N(0, I)``,
then optionally a projection onto a ball. ``sigma`` is not the per-step standard deviation, and none of these bounds
contains the ball's radius.

All bounds are two-sided: they hold for both directions of the divergence. The caller must ensure that requests are
fixed in advance, and that the start is ``C_LSI``-LSI (a point, or a Gaussian of variance at most ``2 sigma^2 / m``).
The unlearning bounds also need learning to stationarity; `stationarity` computes what a finite run adds to delta.
"""

import math
import sys
from collections.abc import Sequence

import numpy as np

from certified_unlearning.accounting.core.checks import require_count, require_positive
from certified_unlearning.accounting.core.curves import RenyiCurve, Schedule
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.core.search import Array
from certified_unlearning.errors import AssumptionError

# A request that is followed by this many others acts at orders above 2^56. There, neither its steps nor its Hölder
# factor change a double.
RECENT_REQUESTS = 56
# The logarithm of a factor. Terms that are smaller than another term by this factor do not change the sum as a double,
# even 56 of them together.
LOG_NEGLIGIBLE = 42.0


def curve(problem: Problem, schedule: Schedule) -> RenyiCurve:
    """Return bounds on the Rényi divergence between the unlearned and the retrained model after the last request.

    The bound after the first request needs no triangle inequality. It is ``exp(-eta m K / alpha) eps0(alpha)`` (Theorem
    3.2, case 3) with ``eps0`` as in `initial_curve`. Later requests use Corollary 3.4 (Hölder exponent 2). Both models
    are at stationarity, so ``schedule.learning_steps`` is not used. The bounds cover only the model after the last
    request, not all published models jointly.

    Args:
        problem: The constants.
        schedule: Noise, records and steps of the requests.

    Raises:
        ParameterError: The requests remove more records than exist, or all records under adjacency ``remove``.
        AssumptionError: ``step_size`` exceeds ``1 / smoothness``, or ``strong_convexity`` is 0.
    """
    check_assumptions(problem, schedule.sigma)
    sensitivities = stream_sensitivities(problem, schedule.records, len(schedule.steps))
    rate = problem.step_size * problem.strong_convexity
    return sequential_curve(
        _log_initial_per_order(problem, schedule.sigma, sensitivities),
        rate * np.array(schedule.steps, dtype=np.float64),
    )


def initial_curve(problem: Problem, *, sigma: float, records: int, learning_steps: float = math.inf) -> RenyiCurve:
    """Return bounds on the Rényi divergence between models learned on data sets that differ in ``records`` records.

    By Theorem 3.3 (strongly convex), the bound is ``eps0(alpha) = (4 alpha S^2 M^2 / (m sigma^2 n^2)) (1 - exp(-m eta
    T))``. For an adjacency other than ``replace``, its own sensitivity replaces ``2 M S / n``.

    Args:
        problem: The constants.
        sigma: Noise scale.
        records: Number of records, ``S``.
        learning_steps: Number of learning steps, ``T``; infinite for learning to stationarity.

    Raises:
        AssumptionError: ``step_size`` exceeds ``1 / smoothness``, or ``strong_convexity`` is 0.
    """
    check_assumptions(problem, sigma)
    if learning_steps != math.inf:
        require_count(least=0, learning_steps=learning_steps)
    learned = -math.expm1(-problem.strong_convexity * problem.step_size * learning_steps)
    with np.errstate(divide="ignore"):
        log_bound = float(
            _log_initial_per_order(problem, sigma, stream_sensitivities(problem, records, 1))[0] + np.log(learned)
        )
    return RenyiCurve(lambda alpha: np.log(alpha) + log_bound)


def sequential_curve(log_initial_per_order: Array, exponents: Array) -> RenyiCurve:
    """Return Corollary 3.4's bounds after a stream of requests, for any initial bounds and recuperation exponents.

    Request ``s`` adds ``eps0_s(alpha) = A_s alpha``, and its steps multiply every bound by ``exp(-E_s / alpha)``:

    ``eps^(s)(alpha) = exp(-E_s / alpha) (alpha - 1/2) / (alpha - 1) (eps0_s(2 alpha) + eps^(s-1)(2 alpha))``,

    except that the first request needs no triangle inequality: ``eps^(1)(alpha) = exp(-E_1 / alpha) eps0_1(alpha)``.
    For ``(alpha - 1) eps^(s)``, the factors ``(2^i alpha - 1/2) / (2^i alpha - 1)`` along the recursion cancel, except
    for the last numerator. The request that is ``j`` requests before the last one adds ``alpha A (2^(j+1) alpha - 1)
    exp(-C_j / alpha)``. The request that is ``i`` requests before the last one acts at the order ``2^i alpha``, so
    ``C_j`` is the sum of ``E / 2^i`` for ``i`` from ``j`` to 0. For the very first request, ``2^j`` replaces
    ``2^(j+1)``. Logarithms are used because ``2^j`` overflows a double.

    Args:
        log_initial_per_order: ``log A_s`` of each request, shape ``(requests,)``.
        exponents: ``E_s`` of each request, shape ``(requests,)``.
    """
    ages = np.arange(len(exponents))
    log_weights = log_initial_per_order[::-1] + np.minimum(ages + 1, len(ages) - 1) * math.log(2)
    recent = ages[:RECENT_REQUESTS]
    passed = np.cumsum(exponents[::-1][:RECENT_REQUESTS] * 0.5**recent)
    subtracted = 0.5 ** np.minimum(recent + 1, len(ages) - 1)
    if len(ages) > RECENT_REQUESTS:
        # One term replaces all older requests. Leaving out their steps only increases the bound.
        older = np.logaddexp.reduce(log_weights[RECENT_REQUESTS:])
        log_weights = np.append(log_weights[:RECENT_REQUESTS], older)
        passed = np.append(passed, passed[-1])
        subtracted = np.append(subtracted, 0.0)
        # Terms that are negligible compared with this one at alpha = 1 are negligible at every order.
        matters = log_weights - passed >= older - passed[-1] - LOG_NEGLIGIBLE
        log_weights, passed, subtracted = log_weights[matters], passed[matters], subtracted[matters]
    numerators = np.stack([np.ones_like(subtracted), -subtracted])

    def log_divergence(alpha: Array) -> Array:
        log_terms = log_weights[:, np.newaxis] - np.multiply.outer(passed, 1 / alpha)
        # If nothing was learned, all terms are minus infinity, and the sum must be minus infinity, too.
        largest = log_terms.max(axis=0, initial=-sys.float_info.max)
        terms, subtracted_terms = numerators @ np.exp(log_terms - largest)
        with np.errstate(divide="ignore"):
            logs: Array = np.log(alpha * terms + subtracted_terms) + largest + np.log1p(1 / (alpha - 1))
        return logs

    return RenyiCurve(log_divergence)


def stream_sensitivities(problem: Problem, records_per_request: int | Sequence[int], requests: int) -> Array:
    """Return the `Problem.sensitivity` of each request of a stream, shape ``(requests,)``.

    With adjacency ``remove``, every request acts on fewer records than the previous one, so each record has a larger
    weight.

    Raises:
        ParameterError: The requests remove more records than exist, or all records under adjacency ``remove``.
    """
    if requests == 0:
        return np.zeros(0)
    sizes = np.broadcast_to(records_per_request, requests)
    removed_before = np.cumsum(sizes) - sizes
    last = problem.sensitivity(int(sizes[-1]), removed_before=int(removed_before[-1]))
    sensitivities: Array = last * (sizes / sizes[-1])
    if problem.adjacency == "remove":
        remaining = problem.n - removed_before
        sensitivities = sensitivities * (remaining[-1] / remaining)
    return sensitivities


def check_assumptions(problem: Problem, sigma: float) -> None:
    """Check the conditions of Theorems 3.2 (case 3) and 3.3 (strongly convex) with ``C_LSI = 2 sigma^2 / m``.

    ``sigma^2 / m < C_LSI`` holds, and ``eta <= (2/m) (1 - sigma^2 / (m C_LSI)) = 1/m`` follows from ``eta <= 1/L``.

    Raises:
        AssumptionError: ``step_size`` exceeds ``1 / smoothness`` by more than the rounding of that quotient, or
            ``strong_convexity`` is 0.
    """
    require_positive(sigma=sigma)
    problem.require_strong_convexity()
    limit = 1 / problem.smoothness
    if problem.step_size > math.nextafter(limit, math.inf):
        raise AssumptionError(
            "Langevin unlearning's theorems for strongly convex losses need step_size <= 1 / smoothness = "
            f"{limit}, got step_size = {problem.step_size}"
        )


def _log_initial_per_order(problem: Problem, sigma: float, sensitivities: Array) -> Array:
    """Return the logarithms of ``sensitivity^2 / (m sigma^2)``, which is ``eps0(alpha) / alpha`` at infinite ``T``."""
    logs: Array = 2 * np.log(sensitivities / sigma) - math.log(problem.strong_convexity)
    return logs
