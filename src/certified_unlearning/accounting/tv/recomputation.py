"""The probability that an edit is rejected somewhere in a run, and how much is then computed again.

Noisy SGD (Algorithms 9, 10, 21, 22), quantised SGD (23, 24) and linear queries (26, 27); `tree` has prefix sums,
`subsampling` the bound for all mini-batch methods. Printed constants are far from actual values: each printed bound is
next to the sharper one that follows from the same coupling.
"""

import math

import numpy as np

from certified_unlearning.accounting.core.checks import require_count, require_non_negative, require_positive
from certified_unlearning.accounting.tv.distances import gaussian_tv, require_batch
from certified_unlearning.accounting.tv.subsampling import probability_of_any
from certified_unlearning.errors import ParameterError


def noisy_recompute_probability(*, n: int, batch_size: int, steps: int, sigma: float, gap: float) -> float:
    """Return the probability that noisy SGD recomputes after one deletion (derived).

    ``1 - (1 - (m / n) tv)^T``: a step has the record in its batch with probability ``m / n``, and then keeps its noisy
    gradient with probability ``1 - tv``. The value is exact if every replacement moves a batch's mean gradient by
    ``gap``, and an upper bound if by at most ``gap``. Lemma 30's assumption, gradients of length ``G``, is
    ``gap = 2 G / m``. For an insertion into ``n`` records use ``n + 1``.

    Args:
        n: Number of records.
        batch_size: ``m``.
        steps: ``T``.
        sigma: Standard deviation of the noise of a step; 0 is sub-sample-GD.
        gap: How far replacing one record moves the mean gradient.
    """
    require_batch(n, batch_size)
    require_count(least=0, steps=steps)
    require_non_negative(sigma=sigma, gap=gap)
    tv = gaussian_tv(gap / sigma) if sigma else float(gap > 0)
    return probability_of_any(batch_size / n * tv, steps)


def quantiser_disagreement_bound(distance: float, *, dimension: int, resolution: float, printed: bool = False) -> float:
    """Return a bound, at most 1, on the probability that a randomly shifted grid separates vectors at a distance.

    Args:
        distance: Euclidean distance ``delta``.
        dimension: ``d``.
        resolution: ``tau``.
        printed: Whether to use Lemma 31's ``2 d delta / tau``, which holds jointly for all vectors at that distance;
            the coupling needs one pair, for which ``sqrt(d) delta / tau`` holds (derived).
    """
    require_non_negative(distance=distance)
    require_count(least=1, dimension=dimension)
    require_positive(resolution=resolution)
    return min(1.0, (2 * dimension if printed else math.sqrt(dimension)) * distance / resolution)


def quantised_recompute_probability(
    *, n: int, batch_size: int, steps: int, resolution: float, dimension: int, gap: float
) -> float:
    """Return a bound on the probability that quantised SGD recomputes after one deletion (derived).

    As `noisy_recompute_probability`, with `quantiser_disagreement_bound` for the Gaussian's total variation.
    """
    require_batch(n, batch_size)
    require_count(least=0, steps=steps)
    tv = quantiser_disagreement_bound(gap, dimension=dimension, resolution=resolution)
    return probability_of_any(batch_size / n * tv, steps)


def query_recompute_probability(*, queries: int, sigma: float, bound: float) -> float:
    """Return a bound on the probability that noisy linear queries are recomputed after one edit (derived).

    ``1 - (1 - tv)^T``: every query moves by the record's own part, and is noisy. ``T tv`` is above it.

    Args:
        queries: ``T``, noisy queries of a run.
        sigma: Standard deviation of their noise per coordinate.
        bound: ``B``, the largest norm of one record's part. A bound on what *replacing* a record moves is not enough:
            a deletion takes the whole part away.
    """
    require_count(least=0, queries=queries)
    require_positive(sigma=sigma)
    require_non_negative(bound=bound)
    return probability_of_any(gaussian_tv(bound / sigma), queries)


def iterations_run_again(*, steps: int, rejection: float, reflected_counts: bool = True) -> float:
    """Return how many iterations one edit makes the run repeat, on average (derived).

    Args:
        steps: ``T``.
        rejection: ``q``, the probability that one step rejects, given that all before it did not.
        reflected_counts: Whether the rejecting iteration counts, though only its noisy value is reflected.

    Raises:
        ParameterError: ``steps`` is negative, or ``rejection`` no probability.
    """
    require_count(least=0, steps=steps)
    if not 0 <= rejection <= 1:
        raise ParameterError(f"rejection must lie between 0 and 1, got {rejection!r}")
    if rejection == 1:
        return float(max(steps - (not reflected_counts), 0))
    # sum of q (1 - q)^(t - 1) (T - t + 1) over t, as the sum of the probabilities of a rejection by step k.
    until = np.arange(1, steps + reflected_counts, dtype=float)
    return abs(float(np.expm1(until * math.log1p(-rejection)).sum()))
