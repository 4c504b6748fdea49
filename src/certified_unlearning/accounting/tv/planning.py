"""Plans with the least noise or the most steps. The target is the probability that an edit causes a recomputation.

A plan is made once, before learning, and kept for all edits. Steps, batches and noise are part of the algorithm whose
distribution an unlearner reproduces, so none of them may depend on the current number of records.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from certified_unlearning.accounting.core.checks import require_count, require_positive, require_probability
from certified_unlearning.accounting.core.search import bisect, least_whole
from certified_unlearning.accounting.tv.distances import gap_of_tv, gaussian_tv, require_batch
from certified_unlearning.accounting.tv.recomputation import (
    noisy_recompute_probability,
    quantised_recompute_probability,
    query_recompute_probability,
)
from certified_unlearning.accounting.tv.subsampling import probability_each, subsampling_tv
from certified_unlearning.accounting.tv.tree import (
    recompute_probability_up_to,
    theorem_25_sigma,
    worst_recompute_probability,
)
from certified_unlearning.errors import InfeasibleError, ParameterError

# `random`: positions are a uniform permutation, which is required for insertions to be exact. `arrival`: records stay
# in their order of arrival, and a deleted record may have any position.
Order = Literal["random", "arrival"]


BELOW_ONE = math.nextafter(1.0, 0.0)
MOST_STEPS = 10_000_000
"""Plans with more steps than this are refused."""


@dataclass(frozen=True)
class NoisePlan:
    """Noise for a target probability of a recomputation after one edit.

    Attributes:
        noise: The least noise that suffices, as a standard deviation per coordinate; for quantised SGD, the grid's
            spacing. It is 0 if no noise is needed.
        recompute_probability: Bound on the probability of a recomputation at this noise. The bound is at most the
            target.
        published_noise: The noise according to the theorem's constants, for the same ``rho``.
    """

    noise: float
    recompute_probability: float
    published_noise: float


def most_steps(*, n: int, batch_size: int, recompute_probability: float) -> int:
    """Return the largest number of steps with which sub-sample-GD recomputes with at most the target probability.

    If a single step exceeds the target, the result is 0.

    Args:
        n: Smallest number of records that the data set has before a deletion.
        batch_size: Batch size ``m``.
        recompute_probability: Target probability, strictly between 0 and 1.
    """
    require_batch(n, batch_size)
    require_probability(recompute_probability=recompute_probability)
    if batch_size == n:
        return 0
    estimate = math.log1p(-recompute_probability) / math.log1p(-batch_size / n)

    def too_many(steps: int) -> bool:
        return subsampling_tv(n=n, batch_size=batch_size, steps=steps) > recompute_probability

    return bisect(max(math.floor(estimate) - 1, 0), math.floor(estimate) + 2, too_many) - 1 if estimate >= 1 else 0


def largest_batch(*, n: int, steps: int, recompute_probability: float) -> int:
    """Return the largest batch size at which sub-sample-GD recomputes with at most a given probability.

    Args:
        n: Smallest number of records that the data set has before a deletion.
        steps: Number of steps ``T``.
        recompute_probability: Target probability, strictly between 0 and 1.

    Raises:
        InfeasibleError: Even batches of one record are too large.
    """
    require_count(least=1, n=n, steps=steps)
    require_probability(recompute_probability=recompute_probability)

    def too_large(batch_size: int) -> bool:
        return subsampling_tv(n=n, batch_size=batch_size, steps=steps) > recompute_probability

    found = bisect(0, n, too_large) - 1
    if found < 1:
        raise InfeasibleError(
            f"even with batches of one record, steps = {steps} and n = {n} cause a recomputation with probability "
            f"{subsampling_tv(n=n, batch_size=1, steps=steps):.6g}, but recompute_probability = "
            f"{recompute_probability}; raise recompute_probability, or take at most "
            f"{most_steps(n=n, batch_size=1, recompute_probability=recompute_probability)} steps"
        )
    return found


def most_noisy_steps(*, n: int, batch_size: int, sigma: float, lipschitz: float, recompute_probability: float) -> int:
    """Return the largest number of steps for which noisy SGD has at most the given recomputation probability.

    The number is 0 if even one step has a larger probability.

    The arguments and errors are those of `plan_noisy_sgd`. ``sigma`` is the standard deviation of the noise.
    """
    require_batch(n, batch_size)
    require_positive(sigma=sigma, lipschitz=lipschitz)
    require_probability(recompute_probability=recompute_probability)

    def probability(steps: int) -> float:
        return noisy_recompute_probability(
            n=n, batch_size=batch_size, steps=steps, sigma=sigma, gap=2 * lipschitz / batch_size
        )

    return _most(probability, recompute_probability)


def most_quantised_steps(
    *, n: int, batch_size: int, resolution: float, lipschitz: float, dimension: int, recompute_probability: float
) -> int:
    """Return the largest number of steps for which quantised SGD has at most the given recomputation probability.

    The number is 0 if even one step has a larger probability.

    The arguments and errors are those of `plan_quantised_sgd`. ``resolution`` is the grid's spacing.
    """
    require_batch(n, batch_size)
    require_positive(resolution=resolution, lipschitz=lipschitz)
    require_probability(recompute_probability=recompute_probability)

    def probability(steps: int) -> float:
        return quantised_recompute_probability(
            n=n,
            batch_size=batch_size,
            steps=steps,
            resolution=resolution,
            dimension=dimension,
            gap=2 * lipschitz / batch_size,
        )

    return _most(probability, recompute_probability)


def most_queries(*, sigma: float, bound: float, recompute_probability: float) -> int:
    """Return the largest number of noisy linear queries that are recomputed with at most the target probability.

    If a single query exceeds the target, the result is 0. The arguments and errors are those of `plan_queries`.
    ``sigma`` is the standard deviation of the noise.
    """
    require_positive(sigma=sigma, bound=bound)
    require_probability(recompute_probability=recompute_probability)
    return _most(
        lambda queries: query_recompute_probability(queries=queries, sigma=sigma, bound=bound), recompute_probability
    )


def _most(probability: Callable[[int], float], wanted: float) -> int:
    """Return the largest number of equal steps for which the probability of a recomputation is at most ``wanted``.

    If the probability is larger even for one step, the result is 0.
    """
    once = probability(1)
    if once > wanted:
        return 0
    estimate = math.log1p(-wanted) / math.log1p(-once) if once else math.inf
    if estimate > MOST_STEPS:
        raise InfeasibleError(
            f"recompute_probability = {wanted} would allow more than {MOST_STEPS:,} steps: give steps instead"
        )
    return least_whole(estimate, lambda steps: probability(steps) > wanted, minimum=1) - 1


def plan_noisy_sgd(*, n: int, batch_size: int, steps: int, lipschitz: float, recompute_probability: float) -> NoisePlan:
    """Return the noise of noisy SGD, accelerated or not, for records whose gradients have norm at most ``G``.

    The published noise is ``8 T G / (n rho)`` (Theorems 22 and 44). By the union bound alone, ``sqrt(2 / pi) T G / (n
    rho)`` suffices, and the least sufficient noise is slightly smaller.

    Args:
        n: Smallest number of records that the data set has before a deletion.
        batch_size: Batch size ``m``.
        steps: Number of steps ``T``.
        lipschitz: Bound ``G`` on the norm of a record's gradient.
        recompute_probability: Target probability for one edit, strictly between 0 and 1.
    """
    require_batch(n, batch_size)
    require_count(least=1, steps=steps)
    require_positive(lipschitz=lipschitz)
    gap = 2 * lipschitz / batch_size
    tv = _tv_of_a_hit(n, batch_size, steps, recompute_probability)

    def probability(noise: float) -> float:
        return noisy_recompute_probability(n=n, batch_size=batch_size, steps=steps, sigma=noise, gap=gap)

    sigma = gap / gap_of_tv(min(tv, BELOW_ONE)) if probability(0.0) > recompute_probability else 0.0
    published = 8 * steps * lipschitz / (n * recompute_probability)
    return _enough(probability, sigma, recompute_probability, published)


def plan_quantised_sgd(
    *, n: int, batch_size: int, steps: int, lipschitz: float, dimension: int, recompute_probability: float
) -> NoisePlan:
    """Return the grid's spacing for quantised SGD. The published spacing is ``4 G d T / (n rho)`` (Theorem 45).

    The arguments and errors are those of `plan_noisy_sgd`. ``dimension`` is the number of parameters, ``d``.
    """
    require_batch(n, batch_size)
    require_count(least=1, steps=steps, dimension=dimension)
    require_positive(lipschitz=lipschitz)
    gap = 2 * lipschitz / batch_size
    tv = _tv_of_a_hit(n, batch_size, steps, recompute_probability)

    def probability(resolution: float) -> float:
        return quantised_recompute_probability(
            n=n, batch_size=batch_size, steps=steps, resolution=resolution, dimension=dimension, gap=gap
        )

    published = 4 * lipschitz * dimension * steps / (n * recompute_probability)
    # If batches contain the record rarely enough, any grid suffices, but some grid is needed.
    return _enough(probability, math.sqrt(dimension) * gap / min(tv, 1.0), recompute_probability, published)


def plan_queries(*, queries: int, bound: float, recompute_probability: float) -> NoisePlan:
    """Return the noise of linear queries, which are sums.

    The published noise is ``8 T B / rho``. It is derived in two steps from Theorem 51's ``8 B / rho`` for sums. First,
    a factor ``sqrt(T)``, which the printed formula lacks, is added. Second, ``rho / sqrt(T)`` replaces ``rho``, because
    a share ``rho sqrt(T)`` of edits cause a recomputation.

    Args:
        queries: Number ``T`` of noisy queries in a run.
        bound: Largest norm ``B`` of one record's part of a query.
        recompute_probability: Target probability for one edit, strictly between 0 and 1.
    """
    require_count(least=1, queries=queries)
    require_positive(bound=bound)
    require_probability(recompute_probability=recompute_probability)
    sigma = bound / gap_of_tv(probability_each(recompute_probability, queries))

    def probability(noise: float) -> float:
        return query_recompute_probability(queries=queries, sigma=noise, bound=bound)

    return _enough(probability, sigma, recompute_probability, 8 * queries * bound / recompute_probability)


def plan_tree(*, n: int, sensitivity: float, recompute_probability: float, order: Order = "random") -> NoisePlan:
    """Return the noise of the nodes of prefix sums. It suffices as long as the data set has at most ``n`` records.

    The published noise is that of Theorem 25, with logarithms to base 2.

    Args:
        n: The largest number of records at any time.
        sensitivity: Largest distance ``B`` by which replacing a record moves a sum.
        recompute_probability: Target probability for one edit, strictly between 0 and 1.
        order: The order of the records, see `Order`.
    """
    require_count(least=2, n=n)
    require_positive(sensitivity=sensitivity)
    require_probability(recompute_probability=recompute_probability)
    if order not in get_args(Order):
        raise ParameterError(f"order must be one of {', '.join(get_args(Order))}, got {order!r}")

    def probability(sigma: float) -> float:
        if order == "arrival":
            return worst_recompute_probability(n=n, sigma=sigma, sensitivity=sensitivity)
        return recompute_probability_up_to(n, gaussian_tv(sensitivity / sigma))

    def excess(tau: float) -> float:
        return probability(sensitivity / gap_of_tv(tau)) - recompute_probability

    from scipy.optimize import brentq

    # One node rejects at most as often as all nodes together, which gives one end of the search. The union bound over
    # all heights gives the other end.
    highest, lowest = recompute_probability, recompute_probability / (n - 1).bit_length()
    tau = highest if excess(highest) <= 0 else float(brentq(excess, lowest / 2, highest, xtol=1e-300, rtol=1e-14))
    published = theorem_25_sigma(n=n, rho=recompute_probability, sensitivity=sensitivity)
    return _enough(probability, sensitivity / gap_of_tv(tau), recompute_probability, published)


def _tv_of_a_hit(n: int, batch_size: int, steps: int, recompute_probability: float) -> float:
    """Return the total variation that a step may have if its batch contains the record; 1 or more means no limit."""
    require_probability(recompute_probability=recompute_probability)
    return probability_each(recompute_probability, steps) * n / batch_size


def _enough(probability: Callable[[float], float], noise: float, wanted: float, published: float) -> NoisePlan:
    """Return the plan with slightly more noise, so that rounding does not push the probability above the target."""
    more = 1e-15
    while probability(noise) > wanted:
        noise *= 1 + more
        more *= 2
    return NoisePlan(noise, probability(noise), published)
