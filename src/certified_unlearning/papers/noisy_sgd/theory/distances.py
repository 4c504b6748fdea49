"""How far apart two processes of noisy SGD are that differ in one record: distances ``W_infinity``."""

import math
from collections.abc import Sequence

from certified_unlearning.accounting.core.checks import require_count, require_counts, require_positive
from certified_unlearning.accounting.core.curves import Cycle
from certified_unlearning.accounting.core.pooling import log_power
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.shifted.interpolation import contraction_gap
from certified_unlearning.errors import AssumptionError, ParameterError


def step_shift(problem: Problem, cycle: Cycle, *, records: int = 1) -> float:
    """Return ``s = 2 eta M S / b``, how far one step on a batch that differs in ``S`` records moves a point apart.

    Args:
        problem: The constants of a *batch*: ``n`` is ``b``. For other adjacencies with their sensitivity.
        cycle: The batches.
        records: ``S``; more than ``b`` count as if the batch held them all, which is an upper bound.

    Raises:
        ParameterError: ``n`` is not the batch size.
        AssumptionError: The adjacency is ``remove``, which leaves no place.
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
    """Return ``Z``, how far apart learning on two data sets can be when it ends.

    ``Z = min( s c^(l - p) (1 - c^(T l)) / (1 - c^l), 2 R )`` for ``c < 1``, ``min(T s, 2 R)`` for ``c = 1``. Derived
    here: take the same noise in both processes. Where the two batches agree a step is a ``c``-contraction of the
    distance; where they differ it adds at most ``s`` on top, once an epoch, in step ``p``; the last of these is
    contracted ``l - p`` times, each one before ``l`` times more, and the geometric sum is ``Z``. Projection brings no
    two points farther apart and keeps them within ``2 R``. The coupling holds almost surely, hence ``W_infinity``. It
    is reached: by quadratic losses of curvature ``m`` whose gradients differ by ``2 M`` in one direction.

    Args:
        problem: The constants of a batch.
        cycle: The batches.
        epochs: ``T``; infinite for the stationary law of the chain of epochs.
        position: ``p``, the batch of the cycle, counted from 1, that holds the record (the paper counts from
            ``j0 = p - 1``); None for the worst one, the last.
        records: ``S``, all in one batch.
        radius: ``R`` of the ball; None for none.

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
    """Return how far apart the process is, when each request comes, from one that never saw what is removed by then.

    ``Z_1 = Z``, ``Z_(s+1) = min( c^(k_s) Z_s + Z, 2 R )``. Derived here: the steps of request ``s``, on the same data,
    contract the distance to the process without all records removed so far; the next record is one more difference, and
    the triangle inequality of ``W_infinity`` adds its ``Z``. For equal ``k_s`` it tends to ``Z / (1 - c^k)``. ``Z`` is
    that of the worst position, and of ``epochs`` and all steps so far where ``epochs`` is finite (whole epochs).

    Args:
        problem: The constants of a batch.
        cycle: The batches.
        steps: ``k_1, k_2, ...``, the mini-batch steps of every request but the last.
        epochs: ``T``.
        records: Number of records of each request.
        radius: ``R``.

    Returns:
        One distance more than there are ``steps``.

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
