"""The fewest unlearning steps and epochs according to the bounds on noisy SGD."""

import math
from collections.abc import Callable

from certified_unlearning.accounting.core.conversion import Conversion, epsilon_of
from certified_unlearning.accounting.core.curves import Cycle, RenyiCurve
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.core.search import least_whole
from certified_unlearning.papers.noisy_sgd.theory.bounds import CODE_FACTOR, distance_curve
from certified_unlearning.papers.noisy_sgd.theory.distances import learned_distance


def least_count(epsilon_after: Callable[[int], float], epsilon: float) -> int:
    """Return the smallest number, at least 1, at which a decreasing epsilon is at most the target.

    Args:
        epsilon_after: A function from a number of steps or epochs to the epsilon after them.
        epsilon: The target epsilon.
    """
    return least_whole(1.0, lambda count: epsilon_after(count) <= epsilon, minimum=1)


def times(curve: RenyiCurve, factor: float) -> RenyiCurve:
    """Return a curve with all its divergences multiplied by ``factor``."""
    return RenyiCurve(lambda alpha: curve.log_divergence(alpha) + math.log(factor))


def sequential_epochs(
    problem: Problem,
    cycle: Cycle,
    *,
    sigma: float,
    epsilon: float,
    delta: float,
    requests: int,
    factor: float = CODE_FACTOR,
    conversion: Conversion = "paper",
) -> list[int]:
    """Return the fewest epochs for each of several requests, one after another.

    The distances are those of `sequential_distances` at stationarity.

    Args:
        problem: The constants of a batch.
        cycle: The batches.
        sigma: The noise scale.
        epsilon: The target after every request.
        delta: The delta, strictly between 0 and 1.
        requests: The number of requests; each request removes one record.
        factor: The factor by which all divergences are multiplied: 1 for the bound, and `CODE_FACTOR` for the published
            code.
        conversion: The conversion to epsilon; the published code uses ``paper``.

    Raises:
        AssumptionError: ``step_size`` exceeds ``2 / L``, or steps do not contract.
    """
    learned = learned_distance(problem, cycle, epochs=math.inf)
    kept = 1 - problem.step_size * problem.strong_convexity
    distance, found = 0.0, []
    for _ in range(requests):
        distance += learned

        def after(epochs: int, distance: float = distance) -> float:
            curve = distance_curve(problem, sigma=sigma, distance=distance, steps=epochs * cycle.batches)
            return epsilon_of(times(curve, factor), delta, conversion=conversion)

        found.append(least_count(after, epsilon))
        distance *= kept ** (found[-1] * cycle.batches)
    return found
