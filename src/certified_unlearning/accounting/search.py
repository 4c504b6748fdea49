"""Searches that the planners share: the minimum of a function of one variable, the least whole number."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

# No run takes more steps than this.
MOST_STEPS = 10**12

GRID_SPACING = 1.0
ZOOM_POINTS = 25
# The value is wrong by half the curvature times the square of the distance to the minimum. Curvatures reach thousands
# where many steps meet little noise; then 1e-8 here is 1e-13 there.
LOCATION_TOLERANCE = 1e-8


def minimise(function: Callable[[Array], Array], low: float, high: float) -> tuple[float, float]:
    """Return where a function is least on ``[low, high]``, and its value there.

    A grid of spacing 1 finds the valley, finer and finer grids around the best point its bottom. The function must
    have one valley only, or valleys wider than the grid.

    Args:
        function: Maps an array of points to an array of values; infinite where it is not defined.
        low: Left end.
        high: Right end.
    """
    points = np.linspace(low, high, int((high - low) / GRID_SPACING) + 2)
    while True:
        values = function(points)
        best = int(np.argmin(values))
        left, right = points[max(best - 1, 0)], points[min(best + 1, len(points) - 1)]
        if right - left < LOCATION_TOLERANCE:
            return float(points[best]), float(values[best])
        points = np.linspace(left, right, ZOOM_POINTS)


def least_whole(estimate: float, is_enough: Callable[[int], bool], *, minimum: int) -> int:
    """Return the least whole number from ``minimum`` on that is enough, from an estimate that is right up to rounding.

    Args:
        estimate: The real number from which on whole numbers are enough, up to rounding.
        is_enough: Decides; false below some number, true from it on.
        minimum: Where to count from.
    """
    number = max(minimum, int(np.ceil(estimate)))
    while not is_enough(number):
        number += 1
    while number > minimum and is_enough(number - 1):
        number -= 1
    return number
