"""Base of losses of linear scores: one gradient step for all trials is two matrix products a block of rows."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from certified_unlearning.engine.objectives.rows import RowBlocks, Scratch, StreamedRows

PART_ROWS = 2048
"""Rows of a part, at least: the gradient is summed over parts, where every thread takes whole ones."""


class LinearObjective(ABC):
    """``f(W) = (1/n) sum_i loss_i(W x_i) + (strong_convexity / 2) ||W||^2``, ``W`` of shape ``(outputs, features)``.

    A trial's weights are one vector of ``outputs * features`` numbers, output after output: weights
    ``(trials, outputs * features)`` are, without a copy, the matrix ``(trials * outputs, features)`` that both products
    need. ``trials x features`` was measured 10 to 15 % faster on CPU than ``features x trials`` in both products, and
    each trial's noise is contiguous. Scores exist for one block of rows at a time, so memory does not grow with ``n``.
    Removed records are replaced in place, hence the normaliser ``1/n`` never changes.

    Attributes:
        n: Number of records.
        d: Number of weights of a trial.
        scratch: Where scores and gradients are computed; of its own, unless another one is put here.

    Args:
        rows: Rows ``x_i``, shape ``(n, features)``: the objective's own copy if a tensor.
        indices: Records that can be removed, shape ``(s,)``.
        replacements: The rows that they become, shape ``(s, features)``.
        outputs: Scores of a record.
        strong_convexity: The l2 coefficient lambda.
        rows_at_once: Rows in a block.
        normaliser: What the sum of the losses is divided by; by default the number of rows.
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
        """The part of the losses' summed gradient that no score enters, shape ``(outputs, features)``."""
        self._multipliers: Tensor | None = None
        """What each record's loss is multiplied by, shape ``(n,)``; None for 1."""

    @abstractmethod
    def remove(self, count: int) -> None:
        """Make this the objective on the data with the first ``count`` replacements carried out."""

    @abstractmethod
    def _coefficients(self, scores: Tensor, rows: slice) -> Tensor:
        """Return the derivatives of the losses of ``rows`` by their scores, both of shape (trials, outputs, rows)."""

    def descend(self, weights: Tensor, step_size: float) -> None:
        """Replace ``weights`` (trials, outputs * features) by ``weights - step_size * gradient``, in place."""
        gradient = self._gradient_of_scores(weights)
        scale = -step_size / self._normaliser
        weights.mul_(1 - step_size * self.strong_convexity)
        weights.add_(gradient, alpha=scale)
        if self._constant_gradient is not None:
            weights.view(len(weights), self._outputs, -1).add_(self._constant_gradient, alpha=scale)

    def loss_gradient(self, weights: Tensor) -> Tensor:
        """Return the sum of the losses' gradients, of the shape of ``weights``; the next call overwrites it."""
        gradient = self._gradient_of_scores(weights)
        if self._constant_gradient is not None:
            gradient.view(len(weights), self._outputs, -1).add_(self._constant_gradient)
        return gradient

    def _gradient_of_scores(self, weights: Tensor) -> Tensor:
        """Return the part of the losses' summed gradient that scores enter, of the shape of ``weights``."""
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
    """Return what each record's loss is multiplied by, shape ``(records,)``.

    Args:
        labels: -1 or +1 of two classes, else 0 to ``classes - 1``; shape ``(records,)``.
        class_weights: A number for each class, those of two in the order -1, +1. A tensor of that type which lies where
            the labels do is not copied.
        dtype: Type of the numbers.
    """
    numbers = (labels > 0).long() if len(class_weights) == 2 else labels.long()
    return torch.as_tensor(class_weights, dtype=dtype, device=labels.device)[numbers]


def _add_product(coefficients: Tensor, rows: Tensor, gradient: Tensor) -> None:
    """Add ``coefficients @ rows`` to ``gradient``, in place.

    On the CPU one product a thread, over rows of its own, was measured 7 % faster than one product by all threads.
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
