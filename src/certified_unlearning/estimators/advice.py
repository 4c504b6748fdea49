"""Whether a plan's noise leaves anything of what is learned: a warning before learning, from the plan alone.

No record is looked at, so the warning tells nothing of them. It is one of usefulness: the guarantee holds either way.
"""

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


def warn_if_drowned(
    *,
    C: float,
    n: int,
    largest_weight: float,
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
        largest_weight: Of the classes, which multiplies ``C``.
        epsilon: The target.
        noise: Standard deviation of the noise in a score.
        score: The largest that the noiseless optimum can have.
        relative_noise: The noise in units of the largest score, of a plan with another ``C``.
        stacklevel: Of the warning.
    """
    if noise < DROWNED * score:
        return
    candidates = (f"{each / (n * largest_weight):.2g}" for each in ADVISED)
    advised = next((each for each in candidates if _is_good(float(each), relative_noise)), None)
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
