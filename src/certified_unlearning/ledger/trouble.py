"""The causes of a version's weak predictions, and what helps, for the operator only.

Each piece of advice is tried on some of the remaining training records (`data.advice.trial`) before it is given. The
mechanism decides what is tried (`methods.advice`). The results are computed from records, and no noise is added, so
they are not written to any file. The trial takes seconds and loads scikit-learn and PyTorch, so it is run only if a
warning is due.
"""

from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.data.advice.ranges import shares_of, warning_about
from certified_unlearning.data.advice.trial import Trial, most_records
from certified_unlearning.data.quality import Quality, TargetQuality, target_quality_of
from certified_unlearning.data.tables.classes import weights_of
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.mechanisms import MECHANISMS
from certified_unlearning.ledger.method import answered_of
from certified_unlearning.ledger.methods.regression_advice import RegressionTrial
from certified_unlearning.ledger.model import StoredModel, method_of, read_stored
from certified_unlearning.ledger.quality import RecordsLeft, require_same, require_whole
from certified_unlearning.ledger.state import read_state
from certified_unlearning.ledger.store import Ledger
from certified_unlearning.ledger.weights import read_weights, scores_of

_LEAST = 20
"""Smallest number of records on which advice is tried if the model predicts numbers."""


def trouble_left(path: Path, quality: Quality | TargetQuality, *, names_columns: bool = True) -> list[str]:
    """Return sentences on what is wrong with the current version, and on what helps.

    The sentences are based on some of the remaining training records.

    Args:
        path: The model directory.
        quality: The measured quality, on these records or on others.
        names_columns: Whether to name a column that dominates the others.

    Raises:
        DataError: A file cannot be read.
        LedgerError: A file differs from what the log records about it.
        BusyError: An `apply` is running, or was interrupted.
    """
    directory = ModelDirectory(path)
    with Ledger.opened(directory.ledger, read_only=True) as ledger:
        state = read_state(ledger)
        require_whole(path, state)
        model, weights = read_stored(directory, state), read_weights(directory, state.current)
        method = method_of(directory, model)
        learner, advice = method.plan_after(answered_of(state)), method.advice
        if advice is None or model.table.text:
            return []  # Rows of text are too wide for a trial.
        records = RecordsLeft(directory, ledger, state, learner.features, learner.classes)
        rows, positions = records.sample(most_records(learner.features, learner.classes))
        require_same(path, state, read_state(ledger))
    if not len(rows):
        return []
    left = int(records.left.sum())
    tried = (
        f"tried on {len(rows):,} of {left:,} training records"
        if len(rows) < left
        else "tried on all remaining training records"
    )
    shares = shares_of(model.table)
    shares.add(rows[:, :-1] if model.intercept else rows)
    largest = shares.largest()
    if largest is not None:
        # This comes first: while the other columns' numbers are tiny, trials of noise and regulariser show nothing.
        return [f"{warning_about(model.table, largest)}, in a new `unlearn init`"] if names_columns else []
    if model.table.is_regression:
        said = _of_numbers(model, weights, rows, positions, left)
        return [f"{sentence} ({tried}; not for publication)" for sentence in said]
    trial = Trial(rows, positions, learner.classes, left / learner.n, weights_of(model.table).shares)
    if not trial.is_possible:
        return []
    tried_with = advice(learner, model.table, model.intercept, trial, weights, trial.published(weights))
    return [f"{sentence} ({tried}; not for publication)" for sentence in tried_with.sentences(cast(Quality, quality))]


def _of_numbers(
    model: StoredModel, weights: NDArray[Any], rows: NDArray[np.float32], targets: NDArray[np.float64], left: int
) -> list[str]:
    """Return sentences on what is wrong with a version that predicts numbers, and what helps."""
    learner: Any = model.learner
    found = target_quality_of(scores_of(rows, weights), targets)
    if len(rows) < _LEAST or found.r2 is None:
        return []
    trial = RegressionTrial(
        rows=rows.astype(np.float64),
        targets=targets,
        strong_convexity=learner.strong_convexity,
        n=learner.n,
        epsilon=learner.epsilon,
        delta=learner.delta,
        of_all=left / learner.n,
        C=1 / (learner.strong_convexity * learner.n * (2 if model.intercept else 1)),
        noise=MECHANISMS[learner.mechanism].settings.score_noise(learner),
    )
    return trial.sentences(found.r2)
