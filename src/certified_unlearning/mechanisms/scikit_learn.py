"""Fitting again with scikit-learn: the usual alternative to unlearning, which every comparison shows.

A fit from zero is exact retraining. A warm start begins at weights that depend on the removed records and stops at a
tolerance, so it has no guarantee. A fit from zero and a warm start both minimise the common objective
``C sum_i loss_i + |w|^2 / 2`` at scikit-learn's own tolerance. ``C = 1 / (n strong_convexity)`` is fixed when learning
begins.
"""

import time
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from certified_unlearning.mechanisms.mechanism import Refit, Refitted

if TYPE_CHECKING:
    import numpy as np

    from certified_unlearning.data.prepared import PreparedData
    from certified_unlearning.data.requests import Removals

FROM_ZERO, WARM_START = "from zero", "warm start"
MOST_ITERATIONS = 1000


def answer(data: "PreparedData", removals: "Removals", removed: Sequence[int], C: float, variant: str) -> Refitted:
    """Answer requests by fitting again.

    Args:
        data: The data set.
        removals: The removed records, and their replacements.
        removed: Number of removed records after each request.
        C: Inverse strength of the regulariser.
        variant: `FROM_ZERO` or `WARM_START`.
    """
    import torch
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    from certified_unlearning.engine.quality import judged

    warm = variant == WARM_START
    model = LogisticRegression(C=C, fit_intercept=False, warm_start=warm, max_iter=MOST_ITERATIONS)
    tested = torch.from_numpy(data.test_features), torch.from_numpy(data.test_labels)
    rated, seconds = [], 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        if warm:
            model.fit(*_left(data, removals, 0))
        for count in removed:
            rows, labels = _left(data, removals, count)
            started = time.perf_counter()
            model.fit(rows, labels)
            seconds += time.perf_counter() - started
            weights = torch.from_numpy(model.coef_.reshape(1, -1)).to(tested[0].dtype)
            rated.append(judged(weights, *tested, classes=len(data.classes)).numpy())
    return Refitted(rated, seconds)


SCIKIT_LEARN = Refit("scikit-learn", "scikit-learn", answer)


def _left(data: "PreparedData", removals: "Removals", removed: int) -> "tuple[np.ndarray, np.ndarray]":
    """Return the training part after removals: with replacements, or without the removed records."""
    import numpy as np

    if removals.adjacency == "replace":
        return removals.apply(data.train_features[:], data.train_labels, removed)
    kept = np.ones(data.n, dtype=bool)
    kept[removals.indices[:removed]] = False
    return data.train_features[:][kept], data.train_labels[kept]
