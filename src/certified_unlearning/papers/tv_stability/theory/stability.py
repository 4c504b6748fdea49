"""Printed bounds on the stability and the recomputation of noisy SGD, quantised SGD and linear queries."""

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

    Amplification by batches reduces the Rényi divergence of a single step to ``32 alpha G^2 / (n sigma)^2`` at
    ``alpha = 2``. Rényi divergences increase with ``alpha``, so the Kullback-Leibler divergence of all steps is at most
    ``64 T G^2 / (n sigma)^2``.

    Args:
        n: The number of records.
        batch_size: The batch size ``m``.
        steps: The number ``T`` of steps.
        sigma: The standard deviation of a step's noise.
        lipschitz: The Lipschitz constant ``G``.
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
            f"amplification by sub-sampling holds for sigma of at least {least:.6g} if batch_size = {batch_size}, got "
            f"sigma = {sigma}"
        )
    divergence = steps * (8 * lipschitz / (n * sigma)) ** 2
    return min(1.0, math.sqrt(divergence)) if printed else pinsker(divergence)


AMPLIFIABLE = 1.256
"""The largest divergence of a step that the inequality in Proposition 1's proof allows."""


def proposition_2(*, rho: float, steps: int, edits: int) -> float:
    """Return Proposition 2's bound on the probability that at least one of ``k`` edits causes a recomputation.

    The bound is ``k rho sqrt(T) / 4``, at most 1. The bound holds at Proposition 1's ``sigma = 8 sqrt(T) G / (n rho)``
    while at least ``n / 2`` records remain.
    """
    require_non_negative(rho=rho)
    require_count(least=1, steps=steps)
    require_count(least=0, edits=edits)
    return min(1.0, edits * rho * math.sqrt(steps) / 4)


def recourse_bound(*, rho: float, edits: int, printed: bool = False) -> float:
    """Return the upper bound of Proposition 6 on the mean number of recomputations in ``k`` edits.

    Args:
        rho: The probability that one edit causes a recomputation, at the original size of the data set.
        edits: The number ``k`` of edits. The edits are fixed before the run, and may be in any order.
        printed: Whether to return the proposition's ``4 k rho``. Otherwise, the bound is ``2 k rho``. We derived it for
            edits that leave at least half of the records. It follows from exactness after every edit, and from the
            linearity of expectations.
    """
    require_non_negative(rho=rho)
    require_count(least=0, edits=edits)
    return (4 if printed else 2) * edits * rho


def quantiser_disagreement(differences: Sequence[float], *, resolution: float) -> float:
    """Return the probability that a randomly shifted grid separates two fixed vectors: exactly their TV (derived).

    Args:
        differences: The coordinates of the vectors' difference.
        resolution: The spacing ``tau`` of the grid.
    """
    require_positive(resolution=resolution)
    kept = 1 - np.abs(np.asarray(differences, dtype=float)) / resolution
    return float(1 - np.prod(np.maximum(kept, 0)))


def quantiser_variance(*, dimension: int, resolution: float, printed: bool = False) -> float:
    """Return the mean squared error of a randomly shifted grid: ``d tau^2 / 12``, or Lemma 31's printed ``d tau^2``."""
    require_count(least=1, dimension=dimension)
    require_positive(resolution=resolution)
    return dimension * resolution**2 / (1 if printed else 12)


def lemma_32(
    *, n: int, steps: int, resolution: float, dimension: int, lipschitz: float, replaced: int = 0, added: int = 0
) -> float:
    """Return Lemma 32's bound, at most 1, on the stability of quantised SGD under an edit of many records.

    Each step contributes ``4 G d k_1 / (n tau)`` for the replaced records, and ``4 G d / ((n + j) tau)`` for the
    ``j``-th of the ``k_2`` added records. The shorter form ``4 G T d (k_1 + k_2) / (n tau)`` is larger. In practice,
    Lemma 32's bound is above 1, whereas `batch_edits.batch_edit_probability` bounds the same stability and is at most
    1.
    """
    require_count(least=1, n=n, dimension=dimension)
    require_count(least=0, steps=steps, replaced=replaced, added=added)
    require_positive(resolution=resolution, lipschitz=lipschitz)
    shares = replaced / n + math.fsum(1 / (n + number) for number in range(1, added + 1))
    return min(1.0, 4 * lipschitz * dimension * steps * shares / resolution)


def query_sigma(*, queries: int, rho: float, bound: float, n: int = 1, printed: bool = False) -> float:
    """Return the noise with which the answers to linear queries are ``rho``-stable under one edit.

    Args:
        queries: The number ``T`` of queries.
        rho: The required total variation.
        bound: The bound ``B`` on one record's part of the sum. If ``printed`` is true, ``B`` bounds instead how far
            replacing a record moves the sum.
        n: The number of records, which only ``printed`` uses.
        printed: Whether to return Theorem 51's ``8 B / (n rho)`` for means. This noise lacks the factor ``sqrt(T)``; do
            not use it. Otherwise, the noise is ``sqrt(T) B / (2 rho)`` for sums, by Pinsker's inequality (derived).
    """
    require_count(least=1, queries=queries, n=n)
    require_positive(rho=rho, bound=bound)
    return 8 * bound / (n * rho) if printed else math.sqrt(queries) * bound / (2 * rho)
