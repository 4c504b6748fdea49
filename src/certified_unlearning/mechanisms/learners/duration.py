"""Estimates of how long learning with a plan will take."""

import time
from typing import Any, NamedTuple, Protocol

import numpy as np

from certified_unlearning.accounting.core.losses import scores_per_record

SECONDS_OF_A_NOISY_STEP = 5e-5
"""Seconds of a noisy step with few records. Measured: 2e-5 on a quiet machine, 2e-4 on a very busy one."""
SECONDS_OF_A_STEP = 1e-4
SECONDS_OF_A_BOX = 5e-3
"""Duration in seconds of a step that computes bounds for all parameters, if there are few records."""
_ROWS_TIMED = 1 << 15
_NUMBERS_TIMED = 1 << 24
_SLOWEST = 1e8
"""Smallest number of row entries that a pass reads in a second."""


class Work(NamedTuple):
    """The work of learning.

    Attributes:
        seconds: Duration of the steps in seconds, without reading records.
        passes: Number of passes over all records.
        dtype: Floating-point type in which rows are read.
    """

    seconds: float
    passes: float
    dtype: str = "float32"


class Planned(Protocol):
    """A plan for which the work of learning is known.

    Attributes:
        n: Number of records.
        features: Number of columns of a row.
        classes: Number of classes; 1 for numeric targets.
    """

    n: int
    features: int
    classes: int

    @property
    def work(self) -> Work:
        """The work of learning."""


class Stepwise(Planned, Protocol):
    """A plan of steps.

    ``learning_steps`` is the number of steps during learning.
    """

    learning_steps: int


def seconds_to_learn(rows: Any, learner: Planned) -> float:
    """Return an estimate of how long learning takes on the CPU, within a factor of about four on a quiet machine.

    Args:
        rows: The rows of the plan. Some of them are used for a measurement; their values do not matter.
        learner: The plan.
    """
    return learner.work.seconds + learner.work.passes * _seconds_of_a_pass(rows, learner)


def is_quick(learner: Planned, seconds: float) -> bool:
    """Return whether learning certainly takes less than the given seconds. The rows are not read."""
    numbers = learner.n * learner.features * scores_per_record(learner.classes)
    return learner.work.seconds + learner.work.passes * numbers / _SLOWEST < seconds


def _seconds_of_a_pass(rows: Any, learner: Planned) -> float:
    """Return an estimate of the seconds for the scores and the gradient of all rows."""
    dtype = np.dtype(learner.work.dtype)
    is_dense = isinstance(rows, np.ndarray)
    count = min(_ROWS_TIMED, max(1, _NUMBERS_TIMED // rows.shape[1])) if is_dense else _ROWS_TIMED
    some = rows[:count].astype(dtype)  # This makes a copy, also of rows in a file.
    weights = np.ones((rows.shape[1], scores_per_record(learner.classes)), dtype)
    least = float("inf")
    for _ in range(3):
        begun = time.perf_counter()
        some.T @ np.tanh(some @ weights)
        least = min(least, time.perf_counter() - begun)
    return least * learner.n / int(some.shape[0])
