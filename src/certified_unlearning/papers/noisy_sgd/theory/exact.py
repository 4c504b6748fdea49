"""Values for comparison with the bounds: our Gaussian analysis of the same runs, and exact quadratic losses."""

import math
from collections.abc import Sequence

import numpy as np

from certified_unlearning.accounting.core.checks import require_count, require_positive, require_probability
from certified_unlearning.accounting.core.conversion import epsilon_from_mu
from certified_unlearning.accounting.core.curves import Cycle
from certified_unlearning.accounting.core.pooling import NoisyPhase, log_power, pooled_mu
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.deletion.rates import check_order
from certified_unlearning.accounting.shifted.interpolation import contraction_gap
from certified_unlearning.errors import ParameterError
from certified_unlearning.papers.noisy_sgd.theory.distances import learned_distance, step_shift

_FORGOTTEN = 40.0
"""Epochs whose differences have faded by ``exp(-40)`` are combined into one distance, which is an upper bound."""
_HALVINGS = 200
_POINTS = 40_001
_TAIL = 14.0


def pooled(
    problem: Problem,
    cycle: Cycle,
    *,
    sigma: float,
    epochs: float,
    steps: int,
    position: int | None = None,
    records: int = 1,
    radius: float | None = None,
) -> float:
    """Return our ``mu`` of the same runs, computed by pooled shifted interpolation (`accounting.cyclic`).

    Our ``mu`` also uses the noise of learning. Without this noise, the differences of all epochs would add up to
    `learned_distance` at the end of learning, and the value would be `hidden_mu`. More noise allows more shifts and
    never makes a pooled value larger, so our value never exceeds the paper's. In a ball, counting may start anew with a
    distance of ``2 R`` at any epoch. The restarts that are tried are 0, 1, 2, 4, 8, ... epochs before the end of
    learning.

    Args:
        problem: The constants of a batch.
        cycle: The batches.
        sigma: The noise scale.
        epochs: The number ``T`` of learning epochs; infinite for learning to stationarity, which requires steps that
            contract.
        steps: The number ``k`` of unlearning steps, at least 0.
        position: The position ``p``, counted from 1; None for the last position, which is the worst.
        records: The number ``S`` of records, all in the same batch.
        radius: The radius ``R``; None if there is no ball.

    Raises:
        AssumptionError: ``step_size`` exceeds ``2 / L``.
    """
    require_positive(sigma=sigma)
    require_count(least=0, steps=steps)
    place = cycle.batches if position is None else position

    def apart(count: float) -> float:
        return learned_distance(problem, cycle, epochs=count, position=place, records=records)

    whole = apart(epochs)  # This call checks the other arguments.
    gap, tau = contraction_gap(problem), math.sqrt(2 * problem.step_size) * sigma
    shift = step_shift(problem, cycle, records=records)
    epoch = [
        NoisyPhase(place - 1, gap, 0.0, tau),
        NoisyPhase(1, gap, shift, tau),
        NoisyPhase(cycle.batches - place, gap, 0.0, tau),
    ]
    unlearning = NoisyPhase(steps, gap, 0.0, tau)

    def mu(last: int, distance: float) -> float:
        return pooled_mu([*epoch * last, unlearning], starting_distance=distance)

    fading = -log_power(cycle.batches, gap)
    enough = math.ceil(_FORGOTTEN / fading) if fading > 0 else math.inf
    if epochs <= enough and epochs < math.inf:
        least = mu(int(epochs), 0.0)
    elif enough < math.inf:
        least = mu(int(enough), apart(epochs - enough))
    else:
        least = math.inf
    if radius is None:
        return least
    require_positive(radius=radius)
    most = epochs if epochs < math.inf else min(enough, 2**12)
    starts = [0, *(2**power for power in range(int(most).bit_length()) if 2**power < most)]
    return min(least, mu(0, min(whole, 2 * radius)), *(mu(start, 2 * radius) for start in starts))


def averaged_epsilon(mus: Sequence[float], delta: float) -> float:
    """Return the smallest epsilon, rounded up, for a Gaussian pair that is drawn uniformly from several pairs.

    The mean of the deltas of all pairs is the delta of publishing the drawn index together with the outcome. The
    epsilon is therefore exact if these deltas are exact, and the order of the records may be published.

    Args:
        mus: The ``mu`` of each pair; there must be at least one pair.
        delta: The delta, strictly between 0 and 1.

    Raises:
        ParameterError: ``delta`` is out of range.
    """
    from scipy.special import log_ndtr

    require_probability(delta=delta)
    if math.isinf(max(mus)):
        return math.inf
    each = np.array([mu for mu in mus if mu > 0])
    if not len(each):
        return 0.0

    def mean_delta(epsilon: float) -> float:
        at = each / 2 - epsilon / each
        return float(np.sum(np.exp(log_ndtr(at)) - np.exp(epsilon + log_ndtr(at - each)))) / len(mus)

    low, high = 0.0, epsilon_from_mu(max(mus), delta)
    if mean_delta(0.0) <= delta:
        return 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if mean_delta(middle) > delta else (low, middle)
        if high - low <= 1e-12 * high:
            break
    return high


def quadratic_mus(
    problem: Problem, cycle: Cycle, *, sigma: float, epochs: int, steps: Sequence[int], position: int
) -> list[float]:
    """Return, for each number in ``steps``, the ``mu`` between the distributions of two runs with quadratic losses.

    The losses are linear, with gradients of norm ``M``, plus the regulariser ``m/2 |x|^2``. The two data sets differ in
    one record, whose gradient points in the opposite direction. Both distributions are Gaussians with the same
    variance; the gap of their means and the variance are computed step by step. The sums in the bounds are not used.

    Args:
        problem: The constants of a batch; ``smoothness`` is not used.
        cycle: The batches.
        sigma: The noise scale.
        epochs: The number ``T`` of learning epochs, finite.
        steps: The numbers ``k`` of unlearning steps, increasing, at least 0.
        position: The position ``p``, counted from 1.
    """
    kept = 1 - problem.step_size * problem.strong_convexity
    shift, noise = step_shift(problem, cycle), 2 * problem.step_size * sigma**2
    apart = variance = 0.0
    for number in range(epochs * cycle.batches):
        apart = kept * apart + (shift if number % cycle.batches == position - 1 else 0.0)
        variance = kept * kept * variance + noise
    found, taken = [], 0
    for count in steps:
        if count < taken:
            raise ParameterError(f"steps must increase, got {count} after {taken}")
        for _ in range(count - taken):
            apart, variance = kept * apart, kept * kept * variance + noise
        taken = count
        found.append(apart / math.sqrt(variance))
    return found


def hidden_place_divergence(mus: Sequence[float], alpha: float) -> float:
    """Return the two-sided divergence of a uniform mixture of ``N(mu_p, 1)`` from ``N(0, 1)``, by quadrature.

    This is the exact value on linear losses with a regulariser if the record's place is drawn and hidden. All other
    records have the same gradient, so the retrained distribution does not depend on the place.

    Args:
        mus: The ``mu_p`` of every place.
        alpha: The Rényi order, above 1.

    Raises:
        ParameterError: ``alpha`` is not a Rényi order.
    """
    from scipy.special import logsumexp

    check_order(alpha)
    reach = alpha * max(mus) + _TAIL
    points = np.linspace(-reach, reach, _POINTS)
    log_width = math.log(points[1] - points[0])
    base = -(points**2) / 2 - math.log(2 * math.pi) / 2
    mixed = logsumexp(np.outer(points, mus) - np.square(mus) / 2, axis=1) - math.log(len(mus))
    there = logsumexp(base + alpha * mixed) + log_width
    back = logsumexp(base + (1 - alpha) * mixed) + log_width
    return float(max(there, back)) / (alpha - 1)
