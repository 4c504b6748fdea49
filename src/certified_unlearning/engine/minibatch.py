"""Cyclic mini-batches: steps use the mean loss of one batch after another, for many trials at once.

Records are assigned to batches once, by record numbers alone, and stored in the order of the batches. So a step reads
only one contiguous piece of memory, or of a file. The steps are those of `descent`.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certified_unlearning.accounting.core.rounding import LEAST_BLOCK, ROWS_IN_A_ROW
from certified_unlearning.engine import randomness
from certified_unlearning.engine.compiled import minibatch as compiled
from certified_unlearning.engine.objectives.linear import multipliers
from certified_unlearning.engine.objectives.rows import Replacements, StreamedRows, replacements_like
from certified_unlearning.errors import ParameterError

NUMBERS_AT_ONCE = 1 << 17
"""Approximate number of entries of a batch's rows that fit in a processor's cache."""


def dealt_order(n: int, key: int) -> NDArray[np.int64]:
    """Return an order of records: the number of the record at each place.

    The order is a permutation of ``0 .. n - 1`` that depends only on ``key``.
    """
    return randomness.generator(str(key), "deal").permutation(n)


def places_in(order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the inverse permutation of an order: the place of each record."""
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return places


class CyclicObjective:
    """``f_t(W) = (1/b) sum_i in batch t loss_i(W x_i) + (strong_convexity / 2) ||W||^2``: logistic or softmax loss.

    A row of zeros has a constant loss, and does not count as a record. The last batch may be shorter than the others.
    It is treated as if rows of zeros filled it up: the sum of its losses is divided by ``b``, too.

    Attributes:
        n: Number of rows.
        d: Number of weights of one trial.
        batches: Number of batches, ``l``.

    Args:
        rows: Rows in the order of `dealt_order`, shape ``(n, features)``, of norm at most 1; gradients are not clipped.
            A tensor is not copied, and replacements change it. For two classes, rows and replacements must be *signed*:
            ``-y_i x_i`` with ``y_i`` -1 or +1. A record's gradient is then ``sigmoid(w'row) row``.
        labels: Labels, shape ``(n,)``: 0 to ``classes - 1`` for more than two classes. For two classes, they are -1 or
            +1, and are used only if there are class weights.
        classes: Number of classes.
        batch_size: Batch size, ``b``.
        strong_convexity: Coefficient of the l2 regulariser, lambda.
        replacements: Rows and labels that replace removed records.
        class_weights: Factors by which the losses of records are multiplied, one for each class; None if all are 1.
    """

    def __init__(
        self,
        rows: Tensor | StreamedRows,
        labels: Tensor,
        *,
        classes: int,
        batch_size: int,
        strong_convexity: float,
        replacements: Replacements | None = None,
        class_weights: Sequence[float] | None = None,
    ) -> None:
        self.n = rows.shape[0]
        self._outputs = 1 if classes == 2 else classes
        self.d = self._outputs * rows.shape[1]
        self.batches = -(-self.n // batch_size)
        self._rows, self._labels = rows, labels
        self._batch_size = batch_size
        least = LEAST_BLOCK if batch_size > ROWS_IN_A_ROW else 1
        self._rows_at_once = min(ROWS_IN_A_ROW, max(least, NUMBERS_AT_ONCE // rows.shape[1]))
        self._strong_convexity = strong_convexity
        self._class_weights = class_weights
        self._weights_of_classes: Tensor | None = None
        if class_weights is not None:  # Moved to the device here, so that a step does not wait for a copy.
            self._weights_of_classes = torch.tensor(class_weights, dtype=rows.dtype, device=labels.device)
        self._overlay: dict[int, tuple[Tensor, Tensor]] = {}
        self._replaceable = 0
        if replacements is not None:
            self._indices, self._new_rows, self._new_labels = replacements_like(rows, labels, replacements)
            self._old_labels = labels[self._indices]
            self._old_rows = rows[self._indices] if isinstance(rows, Tensor) else self._new_rows[:0]
            self._replaceable = len(self._indices)
        self._batch = 0
        self._is_compiled = (
            classes == 2
            and isinstance(rows, Tensor)
            and rows.device.type == labels.device.type == "cpu"
            and compiled.takes(
                rows.detach().numpy(), labels.numpy(), batch_size=batch_size, weighted=class_weights is not None
            )
        )

    def remove(self, count: int) -> None:
        """Change the objective to that of the data after the first ``count`` replacements."""
        if not self._replaceable:
            if count:
                raise ParameterError(
                    f"count must be 0, because the objective was created without replacements, got {count}"
                )
            return
        self._labels[self._indices] = torch.cat([self._new_labels[:count], self._old_labels[count:]])
        if isinstance(self._rows, Tensor):
            self._rows[self._indices] = torch.cat([self._new_rows[:count], self._old_rows[count:]])
            return
        # Replacements are sorted into batches here, so that a step on a GPU does not wait for a search.
        gone, size = self._indices[:count], self._batch_size
        firsts = gone // size * size
        self._overlay = {
            first: (gone[firsts == first] - first, self._new_rows[:count][firsts == first])
            for first in set(firsts.tolist())
        }

    def seek(self, step: int) -> None:
        """Continue at step ``step`` of the cycle; steps are counted from 0."""
        self._batch = step % self.batches

    def descend(self, weights: Tensor, step_size: float) -> None:
        """Replace ``weights`` (trials, d) by ``weights - step_size * gradient`` of the next batch, in place."""
        gradient = self.loss_gradient(weights)
        shrunk, scale = 1 - step_size * self._strong_convexity, -step_size / self._batch_size
        weights.mul_(shrunk).add_(gradient, alpha=scale)

    def noisy_steps(self, weights: Tensor, step_size: float, noise_std: float, *, key: int, steps: range) -> int:
        """Take the first few of the given steps of one trial in one compiled call, with the noise of `randomness`.

        Args:
            weights: Weights, shape ``(1, d)``, contiguous; changed in place.
            step_size: Step size, ``eta``.
            noise_std: Standard deviation of a step's noise; 0 for none.
            key: Address of the trial's noise.
            steps: Step numbers in the stream of noise.

        Returns:
            Number of steps taken (see `engine.compiled.minibatch`); 0 if the kernel cannot take these steps.
        """
        if not self._is_compiled or not isinstance(self._rows, Tensor):
            return 0
        if weights.dtype != self._rows.dtype or weights.shape != (1, self.d) or not weights.is_contiguous():
            return 0
        taken = compiled.noisy_steps(
            weights.numpy(),
            self._rows.detach().numpy(),
            self._labels.numpy(),
            batch=self._batch,
            batch_size=self._batch_size,
            class_weights=self._class_weights,
            strong_convexity=self._strong_convexity,
            step_size=step_size,
            noise_std=noise_std,
            key=key,
            steps=steps,
        )
        self._batch = (self._batch + taken) % self.batches
        return taken

    def loss_gradient(self, weights: Tensor) -> Tensor:
        """Return the sum of the gradients of the next batch's losses; its shape is that of ``weights``."""
        # With a few thousand numbers, the computation of a step takes only as long as Python's overhead.
        first, at_once = self._batch * self._batch_size, self._rows_at_once
        self._batch = (self._batch + 1) % self.batches
        size = min(self._batch_size, self.n - first)
        rows = self._block(first, size)
        by_output = weights if self._outputs == 1 else weights.view(len(weights) * self._outputs, -1)
        # A batch is processed in parts that stay in the processor's cache from the scores to the gradient, so wide rows
        # are read from memory only once. Each part is added as a whole, because `core.rounding` counts the numbers that
        # are added one after another.
        gradient = self._gradient(by_output, rows if size <= at_once else rows[:at_once], first)
        for start in range(at_once, size, at_once):
            gradient.add_(self._gradient(by_output, rows[start : start + at_once], first + start))
        return gradient if self._outputs == 1 else gradient.view_as(weights)

    def _block(self, first: int, size: int) -> Tensor:
        if isinstance(self._rows, Tensor):
            return self._rows[first : first + size]
        block = self._rows[first : first + size]
        if first in self._overlay:
            block.index_copy_(0, *self._overlay[first])
        return block

    def _gradient(self, by_output: Tensor, rows: Tensor, first: int) -> Tensor:
        """Return the sum of the gradients of ``rows``, shaped like ``by_output``.

        ``first`` is the number of the first of these rows.
        """
        return torch.mm(self._derivatives(by_output, rows, first), rows)

    def _derivatives(self, by_output: Tensor, rows: Tensor, first: int) -> Tensor:
        """Return the derivatives of the losses of ``rows`` with respect to their scores.

        The first of these rows is row ``first``. Scores and derivatives have shape (trials * outputs, rows).
        """
        scores = torch.mm(by_output, rows.t())
        derivatives = scores.sigmoid_() if self._outputs == 1 else self._softmax_derivatives(scores, first)
        if self._weights_of_classes is not None:
            labels = self._labels[first : first + len(rows)]
            derivatives.mul_(multipliers(labels, self._weights_of_classes, rows.dtype))
        return derivatives

    def _softmax_derivatives(self, scores: Tensor, first: int) -> Tensor:
        records = scores.shape[1]
        labels = self._labels[first : first + records].long()
        derivatives = torch.softmax(scores.view(-1, self._outputs, records), dim=1)
        derivatives[:, labels, torch.arange(records, device=scores.device)] -= 1
        return derivatives.view_as(scores)
