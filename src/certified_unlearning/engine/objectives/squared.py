"""l2-regularised least squares (ridge regression) for many trials at once."""

import torch
from torch import Tensor

from certified_unlearning.engine.objectives.linear import LinearObjective
from certified_unlearning.engine.objectives.rows import Replacements, StreamedRows, replacements_like
from certified_unlearning.errors import AssumptionError, DataError

NORM_TOLERANCE = 1.1e-6
"""Tolerated excess of a row's norm over 1; `core.rounding` includes it."""


class SquaredObjective(LinearObjective):
    """``f(w) = (1/n) sum_i (1/2) (w'x_i - y_i)^2 + (strong_convexity / 2) ||w||^2``.

    The gradient of a record's data loss is ``(w'x - y) x``. Its norm is at most ``R + 1`` if weights stay in a ball of
    radius ``R``, rows have norm at most 1 and targets are in [-1, 1]. Gradients are not clipped, because that would
    change the loss.

    Args:
        features: Rows ``x_i``, shape ``(n, d)``.
        labels: Targets ``y_i``, shape ``(n,)``.
        strong_convexity: Coefficient of the l2 regulariser, lambda.
        replacements: Rows and labels that replace removed records.
        rows_at_once: Number of rows in a block, as for `LogisticObjective`.
        normaliser: Divisor of the sum of the losses; by default ``n``.

    Raises:
        AssumptionError: The norm of a row is above 1.
        DataError: A target is not between -1 and 1.
    """

    def __init__(
        self,
        features: Tensor | StreamedRows,
        labels: Tensor,
        *,
        strong_convexity: float,
        replacements: Replacements | None = None,
        rows_at_once: int = 16_384,
        normaliser: int | None = None,
    ) -> None:
        indices, new_features, new_labels = replacements_like(features, labels, replacements)
        super().__init__(
            features.clone() if isinstance(features, Tensor) else features,
            indices,
            new_features,
            outputs=1,
            strong_convexity=strong_convexity,
            rows_at_once=rows_at_once,
            normaliser=normaliser,
        )
        for rows in (*(rows for _, rows in self._blocks), new_features):
            _require_short(rows)
        self._indices = indices
        self._targets, self._new_targets = (_checked(each, features.dtype) for each in (labels, new_labels))
        self._old_targets = self._targets[indices]
        self.remove(0)

    def remove(self, count: int) -> None:
        """Change the objective to that of the data after the first ``count`` replacements."""
        self._blocks.remove(count)
        self._targets[self._indices] = torch.cat([self._new_targets[:count], self._old_targets[count:]])

    def _coefficients(self, scores: Tensor, rows: slice) -> Tensor:
        return scores.sub_(self._targets[rows])


def _require_short(rows: Tensor) -> None:
    longest = float(torch.linalg.vector_norm(rows, dim=1, dtype=torch.float64).max()) if len(rows) else 0.0
    if not longest <= 1 + NORM_TOLERANCE:
        raise AssumptionError(
            f"rows must have norm at most 1, because the gradient of least squares grows with the norm's square, got "
            f"{longest:.7g}"
        )


def _checked(targets: Tensor, dtype: torch.dtype) -> Tensor:
    wrong = ~(targets.abs() <= 1)
    if bool(wrong.any()):
        record = int(wrong.nonzero()[0])
        raise DataError(f"the target of record {record} must be a number between -1 and 1, got {targets[record]}")
    return targets.to(dtype, copy=True)
