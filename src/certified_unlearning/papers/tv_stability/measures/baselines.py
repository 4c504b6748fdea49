"""Measures for the baselines of stable methods, and for minor statements that accompany the theorems."""

import math

from certified_unlearning.accounting.core.groups import GroupBudget, group_guarantee
from certified_unlearning.accounting.tv.distances import gaussian_tv
from certified_unlearning.mechanisms.exact.sisa import Sisa
from certified_unlearning.papers.tv_stability.theory.baselines import noisy_mean_sigma, sharding_speedup
from certified_unlearning.reproduction.claims.registry import sweep
from certified_unlearning.reproduction.claims.relations import Quantity


@sweep("R = {slices}")
def sharding_speedups(*, slices: int, shards: int, printed: bool) -> float:
    """Return SISA's saving in computation for a uniformly drawn record, divided by the stated saving."""
    system = Sisa(shards=shards, slices=slices, steps=60 * slices, batch_size=1, step_size=1.0)
    stages = [system.steps_of(stage) for stage in range(slices)]
    average = sum(sum(stages[first:]) for first in range(slices)) / slices
    stated = sharding_speedup(shards=shards, slices=slices, printed=printed)
    return shards * sum(stages) / average / stated


@sweep("{rho:g}")
def private_calls_over_bound(*, rho: float, edits: list[int]) -> list[Quantity]:
    """Return the number of private models of Algorithm 25 in a stream, divided by Theorem 50's ``2 rho k``."""
    budget = GroupBudget(rho=rho, epsilon=1.0, delta=1e-6)
    return [Quantity(count // budget.edits / (2 * rho * count)) for count in edits]


@sweep("rho = {rho:g}")
def private_guarantee(*, rho: float, epsilon: float) -> dict[str, float]:
    """Return Algorithm 25's epsilon and delta between two private models, divided by the required values."""
    budget = GroupBudget(rho=rho, epsilon=epsilon, delta=1e-6)
    reached = group_guarantee(budget.learner_epsilon, budget.learner_delta, edits=budget.edits)
    return {"epsilon": reached[0] / epsilon, "delta": reached[1] / 1e-6}


@sweep("g = {group}")
def group_delta_over_stated(*, group: int, epsilon: float, printed: bool) -> float:
    """Return an example's exact delta for a group of records, divided by the delta of Remark 7.

    The example answers yes with probability ``delta (1 + e^epsilon + ...)``, with one more term for each further
    record. The printed value is ``g epsilon^((g - 1) epsilon) delta``, and the intended value is ``g e^((g - 1)
    epsilon) delta``.
    """
    reached = sum(math.exp(number * epsilon) for number in range(group))
    stated = group_guarantee(epsilon, 1.0, edits=group)[1]
    if printed:
        stated = group * epsilon ** ((group - 1) * epsilon)
    return reached / stated


@sweep("rho = {rho:g}")
def noisy_mean_distance(*, n: int, rho: float) -> float:
    """Return the largest total variation between noisy means of points in a unit ball, divided by ``rho``.

    The two means are those before and after the replacement of one record.
    """
    return gaussian_tv(2 / n / noisy_mean_sigma(n=n, rho=rho)) / rho


@sweep("rho = {rho:g}")
def mean_errors_over_rate(*, n: int, dimension: int, rho: float) -> dict[str, float]:
    """Return the mean squared errors of both stable means divided by the rates of Claims 11 and 12, without constants.

    Half the points are 1 and half are -1, in one coordinate. The mean of ``s = rho n`` points, drawn without
    replacement, has variance ``(1 - s / n) n / ((n - 1) s)``.
    """
    taken = rho * n
    subsampled = (1 - taken / n) * n / ((n - 1) * taken)
    noise = dimension * noisy_mean_sigma(n=n, rho=rho) ** 2
    return {"Subsample-mean": subsampled * taken, "Noisy-mean": noise * taken**2 / dimension}


@sweep("rho = {rho:g}")
def reduction_records(*, n: int, rho: float, accuracy: float, printed: bool) -> float:
    """Return the number of records in all copies of Proposition 11's small data set, divided by ``n``.

    There are ``K = floor(0.1 / rho)`` copies. If ``printed`` is true, each copy has ``100 n alpha`` records; otherwise,
    it has ``10 n alpha / K`` records.
    """
    copies = math.floor(0.1 / rho)
    small = math.ceil(100 * n * accuracy if printed else 10 * n * accuracy / copies)
    return copies * small / n


@sweep("k = {edits}")
def solution_of_section_c_1(*, n: int, dimension: int, edits: int, cube_root: bool) -> float:
    """Return the right side of ``rho = k n d / (rho n)^2`` divided by its left side.

    ``rho`` is ``sqrt(k d / n)``, or the cube root of ``k d / n``.
    """
    rho = (edits * dimension / n) ** (1 / 3 if cube_root else 1 / 2)
    return float(edits * n * dimension / (rho * n) ** 2 / rho)
