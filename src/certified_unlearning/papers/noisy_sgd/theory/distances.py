"""The distance ``W_infinity`` between two processes of noisy SGD that differ in one record."""

import math
from collections.abc import Sequence

from certified_unlearning.accounting.core.checks import require_count, require_counts, require_positive
from certified_unlearning.accounting.core.curves import Cycle
from certified_unlearning.accounting.core.pooling import log_power
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.shifted.interpolation import contraction_gap
from certified_unlearning.errors import AssumptionError, ParameterError


def step_shift(problem: Problem, cycle: Cycle, *, records: int = 1) -> float:
    """Return ``s = 2 eta M S / b``, the distance that one step adds if its batch differs in ``S`` records.

    Args:
        problem: The constants of a *batch*: ``n`` is ``b``. Other adjacencies have their own sensitivity.
        cycle: The batches.
        records: The number ``S`` of records; a number above ``b`` counts as if all ``S`` were in the batch, which gives
            an upper bound.

    Raises:
        ParameterError: ``n`` is not the batch size.
        AssumptionError: The adjacency is ``remove``, under which records do not keep their places.
    """
    require_count(least=1, records=records)
    if problem.n != cycle.batch_size:
        raise ParameterError(f"n must be the batch size, {cycle.batch_size}, got {problem.n}")
    if problem.adjacency == "remove":
        raise AssumptionError("a record of a batch must keep its place: adjacency must be replace or zero-out")
    return problem.step_size * problem.sensitivity(1) * records


def learned_distance(
    problem: Problem,
    cycle: Cycle,
    *,
    epochs: float,
    position: int | None = None,
    records: int = 1,
    radius: float | None = None,
) -> float:
    """Return ``Z``, the largest distance between two learning processes, on two data sets, at the end of learning.

    The distance is ``Z = min( s c^(l - p) (1 - c^(T l)) / (1 - c^l), 2 R )`` for ``c < 1``, and ``min(T s, 2 R)`` for
    ``c = 1``. This formula is derived here. Let both processes have the same noise. Each step contracts the distance by
    ``c``. Once per epoch, in step ``p``, the two batches differ, and the step also adds at most ``s``. The last
    addition is contracted ``l - p`` times, and each addition is contracted ``l`` times more than the addition one epoch
    later. The sum of this geometric series is ``Z``. Projection never increases the distance between two points, and
    projected points are at most ``2 R`` apart. The coupling holds almost surely, which gives ``W_infinity``. Quadratic
    losses of curvature ``m`` whose gradients differ by ``2 M`` in one direction reach the bound.

    Args:
        problem: The constants of a batch.
        cycle: The batches.
        epochs: The number ``T`` of epochs; infinite for the stationary distribution of the chain of epochs.
        position: The position ``p`` of the record's batch in the cycle, counted from 1 (the paper counts from ``j0 = p
            - 1``); None for the last position, which is the worst.
        records: The number ``S`` of records, all in one batch.
        radius: The radius ``R`` of the ball; None if there is no ball.

    Raises:
        AssumptionError: ``step_size`` exceeds ``2 / L``.
    """
    batches = cycle.batches
    place = batches if position is None else position
    require_count(least=1, position=place)
    if place > batches:
        raise ParameterError(f"position must be at most batches = {batches}, got {place}")
    if epochs != math.inf:
        require_count(least=0, epochs=epochs)
    shift, gap = step_shift(problem, cycle, records=records), contraction_gap(problem)
    visits = epochs
    if gap > 0:
        visits = math.expm1(log_power(epochs * batches, gap)) / math.expm1(log_power(batches, gap))
    distance = shift * math.exp(log_power(batches - place, gap)) * visits
    if radius is None:
        return distance
    require_positive(radius=radius)
    return min(distance, 2 * radius)


def sequential_distances(
    problem: Problem,
    cycle: Cycle,
    *,
    steps: Sequence[int],
    epochs: float = math.inf,
    records: int = 1,
    radius: float | None = None,
) -> list[float]:
    """Return, for each request, the distance from a process that never used the records removed up to this request.

    The distances are ``Z_1 = Z``, ``Z_(s+1) = min( c^(k_s) Z_s + Z, 2 R )``. They are derived here. In the steps of
    request ``s``, both processes have the same data, so their distance contracts. The next removed record is one more
    difference, which adds ``Z`` by the triangle inequality of ``W_infinity``. For equal ``k_s``, the distance tends to
    ``Z / (1 - c^k)``. ``Z`` is the distance of the worst position. If ``epochs`` is finite, ``Z`` is the distance
    after ``epochs`` epochs of learning plus all steps so far, rounded up to whole epochs.

    Args:
        problem: The constants of a batch.
        cycle: The batches.
        steps: The numbers ``k_1, k_2, ...`` of mini-batch steps of every request except the last.
        epochs: The number ``T`` of learning epochs.
        records: The number of records in each request.
        radius: The radius ``R``.

    Returns:
        The distances, one for each request; there is one more request than ``steps``.

    Raises:
        AssumptionError: ``step_size`` exceeds ``2 / L``.
    """
    require_counts("steps", steps, least=0)
    gap, taken, found = contraction_gap(problem), 0, []
    left = 0.0
    for count in (*steps, 0):
        learned = epochs if epochs == math.inf else epochs + -(-taken // cycle.batches)
        new = learned_distance(problem, cycle, epochs=learned, records=records, radius=radius)
        distance = left + new if radius is None else min(left + new, 2 * radius)
        found.append(distance)
        left = math.exp(log_power(count, gap)) * distance
        taken += count
    return found
