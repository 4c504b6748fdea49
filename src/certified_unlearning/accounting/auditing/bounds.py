"""Lower bounds on epsilon and mu from an event that is likely for a model and unlikely for the comparator.

Let an event have probability ``p`` under the comparator. If the model is (epsilon, delta)-close to the comparator, the
event has probability at most ``e^epsilon p + delta`` under the model. If the model is ``mu``-Gaussian close, this
probability is at most ``Phi(mu + Phi^-1(p))``. So a lower bound on the probability under the model gives lower bounds
on epsilon and on mu. Both are rounded down.
"""

import math

from certified_unlearning.accounting.core.checks import require_non_negative

ROUNDING = 1e-13
"""The share of each term that is subtracted to cover rounding."""


def epsilon_at_least(rate: float, log_p: float, *, delta: float = 0.0) -> float:
    """Return the lower bound ``ln((rate - delta) / p)`` on epsilon, or 0 if it is negative or ``rate <= delta``.

    Args:
        rate: Lower bound on the event's probability under the model. In an audit of one run, this is the level
            ``alpha``: if epsilon were smaller, a p-value this small would have a probability below ``alpha``.
        log_p: Natural logarithm of the event's probability under the comparator, or an upper bound on this logarithm.
        delta: Delta of the statement, including all additions to delta.
    """
    require_non_negative(delta=delta)
    if rate <= delta:
        return 0.0
    first = math.log(rate - delta)
    return max(0.0, first - log_p - ROUNDING * (abs(first) + abs(log_p)))


def mu_at_least(rate: float, log_p: float, *, extra_delta: float = 0.0) -> float:
    """Return the lower bound ``Phi^-1(rate - extra_delta) - Phi^-1(p)`` on ``mu``, or 0 if it is negative.

    Args:
        rate: As for `epsilon_at_least`.
        log_p: As for `epsilon_at_least`.
        extra_delta: The statement's addition to the delta of the Gaussian curve.
    """
    require_non_negative(extra_delta=extra_delta)
    if rate <= extra_delta or log_p >= 0:
        return 0.0
    from scipy.special import ndtri, ndtri_exp

    first, second = float(ndtri(rate - extra_delta)), float(ndtri_exp(log_p))
    if math.isinf(first) and math.isinf(second):
        return 0.0
    return max(0.0, first - second - ROUNDING * (abs(first) + abs(second)))


def log_most_probability(
    log_p: float, *, epsilon: float, delta: float, mu: float | None = None, extra_delta: float = 0.0
) -> float:
    """Return the logarithm of the largest probability that a statement allows for an event.

    The probability is computed from ``mu`` if ``mu`` is given, and otherwise from epsilon and delta.

    Args:
        log_p: Natural logarithm of the event's probability under the comparator.
        epsilon: Epsilon of the statement.
        delta: Delta at which epsilon holds.
        mu: ``mu`` of Gaussian differential privacy in the statement; None if the statement contains no ``mu``.
        extra_delta: Addition to the delta of the Gaussian curve.
    """
    if log_p >= 0:
        return 0.0
    if mu is None:
        allowed = math.exp(min(0.0, epsilon + log_p)) + delta
    else:
        from scipy.special import ndtr, ndtri_exp

        allowed = float(ndtr(mu + ndtri_exp(log_p))) + extra_delta
    return math.log(min(1.0, allowed)) if allowed > 0 else -math.inf
