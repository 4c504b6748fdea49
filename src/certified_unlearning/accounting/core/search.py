"""Searches that planners share: for the minimum of a function of one variable, and for the least sufficient number."""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

MOST_STEPS = 10**12
"""The largest number of steps that searches try. No run needs more."""

GRID_SPACING = 1.0
# New points are at the fractions EVENLY of the bracket, and at the fractions CROWD of the way from the vertex to the
# bracket's ends.
EVENLY = np.linspace(0, 1, 17)
CROWD = 8.0 ** -np.arange(1, 9)
# The error of the least value is half the curvature times the square of the distance to the minimum. With many steps of
# little noise, curvatures reach thousands. Then an error of 1e-8 in the point is an error of 1e-13 in the value.
LOCATION_TOLERANCE = 1e-8
# If points were nearer to each other, rounding could hide on which side the minimum lies.
LEAST_SPACING = LOCATION_TOLERANCE / (2 * len(EVENLY))
# If the values in a bracket differ by no more than this share, the differences are only rounding.
FLAT = 4e-15


def minimise(function: Callable[[Array], Array], low: float, high: float) -> tuple[float, float]:
    """Return the minimiser of a function on ``[low, high]``, and the least value.

    A grid of spacing 1 brackets the minimum. In each round, the bracket shrinks to the neighbours of the best new
    point. Evenly spaced points shrink the bracket to at most an eighth of its length. Points crowded around the vertex
    of a parabola through the last bracket shrink it to almost nothing. The function must have only one valley, or
    valleys wider than the grid.

    Args:
        function: Maps an array of points to an array of values, which are infinite where the function is undefined.
        low: Left end of the interval.
        high: Right end of the interval.
    """
    points = np.linspace(low, high, int((high - low) / GRID_SPACING) + 2)
    while True:
        values = function(points)
        best = int(values.argmin())
        before, after = max(best - 1, 0), min(best + 1, len(points) - 1)
        left, middle, right = float(points[before]), float(points[best]), float(points[after])
        at_left, at_middle, at_right = float(values[before]), float(values[best]), float(values[after])
        if right - left < LOCATION_TOLERANCE or max(at_left, at_right) - at_middle <= FLAT * abs(at_middle):
            return middle, at_middle
        centre = _vertex(left, middle, right, at_left, at_middle, at_right)
        evenly = left + (right - left) * EVENLY
        to_left, to_right = centre + (left - centre) * CROWD, centre + (right - centre) * CROWD
        # The first point is needed only for the differences.
        points = np.concatenate(((-math.inf,), evenly, (centre,), to_left, to_right))
        points.sort()
        points = points[1:][points[1:] - points[:-1] > LEAST_SPACING]


def _vertex(left: float, middle: float, right: float, at_left: float, at_middle: float, at_right: float) -> float:
    """Return the vertex of the parabola through three points, or the middle point if there is no vertex."""
    slope_left = (at_left - at_middle) * (right - middle)
    slope_right = (at_right - at_middle) * (middle - left)
    if not 0 < slope_left + slope_right < math.inf:
        return middle
    return middle + (slope_left * (right - middle) - slope_right * (middle - left)) / (2 * (slope_left + slope_right))


def least_whole(estimate: float, is_enough: Callable[[int], bool], *, minimum: int) -> int:
    """Return the smallest sufficient whole number that is at least ``minimum``.

    The search gallops away from the estimate, then bisects. If the estimate is right up to rounding, two or three tries
    suffice.

    Args:
        estimate: A guess of the threshold, which is a real number. All whole numbers above the threshold are
            sufficient.
        is_enough: Function that returns whether a number is sufficient: False below some number, and True from that
            number on.
        minimum: The smallest number considered.
    """
    number = math.ceil(max(estimate, minimum))
    stride = 1
    if is_enough(number):
        too_few, enough = minimum - 1, number
        while enough > minimum:
            number = max(enough - stride, minimum)
            if not is_enough(number):
                too_few = number
                break
            enough, stride = number, 2 * stride
    else:
        too_few, enough = number, number + stride
        while not is_enough(enough):
            stride *= 2
            too_few, enough = enough, enough + stride
    return bisect(too_few, enough, is_enough)


def bisect(too_few: int, enough: int, is_enough: Callable[[int], bool]) -> int:
    """Return the least sufficient whole number above ``too_few`` and up to ``enough``; neither end is tried."""
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if is_enough(middle):
            enough = middle
        else:
            too_few = middle
    return enough
