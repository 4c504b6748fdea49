"""Measures of what stable methods are compared with, and of small statements beside the theorems."""

import math
from collections.abc import Sequence

from certified_unlearning.accounting.core.groups import GroupBudget, group_guarantee
from certified_unlearning.accounting.tv.distances import gaussian_tv
from certified_unlearning.mechanisms.exact.sisa import Sisa
from certified_unlearning.papers.tv_stability.theory.baselines import noisy_mean_sigma, sharding_speedup
from certified_unlearning.reproduction.claims.evidence import Evidence
from certified_unlearning.reproduction.claims.registry import measure
from certified_unlearning.reproduction.claims.relations import Quantity


@measure
def sharding_speedups(evidence: Sequence[Evidence], *, slices: list[int], shards: int, printed: bool) -> list[Quantity]:
    """Return how many times less SISA computes for a uniform record than learning takes, over what is stated of it."""
    found = []
    for count in slices:
        system = Sisa(shards=shards, slices=count, steps=60 * count, batch_size=1, step_size=1.0)
        stages = [system.steps_of(stage) for stage in range(count)]
        average = sum(sum(stages[first:]) for first in range(count)) / count
        stated = sharding_speedup(shards=shards, slices=count, printed=printed)
        found.append(Quantity(shards * sum(stages) / average / stated, f"R = {count}"))
    return found


@measure
def private_calls_over_bound(evidence: Sequence[Evidence], *, rho: list[float], edits: list[int]) -> list[Quantity]:
    """Return how often Algorithm 25 computes a private model in a stream of edits, over Theorem 50's ``2 rho k``."""
    return [
        Quantity(count // GroupBudget(rho=each, epsilon=1.0, delta=1e-6).edits / (2 * each * count), f"{each:g}")
        for each in rho
        for count in edits
    ]


@measure
def private_guarantee(evidence: Sequence[Evidence], *, rho: list[float], epsilon: float) -> list[Quantity]:
    """Return epsilon and delta of the edits between two of Algorithm 25's computations over those that are wanted."""
    found = []
    for each in rho:
        budget = GroupBudget(rho=each, epsilon=epsilon, delta=1e-6)
        reached = group_guarantee(budget.learner_epsilon, budget.learner_delta, edits=budget.edits)
        found += [
            Quantity(reached[0] / epsilon, f"epsilon, rho = {each:g}"),
            Quantity(reached[1] / 1e-6, f"delta, rho = {each:g}"),
        ]
    return found


@measure
def group_delta_over_stated(
    evidence: Sequence[Evidence], *, group: list[int], epsilon: float, printed: bool
) -> list[Quantity]:
    """Return the delta of groups that an example of private output reaches, over Remark 7's.

    The example says yes with probability ``delta (1 + e^epsilon + ...)``, a term more for each further record.
    Printed is ``g epsilon^((g - 1) epsilon) delta``, meant ``g e^((g - 1) epsilon) delta``.
    """
    found = []
    for size in group:
        reached = sum(math.exp(number * epsilon) for number in range(size))
        stated = group_guarantee(epsilon, 1.0, edits=size)[1]
        if printed:
            stated = size * epsilon ** ((size - 1) * epsilon)
        found.append(Quantity(reached / stated, f"g = {size}"))
    return found


@measure
def noisy_mean_distance(evidence: Sequence[Evidence], *, n: int, rho: list[float]) -> list[Quantity]:
    """Return how far the noisy mean of a unit ball's points moves when one is replaced, at most, over ``rho``."""
    return [Quantity(gaussian_tv(2 / n / noisy_mean_sigma(n=n, rho=each)) / each, f"rho = {each:g}") for each in rho]


@measure
def mean_errors_over_rate(evidence: Sequence[Evidence], *, n: int, dimension: int, rho: list[float]) -> list[Quantity]:
    """Return the mean squared errors of both stable means over Claims 11's and 12's rates, without constants.

    Points are half 1, half -1, in one coordinate: the mean of ``s = rho n`` of them without replacement has variance
    ``(1 - s / n) n / ((n - 1) s)``.
    """
    found = []
    for each in rho:
        taken = each * n
        subsampled = (1 - taken / n) * n / ((n - 1) * taken)
        noise = dimension * noisy_mean_sigma(n=n, rho=each) ** 2
        found += [
            Quantity(subsampled * taken, f"Subsample-mean, rho = {each:g}"),
            Quantity(noise * taken**2 / dimension, f"Noisy-mean, rho = {each:g}"),
        ]
    return found


@measure
def reduction_records(
    evidence: Sequence[Evidence], *, n: int, rho: list[float], accuracy: float, printed: bool
) -> list[Quantity]:
    """Return the records of all copies of Proposition 11's small data set over those that there are.

    ``K = floor(0.1 / rho)`` copies of ``100 n alpha`` records as printed, or of ``10 n alpha / K``.
    """
    found = []
    for each in rho:
        copies = math.floor(0.1 / each)
        small = math.ceil(100 * n * accuracy if printed else 10 * n * accuracy / copies)
        found.append(Quantity(copies * small / n, f"rho = {each:g}"))
    return found


@measure
def solution_of_section_c_1(
    evidence: Sequence[Evidence], *, n: int, dimension: int, edits: list[int], cube_root: bool
) -> list[Quantity]:
    """Return the right side of ``rho = k n d / (rho n)^2`` over its left at ``sqrt(k d / n)``, or at the cube root."""
    found = []
    for count in edits:
        rho = (count * dimension / n) ** (1 / 3 if cube_root else 1 / 2)
        found.append(Quantity(count * n * dimension / (rho * n) ** 2 / rho, f"k = {count}"))
    return found
