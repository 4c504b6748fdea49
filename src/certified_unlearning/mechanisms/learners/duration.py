"""How long a plan learns: an estimate, before it does."""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.accounting.core.losses import scores_per_record
from certified_unlearning.mechanisms.certified_sgd.ensemble_plan import EnsemblePlan
from certified_unlearning.mechanisms.exact.plan import ExactPlan
from certified_unlearning.mechanisms.learners.descent import DescentLearner
from certified_unlearning.mechanisms.learners.langevin import LangevinLearner
from certified_unlearning.mechanisms.learners.minibatch import MiniBatchLearner
from certified_unlearning.mechanisms.refit_plan import RefitPlan

Stepwise = LangevinLearner | MiniBatchLearner | DescentLearner
Planned = Stepwise | RefitPlan | ExactPlan | EnsemblePlan

_ROWS_TIMED = 1 << 15
_NUMBERS_TIMED = 1 << 24
_SECONDS_OF_A_NOISY_STEP = 5e-5
"""What a step takes however few records it reads; measured: 2e-5 on a quiet machine, 2e-4 on a very busy one."""
_SECONDS_OF_A_STEP = 1e-4
_SECONDS_OF_A_BOX = 5e-3
"""The same of a step with bounds for all parameters."""
_SLOWEST = 1e8
"""How many numbers of the rows a pass reads in a second, at the very least."""
_NEWTON_STEPS = 8
_REFIT_STEPS = 500
"""As many as such solvers take, more or less, in passes of single precision."""


def seconds_to_learn(rows: NDArray[Any], learner: Planned) -> float:
    """Return about how long a plan learns on the processor: right to a factor of four or so on a quiet machine.

    Args:
        rows: The rows that it learns from, of which some are timed; their values do not matter.
        learner: The plan.
    """
    of_steps, passes = _work(learner)
    return of_steps + passes * _seconds_of_a_pass(rows, learner)


def is_quick(learner: Planned, seconds: float) -> bool:
    """Return whether a plan surely learns in so many seconds, without a look at the rows."""
    of_steps, passes = _work(learner)
    numbers = learner.n * learner.features * scores_per_record(learner.classes)
    return of_steps + passes * numbers / _SLOWEST < seconds


def _work(learner: Planned) -> tuple[float, float]:
    """Return the seconds of a plan's steps without their records, and how often they read all records."""
    if isinstance(learner, LangevinLearner | DescentLearner):
        return learner.learning_steps * _SECONDS_OF_A_NOISY_STEP, 2 * learner.learning_steps
    if isinstance(learner, MiniBatchLearner):
        passes = 2 * learner.learning_steps * learner.cycle.batch_size / learner.n
        return learner.learning_steps * _SECONDS_OF_A_NOISY_STEP, passes
    if isinstance(learner, ExactPlan):
        return learner.steps * _SECONDS_OF_A_STEP, learner.steps * learner.batch_size / learner.n
    if isinstance(learner, EnsemblePlan):
        # A shard learns its first slice, then the first two, and so on; boxes take some ten products instead of two.
        stages, width = (learner.slices + 1) / 2, sum(learner.hidden) or 1
        passes = 5 * learner.epochs * stages * len(learner.budgets) * width
        return learner.epochs * learner.shards * learner.slices * _SECONDS_OF_A_BOX, passes
    if learner.removes_by_newton:
        # Matrices are made of a sample where there are many records, by products that use a processor well.
        return _NEWTON_STEPS * _SECONDS_OF_A_STEP, _NEWTON_STEPS * (8 + learner.features / 40)
    return _REFIT_STEPS * _SECONDS_OF_A_STEP, _REFIT_STEPS


def _seconds_of_a_pass(rows: NDArray[Any], learner: Planned) -> float:
    """Return about how long the scores and the gradient of all rows take."""
    dtype = getattr(learner, "dtype", "float32")
    some = np.array(rows[: min(_ROWS_TIMED, max(1, _NUMBERS_TIMED // rows.shape[1]))], dtype)
    weights = np.ones((rows.shape[1], scores_per_record(learner.classes)), dtype)
    least = float("inf")
    for _ in range(3):
        begun = time.perf_counter()
        some.T @ np.tanh(some @ weights)
        least = min(least, time.perf_counter() - begun)
    return least * learner.n / len(some)
