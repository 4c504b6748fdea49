"""What engine.quality says of models of which a test knows the accuracy alone."""

import numpy as np

MAJORITY = 0.51


def rated(accuracies: np.ndarray) -> np.ndarray:
    """Accuracy, balanced accuracy, AUC and log loss of each model, shape ``(models, 4)``."""
    return np.column_stack([accuracies, accuracies - 0.01, (1 + accuracies) / 2, 1.2 - accuracies])
