"""When Newton removal reads the data again: decided by counts of records and planned before anything is learned.

There are two kinds of plan. In a *strict* plan, a bound that holds for all data, all records and all orders decides.
The times of reading then follow from the sizes of requests and public constants, and reveal nothing about the records.
Otherwise a larger public number decides, which suffices for typical requests. If the realised bound would exceed the
budget earlier, data are read at once, *unscheduled*. Nothing is ever released above the budget, but whether this
happens depends on the data, and a certificate says so. In both, the duration of a reading depends on the data, because
solvers stop when they have converged.

The bound by counts (`newton` has the derivation; the solution's evaluated remainder, `REMAINDER`, is kept small):
after ``S`` records ``sum |ghat| <= S r / n``, so steps are at most ``S r / (n m)`` long in all and
``S r / (2 n sqrt m)`` in the seminorm, and the residual is at most

    ``start + r E(X) (a + S r / (2 n sqrt m))^2 / 2`` with ``X = r (S r / (n m) + |v_0|)``,

where ``a = |v_0|_H`` is what the last step of the reading moved; without downdates ``(S r^2 / (4 n)) S r / (n m)``
more. With public rows (`public`) the Hessian is at least ``(m + k') I``, ``k' = k exp(-r |w_B - w*|)``: steps are
shorter, and ``sqrt(h) / (h + m)`` is at most what it is at ``k'``, where ``k'`` is above ``m``.
"""

import math
from collections.abc import Callable

from certified_unlearning.accounting.core.checks import require_count, require_positive
from certified_unlearning.accounting.residual.newton import growth
from certified_unlearning.accounting.residual.public import least_curvature
from certified_unlearning.accounting.residual.rounding import OUTWARD, ROW_NORM

START_SHARE = 0.1
"""Share of the budget that the gradient may use after data were read."""
ROUNDING_SHARE = 0.1
"""Share of the budget for the rounding of all requests until the next reading."""
START_MOVE = 0.05
"""Largest last step of a reading, ``|v_0|_H``, in units of ``sqrt(2 budget)``."""
REMAINDER = 1e-3
"""Largest allowed ``|ghat + B v|``, as a share of ``|ghat|``."""
REMAINDER_SHARE = 0.05
"""Share of the budget for all ``|ghat + B v|`` together until data are read again, divided among records."""


def start_gradient(*, strong_convexity: float, budget: float) -> float:
    """Return the largest gradient at a reading whose last step is at most `START_MOVE`."""
    return 2 * START_MOVE * math.sqrt(2 * budget * strong_convexity) / OUTWARD


def worst_residual(
    records: int,
    *,
    n: int,
    strong_convexity: float,
    budget: float,
    downdate: bool,
    public_curvature: float = 0.0,
) -> float:
    """Return the largest residual, for any data, after a number of records were removed since the last reading.

    Args:
        records: ``S``.
        n: Number of records at the start.
        strong_convexity: ``m``.
        budget: ``tau``.
        downdate: Whether each removed record's part is taken out of the matrix.
        public_curvature: ``k``.
    """
    require_count(least=0, records=records)
    require_count(least=1, n=n)
    require_positive(strong_convexity=strong_convexity, budget=budget)
    removed = (1 + REMAINDER) * records * ROW_NORM / n
    started = start_gradient(strong_convexity=strong_convexity, budget=budget)
    held = public_curvature * math.exp(-ROW_NORM * started / strong_convexity) / OUTWARD
    least = least_curvature(strong_convexity, held)
    length = (removed + started) / least
    spread = 1 / (2 * math.sqrt(strong_convexity)) if held <= strong_convexity else math.sqrt(held) / least
    seminorm = (removed + started) * spread
    rest = ROW_NORM * growth(ROW_NORM * length) * seminorm**2 / 2
    not_downdated = 0.0 if downdate else records * ROW_NORM**2 / (4 * n) * removed / least
    return ((START_SHARE + ROUNDING_SHARE) * budget + rest + not_downdated) * OUTWARD


def strict_records(
    *, n: int, strong_convexity: float, budget: float, downdate: bool = True, public_curvature: float = 0.0
) -> int:
    """Return how many records, whatever they are, may be removed before data must be read again; 0 if none may."""

    def holds(records: int) -> bool:
        worst = worst_residual(
            records,
            n=n,
            strong_convexity=strong_convexity,
            budget=budget,
            downdate=downdate,
            public_curvature=public_curvature,
        )
        return worst <= budget

    return _most(holds, n)


def usual_records(
    *,
    n: int,
    features: int,
    strong_convexity: float,
    budget: float,
    downdate: bool = True,
    public_curvature: float = 0.0,
) -> int:
    """Return the number of records that a typical stream removes before its realised bound reaches the budget.

    No guarantee depends on it: it uses two rough estimates of how far ``S`` records move the weights. Their directions
    are random, half of what a record can do, one record a request, in data that fill ``d`` directions evenly: curvature
    ``h = 1 / (4 d)``, so one record moves ``e = sqrt(h) / (h + m) r / (2 n)`` in the seminorm and ``S`` make
    ``(2/3) (S / USUAL)^(3/2) e^2``. And their mean is that of all records, ``m w*``, about `TOGETHER` ``sqrt(m)`` long:
    ``(S TOGETHER / (2 n))^2 / 2``.
    """
    strict = strict_records(
        n=n,
        strong_convexity=strong_convexity,
        budget=budget,
        downdate=downdate,
        public_curvature=public_curvature,
    )
    room = (1 - START_SHARE - ROUNDING_SHARE) * budget
    flat = 1 / (4 * features)
    one = ROW_NORM / (2 * n) * math.sqrt(flat) / (flat + strong_convexity)

    def holds(records: int) -> bool:
        scattered = (records / USUAL) ** 1.5 * one**2 / 1.5
        together = (records * TOGETHER / (2 * n)) ** 2 / 2
        not_downdated = 0.0 if downdate else (records / n) ** 2 / (4 * math.sqrt(strong_convexity))
        return bool(scattered + together + not_downdated <= room)

    return max(strict, _most(holds, n))


USUAL = 3.0
"""Factor by which requests of several records reduce the number of records until the next reading."""
TOGETHER = 0.7
"""The norm of the mean gradient of the records' losses, in units of ``sqrt(m)``."""


def _most(holds: Callable[[int], bool], n: int) -> int:
    """Return the largest number up to ``n`` for which a condition holds that holds for all smaller ones, or 0."""
    least, most = 0, n + 1
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if holds(middle) else (least, middle)
    return least
