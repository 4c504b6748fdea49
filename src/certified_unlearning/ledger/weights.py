"""The published weights of a version, and the scores that rows get from them. The module has no heavy imports."""

from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.state import Version


def read_weights(directory: ModelDirectory, version: Version) -> NDArray[Any]:
    """Read a version's weights, shape ``(scores of a record, features)``.

    Raises:
        DataError: The file cannot be read.
        LedgerError: The file differs from what the log records about it.
    """
    return safetensors.numpy.load(directory.recorded_weights(version))["weights"]


def scores_of(rows: NDArray[np.float32], weights: NDArray[Any]) -> NDArray[Any]:
    """Return scores, shape ``(n,)`` for two classes and ``(n, classes)`` otherwise.

    With two classes, a score of 0 or more stands for the second class.
    """
    scores = rows @ weights.T
    return np.asarray(scores[:, 0] if len(weights) == 1 else scores)


def predicted(scores: NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of the class that each row's scores predict, shape ``(n,)``."""
    return np.asarray(scores >= 0 if scores.ndim == 1 else scores.argmax(axis=1), np.int64)


def log_probabilities(scores: NDArray[Any]) -> NDArray[np.float64]:
    """Return the logarithms of the classes' probabilities under the model, shape ``(n, classes)``."""
    scores = scores.astype(np.float64)
    if scores.ndim == 1:
        return np.asarray(-np.logaddexp(0.0, np.column_stack([scores, -scores])))
    above = scores - scores.max(axis=1, keepdims=True)
    return np.asarray(above - np.log(np.exp(above).sum(axis=1, keepdims=True)))
