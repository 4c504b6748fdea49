"""Attacks on two counting services with secret state: Theorem 3.2's construction as printed, and a repaired one.

Source: Theorem 3.2 of Chourasia and Shah, Forget Unlearning (ICML 2023). A service publishes a count with Laplace noise
of scale ``1 / epsilon``, plus a number from 0 to 1 that depends on deleted bits. In the printed construction, which
reveals little, this number is the mean of the deleted bits. In the repaired construction, this number is a single
deleted bit, and the releases take the deleted bits in turn (`exposed_record`). The repaired construction and all exact
values are derived here. Both constructions are ``epsilon``-close to retraining.
"""

import math
from typing import NamedTuple

import numpy as np

from certified_unlearning.accounting.core.checks import require_count, require_positive

# The number of shifts of the printed construction that are computed one by one; all later shifts are so small that two
# cumulants are enough.
LARGE_SHIFTS = 1000
# The number of grid points for the log-likelihood ratio of one exposure.
GRID = 2048
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(800)


class CountingLimits(NamedTuple):
    """Limits on the information in infinitely many releases of the printed counting construction.

    Attributes:
        divergence: The Kullback-Leibler divergence, which is finite although the max-divergence is not.
        affinity: The Hellinger affinity, which is above 0.
        least: A lower bound on the best test's advantage, ``1 - affinity``.
        most: An upper bound on this advantage, ``sqrt(1 - affinity^2)``, which is below 1.
    """

    divergence: float
    affinity: float
    least: float
    most: float


def counting_limits(epsilon: float, *, request: int = 1) -> CountingLimits:
    """Return limits that show why Theorem 3.2's construction does not reveal the record deleted by request ``i``.

    The deleted bit shifts the Laplace distribution of each release ``j >= i`` by ``1 / j``. With ``x = eps / 2``, the
    affinity is ``prod (1 + x / j) exp(-x / j) = exp(x psi(i)) Gamma(i) / Gamma(i + x)``, and the divergence is ``sum
    (eps / j + exp(-eps / j) - 1)``.

    Args:
        epsilon: The epsilon of every release; the Laplace noise has scale ``1 / epsilon``.
        request: The number ``i`` of the request, counted from 1.
    """
    require_positive(epsilon=epsilon)
    require_count(least=1, request=request)
    from scipy.special import digamma, gammaln, zeta

    half = epsilon / 2
    affinity = math.exp(half * digamma(request) + gammaln(request) - gammaln(request + half))
    # Shifts above 1 / 2 are added one by one; for smaller ones, the series of the terms (-eps)^k / k! sum j^-k
    # converges fast.
    small = max(request, math.ceil(2 * epsilon))
    divergence = sum(epsilon / j + math.expm1(-epsilon / j) for j in range(request, small))
    divergence += sum((-epsilon) ** k / math.factorial(k) * float(zeta(k, small)) for k in range(2, 40))
    return CountingLimits(divergence, affinity, 1 - affinity, math.sqrt(1 - affinity**2))


def counting_advantage(epsilon: float, *, request: int = 1) -> float:
    """Return the advantage of the best test of infinitely many releases of the printed counting service, to about 1e-5.

    The log-likelihood ratios of all releases have a sum ``S``, and the advantage is ``E sign(S)``. This is ``(2 / pi)``
    times the integral of ``Im phi(t) / t``, where ``phi`` is the characteristic function of ``S``.

    Args:
        epsilon: The epsilon of every release.
        request: The number ``i`` of the request, counted from 1.
    """
    require_positive(epsilon=epsilon)
    require_count(least=1, request=request)
    from scipy.special import zeta

    widths = epsilon / np.arange(request, request + LARGE_SHIFTS)
    # Each of the remaining shifts adds half its square to the mean of S, and its square to the variance.
    rest = epsilon**2 * float(zeta(2, request + LARGE_SHIFTS))
    spread = math.sqrt(float(widths @ widths) + rest)
    most = 40 / spread
    t = (_NODES + 1) / 2 * most
    log_phi = 1j * t * rest / 2 - t**2 * rest / 2
    for width in widths:
        # The distribution of `|x| - |x - width|`, where x is Laplace around width: atoms at both ends, and a density
        # between them.
        up, down = np.exp(1j * t * width) / 2, np.exp(-width - 1j * t * width) / 2
        log_phi += np.log(up + down + (up - down) / (1 + 2j * t))
    return min(1.0, float(most / math.pi * _WEIGHTS @ (np.exp(log_phi).imag / t)))


def repaired_counting_success(epsilon: float, *, exposures: int) -> float:
    """Return the probability that the attack on repaired counting names the deleted bit, to about 1e-7.

    Every exposure adds the deleted bit to a count with Laplace noise of scale ``1 / epsilon``; the attacker adds the
    log-likelihood ratios. The probability is ``1 - exp(-epsilon / 2) / 2`` after one exposure, and 1 in the limit.

    Args:
        epsilon: The epsilon of every release.
        exposures: The number ``N`` of exposures of the bit since its deletion, at least 1.
    """
    require_positive(epsilon=epsilon)
    require_count(least=1, exposures=exposures)
    # The cells around the points of a grid on [-epsilon, epsilon], with atoms at both ends.
    edges = np.clip((np.arange(GRID + 2) - 0.5) * 2 / GRID - 1, -1, 1) * epsilon
    law = np.diff(np.exp((edges - epsilon) / 2)) / 2
    law[-1] += 0.5
    law[0] += math.exp(-epsilon) / 2
    length = exposures * GRID + 1
    sums = np.fft.irfft(np.fft.rfft(law, length) ** exposures, length)
    centre = exposures * GRID // 2
    return min(1.0, 0.5 + float(sums[centre + 1 :].sum() - sums[:centre].sum()) / 2)


def exposed_record(release: int) -> int:
    """Return which deleted record the repaired counting service exposes at a release.

    Each release exposes one record. In the order of the releases, the service exposes record 1, then records 1 and 2,
    then records 1, 2 and 3, and so on.

    Raises:
        ParameterError: ``release`` is not a whole number of at least 1.
    """
    require_count(least=1, release=release)
    sweep = (math.isqrt(8 * release - 7) - 1) // 2
    return release - sweep * (sweep + 1) // 2


def release_of_exposure(record: int, *, exposure: int) -> int:
    """Return the release at which the record of request ``record`` is exposed for the ``exposure``-th time.

    Raises:
        ParameterError: A value is not a whole number of at least 1.
    """
    require_count(least=1, record=record, exposure=exposure)
    sweep = record + exposure - 2
    return sweep * (sweep + 1) // 2 + record
