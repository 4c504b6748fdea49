"""Selections by a score: the exponential mechanism, its form for unequal sensitivities, and noisy minima.

Source: Ullah (2024), Theorems 3, 5 and 34 and Algorithms 4 and 15, corrected. Theorem 5 prints a wrong sign and a wrong
factor. Algorithm 4 passes bounds on losses as sensitivities of means, and the noise scale of Algorithm 15 contains the
square root of such a bound. `generalised_probabilities` implements the mechanism that Theorem 34 only cites.

A score is computed in float64. If a mean of ``n`` losses of size at most ``Delta`` moves by ``s`` in exact arithmetic,
the computed mean moves by ``s`` plus twice its rounding error. `mean_score_sensitivity` includes this. The few
operations on scores have errors of at most a few times ``n u``, in units of the sensitivity. `SELECTION_SHARE` of
epsilon is reserved for these errors, which is enough for ``10^9`` records. Drawing a candidate by its probability uses
512 random bits, and a noisy minimum uses random numbers of 53 bits. The resulting error is counted in delta.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from certified_unlearning.accounting.core.checks import require_non_negative, require_positive, require_probability
from certified_unlearning.accounting.private.releases import mean_sensitivity
from certified_unlearning.accounting.residual.rounding import OUTWARD, gamma
from certified_unlearning.errors import ParameterError
from certified_unlearning.vocabulary import Relation

Array = npt.NDArray[np.float64]
SELECTION_SHARE = 1e-6
"""Share of a selection's epsilon that is reserved for the rounding of scores."""
DRAWN_BITS = 512
"""Number of random bits for a selection by probabilities."""
DRAWN_FAILURE = 2.0 ** (4 - DRAWN_BITS)
"""Largest total variation, for each candidate, between the distribution of the draws and the intended probabilities."""
NOISY_FAILURE = 2.0**-49
"""Largest total variation, for each candidate of a noisy minimum, that the finite precision of the random numbers
causes."""


def mean_score_sensitivity(largest: float, *, n: int, relation: Relation) -> float:
    """Return how far one record can move the mean of ``n`` losses that are all in [0, ``largest``], rounded up.

    Even under ``replace-one``, a loss in [0, Delta] moves by at most Delta, not by twice as much. So the result is
    ``Delta / n``, plus rounding.

    Args:
        largest: Bound ``Delta`` to which losses were clipped.
        n: Number of records.
        relation: Neighbouring relation. It is only validated and does not change the result, because adding a loss
            moves a sum by at most as much as replacing one.
    """
    mean_sensitivity(largest, n=n, relation=relation)
    return (largest / n + 2 * gamma(n + 4) * largest) * OUTWARD


def generalised_scores(
    losses: Sequence[float], sensitivities: Sequence[float], *, epsilon: float, beta: float
) -> Array:
    """Return the scores of Theorem 34, each of sensitivity 1. The lowest score is the best.

    The scores are ``s_i = max_j max(0, ((q_i + t g_i) - (q_j + t g_j)) / (g_i + g_j))`` with ``t = 2 log(N / beta) /
    epsilon``. They move by at most 1 if every ``q_i`` moves by at most ``g_i``.

    Args:
        losses: Losses ``q_i`` to minimise.
        sensitivities: Sensitivities ``g_i``; 0 for losses that do not depend on records.
        epsilon: Pure epsilon.
        beta: With probability ``1 - beta``, ``q`` of the selected candidate is at most
            ``min_j q_j + 4 g_j log(N / beta) / epsilon``.

    Raises:
        ParameterError: Numbers of losses and sensitivities differ.
    """
    q, g = np.asarray(losses, dtype=np.float64), np.asarray(sensitivities, dtype=np.float64)
    if q.ndim != 1 or q.shape != g.shape or not len(q):
        raise ParameterError(
            f"there must be a sensitivity for each loss, got {q.size} losses and {g.size} sensitivities"
        )
    if not (np.isfinite(q).all() and (g >= 0).all() and np.isfinite(g).all()):
        raise ParameterError("losses must be finite, and sensitivities must be finite and at least 0")
    require_positive(epsilon=epsilon)
    require_probability(beta=beta)
    raised = q + 2 * math.log(len(q) / beta) / epsilon * g
    gaps, widths = raised[:, None] - raised[None], g[:, None] + g[None]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scores = np.where(widths > 0, gaps / widths, np.where(gaps > 0, np.inf, 0.0))
    best: Array = np.maximum(scores, 0).max(axis=1)
    return best


def generalised_probabilities(
    losses: Sequence[float], sensitivities: Sequence[float], *, epsilon: float, beta: float
) -> Array:
    """Return probabilities proportional to ``exp(-epsilon s_i / 2)`` for the ``s_i`` of `generalised_scores`.

    The arguments and errors are those of `generalised_scores`.
    """
    return softmax(-generalised_scores(losses, sensitivities, epsilon=epsilon, beta=beta), epsilon)


def laplace_scale(sensitivity: float, epsilon: float) -> float:
    """Return Theorem 3's scale ``Delta_1 / epsilon`` of Laplace noise for pure ``epsilon``-DP, rounded up."""
    require_non_negative(sensitivity=sensitivity)
    require_positive(epsilon=epsilon)
    return sensitivity / (epsilon * (1 - SELECTION_SHARE)) * OUTWARD


def noisy_minimum_scale(sensitivity: float, epsilon: float) -> float:
    """Return the scale of Laplace noise, ``2 Delta / epsilon``, if only the *index* of the least score is published."""
    return 2 * laplace_scale(sensitivity, epsilon)


def boosting_chunks(beta: float) -> int:
    """Return Algorithm 15's ``m = ceil(log_4(4 / beta))``. With probability ``1 - beta``, some run is good."""
    require_probability(beta=beta)
    return math.ceil(math.log(4 / beta, 4))


def softmax(exponents: Array, epsilon: float) -> Array:
    """Return probabilities proportional to ``exp(epsilon x / 2)``, with `SELECTION_SHARE` of epsilon kept in reserve.

    Raises:
        ParameterError: There is no candidate.
    """
    if not len(exponents):
        raise ParameterError("there must be a candidate to select, got none")
    half = epsilon * (1 - SELECTION_SHARE) / 2
    weights = np.exp(half * (exponents - exponents.max()))
    probabilities: Array = weights / weights.sum()
    return probabilities
