"""Warnings, given before learning, that a model may be useless or slow to learn.

The guarantee does not depend on these warnings. The warning about too much noise is computed from the plan alone. It
reads no record, so it reveals nothing about the records. The warning about one dominating column is computed from the
records.
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
"""Users are warned if the noise is at least this many times the largest score of the noiseless optimum. The effect of
noise was measured on two data sets, with epsilon 0.03 and 0.1. From this value on, accuracy is 0.06 to 0.4 below that
with the advised ``C``. Up to 0.1, accuracy is near the best. Between 0.1 and this value, accuracy depends on the data,
and there is no warning.
"""
GOOD = 0.25
"""Largest noise, as a fraction of the largest score, at which a warning still advises a value of ``C`` or ``alpha``."""
NEAR_BEST = 0.05
"""Limit on the noise. This limit is stricter than `GOOD`, and is tried first. If no ``C`` meets this limit, `GOOD` is
used. With 100 to 1000 records of five features, the noise `GOOD` lowers AUC by 0.04 to 0.2. AUC is then hardly higher
than with the noise that causes a warning.
"""
ADVISED = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1)
"""Values of ``C n``, or of ``n / alpha``, that a warning may advise; better ones come first."""

SLOW = 10.0
"""Users are warned if learning takes more seconds than this."""


@dataclass(frozen=True)
class Strength:
    """The parameter for the regulariser's strength.

    Attributes:
        name: ``C`` or ``alpha``.
        value: Value of the parameter.
        candidates: Values that a warning may advise; better values come first.
        per_record: Function that describes a value relative to the number of records, such as ``C n = 30``.
        noises: Upper limits on the noise that the advised value causes, in the order in which the limits are tried.
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
    """Warn the caller of `fit` if noise exceeds the scores, and advise a regulariser with less noise.

    Args:
        strength: The regulariser's parameter.
        epsilon: Target epsilon.
        sigma: Requested noise; None if it was planned.
        plan: Plan of learning.
        planned: Function that returns the plan for another strength of the regulariser.
        noise_and_score: Function that returns, for a plan, the standard deviation of the noise in a score, and the
            largest score. The largest score is the largest meaningful score, or the largest score that the noiseless
            optimum can have.
        trouble: Template of the message, with fields ``noise`` and ``score`` for the two numbers.
    """
    noise, score = noise_and_score(plan)
    if noise < DROWNED * score:
        return

    def relative_noise(value: float) -> float:
        noise, score = noise_and_score(planned(value))
        return noise / score

    # Both numbers are rounded as they are printed.
    noises = {each: _noise_or_none(float(each), relative_noise) for each in (f"{c:.2g}" for c in strength.candidates)}
    advised = next(
        (each for most in strength.noises for each, left in noises.items() if left is not None and left <= most), None
    )
    advice = (
        f"{strength.name} = {float(advised):.3g} would do ({strength.per_record(float(advised))})"
        if advised is not None
        else f"no value of {strength.name} would do: this takes "
        + ("more records, or a larger epsilon" if sigma is None else f"less noise than sigma = {sigma:g}")
    )
    warnings.warn(
        f"little can be learned with {strength.name} = {strength.value:.3g} ({strength.per_record(strength.value)}) at "
        f"epsilon = {epsilon:g}: {trouble.format(noise=noise, score=score)}; {advice}",
        stacklevel=callers_level(),
    )


def warn_of_a_drowning_column(largest: DominantColumn, *, ranges: Any, records: int) -> None:
    """Warn the caller of `fit` about a column that dominates the others, and propose parameters.

    This warning is computed from the records, without noise.

    Args:
        largest: The dominating column.
        ranges: Parameter ``feature_ranges``; None if it was not given.
        records: Number of records from which the column's share was computed.
    """
    if ranges is None:
        advice = "; give feature_ranges, a pair (low, high) for each column, known without these records"
    elif np.ndim(ranges) == 1:
        advice = "; give feature_ranges a pair (low, high) for each column, instead of one for all"
    else:
        advice = (
            ": most of their values lie near the middle of their ranges; give narrower pairs in feature_ranges, which "
            "need not include the rarest values, or leave this column out"
        )
    warnings.warn(
        f"{largest.in_words()}{advice} (computed from {counted(records, 'record')} without noise: not for publication)",
        stacklevel=callers_level(),
    )


def warn_if_slow(plan: Stepwise, rows: NDArray[Any], *, given: str, quicker: str | None, instead: str) -> None:
    """Warn the caller of `fit` if learning will take more than `SLOW` seconds, and name faster choices.

    Args:
        plan: Plan of learning.
        rows: The records; some of them are used to measure the time of a step.
        given: Phrase that names the requested strength of the regulariser.
        quicker: Phrase that names a strength with which few steps are enough; None if few steps are enough with the
            requested strength.
        instead: Phrase that names what to use instead of this model.
    """
    if is_quick(plan, SLOW):
        return
    seconds = seconds_to_learn(rows, plan)
    if seconds <= SLOW:
        return
    advice = "" if quicker is None else f"{quicker} needs fewer, and "
    warnings.warn(
        f"learning will take about {seconds_in_words(seconds)}, because {given} needs {plan.learning_steps:,} steps; "
        f"{advice}{instead}",
        stacklevel=callers_level(),
    )


def callers_level() -> int:
    """Return the stacklevel with which the calling function's warning points to the code that called this package."""
    frame, level, package = sys._getframe(1), 1, __name__.partition(".")[0]
    while frame.f_back is not None and frame.f_globals["__name__"].partition(".")[0] == package:
        frame, level = frame.f_back, level + 1
    return level


def _noise_or_none(value: float, relative_noise: Callable[[float], float]) -> float | None:
    """Return the relative noise with a given strength; None if there is no plan for it."""
    try:
        return relative_noise(value)
    except UnlearningError:
        return None
