"""From a Rényi curve to (epsilon, delta)."""

import math
import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from certified_unlearning.accounting.checks import require_probability
from certified_unlearning.accounting.search import Array, minimise
from certified_unlearning.errors import ParameterError

# Orders searched: from the least double above 1 to 5e34.
LEAST_LOG_EXCESS = math.log(sys.float_info.epsilon)
LARGEST_LOG_EXCESS = 80.0


class EpsilonAtOrder(NamedTuple):
    """An epsilon and the Rényi order ``alpha`` that gives it."""

    epsilon: float
    alpha: float


def epsilon_from_renyi(curve: Callable[[Array], Array], delta: float) -> EpsilonAtOrder:
    """Return the least epsilon that a Rényi curve gives at ``delta``.

    ``min over alpha > 1 of curve(alpha) + log(1/delta) / (alpha - 1)`` (Langevin unlearning, Prop. M.2).
    Every order gives a valid epsilon and the one returned is the value at the returned order, so it is an
    upper bound even where the search should stop short of the minimum.

    Args:
        curve: Maps an array of orders above 1 to upper bounds on the Rényi divergences of these orders.
        delta: Strictly between 0 and 1.

    Raises:
        ParameterError: ``delta`` is out of range, or the curve gives NaN.
    """
    require_probability(delta=delta)
    log_inverse_delta = -math.log(delta)

    def epsilons(log_excess: Array) -> Array:
        alpha = 1 + np.exp(log_excess)
        values: Array = curve(alpha) + log_inverse_delta / (alpha - 1)
        return values

    log_excess, _ = minimise(epsilons, LEAST_LOG_EXCESS, LARGEST_LOG_EXCESS)
    alpha = 1 + math.exp(log_excess)
    epsilon = float(curve(np.array([alpha]))[0]) + log_inverse_delta / (alpha - 1)
    if math.isnan(epsilon):
        raise ParameterError("the Rényi curve must give numbers, got NaN")
    return EpsilonAtOrder(epsilon, alpha)
