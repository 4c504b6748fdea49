"""Whether a plan's noise leaves anything of what is learned: a warning before learning, from the plan alone.

No record is looked at, so the warning tells nothing of them. It is one of usefulness: the guarantee holds either way.
"""

import math
import warnings
from collections.abc import Callable

from certified_unlearning.errors import UnlearningError

DROWNED = 1.0
"""From this noise on, in units of the largest score that the noiseless optimum can have, a user is warned. Measured on
two data sets (epsilon 0.03 and 0.1): from there on accuracy is 0.06 to 0.4 below that with the ``C`` advised, up to 0.1
it is near the best. In between it depends on the data, and nobody is warned."""
GOOD = 0.25
"""At most so much noise has the ``C`` that a warning advises."""
ADVISED = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1)
"""Values of ``C n`` that a warning may advise, best first."""


def largest_score(*, classes: int, strong_convexity: float) -> float:
    """Return a bound on the score that the noiseless optimum gives any row of norm at most 1.

    The norm of the optimum ``w`` is at most ``M / m``, for ``m w`` is the mean of gradients of norm at most ``M``; and
    at most ``sqrt(2 log(classes) / m)``, for the objective at ``w`` is at most ``log(classes)``, that at 0.

    Args:
        classes: Number of classes.
        strong_convexity: ``m``.
    """
    lipschitz = 1.0 if classes == 2 else math.sqrt(2)
    return min(lipschitz / strong_convexity, math.sqrt(2 * math.log(classes) / strong_convexity))


def stationary_noise(*, sigma: float, strong_convexity: float, step_size: float) -> float:
    """Return the standard deviation of noisy steps' weights in directions where the records add no curvature.

    A score of a row of norm 1 has at most that: ``sigma / sqrt(m (1 - step_size m / 2))``.
    """
    return sigma / math.sqrt(strong_convexity * (1 - step_size * strong_convexity / 2))


def warn_if_drowned(
    *,
    C: float,
    n: int,
    epsilon: float,
    noise: float,
    score: float,
    relative_noise: Callable[[float], float],
    stacklevel: int,
) -> None:
    """Warn whoever called `fit` if the noise is larger than any score, and name a ``C`` that would do.

    Args:
        C: The parameter.
        n: Number of records.
        epsilon: The target.
        noise: Standard deviation of the noise in a score.
        score: The largest that the noiseless optimum can have.
        relative_noise: The noise in units of the largest score, of a plan with another ``C``.
        stacklevel: Of the warning.
    """
    if noise < DROWNED * score:
        return
    advised = next((f"{each / n:.2g}" for each in ADVISED if _is_good(float(f"{each / n:.2g}"), relative_noise)), None)
    advice = (
        f"C = {advised} would do (C n = {float(advised) * n:.3g})"
        if advised is not None
        else "no C would do: it takes more records, a larger epsilon, or less noise where sigma was given"
    )
    warnings.warn(
        f"little can be learned with C = {C:.3g} (C n = {C * n:.3g}) at epsilon = {epsilon:g}: the noise in a score "
        f"has a standard deviation of up to {noise:.3g}, and no score of the model without noise is above {score:.3g}; "
        f"{advice}",
        stacklevel=stacklevel,
    )


def _is_good(C: float, relative_noise: Callable[[float], float]) -> bool:
    try:
        return relative_noise(C) <= GOOD
    except UnlearningError:
        return False
