"""Advantages of attacks that distinguish distributions of released models, and printed bounds for adaptive requests.

Source: Theorems 4.3 and 4.5 and Remark G.8 of Chourasia and Shah, Forget Unlearning (ICML 2023), with their
corrections. The advantage of a test is the difference between its probabilities of answering 1 for the two values of a
record. Divergences are one-sided: the first argument is the model, and the second is its reference. The module
`accounting.deletion.soundness` computes the advantage that a bound allows (Theorem 4.1).
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

    Both distributions are ``(epsilon, delta)``-indistinguishable from the distribution ``R`` of one retrained model.
    The probability of any event ``A`` is at most ``1 - exp(-epsilon) (1 - R(A) - delta)`` under the first distribution,
    and at least ``exp(-epsilon) (R(A) - delta)`` under the second. The difference is ``1 - exp(-epsilon) (1 - 2
    delta)``, and ``R(A) = 1/2`` attains this value. This is derived here; the definition itself promises nothing about
    deleted records.

    Args:
        epsilon: The epsilon of unlearning, in both directions; 0 for perfect unlearning.
        delta: The delta of unlearning, at least 0 and below 1.
    """
    require_non_negative(epsilon=epsilon, delta=delta)
    if delta >= 1:
        raise ParameterError(f"delta must be below 1, got {delta}")
    return min(1.0, 2 * delta * math.exp(-epsilon) - math.expm1(-epsilon))


def gaussian_advantage(divergence: float, *, alpha: float) -> float:
    """Return the advantage of the best test between two Gaussians with the same covariance: ``2 Phi(mu / 2) - 1``.

    If two distributions are ``mu``-Gaussian DP, no test has a larger advantage. The distributions of the form `shifted`
    in `deletion` are ``mu``-Gaussian DP.

    Args:
        divergence: The Rényi divergence of the two Gaussians, ``alpha mu^2 / 2``.
        alpha: The order of the divergence, above 1.
    """
    require_non_negative(divergence=divergence)
    check_order(alpha)
    return delta_from_mu(math.sqrt(2 * divergence / alpha), 0.0)


def adaptive_epsilon(epsilon_dd: float, epsilon_dp: float, *, observed: int) -> float:
    """Return Theorem 4.3's deletion bound, as printed, for requests that depend on observed models.

    The printed bound is ``epsilon_dd + p epsilon_dp``. This bound is right only if ``epsilon_dd`` and ``epsilon_dp``
    hold *given every observed model*, that is, from every starting model, over all calls up to the next observation or
    to the deletion. For convex losses, they do, and `planning.adaptive_deletion_curve` is an even smaller bound. If
    ``epsilon_dd`` needs fixed requests, the printed bound is wrong, and only the sum of the bounds of all calls that
    saw the record is valid.

    Args:
        epsilon_dd: The deletion bound under requests that are fixed in advance.
        epsilon_dp: The bound for present records, at the same order.
        observed: The number ``p`` of models on which requests may depend.
    """
    require_non_negative(epsilon_dd=epsilon_dd, epsilon_dp=epsilon_dp)
    require_count(least=0, observed=observed)
    return epsilon_dd + observed * epsilon_dp


def necessary_epsilon(advantage: float, *, alpha: float) -> float:
    """Return Theorem 4.5's lower limit (Eq. 11) for deletion bounds under adaptive requests.

    The limit holds if two attacks exist. The limit is
    ``max(a^4 / 2, log(alpha - 1) + alpha / (alpha - 1) log((1 + a^2) / (alpha 2^(1 / alpha))))``, which is at least 0.
    At this limit, Theorem 4.1 allows the advantage ``a^2``. Both attacks distinguish data that differ in *one* record:
    one by the learned model, the other by a model after a deletion, whatever the model before the deletion is.

    Args:
        advantage: The advantage ``a`` that both attacks exceed; above 0 and at most 1.
        alpha: The Rényi order, above 1.
    """
    require_positive(advantage=advantage)
    if advantage > 1:
        raise ParameterError(f"advantage must be at most 1, got {advantage}")
    check_order(alpha)
    by_conversion = math.log1p(advantage**2) - math.log(alpha) - math.log(2) / alpha
    return max(advantage**4 / 2, math.log(alpha - 1) + alpha / (alpha - 1) * by_conversion)


def least_noise_multiplier(epsilon: float, delta: float, *, steps: int) -> float:
    """Return Remark G.8 with its missing factor 2: DP-SGD's noise multiplier for ``(epsilon, delta)`` by Theorem G.7.

    The multiplier is ``(2 / epsilon) sqrt(K (epsilon + 2 log(1 / delta)))``, at the order ``1 + (2 / epsilon) log(1 /
    delta)``.

    Args:
        epsilon: The target epsilon.
        delta: The target delta, strictly between 0 and 1.
        steps: The number ``K`` of full-batch steps, at least 1.
    """
    require_positive(epsilon=epsilon)
    require_probability(delta=delta)
    require_count(least=1, steps=steps)
    return 2 / epsilon * math.sqrt(steps * (epsilon - 2 * math.log(delta)))


def randomised_response_divergence(epsilon: float, *, alpha: float) -> float:
    """Return the divergence between a bit and its opposite, each kept with probability ``e^eps / (1 + e^eps)``."""
    require_non_negative(epsilon=epsilon)
    check_order(alpha)
    log_kept, log_flipped = _kept_and_flipped(epsilon)
    return bernoulli_divergence(log_kept, log_flipped, log_flipped, log_kept, alpha=alpha)


def coin_divergence(epsilon: float, *, alpha: float) -> float:
    """Return the divergence of a bit, kept with probability ``e^eps / (1 + e^eps)``, from a fair coin."""
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
    """Return the Rényi divergence of two distributions of a bit, given by logarithms of their probabilities."""
    gains = [(alpha - 1) * (log_first - log_first_reference), (alpha - 1) * (log_second - log_second_reference)]
    if max(gains) < 1:
        # The sum below is near 1, so its logarithm would lose digits.
        mean = math.exp(log_first) * math.expm1(gains[0]) + math.exp(log_second) * math.expm1(gains[1])
        return math.log1p(max(0.0, mean)) / (alpha - 1)
    exponents = log_first + gains[0], log_second + gains[1]
    top = max(exponents)
    return (top + math.log(sum(math.exp(exponent - top) for exponent in exponents))) / (alpha - 1)


def laplace_divergence(epsilon: float, *, alpha: float) -> float:
    """Return the divergence of two Laplace distributions of scale ``1 / epsilon`` whose centres differ by 1."""
    require_non_negative(epsilon=epsilon)
    check_order(alpha)
    towards, away = (alpha - 1) * epsilon, -alpha * epsilon
    weighted = (alpha * math.exp(towards - towards) + (alpha - 1) * math.exp(away - towards)) / (2 * alpha - 1)
    return (towards + math.log(weighted)) / (alpha - 1)
