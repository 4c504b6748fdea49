"""Warnings before learning, of usefulness and of time: the guarantee holds either way.

Whether a plan's noise leaves anything of what is learned follows from the plan alone: no record is looked at, so that
warning tells nothing of them. Whether one column drowns the others is computed from the records.
"""

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.data.advice.shares import DominantColumn
from certified_unlearning.errors import UnlearningError
from certified_unlearning.mechanisms.learners.duration import Stepwise, is_quick, seconds_to_learn
from certified_unlearning.text import counted, seconds_in_words

DROWNED = 1.0
"""From this noise on, in units of the largest score that the noiseless optimum can have, a user is warned. Measured on
two data sets (epsilon 0.03 and 0.1): from there on accuracy is 0.06 to 0.4 below that with the ``C`` advised, up to 0.1
it is near the best. In between it depends on the data, and nobody is warned."""
GOOD = 0.25
"""At most so much noise has the ``C`` or ``alpha`` that a warning advises."""
NEAR_BEST = 0.05
"""At most so much has the ``C`` that is advised, if there is one. Of 100 to 1000 records of five features AUC is 0.04
to 0.2 lower at `GOOD`, and there hardly higher than with the noise that is warned of."""
ADVISED = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1)
"""Values of ``C n``, or of ``n / alpha``, that a warning may advise, best first."""

SLOW = 10.0
"""From so many seconds of learning on a user is warned."""


@dataclass(frozen=True)
class Strength:
    """The parameter that says how strong the regulariser is.

    Attributes:
        name: ``C`` or ``alpha``.
        value: What it is.
        candidates: Values that may be advised, best first.
        per_record: What a value is beside the number of records, in words, such as ``C n = 30``.
        noises: How much noise, at most, the value that is advised may leave, best first.
    """

    name: str
    value: float
    candidates: Sequence[float]
    per_record: Callable[[float], str]
    noises: Sequence[float]


def warn_if_drowned(
    strength: Strength,
    *,
    epsilon: float,
    sigma: float | None,
    plan: Any,
    planned: Callable[[float], Any],
    noise_and_score: Callable[[Any], tuple[float, float]],
    trouble: str,
) -> None:
    """Warn the caller of `fit` if the noise is larger than any score, and name a regulariser that would do.

    Args:
        strength: Of the regulariser.
        epsilon: The target.
        sigma: The noise that was asked for; None where it was planned.
        plan: What is learned by.
        planned: Returns the plan with a regulariser of another strength.
        noise_and_score: Returns a plan's standard deviation of the noise in a score, and the largest score that the
            noiseless optimum can have, or as large as makes sense.
        trouble: Both numbers, ``noise`` and ``score``, in words.
    """
    noise, score = noise_and_score(plan)
    if noise < DROWNED * score:
        return

    def relative_noise(value: float) -> float:
        noise, score = noise_and_score(planned(value))
        return noise / score

    # As they are printed.
    noises = {each: _noise_or_none(float(each), relative_noise) for each in (f"{c:.2g}" for c in strength.candidates)}
    advised = next(
        (each for most in strength.noises for each, left in noises.items() if left is not None and left <= most), None
    )
    advice = (
        f"{strength.name} = {float(advised):.3g} would do ({strength.per_record(float(advised))})"
        if advised is not None
        else f"no {strength.name} would do: it takes "
        + ("more records, or a larger epsilon" if sigma is None else f"less noise than sigma = {sigma:g}")
    )
    warnings.warn(
        f"little can be learned with {strength.name} = {strength.value:.3g} ({strength.per_record(strength.value)}) at "
        f"epsilon = {epsilon:g}: {trouble.format(noise=noise, score=score)}; {advice}",
        stacklevel=callers_level(),
    )


def warn_of_a_drowning_column(largest: DominantColumn, *, ranges: Any, records: int) -> None:
    """Warn the caller of `fit` of a column that drowns the others, and say what to give.

    This one is computed from the records, without noise.

    Args:
        largest: The column.
        ranges: The ``feature_ranges`` that were given, if any.
        records: From how many records its share is computed.
    """
    if ranges is None:
        advice = "; give feature_ranges, a pair (low, high) for each column, known without these records"
    elif np.ndim(ranges) == 1:
        advice = "; give feature_ranges a pair (low, high) for each column, instead of one for all"
    else:
        advice = (
            ": most of their values lie near the middle of their ranges; give narrower pairs in feature_ranges, which "
            "need not hold the rarest values, or leave this column out"
        )
    warnings.warn(
        f"{largest.in_words()}{advice} (computed from {counted(records, 'record')} without noise: not for publication)",
        stacklevel=callers_level(),
    )


def warn_if_slow(plan: Stepwise, rows: NDArray[Any], *, given: str, quicker: str | None, instead: str) -> None:
    """Warn the caller of `fit` if learning will take more than `SLOW` seconds, and say what takes less.

    Args:
        plan: What is learned by.
        rows: The records: how long a step takes is measured with some of them.
        given: The strength of the regulariser that was asked for, in words.
        quicker: What takes few steps, in words; None if the strength that was asked for does.
        instead: What else to take.
    """
    if is_quick(plan, SLOW):
        return
    seconds = seconds_to_learn(rows, plan)
    if seconds <= SLOW:
        return
    advice = "" if quicker is None else f"{quicker} takes fewer, and "
    warnings.warn(
        f"learning will take about {seconds_in_words(seconds)}, for {given} takes {plan.learning_steps:,} steps; "
        f"{advice}{instead}",
        stacklevel=callers_level(),
    )


def callers_level() -> int:
    """Return the stacklevel, of a warning in the function that calls this, of the caller of this package."""
    frame, level, package = sys._getframe(1), 1, __name__.partition(".")[0]
    while frame.f_back is not None and frame.f_globals["__name__"].partition(".")[0] == package:
        frame, level = frame.f_back, level + 1
    return level


def _noise_or_none(value: float, relative_noise: Callable[[float], float]) -> float | None:
    """Return the noise that a strength would leave; None if nothing can be planned with it."""
    try:
        return relative_noise(value)
    except UnlearningError:
        return None
