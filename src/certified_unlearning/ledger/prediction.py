"""Predictions with the current version of a directory's model."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certified_unlearning.data.tables.table import feature_names
from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.model import StoredModel, read_stored, read_weights, with_intercept
from certified_unlearning.ledger.state import read_state
from certified_unlearning.ledger.store import Ledger, LedgerError


class LoadedModel:
    """A version of a model, in memory.

    Whoever keeps it after the next `apply` keeps what was to be forgotten: load the model again then.

    Attributes:
        version: The version of the model.
        classes: The names of the classes.
        feature_names: The names of a row's features, in order: ``age``, or ``colour=red``.
        weights: Shape ``(1, features)`` or ``(classes, features)``, the intercept last if there is one.
    """

    def __init__(self, model: StoredModel, version: int, weights: NDArray[Any]) -> None:
        self.version = version
        self.classes = np.array(model.table.classes)
        self.feature_names = feature_names(model.table)
        self.weights = weights
        self._has_intercept = model.intercept

    def decision_function(self, rows: ArrayLike) -> NDArray[Any]:
        """Return scores, shape ``(n,)`` for two classes (above 0: the second), else ``(n, classes)``.

        Args:
            rows: Shape ``(n, len(feature_names))``, made by the table's declaration
                (`data.tables.table.read_blocks`).

        Raises:
            ParameterError: The rows have another number of features.
        """
        features = np.asarray(rows, np.float32)
        if features.ndim != 2 or features.shape[1] != len(self.feature_names):
            raise ParameterError(f"rows must have shape (n, {len(self.feature_names)}), got {features.shape}")
        if self._has_intercept:
            features = with_intercept(features)
        scores = features @ self.weights.T
        return np.asarray(scores[:, 0] if len(self.classes) == 2 else scores)

    def predict(self, rows: ArrayLike) -> NDArray[Any]:
        """Return the name of each row's class, shape ``(n,)``."""
        scores = self.decision_function(rows)
        return np.asarray(self.classes[(scores >= 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)])


def load_model(path: str | Path) -> LoadedModel:
    """Load the current version of a model.

    Raises:
        DataError: There is no model, or a file cannot be read.
        LedgerError: A file is not what the ledger recorded.
    """
    directory = ModelDirectory(Path(path))
    with Ledger.opened(directory.ledger, read_only=True) as ledger:
        state = read_state(ledger)
        model = read_stored(directory, state)
        while True:
            current = state.current
            try:
                return LoadedModel(model, current.version, read_weights(directory, current))
            except (DataError, LedgerError):
                # An `apply` may have deleted them since, and has then recorded others.
                state = read_state(ledger)
                if state.current == current:
                    raise
