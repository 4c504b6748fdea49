"""Printed bounds: how stable noisy SGD, quantised SGD and linear queries are, and how often they recompute."""

import math
from collections.abc import Sequence

import numpy as np

from certified_unlearning.accounting.core.checks import require_count, require_non_negative, require_positive
from certified_unlearning.accounting.tv.distances import require_batch
from certified_unlearning.errors import AssumptionError
from certified_unlearning.papers.tv_stability.theory.distances import pinsker


def lemma_30(*, n: int, steps: int, sigma: float, lipschitz: float) -> float:
    """Return Lemma 30's bound ``G T / (sigma n)``, at most 1, on `noisy_recompute_probability`."""
    require_count(least=1, n=n)
    require_count(least=0, steps=steps)
    require_positive(sigma=sigma, lipschitz=lipschitz)
    return min(1.0, lipschitz * steps / (sigma * n))


def noisy_stability(
    *, n: int, batch_size: int, steps: int, sigma: float, lipschitz: float, printed: bool = False
) -> float:
    """Return Proposition 1's bound, at most 1, on the stability of noisy SGD under one edit.

    Divergences of single steps, which batches amplify to ``32 alpha G^2 / (n sigma)^2``, add up to a Kullback-Leibler
    divergence of ``64 T G^2 / (n sigma)^2``.

    Args:
        n: Number of records.
        batch_size: ``m``.
        steps: ``T``.
        sigma: Standard deviation of the noise of a step.
        lipschitz: ``G``.
        printed: Whether to return ``8 sqrt(T) G / (n sigma)``; Pinsker's inequality gives ``sqrt(32 T) G / (n sigma)``.

    Raises:
        AssumptionError: The noise is too small for the amplification, which needs ``8 G^2 <= 1.256 (m sigma)^2``.
    """
    require_batch(n, batch_size)
    require_count(least=0, steps=steps)
    require_positive(sigma=sigma, lipschitz=lipschitz)
    least = lipschitz * math.sqrt(8 / AMPLIFIABLE) / batch_size
    if sigma < least:
        raise AssumptionError(
            f"amplification by sub-sampling holds for sigma of at least {least:.6g} in batches of {batch_size}, got "
            f"{sigma}"
        )
    divergence = steps * (8 * lipschitz / (n * sigma)) ** 2
    return min(1.0, math.sqrt(divergence)) if printed else pinsker(divergence)


AMPLIFIABLE = 1.256
"""What the divergence of a step may be, by the inequality that Proposition 1's proof uses."""


def proposition_2(*, rho: float, steps: int, edits: int) -> float:
    """Return Proposition 2's bound ``k rho sqrt(T) / 4``, at most 1, on computing again in any of ``k`` edits.

    It holds at Proposition 1's ``sigma = 8 sqrt(T) G / (n rho)`` while at least ``n / 2`` records are left.
    """
    require_non_negative(rho=rho)
    require_count(least=1, steps=steps)
    require_count(least=0, edits=edits)
    return min(1.0, edits * rho * math.sqrt(steps) / 4)


def recourse_bound(*, rho: float, edits: int, printed: bool = False) -> float:
    """Return how often ``k`` edits cause a recomputation, on average at most: Proposition 6.

    Args:
        rho: Probability that one edit causes a recomputation, at the data set's first size.
        edits: ``k``, fixed before the run, in whatever order.
        printed: The ``4 k rho`` of the proposition; otherwise ``2 k rho``, which exactness after every edit and the
            linearity of expectations give while at least half of the records are left (derived).
    """
    require_non_negative(rho=rho)
    require_count(least=0, edits=edits)
    return (4 if printed else 2) * edits * rho


def quantiser_disagreement(differences: Sequence[float], *, resolution: float) -> float:
    """Return the probability that a randomly shifted grid tells two fixed vectors apart: their TV, exactly (derived).

    Args:
        differences: Coordinates of their difference.
        resolution: ``tau``, the grid's spacing.
    """
    require_positive(resolution=resolution)
    kept = 1 - np.abs(np.asarray(differences, dtype=float)) / resolution
    return float(1 - np.prod(np.maximum(kept, 0)))


def quantiser_variance(*, dimension: int, resolution: float, printed: bool = False) -> float:
    """Return the mean squared error of the randomly shifted grid, ``d tau^2 / 12``; Lemma 31 prints ``d tau^2``."""
    require_count(least=1, dimension=dimension)
    require_positive(resolution=resolution)
    return dimension * resolution**2 / (1 if printed else 12)


def lemma_32(
    *, n: int, steps: int, resolution: float, dimension: int, lipschitz: float, replaced: int = 0, added: int = 0
) -> float:
    """Return Lemma 32's bound, at most 1, on the stability of quantised SGD under an edit of many records.

    A step costs ``4 G d k_1 / (n tau)`` and ``4 G d / ((n + j) tau)`` for each of the ``k_2`` records added; the
    shorter ``4 G T d (k_1 + k_2) / (n tau)`` is above it. In practice it is above 1:
    `batch_edits.batch_edit_probability` bounds the same and is at most 1.
    """
    require_count(least=1, n=n, dimension=dimension)
    require_count(least=0, steps=steps, replaced=replaced, added=added)
    require_positive(resolution=resolution, lipschitz=lipschitz)
    shares = replaced / n + math.fsum(1 / (n + number) for number in range(1, added + 1))
    return min(1.0, 4 * lipschitz * dimension * steps * shares / resolution)


def query_sigma(*, queries: int, rho: float, bound: float, n: int = 1, printed: bool = False) -> float:
    """Return the noise of linear queries that makes their answers ``rho``-stable under one edit.

    Args:
        queries: ``T``.
        rho: Wanted total variation.
        bound: ``B``: of one record's part of the sum; where printed, of what replacing one moves the sum by.
        n: Number of records; used where printed only.
        printed: Theorem 51's ``8 B / (n rho)`` for means. It lacks the factor ``sqrt(T)``; do not use it. Otherwise
            ``sqrt(T) B / (2 rho)`` for sums, by Pinsker's inequality (derived).
    """
    require_count(least=1, queries=queries, n=n)
    require_positive(rho=rho, bound=bound)
    return 8 * bound / (n * rho) if printed else math.sqrt(queries) * bound / (2 * rho)
