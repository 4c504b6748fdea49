"""Langevin unlearning's sequential bound, with Hölder exponents that are optimised at every request.

Corollary 3.4 uses a weak triangle inequality with exponents 2 to compare the model before request ``s + 1`` with
retraining on the new data. Here, the general form of that inequality (Prop. I.2) is used: every request has its own
best exponents, separately for each direction of the divergence.

Derivation: Let ``P`` be the distribution of the model before the request, and let ``Q`` and ``R`` be the stationary
distributions on the old and the new data. Let ``D_a(Q||R) <= A a`` in both directions, and let ``F(a)`` and ``B(a)`` be
bounds on ``D_a(P||Q)`` and ``D_a(Q||P)``. Choose the exponents such that these bounds are needed at order ``b > a``.
Then Prop. I.2 gives

    ``D_a(P||R) <= a (b - 1) / (b (a - 1)) F(b) + A a (b - 1) / (b - a)``      (``p = b / a``),
    ``D_a(R||P) <= A a b / (b - a) + B(b)``      (``q (a - 1/p) = b``, so ``p = (b - 1) / (b - a)``).

Set ``x = 1 / (a - 1)`` and ``U = F (a - 1) / a`` in the forward direction, and ``x = 1 / a`` and ``U = B`` in the
backward direction. Then both bounds become

    ``U_start(x) = min over y < x of U(y) + A / (x - y)``,

and the request's ``K`` steps multiply ``U_start(x)`` by ``exp(-eta m K / a)``. The minimum is taken over *lines* below
``1 / U``, that is, over bounds ``U(y) <= V / (y - o)`` for all ``y > o``. The first request has ``o = 0`` and ``V =
A``:

- ``K`` steps: ``exp(eta m K / a) (y - o) / V`` is convex in ``y``. Hence it is above its tangent at any point, and the
  tangent is a new line.
- A request: ``min over y of V / (y - o) + A / (x - y) = (sqrt(V) + sqrt(A))^2 / (x - o)``. This is again a line. It is
  tightest at the ``x`` for which the minimising ``y`` is the tangent point of the old line.

Every line is a valid bound at all orders. The tangent points form a fixed ladder. The ladder is so fine that a finer
one would change epsilon only by a relative amount of about 1e-5. No values are interpolated.
"""

import math
from collections import OrderedDict
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from certified_unlearning.accounting.core.curves import RenyiCurve, Schedule
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.core.search import Array
from certified_unlearning.accounting.langevin import lsi

IndexArray = npt.NDArray[np.intp]

# The ladder's rungs are x = 0, at which steps have no effect, and a geometric sequence from orders of 1e9, at which
# steps have hardly any effect, to orders within 1e-3 of 1.
LEAST_X = 1e-9
LARGEST_FORWARD_X = 1e3
LARGEST_BACKWARD_X = 1.0
SPACING = 0.01
# Number of recent results that are kept. Each needs about 120 kB.
CACHED = 32


class _Ladder(NamedTuple):
    """Tangent points. Each array has the shape ``(rungs,)``.

    Attributes:
        x: The points, increasing.
        inverse_order: ``1 / a`` at each point.
        slope: Derivative of ``1 / a`` with respect to ``x``.
    """

    x: Array
    inverse_order: Array
    slope: Array


class _Lines(NamedTuple):
    """Bounds ``U(x) <= scale / (x - offset)``, one for each rung. Each array has the shape ``(rungs,)``.

    Attributes:
        touch: Points at which the lines are tightest, in increasing order.
        offset: ``o`` of each line, at least 0 and at most ``touch``.
        scale: ``V`` of each line, in units of the first request's ``A``.
    """

    touch: Array
    offset: Array
    scale: Array


# The key of stored lines: the problem, the records of the requests so far and of the next one, and the steps so far.
_Key = tuple[Problem, tuple[int, ...], tuple[int, ...]]
_CACHE: OrderedDict[_Key, tuple[_Lines, _Lines]] = OrderedDict()


def curve(problem: Problem, schedule: Schedule) -> RenyiCurve:
    """Return bounds on the Rényi divergence between the unlearned and the retrained model after the last request.

    The bounds are those of Corollary 3.4 with the best Hölder exponents for each request, each order and each
    direction. For a single request, they equal `lsi.curve`. The assumptions are those of `lsi.curve`, and
    ``schedule.learning_steps`` is not used here, either. The bounds that hold before the last request are cached,
    because planners try many schedules that differ only in the last request.

    Args:
        problem: The constants.
        schedule: Noise, records and steps of the requests.

    Raises:
        ParameterError: The requests remove more records than exist, or all records under adjacency ``remove``.
        AssumptionError: ``step_size`` exceeds ``1 / smoothness``, or ``strong_convexity`` is 0.
    """
    lsi.check_assumptions(problem, schedule.sigma)
    if not schedule.steps:
        return lsi.curve(problem, schedule)
    first = lsi.stream_sensitivities(problem, schedule.records, len(schedule.steps))[0]
    log_unit = 2 * math.log(first / schedule.sigma) - math.log(problem.strong_convexity)
    forward, backward = _lines_before(problem, schedule.records, schedule.steps[:-1])
    exponent = problem.step_size * problem.strong_convexity * schedule.steps[-1]

    def log_divergence(alpha: Array) -> Array:
        inverse_order, excess = 1 / alpha, alpha - 1
        # U is F (a - 1) / a in the forward direction and B in the backward direction. U is below the inverse height of
        # any line.
        forward_height = _beside(forward, 1 / excess).height.max(axis=0) * excess * inverse_order
        backward_height = _beside(backward, inverse_order).height.max(axis=0)
        logs: Array = log_unit - exponent * inverse_order - np.log(np.minimum(forward_height, backward_height))
        return logs

    return RenyiCurve(log_divergence)


def _lines_before(problem: Problem, records: tuple[int, ...], earlier: tuple[int, ...]) -> tuple[_Lines, _Lines]:
    """Return the forward and the backward lines of ``U_start`` for the request after the ``earlier`` requests.

    Args:
        problem: The constants.
        records: Numbers of records of the earlier requests and of the request that follows.
        earlier: Numbers of steps of the earlier requests.
    """

    def key(requests: int) -> _Key:
        return problem, records[: requests + 1], earlier[:requests]

    known = len(earlier)
    while known > 0 and key(known) not in _CACHE:
        known -= 1
    forward = backward = _Lines(touch=np.zeros(1), offset=np.zeros(1), scale=np.ones(1))
    if known > 0:
        _CACHE.move_to_end(key(known))
        forward, backward = _CACHE[key(known)]
    sensitivities = lsi.stream_sensitivities(problem, records, len(records))
    for request in range(known, len(earlier)):
        exponent = problem.step_size * problem.strong_convexity * earlier[request]
        root = float(sensitivities[request + 1] / sensitivities[0])
        forward = _next(forward, FORWARD, exponent, root)
        backward = _next(backward, BACKWARD, exponent, root)
        _CACHE[key(request + 1)] = forward, backward
        if len(_CACHE) > CACHED:
            _CACHE.popitem(last=False)
    return forward, backward


def _next(lines: _Lines, ladder: _Ladder, exponent: float, root: float) -> _Lines:
    """Return the lines after the steps of one request and the arrival of the next.

    Args:
        lines: The lines before the steps.
        ladder: Tangent points.
        exponent: ``E = eta m K``. The steps multiply bounds by ``exp(-E / a)``.
        root: ``sqrt(A)`` of the request that arrives.
    """
    beside = _beside(lines, ladder.x)
    best = np.where(beside.height[1] > beside.height[0], beside.line[1], beside.line[0])
    distance = ladder.x - lines.offset[best]
    # At the tangent point, exp(E / a) (x - o) / V has the logarithmic derivative steepness / distance.
    steepness = 1 + exponent * ladder.slope * distance
    scale_root = np.sqrt(lines.scale[best] * np.exp(-exponent * ladder.inverse_order) / steepness)
    with np.errstate(divide="ignore"):
        touch = ladder.x + distance / steepness * (root / scale_root)
    return _Lines(touch, offset=ladder.x - distance / steepness, scale=(scale_root + root) ** 2)


class _Beside(NamedTuple):
    """The two lines that are next to each given point.

    One line has the nearest `touch` point on the left of the given point. The other line has the nearest `touch` point
    on the right.

    Arrays have the shape ``(2, points)``.
    """

    line: IndexArray
    height: Array


def _beside(lines: _Lines, x: Array) -> _Beside:
    right = np.minimum(np.searchsorted(lines.touch, x), len(lines.touch) - 1)
    line = np.stack([np.maximum(right - 1, 0), right])
    return _Beside(line, (x - lines.offset[line]) / lines.scale[line])


def _rungs(largest: float, spacing: float) -> Array:
    return np.append(0.0, np.exp(np.arange(math.log(LEAST_X), math.log(largest) + spacing, spacing)))


def _forward_ladder(spacing: float) -> _Ladder:
    """Return the tangent points for ``x = 1 / (a - 1)``, with ``1 / a = x / (1 + x)``."""
    x = _rungs(LARGEST_FORWARD_X, spacing)
    return _Ladder(x, inverse_order=x / (1 + x), slope=1 / (1 + x) ** 2)


def _backward_ladder(spacing: float) -> _Ladder:
    """Return the tangent points for ``x = 1 / a``."""
    x = _rungs(LARGEST_BACKWARD_X, spacing)
    return _Ladder(x, inverse_order=x, slope=np.ones_like(x))


FORWARD = _forward_ladder(SPACING)
BACKWARD = _backward_ladder(SPACING)
