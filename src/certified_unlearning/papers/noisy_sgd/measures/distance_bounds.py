"""Measures of the bounds themselves: distances, batch sizes, positions, requests, and numbers of epochs."""

import math
from typing import Literal

from certified_unlearning.accounting.core.conversion import epsilon_of
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.descent.published import descent_step_size, published_state_plan
from certified_unlearning.accounting.shifted.interpolation import contraction_gap
from certified_unlearning.papers.noisy_sgd.settings import DELTA, SIGMA, N, cycle_of, problem_of, small
from certified_unlearning.papers.noisy_sgd.theory.bounds import averaged_curve, distance_curve, hidden_mu, known_curve
from certified_unlearning.papers.noisy_sgd.theory.distances import learned_distance, sequential_distances
from certified_unlearning.papers.noisy_sgd.theory.planning import least_count, sequential_epochs
from certified_unlearning.reproduction.claims.registry import changes, sweep
from certified_unlearning.reproduction.claims.relations import Quantity

Number = int | float
"""A number of epochs, which may be infinite."""

_RADIUS = 10.0


@sweep("T = {epochs}")
def learned_distance_over_coupling(*, batches: int, epochs: int) -> list[Quantity]:
    """Return `learned_distance` divided by the distance of two coupled chains, which is computed step by step."""
    problem, cycle = small(batches)
    found = []
    for position in range(1, batches + 1):
        apart = 0.0
        for number in range(epochs * batches):
            apart *= 1 - problem.step_size * problem.strong_convexity
            if number % batches == position - 1:
                apart += problem.step_size * 2 * problem.lipschitz / cycle.batch_size
        distance = learned_distance(problem, cycle, epochs=epochs, position=position)
        found.append(Quantity(distance / apart, f"T = {epochs}, position = {position}"))
    return found


@sweep("T = {epochs:g}")
def convex_distances(*, batch_size: int, epochs: Number) -> float:
    """Return the distance after learning on convex losses in a ball of radius 10, divided by ``2 R``."""
    problem, cycle = problem_of(batch_size, convex=True), cycle_of(batch_size)
    return learned_distance(problem, cycle, epochs=epochs, radius=_RADIUS) / (2 * _RADIUS)


@sweep("K = {unlearning_epochs}")
def changes_by_batch_size(
    *, batch_size: list[int], epochs: Number, unlearning_epochs: int, convex: bool = False, ball: bool = False
) -> list[Quantity]:
    """Return how much the logarithm of ``mu`` at the worst position changes between each batch size and the next."""
    values = []
    for size in batch_size:
        problem, cycle = problem_of(size, convex=convex), cycle_of(size)
        distance = learned_distance(problem, cycle, epochs=epochs, radius=_RADIUS if ball else None)
        mu = hidden_mu(problem, sigma=SIGMA, distance=distance, steps=unlearning_epochs * cycle.batches)
        values.append(Quantity(math.log(mu), f"K = {unlearning_epochs}, b = {size}"))
    return changes(values)


@sweep("b = {batch_size}, k = {steps}")
def changes_by_position(
    *, batch_size: int, steps: int, compared: Literal["averaged", "places"]
) -> float | list[Quantity]:
    """Return how epsilon changes with the position of the record's batch.

    With ``averaged``, the result is epsilon at a drawn position minus epsilon at the worst position. With ``places``,
    the results are the changes from each quarter of the cycle to the next.
    """
    problem, cycle = problem_of(batch_size), cycle_of(batch_size)

    def epsilon(position: int) -> float:
        curve = known_curve(problem, cycle, sigma=SIGMA, epochs=math.inf, steps=steps, position=position)
        return epsilon_of(curve, DELTA)

    if compared == "averaged":
        drawn = averaged_curve(problem, cycle, sigma=SIGMA, epochs=math.inf, steps=steps)
        return epsilon_of(drawn, DELTA) - epsilon(cycle.batches)
    places = sorted({max(1, cycle.batches * part // 4) for part in range(5)})
    return changes([Quantity(epsilon(place), f"b = {batch_size}, k = {steps}, position = {place}") for place in places])


@sweep("b = {batch_size}")
def share_of_descent_to_delete(*, batch_size: int, requests: int, epsilon: float, dimension: int) -> float:
    """Return the number of gradients for ``requests`` requests, divided by that of Descent-to-Delete.

    Each request removes one record. Descent-to-Delete is the variant without a secret state.
    """
    full = problem_of(N)
    rate = descent_step_size(strong_convexity=full.strong_convexity, smoothness=full.smoothness)
    baseline = Problem(N, full.strong_convexity, full.smoothness, full.lipschitz, rate)
    plan = published_state_plan(baseline, epsilon=epsilon, delta=DELTA, dimension=dimension, request_count=requests)
    problem, cycle = problem_of(batch_size), cycle_of(batch_size)
    epochs = sequential_epochs(problem, cycle, sigma=SIGMA, epsilon=epsilon, delta=DELTA, requests=requests)
    return sum(epochs) / sum(plan.steps_per_request)


@sweep("b = {batch_size}, K = {epochs}")
def sequential_limit(*, batch_size: int, epochs: int, requests: int) -> float:
    """Return the distance before the last of several equal requests, divided by ``Z / (1 - c^k)``."""
    problem, cycle = problem_of(batch_size), cycle_of(batch_size)
    steps = epochs * cycle.batches
    distances = sequential_distances(problem, cycle, steps=[steps] * (requests - 1))
    learned = learned_distance(problem, cycle, epochs=math.inf)
    limit = learned / -math.expm1(steps * math.log1p(-contraction_gap(problem)))
    return distances[-1] / limit


@sweep("S = {records}")
def group_over_one(*, batch_size: int, records: int) -> float:
    """Return the distance for ``S`` records of one batch, divided by ``S`` times the distance for one record.

    The number ``S`` is ``records``.
    """
    problem, cycle = problem_of(batch_size), cycle_of(batch_size)
    one = learned_distance(problem, cycle, epochs=math.inf)
    return learned_distance(problem, cycle, epochs=math.inf, records=records) / (records * one)


@sweep("b = {batch_size}")
def epochs_saved(*, batch_size: int, epsilon: float, radius: float) -> float:
    """Return the number of epochs that unlearning saves over a run from the far side of the ball, ``2 R`` away."""
    problem, cycle = problem_of(batch_size), cycle_of(batch_size)

    def epochs(distance: float) -> int:
        def after(count: int) -> float:
            curve = distance_curve(problem, sigma=SIGMA, distance=distance, steps=count * cycle.batches)
            return epsilon_of(curve, DELTA)

        return least_count(after, epsilon)

    return epochs(2 * radius) - epochs(learned_distance(problem, cycle, epochs=math.inf))
