"""Conversion of privacy curves to (epsilon, delta) and back.

A Rényi curve is converted as in Langevin unlearning (Prop. M.2), or by the tight conversion of Canonne, Kamath and
Steinke (2020, Prop. 12). If a curve is known at all orders, the best order is found by continuous minimisation, so no
grid of orders can be too coarse. The conversion of a Gaussian curve is exact. The tests compare it with dp-accounting.
That library is not used here because its root search stops at an absolute tolerance and fails for ``mu`` below 1e-14.
"""

import math
import sys
from collections.abc import Callable
from functools import cache, lru_cache
from importlib import import_module
from types import ModuleType
from typing import Literal, NamedTuple

import numpy as np

from certified_unlearning.accounting.core.checks import require_non_negative, require_positive, require_probability
from certified_unlearning.accounting.core.curves import GaussianCurve, PrivacyCurve, RenyiCurve
from certified_unlearning.accounting.core.search import Array, minimise
from certified_unlearning.errors import ParameterError

Conversion = Literal["paper", "tight"]

# The searched orders reach from the least double above 1 to 5e34.
LEAST_LOG_EXCESS = math.log(sys.float_info.epsilon)
LARGEST_LOG_EXCESS = 80.0
# Relative error of an exact epsilon. Results are moved to the safe side by this much.
ROUNDING = 1e-14
# Newton's method squares its error, so after a step of this size the error is smaller than that of rounding.
LAST_STEP = 1e-9
# Below this ``a``, exp(-a^2 / 2) is below the least double.
LEAST_A = -40
# Above this ``mu``, the start of `mu_from_epsilon` is off by less than 1e-12, which rounding exceeds.
LARGE_MU = 1e14
# The least accepted epsilon. Doubles that are only slightly smaller already have fewer digits.
LEAST_EPSILON = 1e-300
# Below this ``mu``, delta is integrated by Gauss's rule, with the nodes below.
SMALL_MU = 0.3
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


class EpsilonAtOrder(NamedTuple):
    """An epsilon and the Rényi order ``alpha`` that gives it."""

    epsilon: float
    alpha: float


def epsilon_of(curve: PrivacyCurve, delta: float, *, conversion: Conversion = "tight") -> float:
    """Return the least epsilon that a privacy curve gives at ``delta``.

    Args:
        curve: The privacy curve that an accountant returned.
        delta: Strictly between 0 and 1.
        conversion: The conversion of Rényi curves, see `epsilon_from_renyi`. Gaussian curves are always converted
            exactly.

    Raises:
        ParameterError: ``delta`` is out of range, or the curve gives NaN.
    """
    if isinstance(curve, GaussianCurve):
        return epsilon_from_mu(curve.mu, delta)
    return epsilon_from_renyi(curve, delta, conversion=conversion).epsilon


def epsilon_from_renyi(curve: RenyiCurve, delta: float, *, conversion: Conversion = "tight") -> EpsilonAtOrder:
    """Return the least epsilon that a Rényi curve gives at ``delta``.

    That is the minimum of ``curve(alpha) + overhead(alpha)`` over ``alpha > 1``, with ``overhead`` as in
    `order_overhead`. Every order gives a valid epsilon, and the returned epsilon is the value at the returned order. So
    the returned epsilon is an upper bound even if the search stops short of the minimum.

    Args:
        curve: Upper bounds on Rényi divergences.
        delta: Strictly between 0 and 1.
        conversion: ``paper`` or ``tight``.

    Raises:
        ParameterError: ``delta`` is out of range, or the curve gives NaN.
    """
    require_probability(delta=delta)
    log_inverse_delta = -math.log(delta)

    def epsilons(log_excess: Array) -> Array:
        alpha = 1 + np.exp(log_excess)
        return curve(alpha) + order_overhead(log_excess, log_inverse_delta, conversion)

    value, log_excess = least_over_orders(epsilons, curve)
    return EpsilonAtOrder(max(0.0, value), 1 + math.exp(log_excess))


def delta_from_renyi(curve: RenyiCurve, epsilon: float, *, conversion: Conversion = "tight") -> float:
    """Return the least delta, at most 1, that a Rényi curve gives at ``epsilon``. This inverts `epsilon_from_renyi`.

    Args:
        curve: Upper bounds on Rényi divergences.
        epsilon: At least 0.
        conversion: ``paper`` or ``tight``.

    Raises:
        ParameterError: ``epsilon`` is out of range, or the curve gives NaN.
    """
    require_non_negative(epsilon=epsilon)

    def log_deltas(log_excess: Array) -> Array:
        alpha = 1 + np.exp(log_excess)
        # This solves overhead = extra + log(1/delta) / (alpha - 1) for log(delta).
        return np.exp(log_excess) * (curve(alpha) - epsilon + order_overhead(log_excess, 0.0, conversion))

    value, _ = least_over_orders(log_deltas, curve)
    return math.exp(min(0.0, value))


def least_over_orders(function: Callable[[Array], Array], curve: RenyiCurve) -> tuple[float, float]:
    """Return the least value of a function over the orders of a curve, and ``log(alpha - 1)`` at the best order.

    Args:
        function: Maps an array of ``log(alpha - 1)`` to an array of values.
        curve: The curve, which determines the orders.

    Raises:
        ParameterError: A value is NaN because the curve gives NaN.
    """
    if curve.orders is None:
        log_excess, value = minimise(function, LEAST_LOG_EXCESS, LARGEST_LOG_EXCESS)
    else:
        grid = np.log(curve.orders - 1)
        values = function(grid)
        best = int(np.argmin(values))
        log_excess, value = float(grid[best]), float(values[best])
    if math.isnan(value):
        raise ParameterError("the Rényi curve must give numbers, got NaN")
    return value, log_excess


def order_overhead(log_excess: Array, log_inverse_delta: float, conversion: Conversion) -> Array:
    """Return the amount that the conversion adds to the Rényi divergence at each order.

    ``paper`` adds ``log(1/delta) / (alpha - 1)``. ``tight`` adds ``log(1 - 1/alpha) - (log(delta) + log(alpha)) /
    (alpha - 1)``.

    Args:
        log_excess: ``log(alpha - 1)``.
        log_inverse_delta: ``log(1/delta)``.
        conversion: ``paper`` or ``tight``.
    """
    inverse_excess = np.exp(-log_excess)
    overhead: Array = log_inverse_delta * inverse_excess
    if conversion == "tight":
        log_alpha = np.logaddexp(0, log_excess)
        overhead = overhead - np.logaddexp(0, -log_excess) - log_alpha * inverse_excess
    return overhead


@lru_cache(maxsize=1024)
def epsilon_from_mu(mu: float, delta: float) -> float:
    """Return the exact epsilon of ``mu``-Gaussian DP at ``delta``, rounded up by about 1e-14.

    Newton's method solves ``delta = Phi(a) - e^eps Phi(a - mu)`` for ``a = mu/2 - eps/mu`` (Balle and Wang 2018,
    Theorem 8). ``log(delta)`` is concave in ``a``, and the start, ``Phi(a) = delta``, is below the root. So every step
    stays below the root, and epsilon is approached from above. A delta within 1e-6 of 1 has too few digits for this
    accuracy.

    Raises:
        ParameterError: ``mu`` is negative, or ``delta`` is not strictly between 0 and 1.
    """
    require_probability(delta=delta)
    mu, delta = float(mu), float(delta)
    if delta_from_mu(mu, 0.0) * (1 + ROUNDING) <= delta:
        return 0.0
    if math.isinf(mu):
        return math.inf
    a, step = float(_special().ndtri(delta)), math.inf
    while step > LAST_STEP:
        log_found = _log_delta(a, mu)
        slope = mu * _mills_ratio(a - mu) * math.exp(_log_density(a) - log_found)
        step = (math.log(delta) - log_found) / slope
        a += step
    epsilon = max(0.0, mu * (mu / 2 - a))
    return epsilon + ROUNDING * (epsilon + mu)


def delta_from_mu(mu: float, epsilon: float) -> float:
    """Return the exact delta of ``mu``-Gaussian DP at ``epsilon``, with a relative error of about 1e-13.

    The delta is ``Phi(a) - e^eps Phi(a - mu)`` with ``a = mu/2 - eps/mu``.

    Raises:
        ParameterError: A value is negative.
    """
    require_non_negative(epsilon=epsilon)
    if not mu >= 0:
        raise ParameterError(f"mu must be at least 0, got {mu}")
    if mu == 0:
        return 0.0
    if math.isinf(mu):
        return 1.0
    return math.exp(_log_delta(mu / 2 - epsilon / mu, mu))


@lru_cache(maxsize=1024)
def mu_from_epsilon(epsilon: float, delta: float) -> float:
    """Return the largest ``mu`` whose `epsilon_from_mu` at ``delta`` is at most ``epsilon``, to about 1e-12.

    Newton's method solves for ``log(mu)``, in which ``log(delta)`` is concave. The start, ``Phi(mu/2 - eps/mu) =
    delta``, is below the root.

    Raises:
        ParameterError: ``epsilon`` is not at least `LEAST_EPSILON`, or ``delta`` is not strictly between 0 and 1.
    """
    require_positive(epsilon=epsilon)
    require_probability(delta=delta)
    if epsilon < LEAST_EPSILON:
        raise ParameterError(f"epsilon must be at least {LEAST_EPSILON:g}, got {epsilon!r}")
    epsilon, delta = float(epsilon), float(delta)  # NumPy's short floats are too coarse.
    a = float(_special().ndtri(delta))
    root = math.hypot(a, math.sqrt(2) * math.sqrt(epsilon))
    mu, step = root + a if a > 0 else 2 * (epsilon / (root - a)), math.inf
    # For large mu, the start equals the root up to rounding.
    while step > LAST_STEP and mu < LARGE_MU:
        a = mu / 2 - epsilon / mu
        log_found = _log_delta(a, mu)
        # The derivative of delta with respect to mu is phi(a).
        step = (math.log(delta) - log_found) / (mu * math.exp(_log_density(a) - log_found))
        mu *= math.exp(step)
    nudge = ROUNDING
    while epsilon_from_mu(mu, delta) > epsilon:
        mu *= 1 - nudge
        nudge *= 2
    return mu


def _log_delta(a: float, mu: float) -> float:
    """Return ``log(Phi(a) - phi(a) R(a - mu))``, where ``R = Phi/phi`` is Mills' ratio.

    For ``a`` below 0, the result is computed as ``log(phi(a)) + log(R(a) - R(a - mu))``, so that no digits are lost if
    ``phi(a)`` is small. For small ``mu``, the difference of the ratios is integrated from ``R'(x) = 1 + x R(x)``,
    because subtraction would lose all digits.
    """
    if a < LEAST_A:
        return -math.inf
    if mu <= SMALL_MU:
        points = a - mu / 2 + mu / 2 * _NODES
        slopes = 1 + points * _mills_ratios(points)
        return _log_density(a) + math.log(mu / 2 * float(_WEIGHTS @ slopes))
    if a < 0:
        return _log_density(a) + math.log(_mills_ratio(a) - _mills_ratio(a - mu))
    return math.log(float(_special().ndtr(a)) - math.exp(_log_density(a)) * _mills_ratio(a - mu))


def _mills_ratio(x: float) -> float:
    """Return ``Phi(x) / phi(x)``."""
    return float(_mills_ratios(x))


def _mills_ratios(x: "float | Array") -> "float | Array":
    return math.sqrt(math.pi / 2) * _special().erfcx(-x / math.sqrt(2))  # type: ignore[no-any-return]


@cache
def _special() -> ModuleType:
    """Return `scipy.special`.

    The import is late and its result is cached, because even a repeated import takes time.
    """
    return import_module("scipy.special")


def _log_density(x: float) -> float:
    return -x * x / 2 - math.log(2 * math.pi) / 2
