"""What `init` takes from a table, and how long it will learn: for the operator to read before learning begins.

Counts depend on the records, so they are printed and never stored.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from certified_unlearning.accounting.core.losses import scores_per_record
from certified_unlearning.data.advice.shares import Largest
from certified_unlearning.data.tables.declaration import Table
from certified_unlearning.data.tables.spellings import Group
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.model import Learner
from certified_unlearning.mechanisms.certified_sgd.ensemble_plan import EnsemblePlan
from certified_unlearning.mechanisms.exact.plan import ExactPlan
from certified_unlearning.mechanisms.learners.langevin import LangevinLearner
from certified_unlearning.mechanisms.learners.minibatch import MiniBatchLearner
from certified_unlearning.vocabulary import ClassesFrom

_ROWS_TIMED = 1 << 15
_SECONDS_OF_A_STEP = 1e-4
"""What a step takes however few records it reads."""
_SECONDS_OF_A_BOX = 5e-3
"""The same of a step with bounds for all parameters."""
_NEWTON_STEPS = 8
_REFIT_STEPS = 500
"""As many as such solvers take, more or less, in passes of single precision."""


@dataclass(frozen=True)
class Contents:
    """What a model is made from.

    Attributes:
        table: The declaration, resolved.
        drowning: The column that carries nearly all of a row's norm, if one does.
        left_out: The columns of the table that are used for nothing.
        numbers: How many numbers the features of one record become.
        classes: Number of records of each class.
        classes_from: Whether they were declared, or taken from the records.
        records: Number of records: all rows of the table.
        people: Number of identifiers.
        spellings: Identifiers that a person would take for one.
        absent: Identifiers of one row each that say that there is none.
        seconds: About how long learning takes.
    """

    table: Table
    drowning: Largest | None
    left_out: Sequence[str]
    numbers: int
    classes: Mapping[str, int]
    classes_from: ClassesFrom
    records: int
    people: int
    spellings: Sequence[Group]
    absent: Sequence[str]
    seconds: float


def seconds_to_learn(directory: ModelDirectory, learner: Learner) -> float:
    """Return about how long a plan learns: right to a factor of three or so on a quiet machine.

    Args:
        directory: Where its training copy lies.
        learner: The plan.
    """
    scores = scores_per_record(learner.classes)
    steps, passes = _work(learner)
    of_a_pass = _seconds_of_a_pass(directory, learner.n, learner.features, scores)
    of_a_step = _SECONDS_OF_A_BOX if isinstance(learner, EnsemblePlan) else _SECONDS_OF_A_STEP
    return passes * of_a_pass + steps * of_a_step


def _work(learner: Learner) -> tuple[float, float]:
    """Return how many steps a plan takes, and how often it reads all records in them."""
    if isinstance(learner, LangevinLearner):
        # The engine's steps draw noise and keep what a phase of many trials needs.
        return learner.learning_steps, 3 * learner.learning_steps
    if isinstance(learner, MiniBatchLearner):
        return learner.learning_steps, learner.learning_steps * learner.cycle.batch_size / learner.n
    if isinstance(learner, ExactPlan):
        return learner.steps, learner.steps * learner.batch_size / learner.n
    if isinstance(learner, EnsemblePlan):
        # A shard learns its first slice, then the first two, and so on; boxes take some ten products instead of two.
        stages, width = (learner.slices + 1) / 2, sum(learner.hidden) or 1
        passes = 5 * learner.epochs * stages * len(learner.budgets) * width
        return learner.epochs * learner.shards * learner.slices, passes
    if learner.removes_by_newton:
        # Matrices are made of a sample where there are many records, by products that use a processor well.
        return _NEWTON_STEPS, _NEWTON_STEPS * (8 + learner.features / 40)
    return _REFIT_STEPS, _REFIT_STEPS


def _seconds_of_a_pass(directory: ModelDirectory, n: int, features: int, scores: int) -> float:
    """Return about how long the scores and the gradient of all rows of a training copy take."""
    rows = np.array(np.memmap(directory.features, np.float32, "r").reshape(-1, features)[:_ROWS_TIMED])
    weights = np.ones((features, scores), np.float32)
    least = float("inf")
    for _ in range(3):
        begun = time.perf_counter()
        rows.T @ np.tanh(rows @ weights)
        least = min(least, time.perf_counter() - begun)
    return least * n / len(rows)
