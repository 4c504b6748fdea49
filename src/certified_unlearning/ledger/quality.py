"""Quality of the current version on the remaining training records, for the operator only.

The quality is computed from the records, and no noise is added, so no guarantee covers it. A value from before a
removal may reveal something about the removed records. So each call computes the quality anew, and does not write it to
any file. Rows are read block by block. The module has no heavy imports, because `status` works without PyTorch.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.data.quality import Quality, Tally, TargetQuality, target_quality_of
from certified_unlearning.data.tables.targets import TargetScale
from certified_unlearning.errors import DataError, LedgerError
from certified_unlearning.files import read_json
from certified_unlearning.ledger.directory import BusyError, ModelDirectory, file_sha256
from certified_unlearning.ledger.state import State, read_state
from certified_unlearning.ledger.store import Ledger
from certified_unlearning.ledger.training.forms import copy_of
from certified_unlearning.ledger.weights import log_probabilities, predicted, read_weights, scores_of

_NUMBERS_AT_ONCE = 1 << 22
"""Number of features that are held in memory together. Most features of sparse rows are zeros and need no memory."""
_LEAST_AT_ONCE = 256


def quality_left(path: Path) -> Quality | TargetQuality:
    """Return the quality of the current version on the remaining training records; write nothing.

    Besides one block of rows, the computation needs about twenty bytes of memory for each record.

    Args:
        path: The model directory.

    Raises:
        DataError: There is no model, no record remains, or a file cannot be read.
        LedgerError: A file differs from what the log records about it.
        BusyError: An `apply` is running, or was interrupted, so that some records may be gone while others are not.
    """
    directory = ModelDirectory(path)
    with Ledger.opened(directory.ledger, read_only=True) as ledger:
        state = read_state(ledger)
        require_whole(path, state)
        try:
            quality = _quality(directory, ledger, state)
        except (DataError, LedgerError):
            require_same(path, state, read_state(ledger))  # An `apply` may have deleted files meanwhile.
            raise
        require_same(path, state, read_state(ledger))
    return quality


def require_whole(path: Path, state: State) -> None:
    """Raise `BusyError` if an `apply` or an `add` has begun and has not finished."""
    if state.planned is not None:
        raise BusyError(f"an `{state.planned.command}` on {path} has begun and not finished")


def require_same(path: Path, before: State, after: State) -> None:
    """Raise `BusyError` if an `apply` has begun or finished between two states."""
    require_whole(path, after)
    if before.current != after.current:
        raise BusyError(f"an `apply` on {path} has finished in the meantime")


def _quality(directory: ModelDirectory, ledger: Ledger, state: State) -> Quality | TargetQuality:
    weights = read_weights(directory, state.current)
    if not weights.size:
        raise DataError(
            "the model's parameters are secret; `unlearn evaluate` shows how good its answers are on other records"
        )
    stored = _stored(directory, state)
    names, width, table = [str(name) for name in stored["table"]["classes"] or ()], weights.shape[1], stored["table"]
    records = RecordsLeft(directory, ledger, state, width, len(names) or 1)
    at_once = max(_LEAST_AT_ONCE, _NUMBERS_AT_ONCE // width)
    scored = (
        (scores_of(rows, weights), labels)
        for start in range(0, state.rows, at_once)
        for rows, labels in [records.block(slice(start, start + at_once))]
    )
    if not names:
        scale = TargetScale.of(table["target_range"], "target_range", intercept=stored["intercept"])
        scores, targets = (np.concatenate(each) for each in zip(*scored, strict=True))
        return target_quality_of(scale.in_units(scores), scale.in_units(targets))
    tally = Tally(len(names), names)
    for scores, positions in scored:
        tally.add(np.exp(log_probabilities(scores)), positions, predicted(scores))
    return tally.quality()


class RecordsLeft:
    """The remaining rows of the training copy, each with its class or its target; classes are numbered from 0.

    Attributes:
        left: Whether each row of the copy remains, shape ``(n,)``.

    Args:
        directory: The model directory.
        ledger: The ledger of the directory.
        state: State of the ledger.
        features: The number of columns of a row.
        classes: The number of classes; 1 for targets from -1 to 1.

    Raises:
        DataError: The training copy cannot be read, or is damaged.
    """

    def __init__(self, directory: ModelDirectory, ledger: Ledger, state: State, features: int, classes: int) -> None:
        self._copy = copy_of(directory, features, state.current.version)
        self._count = state.rows
        self._rows, self._labels = self._copy.stored(self._count), self._copy.labels(self._count)
        self.left = self._labels != 0 if classes == 2 else self._owned(ledger)
        self._classes = classes
        # Rows of two classes that were dealt into batches are stored as -label x.
        self._signed = classes == 2 and directory.places.exists()

    def block(self, some: slice) -> tuple[Any, NDArray[Any]]:
        """Return the remaining rows within a slice, and their classes or targets."""
        return self._of(self._rows[some][self.left[some]], self._labels[some][self.left[some]])

    def sample(self, most: int) -> tuple[Any, NDArray[Any]]:
        """Return at most ``most`` remaining rows, sampled with a fixed seed, and their classes or targets."""
        places = np.flatnonzero(self.left)
        if len(places) > most:
            places = np.sort(np.random.default_rng(0).choice(places, most, replace=False))
        return self._of(self._copy.stored_at(places, self._count), self._labels[places])

    def _of(self, rows: Any, labels: NDArray[Any]) -> tuple[Any, NDArray[Any]]:
        if self._signed:
            rows *= -labels[:, None].astype(np.float32)
        if self._classes == 1:
            return rows, labels
        return rows, np.asarray(labels > 0 if self._classes == 2 else labels, np.int64)

    def _owned(self, ledger: Ledger) -> NDArray[np.bool_]:
        """Return which rows have an owner. With more than two classes, labels do not show this: 0 is a class, too."""
        left = np.zeros(self._count, np.bool_)
        left[self._copy.positions(np.fromiter(ledger.owners.rows(), np.int64))] = True
        return left


def _stored(directory: ModelDirectory, state: State) -> dict[str, Any]:
    """Return the content of `model.json`, read as plain JSON."""
    if file_sha256(directory.model) != state.start.model_sha256:
        raise LedgerError(f"{directory.model} was tampered with: it is not what `unlearn init` recorded")
    return dict(read_json(directory.model, ("table", "intercept")))
