"""The probability that a step of a run rejects an edit, and how much is then recomputed.

This module covers noisy SGD (Algorithms 9, 10, 21, 22), quantised SGD (23, 24) and linear queries (26, 27). `tree`
covers prefix sums, and `subsampling` has a bound for all mini-batch methods. Printed constants are far from actual
values, so each printed bound is accompanied by the sharper bound that follows from the same coupling.
"""

import math

import numpy as np

from certified_unlearning.accounting.core.checks import require_count, require_non_negative, require_positive
from certified_unlearning.accounting.tv.distances import gaussian_tv, require_batch
from certified_unlearning.accounting.tv.subsampling import probability_of_any
from certified_unlearning.errors import ParameterError


def noisy_recompute_probability(*, n: int, batch_size: int, steps: int, sigma: float, gap: float) -> float:
    """Return the probability that noisy SGD recomputes after one deletion (derived).

    It is ``1 - (1 - (m / n) tv)^T``. With probability ``m / n``, the batch of a step contains the record, and then the
    step keeps its noisy gradient with probability ``1 - tv``. The value is exact if every replacement moves a batch's
    mean gradient by ``gap``. It is an upper bound if every replacement moves the mean gradient by at most ``gap``.
    Lemma 30 assumes gradients of length ``G``, so ``gap = 2 G / m``. For an insertion into ``n`` records, use ``n +
    1``.

    Args:
        n: Number of records.
        batch_size: Batch size ``m``.
        steps: Number of steps ``T``.
        sigma: Standard deviation of a step's noise; 0 for sub-sample-GD.
        gap: Distance by which replacing one record moves the mean gradient.
    """
    require_batch(n, batch_size)
    require_count(least=0, steps=steps)
    require_non_negative(sigma=sigma, gap=gap)
    tv = gaussian_tv(gap / sigma) if sigma else float(gap > 0)
    return probability_of_any(batch_size / n * tv, steps)


def quantiser_disagreement_bound(distance: float, *, dimension: int, resolution: float, printed: bool = False) -> float:
    """Return a bound, at most 1, on the probability that a randomly shifted grid separates two vectors.

    Args:
        distance: Euclidean distance ``delta`` between the vectors.
        dimension: Dimension ``d`` of the vectors.
        resolution: Spacing ``tau`` of the grid.
        printed: Whether to use Lemma 31's ``2 d delta / tau``, which holds jointly for all vectors at this distance.
            The coupling needs only one pair of vectors, for which ``sqrt(d) delta / tau`` holds (derived).
    """
    require_non_negative(distance=distance)
    require_count(least=1, dimension=dimension)
    require_positive(resolution=resolution)
    return min(1.0, (2 * dimension if printed else math.sqrt(dimension)) * distance / resolution)


def quantised_recompute_probability(
    *, n: int, batch_size: int, steps: int, resolution: float, dimension: int, gap: float
) -> float:
    """Return a bound on the probability that quantised SGD recomputes after one deletion (derived).

    The formula is that of `noisy_recompute_probability`, with `quantiser_disagreement_bound` in place of the Gaussian's
    total variation.
    """
    require_batch(n, batch_size)
    require_count(least=0, steps=steps)
    tv = quantiser_disagreement_bound(gap, dimension=dimension, resolution=resolution)
    return probability_of_any(batch_size / n * tv, steps)


def query_recompute_probability(*, queries: int, sigma: float, bound: float) -> float:
    """Return a bound on the probability that noisy linear queries are recomputed after one edit (derived).

    The bound is ``1 - (1 - tv)^T``, because an edit moves every noisy query by the record's contribution. ``T tv`` is a
    larger bound.

    Args:
        queries: Number ``T`` of noisy queries in a run.
        sigma: Standard deviation of a query's noise, per coordinate.
        bound: Largest norm ``B`` of one record's part of a query. A bound on how far *replacing* a record moves a query
            is not enough, because a deletion removes the whole part.
    """
    require_count(least=0, queries=queries)
    require_positive(sigma=sigma)
    require_non_negative(bound=bound)
    return probability_of_any(gaussian_tv(bound / sigma), queries)


def iterations_run_again(*, steps: int, rejection: float, reflected_counts: bool = True) -> float:
    """Return the mean number of iterations that one edit causes a run to repeat (derived).

    Args:
        steps: Number of steps ``T``.
        rejection: Probability ``q`` that a step rejects, given that all earlier steps accepted.
        reflected_counts: Whether to count the iteration that rejects. In this iteration, only the noisy value is
            reflected.

    Raises:
        ParameterError: ``steps`` is negative, or ``rejection`` is not a probability.
    """
    require_count(least=0, steps=steps)
    if not 0 <= rejection <= 1:
        raise ParameterError(f"rejection must lie between 0 and 1, got {rejection!r}")
    if rejection == 1:
        return float(max(steps - (not reflected_counts), 0))
    # The sum over t of q (1 - q)^(t - 1) (T - t + 1) equals the sum over k of the probability of a rejection by step k.
    until = np.arange(1, steps + reflected_counts, dtype=float)
    return abs(float(np.expm1(until * math.log1p(-rejection)).sum()))
