"""Attack advantages between laws of released models, and what printed bounds promise under adaptive requests.

Source: Theorems 4.3 and 4.5 and Remark G.8 of Chourasia and Shah, Forget Unlearning (ICML 2023), with their
corrections. The advantage of a test is ``P[it says 1 | the one record] - P[it says 1 | the other]``. Divergences are
one-sided: the model first, its reference second. `accounting.deletion.soundness` has the advantage that a bound allows
(Theorem 4.1).
"""

import math

from certified_unlearning.accounting.core.checks import (
    require_count,
    require_non_negative,
    require_positive,
    require_probability,
)
from certified_unlearning.accounting.core.conversion import delta_from_mu
from certified_unlearning.accounting.deletion.rates import check_order
from certified_unlearning.errors import ParameterError


def advantage_under_unlearning(epsilon: float, delta: float = 0.0) -> float:
    """Return the largest advantage that unlearning allows on one release, for requests fixed in advance.

    Both laws are ``(epsilon, delta)``-indistinguishable from the law ``R`` of one retrained model. On any event ``A``
    the one has at most ``1 - exp(-epsilon) (1 - R(A) - delta)`` and the other at least
    ``exp(-epsilon) (R(A) - delta)``, which differ by ``1 - exp(-epsilon) (1 - 2 delta)``; ``R(A) = 1/2`` attains it
    (derived; the definition itself promises nothing on deleted records).

    Args:
        epsilon: Epsilon of unlearning, in both directions; 0 for perfect unlearning.
        delta: At least 0, below 1.
    """
    require_non_negative(epsilon=epsilon, delta=delta)
    if delta >= 1:
        raise ParameterError(f"delta must be below 1, got {delta}")
    return min(1.0, 2 * delta * math.exp(-epsilon) - math.expm1(-epsilon))


def gaussian_advantage(divergence: float, *, alpha: float) -> float:
    """Return the advantage of the best test between two Gaussians of one covariance: ``2 Phi(mu / 2) - 1``.

    If laws are ``mu``-Gaussian DP, as those of the form `shifted` in `deletion` are, no test has a larger one.

    Args:
        divergence: Their Rényi divergence, ``alpha mu^2 / 2``.
        alpha: Its order, above 1.
    """
    require_non_negative(divergence=divergence)
    check_order(alpha)
    return delta_from_mu(math.sqrt(2 * divergence / alpha), 0.0)


def adaptive_epsilon(epsilon_dd: float, epsilon_dp: float, *, observed: int) -> float:
    """Return Theorem 4.3 as printed: the deletion bound once requests depend on observed models.

    ``epsilon_dd + p epsilon_dp``. Right only if both bounds hold *given every observed model*: from every starting
    model, over all calls up to the next observation or to the deletion. So it is for convex losses
    (`planning.adaptive_deletion_curve`, smaller); for a bound that rests on fixed requests it is wrong, and what
    remains is the sum over all calls that saw the record.

    Args:
        epsilon_dd: Deletion bound under requests fixed in advance.
        epsilon_dp: Bound for records that are present, at the same order.
        observed: ``p``, the number of models that requests may depend on.
    """
    require_non_negative(epsilon_dd=epsilon_dd, epsilon_dp=epsilon_dp)
    require_count(least=0, observed=observed)
    return epsilon_dd + observed * epsilon_dp


def necessary_epsilon(advantage: float, *, alpha: float) -> float:
    """Return Theorem 4.5 (Eq. 11): no deletion bound under adaptive requests may be smaller, given two attacks.

    ``max(a^4 / 2, log(alpha - 1) + alpha / (alpha - 1) log((1 + a^2) / (alpha 2^(1 / alpha))))``, at least 0: where
    Theorem 4.1 allows the advantage ``a^2``. Both attacks tell apart data that differ in *one* record: of the learned
    model, and of the model after a deletion, whatever the model before it.

    Args:
        advantage: ``a``, that both attacks exceed; above 0, at most 1.
        alpha: Rényi order, above 1.
    """
    require_positive(advantage=advantage)
    if advantage > 1:
        raise ParameterError(f"advantage must be at most 1, got {advantage}")
    check_order(alpha)
    by_conversion = math.log1p(advantage**2) - math.log(alpha) - math.log(2) / alpha
    return max(advantage**4 / 2, math.log(alpha - 1) + alpha / (alpha - 1) * by_conversion)


def least_noise_multiplier(epsilon: float, delta: float, *, steps: int) -> float:
    """Return Remark G.8 with its missing factor 2: DP-SGD's multiplier for ``(epsilon, delta)`` by Theorem G.7.

    ``(2 / epsilon) sqrt(K (epsilon + 2 log(1 / delta)))``, at the order ``1 + (2 / epsilon) log(1 / delta)``.

    Args:
        epsilon: Target.
        delta: Strictly between 0 and 1.
        steps: ``K``, of the whole batch, at least 1.
    """
    require_positive(epsilon=epsilon)
    require_probability(delta=delta)
    require_count(least=1, steps=steps)
    return 2 / epsilon * math.sqrt(steps * (epsilon - 2 * math.log(delta)))


def randomised_response_divergence(epsilon: float, *, alpha: float) -> float:
    """Return the divergence of a bit kept with probability ``e^eps / (1 + e^eps)`` from the opposite bit so treated."""
    require_non_negative(epsilon=epsilon)
    check_order(alpha)
    log_kept, log_flipped = _kept_and_flipped(epsilon)
    return bernoulli_divergence(log_kept, log_flipped, log_flipped, log_kept, alpha=alpha)


def coin_divergence(epsilon: float, *, alpha: float) -> float:
    """Return the divergence of a bit kept with probability ``e^eps / (1 + e^eps)`` from a fair coin."""
    require_non_negative(epsilon=epsilon)
    check_order(alpha)
    log_kept, log_flipped = _kept_and_flipped(epsilon)
    return bernoulli_divergence(log_kept, log_flipped, -math.log(2), -math.log(2), alpha=alpha)


def _kept_and_flipped(epsilon: float) -> tuple[float, float]:
    """Return the logarithms of ``e^eps / (1 + e^eps)`` and of ``1 / (1 + e^eps)``."""
    log_kept = -math.log1p(math.exp(-epsilon))
    return log_kept, log_kept - epsilon


def bernoulli_divergence(
    log_first: float, log_second: float, log_first_reference: float, log_second_reference: float, *, alpha: float
) -> float:
    """Return the Rényi divergence of two laws of a bit, given by logarithms of their probabilities."""
    gains = [(alpha - 1) * (log_first - log_first_reference), (alpha - 1) * (log_second - log_second_reference)]
    if max(gains) < 1:
        # The sum below is near 1, and its logarithm would lose digits.
        mean = math.exp(log_first) * math.expm1(gains[0]) + math.exp(log_second) * math.expm1(gains[1])
        return math.log1p(max(0.0, mean)) / (alpha - 1)
    exponents = log_first + gains[0], log_second + gains[1]
    top = max(exponents)
    return (top + math.log(sum(math.exp(exponent - top) for exponent in exponents))) / (alpha - 1)


def laplace_divergence(epsilon: float, *, alpha: float) -> float:
    """Return the divergence of two Laplace laws of scale ``1 / epsilon`` whose centres lie 1 apart."""
    require_non_negative(epsilon=epsilon)
    check_order(alpha)
    towards, away = (alpha - 1) * epsilon, -alpha * epsilon
    weighted = (alpha * math.exp(towards - towards) + (alpha - 1) * math.exp(away - towards)) / (2 * alpha - 1)
    return (towards + math.log(weighted)) / (alpha - 1)
