"""How good the current version is on the training records that are left, for the operator's eyes only.

It is computed from the records without noise, so no guarantee covers it, and one that was computed before a removal may
tell of the removed records. So it is computed anew whenever somebody asks, and written nowhere. Rows are read block by
block. Free of heavy imports: `status` does without torch.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.data.quality import Quality, Tally
from certified_unlearning.data.stored_rows import StoredRows
from certified_unlearning.errors import DataError
from certified_unlearning.files import read_json
from certified_unlearning.ledger import training
from certified_unlearning.ledger.directory import BusyError, ModelDirectory, file_sha256
from certified_unlearning.ledger.state import State, read_state
from certified_unlearning.ledger.store import Ledger, LedgerError
from certified_unlearning.ledger.weights import log_probabilities, predicted, read_weights, scores_of

_NUMBERS_AT_ONCE = 1 << 22
"""Features that are held in memory together."""


def quality_left(path: Path) -> Quality:
    """Return how good the current version is on the training records that are left; nothing is written.

    Beside one block of rows, memory holds some twenty bytes a record.

    Args:
        path: The model directory.

    Raises:
        DataError: There is no model, no record is left, or a file cannot be read.
        LedgerError: A file is not what the ledger recorded.
        BusyError: An `apply` is at work, or was interrupted: some of the records are gone already, others not yet.
    """
    directory = ModelDirectory(path)
    with Ledger.opened(directory.ledger, read_only=True) as ledger:
        state = read_state(ledger)
        _require_whole(path, state)
        try:
            quality = _quality(directory, ledger, state)
        except (DataError, LedgerError):
            _require_same(path, state, read_state(ledger))  # An `apply` may have deleted what was to be read.
            raise
        _require_same(path, state, read_state(ledger))
    return quality


def _require_whole(path: Path, state: State) -> None:
    if state.planned is not None:
        raise BusyError(f"an `apply` on {path} has begun and not finished")


def _require_same(path: Path, before: State, after: State) -> None:
    _require_whole(path, after)
    if before.current != after.current:
        raise BusyError(f"an `apply` on {path} has finished meanwhile")


def _quality(directory: ModelDirectory, ledger: Ledger, state: State) -> Quality:
    weights = read_weights(directory, state.current)
    if not weights.size:
        raise DataError("its parameters are secret; `unlearn evaluate` says how good its answers are on other records")
    n, names = state.start.records, _classes(directory, state)
    classes = len(names)
    try:
        rows = StoredRows(directory.features, 0, (n, weights.shape[1]))
        labels = np.fromfile(directory.labels, np.int8)
    except OSError as error:
        raise DataError(f"cannot read {error.filename}: {error.strerror}") from error
    if len(labels) != n:
        raise DataError(f"{directory.labels} is damaged: it holds {len(labels)} labels of {n} records")
    left = labels != 0 if classes == 2 else _left(directory, ledger, n)
    signed = classes == 2 and directory.places.exists()
    tally = Tally(classes, names)
    at_once = max(1, _NUMBERS_AT_ONCE // weights.shape[1])
    for start in range(0, n, at_once):
        some = slice(start, start + at_once)
        kept = left[some]
        block, right = rows[some][kept], labels[some][kept]
        if signed:
            # Dealt rows of two classes are stored as -label x.
            block *= -right[:, None].astype(np.float32)
        scores = scores_of(block, weights)
        positions = right > 0 if classes == 2 else right
        tally.add(np.exp(log_probabilities(scores)), positions, predicted(scores))
    return tally.quality()


def _left(directory: ModelDirectory, ledger: Ledger, n: int) -> NDArray[np.bool_]:
    """Return which rows of the training copy are somebody's: of more than two classes 0 is a label as well."""
    left = np.zeros(n, np.bool_)
    left[training.positions(directory, np.fromiter(ledger.rows(), np.int64))] = True
    return left


def _classes(directory: ModelDirectory, state: State) -> list[str]:
    if file_sha256(directory.model) != state.start.model_sha256:
        raise LedgerError(f"{directory.model} was tampered with: it is not what `unlearn init` recorded")
    return [str(name) for name in read_json(directory.model, ("table",))["table"]["classes"]]
