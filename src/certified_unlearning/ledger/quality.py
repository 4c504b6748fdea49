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
from certified_unlearning.text import counted

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
        require_whole(path, state)
        try:
            quality = _quality(directory, ledger, state)
        except (DataError, LedgerError):
            require_same(path, state, read_state(ledger))  # An `apply` may have deleted what was to be read.
            raise
        require_same(path, state, read_state(ledger))
    return quality


def require_whole(path: Path, state: State) -> None:
    """Raise `BusyError` if an `apply` or an `add` has begun and not finished."""
    if state.planned is not None:
        raise BusyError(f"an `{state.planned.command}` on {path} has begun and not finished")


def require_same(path: Path, before: State, after: State) -> None:
    """Raise `BusyError` if an `apply` has begun or finished between two states."""
    require_whole(path, after)
    if before.current != after.current:
        raise BusyError(f"an `apply` on {path} has finished meanwhile")


def _quality(directory: ModelDirectory, ledger: Ledger, state: State) -> Quality:
    weights = read_weights(directory, state.current)
    if not weights.size:
        raise DataError("its parameters are secret; `unlearn evaluate` says how good its answers are on other records")
    names, width = _classes(directory, state), weights.shape[1]
    tally, records = Tally(len(names), names), RecordsLeft(directory, ledger, state.rows, width, len(names))
    at_once = max(1, _NUMBERS_AT_ONCE // width)
    for start in range(0, state.rows, at_once):
        block, positions = records.block(slice(start, start + at_once))
        scores = scores_of(block, weights)
        tally.add(np.exp(log_probabilities(scores)), positions, predicted(scores))
    return tally.quality()


class RecordsLeft:
    """The training copy's rows that are somebody's, with the number of each one's class, from 0.

    Attributes:
        left: Which rows they are.

    Args:
        directory: The model directory.
        ledger: Its ledger.
        records: How many rows there are, those of removed records included.
        features: Columns of a row.
        classes: How many classes there are.

    Raises:
        DataError: The training copy cannot be read, or is damaged.
    """

    def __init__(self, directory: ModelDirectory, ledger: Ledger, records: int, features: int, classes: int) -> None:
        try:
            self._rows = StoredRows(directory.features, 0, (records, features))
            self._labels = np.fromfile(directory.labels, np.int8)
        except OSError as error:
            raise DataError(f"cannot read {error.filename}: {error.strerror}") from error
        if len(self._labels) != records:
            raise DataError(
                f"{directory.labels} is damaged: it holds {counted(len(self._labels), 'label')} of "
                f"{counted(records, 'record')}"
            )
        self.left = self._labels != 0 if classes == 2 else _left(directory, ledger, records)
        self._classes = classes
        # Dealt rows of two classes are stored as -label x.
        self._signed = classes == 2 and directory.places.exists()

    def block(self, some: slice) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return those among some rows, and their classes."""
        return self._of(self._rows[some][self.left[some]], self._labels[some][self.left[some]])

    def sample(self, most: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return at most so many, drawn at random but the same ones every time, and their classes."""
        places = np.flatnonzero(self.left)
        if len(places) > most:
            places = np.sort(np.random.default_rng(0).choice(places, most, replace=False))
        rows = np.empty((len(places), self._rows.shape[1]), np.float32)
        for number, place in enumerate(places.tolist()):
            self._rows.read_into(rows[number : number + 1], place)
        return self._of(rows, self._labels[places])

    def _of(self, rows: NDArray[np.float32], labels: NDArray[np.int8]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        if self._signed:
            rows *= -labels[:, None].astype(np.float32)
        return rows, np.asarray(labels > 0 if self._classes == 2 else labels, np.int64)


def _left(directory: ModelDirectory, ledger: Ledger, n: int) -> NDArray[np.bool_]:
    """Return which rows of the training copy are somebody's: of more than two classes 0 is a label as well."""
    left = np.zeros(n, np.bool_)
    left[training.positions(directory, np.fromiter(ledger.rows(), np.int64))] = True
    return left


def _classes(directory: ModelDirectory, state: State) -> list[str]:
    if file_sha256(directory.model) != state.start.model_sha256:
        raise LedgerError(f"{directory.model} was tampered with: it is not what `unlearn init` recorded")
    return [str(name) for name in read_json(directory.model, ("table",))["table"]["classes"]]
