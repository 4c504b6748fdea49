"""l2-regularised binary logistic regression for many trials at once."""

from collections.abc import Sequence

import torch
from torch import Tensor

from certified_unlearning.engine.objectives.linear import LinearObjective, multipliers
from certified_unlearning.engine.objectives.rows import Replacements, StreamedRows, replacements_like


class LogisticObjective(LinearObjective):
    """``f(w) = (1/n) sum_i log(1 + exp(-y_i w'x_i)) + (strong_convexity / 2) ||w||^2``.

    The rows include the labels: ``b_i = -y_i x_i``. So the gradient of a record's data loss is ``sigmoid(b_i'w) b_i``.

    Args:
        features: Rows ``x_i``, shape ``(n, d)``.
        labels: Labels -1 or +1, shape ``(n,)``.
        strong_convexity: Coefficient of the l2 regulariser, lambda.
        lipschitz: Clipping norm ``M`` of each record's *data-loss* gradient. The regulariser is not clipped, because
            clipping the sum would destroy strong convexity. Clipping has no effect if no row is longer than ``M``.
        replacements: Rows and labels that replace removed records.
        rows_at_once: Number of rows in a block. The default is 16 384. On a CPU, smaller blocks were measured to be up
            to 5 % slower, and larger ones need more memory.
        normaliser: Divisor of the sum of the losses; by default ``n``.
        class_weights: Factor of each class, -1 and +1, on the losses of its records; None if both are 1.
    """

    def __init__(
        self,
        features: Tensor | StreamedRows,
        labels: Tensor,
        *,
        strong_convexity: float,
        lipschitz: float,
        replacements: Replacements | None = None,
        rows_at_once: int = 16_384,
        normaliser: int | None = None,
        class_weights: Sequence[float] | None = None,
    ) -> None:
        indices, new_features, new_labels = replacements_like(features, labels, replacements)
        signs, new_signs = (-each.to(features.dtype) for each in (labels, new_labels))
        super().__init__(
            signs[:, None] * features if isinstance(features, Tensor) else features.scaled(signs),
            indices,
            new_signs[:, None] * new_features,
            outputs=1,
            strong_convexity=strong_convexity,
            rows_at_once=rows_at_once,
            normaliser=normaliser,
        )
        self._indices = indices
        self._lipschitz = lipschitz
        self._norms = torch.cat([torch.linalg.vector_norm(rows, dim=1) for _, rows in self._blocks])
        self._new_norms = torch.linalg.vector_norm(new_features, dim=1)
        self._old_norms = self._norms[indices]
        if class_weights is not None:
            self._multipliers = multipliers(labels.to(features.device), class_weights, features.dtype)
            self._new_multipliers = multipliers(new_labels, class_weights, features.dtype)
            self._old_multipliers = self._multipliers[indices]
        self.remove(0)

    def remove(self, count: int) -> None:
        """Replace the first ``count`` of the records that are to be replaced, and undo all other replacements."""
        self._blocks.remove(count)
        self._norms[self._indices] = torch.cat([self._new_norms[:count], self._old_norms[count:]])
        clips = bool((self._norms > self._lipschitz * (1 + 1e-6)).any())
        self._coefficient_limits = self._lipschitz / self._norms if clips else None
        if self._multipliers is not None:
            kept = [self._new_multipliers[:count], self._old_multipliers[count:]]
            self._multipliers[self._indices] = torch.cat(kept)

    def _coefficients(self, scores: Tensor, rows: slice) -> Tensor:
        scores.sigmoid_()
        if self._coefficient_limits is not None:
            torch.minimum(scores, self._coefficient_limits[rows], out=scores)
        return scores


def accuracy(weights: Tensor, features: Tensor, labels: Tensor) -> Tensor:
    """Return the share of records that each trial classifies correctly.

    Args:
        weights: Weights, shape ``(trials, d)``.
        features: Rows, shape ``(n_test, d)``.
        labels: Labels -1 or +1, shape ``(n_test,)``.

    Returns:
        The shares, shape ``(trials,)``, float64. A score of exactly 0 counts as +1.
    """
    predicted_positive = torch.mm(weights, features.T) >= 0
    return (predicted_positive == (labels > 0)).double().mean(dim=1)
