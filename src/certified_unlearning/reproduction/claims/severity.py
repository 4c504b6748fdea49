"""The severity of a contradicted claim, from the measured gap alone.

A rounding error in print is not a broken theorem.

The gap is measured from the nearer end of the confidence interval, and divided by the stated value. If numbers should
be equal, the severity is ``rounding`` (a gap of at most one unit of the last printed digit), ``small`` or ``large``. It
is ``different in kind`` if the signs differ. An inequality or a direction that fails by `SMALL` or more is also
``different in kind``, because it is false however its numbers are rounded.

Only the class ``misprint`` does not depend on the gap. It is the mildest class, for a slip in a proof or a formula
that does not change the conclusion. The table of claims marks these claims.
"""

import math
from decimal import Decimal
from typing import Literal, NamedTuple, get_args

Severity = Literal["misprint", "rounding", "small", "large", "different in kind"]
"""The severities of contradictions, from the mildest to the worst."""
SMALL = 0.1
"""Gaps below this number are small; each gap is divided by the stated value."""
_SLACK = 1e-9  # Share of one unit of the last digit: in binary, 0.0499 + 0.0001 is not 0.05.


class Deviation(NamedTuple):
    """The deviation of a measured number from the stated number.

    Attributes:
        severity: Severity of the deviation.
        gap: Deviation divided by the stated number; None if that number is 0.
    """

    severity: Severity
    gap: float | None


def missed_value(printed: float, measured: float) -> Deviation:
    """Return the deviation of a number from a printed number that it should equal."""
    if printed == 0:
        return Deviation("large", None)
    distance = abs(measured - printed)
    gap = distance / abs(printed)
    unit = last_digit(printed, measured)
    if unit is not None and distance <= unit * (1 + _SLACK) and gap < SMALL:
        return Deviation("rounding", gap)
    if measured * printed < 0:
        return Deviation("different in kind", gap)
    return Deviation("small" if gap < SMALL else "large", gap)


def missed_bound(bound: float, measured: float) -> Deviation:
    """Return the deviation of a number that violates a bound."""
    if bound == 0:
        return Deviation("different in kind", None)
    gap = abs(measured - bound) / abs(bound)
    return Deviation("small" if gap < SMALL else "different in kind", gap)


def missed_range(low: float, high: float, measured: float) -> Deviation:
    """Return the deviation of a number outside a range; a range with one infinite end is treated as a bound."""
    if math.isinf(low) or math.isinf(high):
        return missed_bound(high if math.isinf(low) else low, measured)
    scale = max(abs(low), abs(high))
    if scale == 0:
        return Deviation("large", None)
    gap = max(low - measured, measured - high, 0.0) / scale
    if (low > 0 > measured) or (high < 0 < measured):
        return Deviation("different in kind", gap)
    return Deviation("small" if gap < SMALL else "large", gap)


def last_digit(printed: float, measured: float) -> float | None:
    """Return one unit of the last printed digit.

    For a printed whole number, the unit is 1 if the measured number is whole, and None otherwise.

    A printed whole number is either a count or exact; for example, a quotient that is printed as 1 was not rounded.
    Trailing zeros of a printed number do not count as digits, because a float does not keep them.
    """
    if printed == int(printed):
        return 1.0 if measured == int(measured) else None
    exponent = Decimal(repr(printed)).as_tuple().exponent
    assert isinstance(exponent, int)
    return 10.0**exponent


def worst(misses: list[Deviation]) -> Deviation:
    """Return the worst of several deviations, by severity and then by gap; a gap of None counts as the largest."""
    return max(misses, key=badness)


def badness(miss: Deviation) -> tuple[int, float]:
    """Return the key that sorts deviations from the mildest to the worst."""
    return get_args(Severity).index(miss.severity), math.inf if miss.gap is None else miss.gap
