"""The plan of readings: the numbers of removed records after which Newton removal reads the data again.

The plan is made before learning. There are two kinds of plans. A *strict* plan uses a bound that holds for all data,
all records and all orders. The times of reading then follow from the sizes of requests and public constants, so they
reveal nothing about the records. The other plan uses a larger public number of records, which suffices for typical
requests. If the realised bound would exceed the budget before that number is reached, the data are read at once,
*unscheduled*. No model is ever released above the budget, but the data determine whether an unscheduled reading
happens, and a certificate states this. In both plans, the duration of a reading depends on the data, because solvers
stop when they have converged.

The bound for a given number of removed records follows from the derivation in `newton`. (The solution's evaluated
remainder is kept small, see `REMAINDER`.) After the removal of ``S`` records, ``sum |ghat| <= S r / n``. So the total
length of all steps is at most ``S r / (n m)``, and at most ``S r / (2 n sqrt m)`` in the seminorm. The residual is at
most

    ``start + r E(X) (a + S r / (2 n sqrt m))^2 / 2`` with ``X = r (S r / (n m) + |v_0|)``,

where ``a = |v_0|_H`` is the length of the last step of the reading. Without downdates, ``(S r^2 / (4 n)) S r / (n m)``
is added. With public rows (`public`), the Hessian is at least ``(m + k') I`` with ``k' = k exp(-r |w_B - w*|)``. So
steps are shorter, and if ``k'`` is above ``m``, ``sqrt(h) / (h + m)`` is at most its value at ``h = k'``.
"""

import math
from collections.abc import Callable

from certified_unlearning.accounting.core.checks import require_count, require_positive
from certified_unlearning.accounting.residual.newton import growth
from certified_unlearning.accounting.residual.public import least_curvature
from certified_unlearning.accounting.residual.rounding import OUTWARD, ROW_NORM

START_SHARE = 0.1
"""Share of the budget that the gradient may use at a reading."""
ROUNDING_SHARE = 0.1
"""Share of the budget for the rounding of all requests until the next reading."""
START_MOVE = 0.05
"""Largest length of a reading's last step, ``|v_0|_H``, in units of ``sqrt(2 budget)``."""
REMAINDER = 1e-3
"""Largest allowed ``|ghat + B v|``, as a share of ``|ghat|``."""
REMAINDER_SHARE = 0.05
"""Share of the budget for the remainders ``|ghat + B v|`` of all requests until the next reading. The sum of all
remainders may use this share, which is divided among the records."""


def start_gradient(*, strong_convexity: float, budget: float) -> float:
    """Return a bound on the norm of a reading's gradient.

    If the norm is at most this bound, the last step of the reading is at most `START_MOVE` long.
    """
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
        records: Number ``S`` of records removed since the last reading.
        n: Number of records at the start.
        strong_convexity: Strong convexity ``m``.
        budget: Budget ``tau``.
        downdate: Whether each removed record's part is subtracted from the matrix.
        public_curvature: Curvature ``k`` of public rows.
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
    """Return the largest number of records that may be removed, whatever their values, before data are read again."""

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

    No guarantee depends on this number. It uses two rough estimates of how far ``S`` records move the weights. The
    first estimate assumes that the records' gradients have random directions and half of their largest length, that
    each request has one record, and that the data fill ``d`` directions evenly. Then the curvature is
    ``h = 1 / (4 d)``, one record moves the weights by ``e = sqrt(h) / (h + m) r / (2 n)`` in the seminorm, and ``S``
    records add ``(2/3) (S / USUAL)^(3/2) e^2``. The second estimate assumes that the removed records have the same mean
    gradient as all records. This mean is ``m w*``, whose length is about `TOGETHER` ``sqrt(m)``. This adds
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
"""Divisor of the number of removed records in the first estimate of `usual_records`, to account for requests of several
records."""
TOGETHER = 0.7
"""The norm of the mean gradient of the records' losses, in units of ``sqrt(m)``."""


def _most(holds: Callable[[int], bool], n: int) -> int:
    """Return the largest number up to ``n`` for which a condition holds, or 0. All smaller numbers must meet it too."""
    least, most = 0, n + 1
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if holds(middle) else (least, middle)
    return least
