"""How badly a contradicted claim fails, from the measured gap alone. A rounding in print is not a broken theorem.

The gap is relative to the stated value, and measured from the nearest end of the confidence interval. Numbers
that should be equal fail by ``rounding`` (within one unit of the last printed digit), or are ``small`` or ``large``;
if they have another sign, they are ``different in kind``. An inequality or a direction that fails by `SMALL` or more is
also ``different in kind``, because it is false however its numbers are rounded.

Only the class ``misprint`` does not depend on the gap: the table of claims marks a slip within a proof or a formula
that leaves the conclusion unchanged. It is the mildest class.
"""

import math
from decimal import Decimal
from typing import Literal, NamedTuple, get_args

Severity = Literal["misprint", "rounding", "small", "large", "different in kind"]
"""The kinds of contradictions, the mildest first."""
SMALL = 0.1
"""Smaller gaps, relative to what is stated, are small."""
_SLACK = 1e-9  # Of one unit of the last digit: 0.0499 + 0.0001 is not 0.05 in binary.


class Deviation(NamedTuple):
    """By how much a number misses the stated one.

    Attributes:
        severity: The kind of gap.
        gap: Its size relative to the stated number; None if that is zero, because there is no scale.
    """

    severity: Severity
    gap: float | None


def missed_value(printed: float, measured: float) -> Deviation:
    """Return by how much a number misses a printed one that it should equal."""
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
    """Return by how much a number is on the wrong side of a bound."""
    if bound == 0:
        return Deviation("different in kind", None)
    gap = abs(measured - bound) / abs(bound)
    return Deviation("small" if gap < SMALL else "different in kind", gap)


def missed_range(low: float, high: float, measured: float) -> Deviation:
    """Return by how much a number is outside a range; one of the ends may be infinite, which makes it a bound."""
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
    """Return one unit of the last printed digit, of a whole number 1 if the measured one is whole, or else None.

    A whole number is a count, or it is meant exactly: of a quotient of 1 no digit is missing. Trailing zeros of a
    printed number are not known.
    """
    if printed == int(printed):
        return 1.0 if measured == int(measured) else None
    exponent = Decimal(repr(printed)).as_tuple().exponent
    assert isinstance(exponent, int)
    return 10.0**exponent


def worst(misses: list[Deviation]) -> Deviation:
    """Return the worst of several misses: by severity, then by gap; the gap without a scale is the largest."""
    return max(misses, key=badness)


def badness(miss: Deviation) -> tuple[int, float]:
    """Return the sort key of misses, the worst last."""
    return get_args(Severity).index(miss.severity), math.inf if miss.gap is None else miss.gap
