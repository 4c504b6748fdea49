"""The theoretical success and advantage of every attack on deletion, which simulations must reproduce.

Source: Section 3, Theorems 3.1 and 4.5 of Chourasia and Shah, Forget Unlearning (ICML 2023). The two counterexamples to
Theorems 4.1 and 4.3 and all exact values are derived here. Success is the probability of a correct guess of the deleted
value. If two values are equally likely, the advantage is ``2 success - 1``. The module `counting` treats the attacks on
secret state.
"""

import math
from typing import NamedTuple

import numpy as np

from certified_unlearning.accounting.core.checks import require_count, require_non_negative, require_positive
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.deletion.rates import sharp_rate
from certified_unlearning.errors import ParameterError
from certified_unlearning.papers.forget_unlearning.theory.exact import kept_after
from certified_unlearning.papers.privacy_dynamics.theory.gaussians import inverse_lsi

# A Gaussian is integrated up to this many standard deviations, by Gauss's rule on both sides of the threshold.
DEVIATIONS = 12.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(400)


class MedianSuccess(NamedTuple):
    """The probability that the released median is the deleted one: the exact value, and the two bounds of the paper."""

    exact: float
    paper: float
    claimed: float


def median_success(n: int, *, request: int) -> MedianSuccess:
    """Return the success of the median attack: ``1 - C(m + 1, i - 1) / C(n, i - 1)`` with ``n = 2 m + 1``.

    All requests before the deletion overwrite records, drawn without replacement, with the published median.

    Args:
        n: The number of records, odd and at least 3.
        request: ``i``, the number of the request that deletes the median: above 3, because the claim is only about such
            requests, and at most ``n + 1``.
    """
    require_count(least=3, n=n)
    require_count(least=4, request=request)
    if n % 2 == 0 or request > n + 1:
        raise ParameterError(f"n must be odd and request at most n + 1, got n = {n}, request = {request}")
    half, written = n // 2, request - 1
    return MedianSuccess(
        exact=1 - math.comb(half + 1, written) / math.comb(n, written),
        paper=1 - 2 * math.comb(half, written - 1) / math.comb(n, written - 1),
        claimed=1 - 2.0 ** (3 - request),
    )


def majority_advantage(epsilon: float, *, releases: int) -> float:
    """Return the advantage of the majority of randomised responses on one bit, after an adaptive deletion.

    Every single release is as private as `soundness.coin_divergence` says, but together the releases reveal the bit.

    Args:
        epsilon: The epsilon of every response, which keeps the bit with probability ``e^eps / (1 + e^eps)``.
        releases: The number ``T`` of releases, at least 1.
    """
    require_positive(epsilon=epsilon)
    require_count(least=1, releases=releases)
    from scipy.special import bdtrc, expit

    above = [float(bdtrc(releases // 2, releases, expit(exponent))) for exponent in (epsilon, -epsilon)]
    return above[0] - above[1]


def keyed_count_advantage(epsilon: float, *, key_length: int) -> float:
    """Return the advantage of the attack that breaks Theorem 4.3 as printed: its requests write the published key.

    The attack guesses 1 if the count is above ``m / 2``. The count is ``Bin(m, p) + Laplace(1 / eps)`` with ``p = e^eps
    / (1 + e^eps)`` under hypothesis 1, and with ``1 - p`` in place of ``p`` under hypothesis 0. Every call is
    ``eps``-DP. If requests do not depend on the key, the advantage is 0.

    Args:
        epsilon: The epsilon of every call.
        key_length: The length ``m`` of the key, at least 1.
    """
    require_positive(epsilon=epsilon)
    require_count(least=1, key_length=key_length)
    from scipy.special import bdtr, expit

    counts = np.arange(key_length + 1)
    margin = counts - key_length / 2
    tail = np.exp(-epsilon * np.abs(margin)) / 2
    says_one = np.where(margin > 0, 1 - tail, tail)
    successes = []
    for exponent in (epsilon, -epsilon):
        probabilities = np.diff(bdtr(counts, key_length, expit(exponent)), prepend=0.0)
        successes.append(float(probabilities @ says_one))
    return successes[0] - successes[1]


def sign_attack_advantage(
    *,
    first_mean: float,
    first_variance: float,
    carried: float,
    payload_mean: float,
    target_mean: float,
    last_variance: float,
) -> float:
    """Return the advantage of encode-then-delete if models are Gaussian numbers and both tests use their signs.

    The target ``h`` is +1 or -1. The observed model is ``N(h first_mean, first_variance)``. The requester guesses that
    the target has the sign ``s`` that makes the observed model more likely. According to this guess, the requester
    overwrites other records, the payloads. The model that is released after the deletion is
    ``carried * observed + s payload_mean + h target_mean + N(0, last_variance)``.

    Args:
        first_mean: The mean of the observed model if the target is +1; not 0.
        first_variance: The variance of the observed model, above 0.
        carried: The factor by which the observed model is multiplied in the model that is released after the deletion.
        payload_mean: The contribution of the payloads, with the sign of ``first_mean``.
        target_mean: The part of the target's contribution that does not come through the observed model.
        last_variance: The variance that is added after the observation, above 0.
    """
    require_positive(first_variance=first_variance, last_variance=last_variance)
    from scipy.special import ndtr

    # This is for h = +1, in the direction of first_mean; the other target is the mirror image.
    direction = math.copysign(1.0, first_mean)
    mean, scale = abs(first_mean) / math.sqrt(first_variance), math.sqrt(first_variance)
    named = 0.0
    for guess, low, high in ((1, 0.0, mean + DEVIATIONS), (-1, min(mean - DEVIATIONS, 0.0), 0.0)):
        observed = low + (high - low) * (_NODES + 1) / 2
        density = np.exp(-((observed - mean) ** 2) / 2) / math.sqrt(2 * math.pi)
        released = carried * scale * observed + direction * (guess * payload_mean + target_mean)
        right = ndtr(released / math.sqrt(last_variance))
        named += float((high - low) / 2 * _WEIGHTS @ (density * right))
    return 2 * named - 1


def encode_then_delete_advantage(
    problem: Problem, *, sigma: float, learning_steps: int, deletion_steps: int, edits: int, retrains: bool = False
) -> float:
    """Return the advantage of encode-then-delete against noisy gradient descent on linear losses of one coordinate.

    The target is ``L`` or ``-L``, and the other records are 0. The requester guesses the target from the learned model,
    and overwrites ``edits`` other records with the guess, one per request. Then the requester sets the target to 0, and
    the attacker uses the sign of the next released model. More deletion steps do not help, because the other records
    contain the target.

    Args:
        problem: The constants of the problem.
        sigma: The noise scale.
        learning_steps: ``K_A``, at least 1. Learning starts from a Gaussian distribution with the variance
            `planning.start_variance`.
        deletion_steps: ``K``, at least 1.
        edits: The number of written records, from 1 to ``n - 1``.
        retrains: Whether requests are answered by retraining.

    Raises:
        AssumptionError: ``strong_convexity`` is 0, or ``step_size`` is not below ``1 / smoothness``.
    """
    require_positive(sigma=sigma)
    require_count(least=1, learning_steps=learning_steps, deletion_steps=deletion_steps, edits=edits)
    if edits >= problem.n:
        raise ParameterError(f"edits must be below n = {problem.n}, got {edits}")
    variance = 2 * sigma**2 / sharp_rate(problem)
    # One record of L moves the mean to this limit.
    pull = -problem.lipschitz / (problem.n * problem.strong_convexity)
    learned = (1 - kept_after(problem, learning_steps)) * pull
    if retrains:
        carried, payload, target, last_variance = 0.0, edits * learned, 0.0, variance
    else:
        kept = kept_after(problem, deletion_steps)
        payload = target = 0.0
        for written in range(1, edits + 1):
            payload = kept * payload + (1 - kept) * written * pull
            target = kept * target + (1 - kept) * pull
        payload, target = kept * payload + (1 - kept) * edits * pull, kept * target
        steps = (edits + 1) * deletion_steps
        carried = kept_after(problem, steps)
        last_variance = inverse_lsi(problem, sigma=sigma, steps=steps, start=0.0)
    return sign_attack_advantage(
        first_mean=learned,
        first_variance=variance,
        carried=carried,
        payload_mean=payload,
        target_mean=target,
        last_variance=last_variance,
    )


def reading_advantage(*, first: float, later: float = 0.0, observed_releases: int = 1) -> float:
    """Return the advantage of encode-then-delete if the requester observes several releases before it encodes.

    The advantage is ``2 Phi(sqrt(first^2 + (p - 1) later^2)) - 1``: the evidence of independent Gaussian readings adds
    up, and the payloads are distinguished without error.

    Args:
        first: The mean of the learned model divided by its standard deviation.
        later: The mean of the new part of every later release divided by the standard deviation of this part.
        observed_releases: The number ``p`` of observed releases.
    """
    require_non_negative(first=first, later=later)
    require_count(least=1, observed_releases=observed_releases)
    from scipy.special import erf

    return float(erf(math.sqrt((first**2 + (observed_releases - 1) * later**2) / 2)))


def averaging_advantage(*, signal: float, kept: float, correlation: float, releases: int) -> float:
    """Return the advantage of guessing by the sign of a sum of releases, for requests fixed in advance.

    Args:
        signal: The mean of the first release after the deletion, divided by the standard deviation that all releases
            have.
        kept: The share of the mean that remains in the next release.
        correlation: The correlation of neighbouring releases. The correlation of more distant releases is a power of
            this number.
        releases: The number ``T`` of releases, at least 1.
    """
    require_non_negative(signal=signal, kept=kept, correlation=correlation)
    require_count(least=1, releases=releases)
    from scipy.special import erf

    mean = signal * sum(kept**release for release in range(releases))
    variance = releases + 2 * sum((releases - lag) * correlation**lag for lag in range(1, releases))
    return float(erf(mean / math.sqrt(2 * variance)))
