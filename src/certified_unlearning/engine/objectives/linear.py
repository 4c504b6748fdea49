"""Base class of losses of linear scores.

One gradient step for all trials is two matrix products per block of rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from certified_unlearning.engine.objectives.rows import RowBlocks, Scratch, StreamedRows

PART_ROWS = 2048
"""Smallest number of rows in a part of the data. Every thread sums the gradients of whole parts."""


class LinearObjective(ABC):
    """``f(W) = (1/n) sum_i loss_i(W x_i) + (strong_convexity / 2) ||W||^2``, ``W`` of shape ``(outputs, features)``.

    A trial's weights are one vector of ``outputs * features`` numbers, output after output. Weights of shape ``(trials,
    outputs * features)`` can be viewed, without a copy, as the matrix ``(trials * outputs, features)`` that both
    products need. On a CPU, both products were measured to be 10 to 15 % faster with ``trials x features`` than with
    ``features x trials``. With the former order, each trial's noise is also contiguous in memory. Scores are computed
    for one block of rows at a time, so memory does not grow with ``n``. Removed records are replaced in place, so the
    normaliser ``1/n`` never changes.

    Attributes:
        n: Number of records.
        d: Number of weights of one trial.
        scratch: Memory for scores and gradients; to share memory between objectives, replace this attribute.

    Args:
        rows: Rows ``x_i``, shape ``(n, features)``. A tensor is not copied, and removals change it.
        indices: Records that can be removed, shape ``(s,)``.
        replacements: Rows that replace these records, shape ``(s, features)``.
        outputs: Number of scores of a record.
        strong_convexity: Coefficient of the l2 regulariser, lambda.
        rows_at_once: Number of rows in a block.
        normaliser: Divisor of the sum of the losses; by default the number of rows.
    """

    def __init__(
        self,
        rows: Tensor | StreamedRows,
        indices: Tensor,
        replacements: Tensor,
        *,
        outputs: int,
        strong_convexity: float,
        rows_at_once: int,
        normaliser: int | None = None,
    ) -> None:
        self.n = rows.shape[0]
        self._normaliser = normaliser or self.n
        self.d = outputs * rows.shape[1]
        self.strong_convexity = strong_convexity
        self._outputs = outputs
        self._blocks = RowBlocks(rows, indices, replacements, rows_at_once=rows_at_once)
        self.scratch = Scratch()
        self._constant_gradient: Tensor | None = None
        """The part of the losses' summed gradient that does not depend on scores, shape ``(outputs, features)``."""
        self._multipliers: Tensor | None = None
        """Factor on each record's loss, shape ``(n,)``; None if all are 1."""

    @abstractmethod
    def remove(self, count: int) -> None:
        """Change the objective to that of the data after the first ``count`` replacements."""

    @abstractmethod
    def _coefficients(self, scores: Tensor, rows: slice) -> Tensor:
        """Return the derivatives of the losses of ``rows`` with respect to scores.

        Scores and derivatives have shape (trials, outputs, rows).
        """

    def descend(self, weights: Tensor, step_size: float) -> None:
        """Replace ``weights`` (trials, outputs * features) by ``weights - step_size * gradient``, in place."""
        gradient = self._gradient_of_scores(weights)
        scale = -step_size / self._normaliser
        weights.mul_(1 - step_size * self.strong_convexity)
        weights.add_(gradient, alpha=scale)
        if self._constant_gradient is not None:
            weights.view(len(weights), self._outputs, -1).add_(self._constant_gradient, alpha=scale)

    def loss_gradient(self, weights: Tensor) -> Tensor:
        """Return the sum of the losses' gradients, of the shape of ``weights``; the next call overwrites the result."""
        gradient = self._gradient_of_scores(weights)
        if self._constant_gradient is not None:
            gradient.view(len(weights), self._outputs, -1).add_(self._constant_gradient)
        return gradient

    def _gradient_of_scores(self, weights: Tensor) -> Tensor:
        """Return the part of the summed gradient that depends on scores; its shape is that of ``weights``."""
        by_output = weights.view(len(weights) * self._outputs, -1)
        gradient = self.scratch.take("gradient", by_output.shape, weights).zero_()
        for where, rows in self._blocks:
            scores = self.scratch.take("scores", (len(by_output), len(rows)), weights)
            torch.mm(by_output, rows.T, out=scores)
            coefficients = self._coefficients(scores.view(len(weights), self._outputs, -1), where).view_as(scores)
            if self._multipliers is not None:
                coefficients.mul_(self._multipliers[where])
            _add_product(coefficients, rows, gradient)
        return gradient.view_as(weights)


def multipliers(labels: Tensor, class_weights: Sequence[float] | Tensor, dtype: torch.dtype) -> Tensor:
    """Return the factor on each record's loss, shape ``(records,)``.

    Args:
        labels: Labels, shape ``(records,)``: -1 or +1 for two classes, 0 to ``classes - 1`` for more.
        class_weights: One number for each class; for two classes, in the order -1, +1. A tensor of the right type on
            the labels' device is not copied.
        dtype: Type of the result.
    """
    numbers = (labels > 0).long() if len(class_weights) == 2 else labels.long()
    return torch.as_tensor(class_weights, dtype=dtype, device=labels.device)[numbers]


def _add_product(coefficients: Tensor, rows: Tensor, gradient: Tensor) -> None:
    """Add ``coefficients @ rows`` to ``gradient``, in place.

    On a CPU, one product per thread over separate rows was measured to be 7 % faster than one product by all threads.
    """
    threads = torch.get_num_threads()
    count = 1 if rows.is_cuda else threads * (len(rows) // (threads * PART_ROWS))
    if count < 2:
        gradient.addmm_(coefficients, rows)
        return
    length = len(rows) // count
    even = count * length
    parts = coefficients[:, :even].view(-1, count, length).transpose(0, 1)
    gradient.add_(torch.bmm(parts, rows[:even].view(count, length, -1)).sum(dim=0))
    if even < len(rows):
        gradient.addmm_(coefficients[:, even:], rows[even:])
