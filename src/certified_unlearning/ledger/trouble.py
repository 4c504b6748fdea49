"""Why a version hardly tells the classes apart, and what helps: for the operator's eyes only.

Each advice is tried before it is given, on some of the training records that are left (`data.advice.trial`); what is
tried is the mechanism's affair (`methods.advice`). What is computed here comes from the records without noise, so it is
written nowhere. It takes seconds, and scikit-learn and PyTorch are loaded for it: it is for where a warning is due.
"""

from pathlib import Path

from certified_unlearning.data.advice.ranges import shares_of, warning_about
from certified_unlearning.data.advice.trial import Trial, most_records
from certified_unlearning.data.quality import Quality
from certified_unlearning.data.tables.classes import weights_of
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.method import answered_of
from certified_unlearning.ledger.model import method_of, read_stored
from certified_unlearning.ledger.quality import RecordsLeft, require_same, require_whole
from certified_unlearning.ledger.state import read_state
from certified_unlearning.ledger.store import Ledger
from certified_unlearning.ledger.weights import read_weights


def trouble_left(path: Path, quality: Quality, *, names_columns: bool = True) -> list[str]:
    """Return what is wrong with the current version, judged by the training records that are left, and what helps.

    Args:
        path: The model directory.
        quality: What was found, on these records or on others.
        names_columns: Whether to say which column drowns the others.

    Raises:
        DataError: A file cannot be read.
        LedgerError: A file is not what the ledger recorded.
        BusyError: An `apply` is at work, or was interrupted.
    """
    directory = ModelDirectory(path)
    with Ledger.opened(directory.ledger, read_only=True) as ledger:
        state = read_state(ledger)
        require_whole(path, state)
        model, weights = read_stored(directory, state), read_weights(directory, state.current)
        method = method_of(directory, model)
        learner, advice = method.plan_after(answered_of(state)), method.advice
        if advice is None:
            return []
        records = RecordsLeft(directory, ledger, learner.n, learner.features, learner.classes)
        rows, positions = records.sample(most_records(learner.features, learner.classes))
        require_same(path, state, read_state(ledger))
    if not len(rows):
        return []
    left = int(records.left.sum())
    tried = f"tried on {len(rows):,} of {left:,} training records" if len(rows) < left else "tried on all that are left"
    shares = shares_of(model.table)
    shares.add(rows[:, :-1] if model.intercept else rows)
    largest = shares.largest()
    if largest is not None:
        # First things first: what noise and regulariser do to the others' small numbers says nothing of them.
        return [f"{warning_about(model.table, largest)}, in a new `unlearn init`"] if names_columns else []
    trial = Trial(rows, positions, learner.classes, left / learner.n, weights_of(model.table).shares)
    if not trial.is_possible:
        return []
    tried_with = advice(learner, model.table, model.intercept, trial, weights, trial.published(weights))
    return [f"{sentence} ({tried}; not for publication)" for sentence in tried_with.sentences(quality)]
