"""Measures of the bounds themselves: distances, the batch size, positions, requests, numbers of epochs."""

import math
from collections.abc import Sequence
from typing import Literal

from certified_unlearning.accounting.core.conversion import epsilon_of
from certified_unlearning.accounting.core.curves import Cycle
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.descent.published import descent_step_size, published_state_plan
from certified_unlearning.accounting.shifted.interpolation import contraction_gap
from certified_unlearning.papers.noisy_sgd.settings import DELTA, SIGMA, N, cycle_of, problem_of, small
from certified_unlearning.papers.noisy_sgd.theory.bounds import (
    averaged_curve,
    distance_curve,
    hidden_mu,
    known_curve,
)
from certified_unlearning.papers.noisy_sgd.theory.distances import learned_distance, sequential_distances
from certified_unlearning.papers.noisy_sgd.theory.planning import least_count, sequential_epochs
from certified_unlearning.reproduction.claims.evidence import Evidence
from certified_unlearning.reproduction.claims.registry import changes, measure
from certified_unlearning.reproduction.claims.relations import Quantity

Number = int | float
"""A number of epochs, which may be infinite."""

_RADIUS = 10.0


@measure
def learned_distance_over_coupling(evidence: Sequence[Evidence], *, batches: int, epochs: list[int]) -> list[Quantity]:
    """Return `learned_distance` over the distance of two coupled chains that is carried on step by step."""
    problem, cycle = small(batches)
    found = []
    for count in epochs:
        for position in range(1, batches + 1):
            apart = 0.0
            for number in range(count * batches):
                apart *= 1 - problem.step_size * problem.strong_convexity
                if number % batches == position - 1:
                    apart += problem.step_size * 2 * problem.lipschitz / cycle.batch_size
            distance = learned_distance(problem, cycle, epochs=count, position=position)
            found.append(Quantity(distance / apart, f"T = {count}, position = {position}"))
    return found


@measure
def convex_distances(evidence: Sequence[Evidence], *, batch_size: int, epochs: list[Number]) -> list[Quantity]:
    """Return the distance of learning on convex losses in a ball of radius 10, over ``2 R``."""
    problem, cycle = problem_of(batch_size, convex=True), cycle_of(batch_size)
    return [
        Quantity(learned_distance(problem, cycle, epochs=each, radius=_RADIUS) / (2 * _RADIUS), f"T = {each:g}")
        for each in epochs
    ]


@measure
def changes_by_batch_size(
    evidence: Sequence[Evidence],
    *,
    batch_size: list[int],
    epochs: Number,
    unlearning_epochs: list[int],
    convex: bool = False,
    ball: bool = False,
) -> list[Quantity]:
    """Return how the logarithm of ``mu`` of the worst position changes from batch size to batch size."""
    found = []
    for count in unlearning_epochs:
        values = []
        for size in batch_size:
            problem, cycle = problem_of(size, convex=convex), cycle_of(size)
            distance = learned_distance(problem, cycle, epochs=epochs, radius=_RADIUS if ball else None)
            mu = hidden_mu(problem, sigma=SIGMA, distance=distance, steps=count * cycle.batches)
            values.append(Quantity(math.log(mu), f"K = {count}, b = {size}"))
        found += changes(values)
    return found


@measure
def changes_by_position(
    evidence: Sequence[Evidence], *, batch_size: list[int], steps: list[int], compared: Literal["averaged", "places"]
) -> list[Quantity]:
    """Return how epsilon changes from the worst position to a drawn one, or from each quarter of the cycle on."""
    found = []
    for size in batch_size:
        problem, cycle = problem_of(size), cycle_of(size)
        for count in steps:

            def epsilon(position: int, problem: Problem = problem, cycle: Cycle = cycle, count: int = count) -> float:
                curve = known_curve(problem, cycle, sigma=SIGMA, epochs=math.inf, steps=count, position=position)
                return epsilon_of(curve, DELTA)

            name = f"b = {size}, k = {count}"
            if compared == "averaged":
                drawn = averaged_curve(problem, cycle, sigma=SIGMA, epochs=math.inf, steps=count)
                worst = epsilon(cycle.batches)
                found.append(Quantity(epsilon_of(drawn, DELTA) - worst, name))
            else:
                places = sorted({max(1, cycle.batches * part // 4) for part in range(5)})
                found += changes([Quantity(epsilon(place), f"{name}, position = {place}") for place in places])
    return found


@measure
def share_of_descent_to_delete(
    evidence: Sequence[Evidence], *, batch_size: list[int], requests: int, epsilon: float, dimension: int
) -> list[Quantity]:
    """Return the gradients of so many requests of one record, over those of Descent-to-Delete without secret state."""
    full = problem_of(N)
    rate = descent_step_size(strong_convexity=full.strong_convexity, smoothness=full.smoothness)
    baseline = Problem(N, full.strong_convexity, full.smoothness, full.lipschitz, rate)
    plan = published_state_plan(baseline, epsilon=epsilon, delta=DELTA, dimension=dimension, request_count=requests)
    others = sum(plan.steps_per_request)
    return [
        Quantity(
            sum(
                sequential_epochs(
                    problem_of(size), cycle_of(size), sigma=SIGMA, epsilon=epsilon, delta=DELTA, requests=requests
                )
            )
            / others,
            f"b = {size}",
        )
        for size in batch_size
    ]


@measure
def sequential_limit(
    evidence: Sequence[Evidence], *, batch_size: list[int], epochs: list[int], requests: int
) -> list[Quantity]:
    """Return the distance before the last of equal requests over ``Z / (1 - c^k)``."""
    found = []
    for size in batch_size:
        problem, cycle = problem_of(size), cycle_of(size)
        for count in epochs:
            steps = count * cycle.batches
            distances = sequential_distances(problem, cycle, steps=[steps] * (requests - 1))
            learned = learned_distance(problem, cycle, epochs=math.inf)
            limit = learned / -math.expm1(steps * math.log1p(-contraction_gap(problem)))
            found.append(Quantity(distances[-1] / limit, f"b = {size}, K = {count}"))
    return found


@measure
def group_over_one(evidence: Sequence[Evidence], *, batch_size: int, records: list[int]) -> list[Quantity]:
    """Return the distance of so many records of one batch over that of one, in units of their number."""
    problem, cycle = problem_of(batch_size), cycle_of(batch_size)
    one = learned_distance(problem, cycle, epochs=math.inf)
    return [
        Quantity(learned_distance(problem, cycle, epochs=math.inf, records=each) / (each * one), f"S = {each}")
        for each in records
    ]


@measure
def epochs_saved(
    evidence: Sequence[Evidence], *, batch_size: list[int], epsilon: float, radius: float
) -> list[Quantity]:
    """Return by how many epochs unlearning is shorter than a run from the far side of the ball, ``2 R`` away."""
    found = []
    for size in batch_size:
        problem, cycle = problem_of(size), cycle_of(size)

        def epochs(distance: float, problem: Problem = problem, cycle: Cycle = cycle) -> int:
            def after(count: int) -> float:
                curve = distance_curve(problem, sigma=SIGMA, distance=distance, steps=count * cycle.batches)
                return epsilon_of(curve, DELTA)

            return least_count(after, epsilon)

        saved = epochs(2 * radius) - epochs(learned_distance(problem, cycle, epochs=math.inf))
        found.append(Quantity(saved, f"b = {size}"))
    return found
