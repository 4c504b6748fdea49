"""Rényi bounds on unlearning by noisy SGD: the noise of the unlearning steps hides a distance after learning."""

import math
from collections.abc import Sequence

import numpy as np

from certified_unlearning.accounting.core.checks import require_count, require_positive
from certified_unlearning.accounting.core.curves import Cycle, RenyiCurve
from certified_unlearning.accounting.core.pooling import log_power
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.core.search import Array
from certified_unlearning.accounting.shifted.interpolation import contraction_gap
from certified_unlearning.errors import ParameterError
from certified_unlearning.papers.noisy_sgd.theory.distances import learned_distance

CODE_FACTOR = 2.0
"""The published code's divergences divided by `distance_curve`.

The code uses ``eta sigma^2`` for the variance ``2 eta sigma^2``.
"""


def log_hidden_mu(problem: Problem, *, sigma: float, distance: float, steps: int) -> float:
    """Return the logarithm of `hidden_mu`.

    Raises:
        AssumptionError: ``step_size`` exceeds ``2 / L``.
    """
    require_positive(sigma=sigma)
    require_count(least=1, steps=steps)
    if not distance >= 0:
        raise ParameterError(f"distance must be at least 0, got {distance}")
    gap = contraction_gap(problem)
    if distance == 0 or gap == 1:
        return -math.inf
    noises = -math.expm1(log_power(2 * steps, gap)) / (gap * (2 - gap)) if gap > 0 else steps
    variance = 2 * problem.step_size * sigma**2 * noises
    return math.log(distance) + log_power(steps, gap) - math.log(variance) / 2


def hidden_mu(problem: Problem, *, sigma: float, distance: float, steps: int) -> float:
    """Return the ``mu`` of two processes that start ``Z`` apart, after ``k`` noisy steps on the same data.

    The value is ``mu = Z c^k / sqrt( 2 eta sigma^2 sum_(i<k) c^(2 i) )``, and ``alpha mu^2 / 2`` is the Rényi bound.
    The bound is derived here, by privacy amplification by iteration with optimal shifts. Let step ``t`` hide a shift
    ``a_t`` behind its noise of variance ``tau^2 = 2 eta sigma^2``, at a Rényi cost of ``alpha a_t^2 / (2 tau^2)``;
    these costs add up. The remaining distance is ``z_t = c z_(t-1) - a_t`` with ``z_0 = Z`` and ``z_k = 0``, so ``sum_t
    c^(k-t) a_t = c^k Z``. By Cauchy-Schwarz, the smallest sum of squares has ``a_t`` in proportion to ``c^(k-t)``, and
    is ``c^(2k) Z^2 / sum_(i<k) c^(2i)``. All ``z_t`` are at least 0, so these shifts are allowed. If the losses are
    quadratic with curvature ``m``, and the processes start at two points with distance ``Z``, the bound is reached,
    because the distributions are then Gaussians with exactly this ``mu``.

    Args:
        problem: The constants of a batch.
        sigma: The noise scale.
        distance: The distance ``Z``, at least 0.
        steps: The number ``k`` of steps, at least 1, because without steps nothing is hidden.

    Raises:
        AssumptionError: ``step_size`` exceeds ``2 / L``.
    """
    return math.exp(log_hidden_mu(problem, sigma=sigma, distance=distance, steps=steps))


def distance_curve(problem: Problem, *, sigma: float, distance: float, steps: int) -> RenyiCurve:
    """Return the bounds ``alpha mu^2 / 2`` with `hidden_mu`; arguments and errors are those of `hidden_mu`."""
    log_slope = 2 * log_hidden_mu(problem, sigma=sigma, distance=distance, steps=steps) - math.log(2)
    return RenyiCurve(lambda alpha: np.log(alpha) + log_slope)


def known_curve(
    problem: Problem,
    cycle: Cycle,
    *,
    sigma: float,
    epochs: float,
    steps: int,
    position: int | None = None,
    records: int = 1,
    radius: float | None = None,
) -> RenyiCurve:
    """Return the bounds for a record in a known batch or in the worst batch: `distance_curve` of `learned_distance`.

    Args:
        problem: The constants of a batch.
        cycle: The batches.
        sigma: The noise scale.
        epochs: The number ``T`` of learning epochs; may be infinite.
        steps: The number ``k`` of unlearning steps, at least 1; ``K l`` in ``K`` epochs.
        position: The position ``p`` of the batch, counted from 1; None for the worst one, the last.
        records: The number ``S`` of records, all in the same batch.
        radius: The radius ``R``; None if there is no ball.

    Raises:
        AssumptionError: ``step_size`` exceeds ``2 / L``.
    """
    distance = learned_distance(problem, cycle, epochs=epochs, position=position, records=records, radius=radius)
    return distance_curve(problem, sigma=sigma, distance=distance, steps=steps)


def averaged_curve(
    problem: Problem,
    cycle: Cycle,
    *,
    sigma: float,
    epochs: float,
    steps: int,
    radius: float | None = None,
) -> RenyiCurve:
    """Return the bounds for a record whose batch is drawn at random, all batches with the same probability.

    The bound is ``1/(alpha - 1) log( (1/l) sum_p exp( (alpha - 1) eps_p(alpha) ) )``: `mixed_curve` of the bounds of
    all positions.

    Args:
        problem: The constants of a batch.
        cycle: The batches.
        sigma: The noise scale.
        epochs: The number ``T`` of learning epochs.
        steps: The number ``k`` of unlearning steps, at least 1.
        radius: The radius ``R``; None if there is no ball.

    Raises:
        AssumptionError: ``step_size`` exceeds ``2 / L``.
    """
    log_mus = [
        log_hidden_mu(
            problem,
            sigma=sigma,
            distance=learned_distance(problem, cycle, epochs=epochs, position=position, radius=radius),
            steps=steps,
        )
        for position in range(1, cycle.batches + 1)
    ]
    return mixed_curve(log_mus)


def mixed_curve(log_mus: Sequence[float]) -> RenyiCurve:
    """Return the bounds for a uniform mixture of pairs of distributions, where each pair is ``mu``-Gaussian DP.

    Every pair has its own ``mu``. The bound is derived here. Let ``P`` and ``Q`` be mixtures of ``P_j`` and ``Q_j``
    with the same weights. If the drawn index ``j`` is published with the outcome, ``exp((alpha - 1) D_alpha)`` of the
    mixtures equals the mean, over ``j``, of ``exp((alpha - 1) D_alpha)`` of ``P_j`` and ``Q_j``. Hiding the drawn index
    is post-processing. The bound therefore holds with and without publishing the order of the records. It does *not*
    hold for a record whose place is already known: see `known_curve`.

    Args:
        log_mus: The logarithms of the ``mu``; there must be at least one.
    """
    slopes = 2 * np.array(log_mus, dtype=np.float64) - math.log(2)

    def log_divergence(alpha: Array) -> Array:
        excess = np.log(alpha - 1)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            exponents = np.exp((excess + np.log(alpha))[..., None] + slopes)
            top = exponents.max(axis=-1)
            # Small exponents would be lost in a sum with 1, and large ones would overflow.
            small = np.log1p(np.expm1(np.minimum(exponents, 1.0)).mean(axis=-1))
            large = top + np.log(np.exp(exponents - top[..., None]).mean(axis=-1))
            mean = np.where(top < 1, small, np.where(np.isinf(top), top, large))
            found: Array = np.log(mean) - excess
        return found

    return RenyiCurve(log_divergence)
