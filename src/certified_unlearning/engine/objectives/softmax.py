"""l2-regularised softmax regression for many trials at once.

A trial's weights are one vector of ``classes * features`` numbers, class by class. So noise, projection, publication
and checkpoints handle plain vectors, whatever the number of classes.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import chain

import torch
from torch import Tensor

from certified_unlearning.engine.objectives.linear import LinearObjective, multipliers
from certified_unlearning.engine.objectives.rows import Replacements, StreamedRows, replacements_like
from certified_unlearning.errors import AssumptionError, DataError

NORM_TOLERANCE = 1e-6
"""Tolerated excess of a row's norm over the bound implied by ``lipschitz``; the rounding of float32 is smaller."""


class SoftmaxObjective(LinearObjective):
    """``f(W) = (1/n) sum_i CE(W x_i, y_i) + (strong_convexity / 2) ||W||^2``, ``W`` of shape ``(classes, d)``.

    The loss is ``CE(s, y) = log(sum_c exp(s_c)) - s_y``. The gradient of a record's data loss is ``(softmax(W x) -
    onehot(y)) x'``, whose norm is at most ``sqrt(2) ||x||``. Clipping would destroy convexity if it had any effect,
    because a clipped softmax gradient is not monotone. So gradients are not clipped, and a ``lipschitz`` that would
    cause clipping is refused.

    The onehot part of the gradient does not depend on ``W``, so ``sum_i onehot(y_i) x_i'`` is computed once for each
    data set.

    Args:
        features: Rows ``x_i``, shape ``(n, features)``.
        labels: Labels, integers from 0 to ``classes - 1``, shape ``(n,)``.
        classes: Number of classes.
        strong_convexity: Coefficient of the l2 regulariser, lambda.
        lipschitz: Bound ``M`` on the norm of every record's data-loss gradient.
        replacements: Rows and labels that replace removed records.
        rows_at_once: Number of rows in a block. The default is 1024 on a CPU, so that the scores of 100 trials stay in
            the processor's cache. It is 65 536 on CUDA, where small products do not keep the device busy.
        normaliser: Divisor of the sum of the losses; by default ``n``.
        class_weights: Factors by which the losses of records are multiplied, one for each class; None if all are 1.

    Raises:
        AssumptionError: ``lipschitz`` is less than ``sqrt(2)`` times the norm of the longest row.
        DataError: A label is not an integer from 0 to ``classes - 1``.
    """

    def __init__(
        self,
        features: Tensor | StreamedRows,
        labels: Tensor,
        *,
        classes: int,
        strong_convexity: float,
        lipschitz: float,
        replacements: Replacements | None = None,
        rows_at_once: int | None = None,
        normaliser: int | None = None,
        class_weights: Sequence[float] | None = None,
    ) -> None:
        indices, new_features, new_labels = replacements_like(features, labels, replacements)
        super().__init__(
            features.clone() if isinstance(features, Tensor) else features,
            indices,
            new_features,
            outputs=classes,
            strong_convexity=strong_convexity,
            rows_at_once=rows_at_once or (65_536 if features.device.type == "cuda" else 1024),
            normaliser=normaliser,
        )
        _check_lipschitz(lipschitz, chain((rows for _, rows in self._blocks), [new_features]))
        self._labels = _checked_labels(labels, classes)
        self._indices = indices
        self._new_labels = _checked_labels(new_labels, classes)
        self._old_labels = self._labels[indices]
        self._like = new_features.new_empty(0)
        self._class_weights = class_weights
        self.remove(0)

    def remove(self, count: int) -> None:
        """Change the objective to that of the data after the first ``count`` replacements."""
        self._blocks.remove(count)
        self._labels[self._indices] = torch.cat([self._new_labels[:count], self._old_labels[count:]])
        if self._class_weights is not None:
            self._multipliers = multipliers(self._labels, self._class_weights, self._like.dtype)
        self._constant_gradient = self._like.new_zeros(self._outputs, self.d // self._outputs)
        for where, rows in self._blocks:
            onehot = torch.nn.functional.one_hot(self._labels[where], self._outputs).T.to(rows)
            if self._multipliers is not None:
                onehot.mul_(self._multipliers[where])
            self._constant_gradient.addmm_(onehot, rows, alpha=-1)

    def _coefficients(self, scores: Tensor, rows: slice) -> Tensor:
        return torch.softmax(scores, dim=1, out=self.scratch.take("probabilities", scores.shape, scores))


def accuracy(weights: Tensor, features: Tensor, labels: Tensor) -> Tensor:
    """Return the share of records that each trial classifies correctly.

    Args:
        weights: Weights, shape ``(trials, classes * features)``, class by class.
        features: Rows, shape ``(n_test, features)``.
        labels: Labels, integers from 0, shape ``(n_test,)``.

    Returns:
        The shares, shape ``(trials,)``, float64. If scores are equal, the first class is predicted.
    """
    trials = weights.shape[0]
    by_class = weights.reshape(-1, features.shape[1])
    right = torch.zeros(trials, dtype=torch.float64, device=weights.device)
    for rows, expected in zip(torch.split(features, 1024), torch.split(labels, 1024), strict=True):
        # argmax would give the same indices, but takes two and a half times as long.
        predicted = torch.mm(by_class, rows.T).view(trials, -1, len(rows)).max(dim=1).indices
        right += (predicted == expected).sum(dim=1)
    return right / len(labels)


def _checked_labels(labels: Tensor, classes: int) -> Tensor:
    wrong = (labels < 0) | (labels >= classes) | (labels != labels.long())
    if bool(wrong.any()):
        record = int(wrong.nonzero()[0])
        raise DataError(
            f"the label of record {record} must be an integer from 0 to {classes - 1}, got {labels[record]}"
        )
    return labels.long().clone()


def _check_lipschitz(lipschitz: float, blocks: Iterable[Tensor]) -> None:
    longest = max(float(torch.linalg.vector_norm(rows, dim=1).max()) for rows in blocks if len(rows))
    if not lipschitz * (1 + NORM_TOLERANCE) >= math.sqrt(2) * longest:
        raise AssumptionError(
            f"lipschitz must be at least {math.sqrt(2) * longest:.7g}, got {lipschitz!r}: the longest record has norm "
            f"{longest:.7g}, and the norm of its softmax gradient can be sqrt(2) times as large; a smaller value would "
            "clip gradients, and no theorem holds for clipped softmax gradients, because they are not monotone"
        )
