"""Whether a plan's noise leaves anything of what is learned: a warning before learning, from the plan alone.

No record is looked at, so the warning tells nothing of them. It is one of usefulness: the guarantee holds either way.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from certified_unlearning.errors import UnlearningError

DROWNED = 1.0
"""From this noise on, in units of the largest score that the noiseless optimum can have, a user is warned. Measured on
two data sets (epsilon 0.03 and 0.1): from there on accuracy is 0.06 to 0.4 below that with the ``C`` advised, up to 0.1
it is near the best. In between it depends on the data, and nobody is warned."""
GOOD = 0.25
"""At most so much noise has the ``C`` or ``alpha`` that a warning advises."""
ADVISED = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1)
"""Values of ``C n``, or of ``n / alpha``, that a warning may advise, best first."""


@dataclass(frozen=True)
class Strength:
    """The parameter that says how strong the regulariser is.

    Attributes:
        name: ``C`` or ``alpha``.
        value: What it is.
        candidates: Values that may be advised, best first.
        per_record: What a value is beside the number of records, in words, such as ``C n = 30``.
    """

    name: str
    value: float
    candidates: Sequence[float]
    per_record: Callable[[float], str]


def warn_if_drowned(
    strength: Strength,
    *,
    epsilon: float,
    noise: float,
    score: float,
    trouble: str,
    relative_noise: Callable[[float], float],
    stacklevel: int,
) -> None:
    """Warn whoever called `fit` if the noise is larger than any score, and name a regulariser that would do.

    Args:
        strength: Of the regulariser.
        epsilon: The target.
        noise: Standard deviation of the noise in a score.
        score: The largest that the noiseless optimum can have, or as large as makes sense.
        trouble: Both numbers in words.
        relative_noise: The noise in units of the score, of a plan with a regulariser of another strength.
        stacklevel: Of the warning.
    """
    if noise < DROWNED * score:
        return
    candidates = (f"{each:.2g}" for each in strength.candidates)
    advised = next((each for each in candidates if _is_good(float(each), relative_noise)), None)
    advice = (
        f"{strength.name} = {float(advised):.3g} would do ({strength.per_record(float(advised))})"
        if advised is not None
        else f"no {strength.name} would do: it takes more records, a larger epsilon, or less noise where sigma was "
        "given"
    )
    warnings.warn(
        f"little can be learned with {strength.name} = {strength.value:.3g} ({strength.per_record(strength.value)}) at "
        f"epsilon = {epsilon:g}: {trouble}; {advice}",
        stacklevel=stacklevel,
    )


def _is_good(value: float, relative_noise: Callable[[float], float]) -> bool:
    try:
        return relative_noise(value) <= GOOD
    except UnlearningError:
        return False
