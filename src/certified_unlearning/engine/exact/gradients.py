"""Gradients of single records' losses, summed over a few records for many trials at once.

Records are identified by their position in the rows. A position is never used again, and an erased record's row is
zeros.
"""

from collections.abc import Callable
from typing import Literal, Protocol

import torch
from torch import Tensor

from certified_unlearning.errors import ParameterError

Loss = Literal["logistic", "softmax", "squared", "hinge"]

NUMBERS_AT_ONCE = 1 << 19
"""Number of row entries that are gathered together. Trials are processed in blocks, because allocating 32 MiB of memory
or more takes twice as long as filling it.
"""


class RecordGradients(Protocol):
    """Interface of the data for exact unlearning: it sums the gradients of given records only."""

    @property
    def dimension(self) -> int:
        """Number of parameters, ``d``."""

    def __len__(self) -> int:
        """Return the number of rows. The ids of rows are below this number."""

    def sums(self, weights: Tensor, records: Tensor) -> Tensor:
        """Return, for each trial, the sum of the gradients of the given records' losses.

        Args:
            weights: Weights, shape ``(trials, d)``.
            records: Records of each trial, shape ``(trials, m)``, int64. A record that occurs twice counts twice.

        Returns:
            The sums, shape ``(trials, d)``.
        """


class LinearRecords:
    """Records of a generalised linear model.

    A record's gradient is its row times a number, or times one number per class.

    With softmax, there are ``d = features x classes`` parameters, and the parameters of one feature are next to each
    other.
    """

    def __init__(
        self, rows: Tensor, labels: Tensor, *, loss: Loss, classes: int = 2, strong_convexity: float = 0.0
    ) -> None:
        """Store the records.

        Args:
            rows: Rows, shape ``(n, features)``, of a floating type. They may be float32 to save memory; sums have the
                type of the weights.
            labels: Labels, shape ``(n,)``: -1 or +1 for logistic and hinge, 0 to ``classes - 1`` for softmax, any
                number for squared.
            loss: Loss of the score ``s = <w, x>``: ``log(1 + exp(-y s))``, ``-log softmax(s)[y]``, ``(s - y)^2 / 2`` or
                ``max(0, 1 - y s)``.
            classes: Number of classes; for softmax only.
            strong_convexity: Strong convexity, ``lambda``: ``lambda / 2 |w|^2`` is added to every record's loss.

        Raises:
            ParameterError: The shapes or labels are invalid.
        """
        self.loss = loss
        self.classes = classes
        self.strong_convexity = strong_convexity
        self._features = rows.shape[1] if rows.ndim == 2 else None
        self._rows, self._labels = rows, self._checked(rows, labels)
        self._count = len(rows)

    @property
    def rows(self) -> Tensor:
        """Rows, shape ``(n, features)``, as a view."""
        return self._rows[: self._count]

    @property
    def labels(self) -> Tensor:
        """Labels, shape ``(n,)``, as a view."""
        return self._labels[: self._count]

    def append(self, rows: Tensor, labels: Tensor) -> None:
        """Add records in the next positions; the memory doubles if there is no room.

        Raises:
            ParameterError: The shapes or labels are invalid.
        """
        labels, count = self._checked(rows, labels), self._count + len(rows)
        if count > len(self._rows):
            room = max(count, 2 * len(self._rows)) - self._count
            self._rows = torch.cat([self.rows, self._rows.new_zeros(room, *self._rows.shape[1:])])
            self._labels = torch.cat([self.labels, self._labels.new_zeros(room)])
        self._rows[self._count : count], self._labels[self._count : count] = rows, labels
        self._count = count

    def truncate(self, count: int) -> None:
        """Undo an append: keep only the first ``count`` records."""
        self._rows[count : self._count], self._labels[count : self._count] = 0, 0
        self._count = count

    def erase(self, records: Tensor) -> None:
        """Overwrite records with zeros; their positions cannot be used again."""
        self._rows[records], self._labels[records] = 0, 0

    def _checked(self, rows: Tensor, labels: Tensor) -> Tensor:
        """Return the labels in the type that the loss needs."""
        if rows.ndim != 2 or labels.shape != rows.shape[:1] or rows.shape[1] != self._features:
            raise ParameterError(
                f"rows must have shape (n, {'features' if self._features is None else self._features}) and labels must "
                f"have shape (n,), got shapes {tuple(rows.shape)} and {tuple(labels.shape)}"
            )
        if self.loss in ("logistic", "hinge") and not bool((labels.abs() == 1).all()):
            raise ParameterError(f"labels must be -1 or +1 for the {self.loss} loss")
        if self.loss == "softmax" and not bool(((labels >= 0) & (labels < self.classes)).all()):
            raise ParameterError(f"labels must be from 0 to {self.classes - 1} (classes - 1) for the softmax loss")
        return labels.to(torch.int64 if self.loss == "softmax" else torch.float64)

    @property
    def dimension(self) -> int:
        """Number of parameters: the number of features, times the number of classes for softmax."""
        return self._rows.shape[1] * (self.classes if self.loss == "softmax" else 1)

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._count

    def sums(self, weights: Tensor, records: Tensor) -> Tensor:
        """Return, for each trial, the sum of the gradients of the given records' losses; see `RecordGradients.sums`."""
        at_once = max(1, NUMBERS_AT_ONCE // (records.shape[1] * self.rows.shape[1]))
        if len(records) <= at_once or not self.rows.is_cpu:
            return self._sums(weights, records)
        starts = range(0, len(records), at_once)
        return torch.cat([self._sums(weights[i : i + at_once], records[i : i + at_once]) for i in starts])

    def _sums(self, weights: Tensor, records: Tensor) -> Tensor:
        """Return the sums for trials whose rows fit in fast memory."""
        rows = self._rows.index_select(0, records.flatten()).view(*records.shape, self._rows.shape[1])
        rows = rows.to(weights.dtype)
        labels = self._labels[records]
        if self.loss == "softmax":
            of_classes = weights.view(len(weights), self._rows.shape[1], self.classes)
            factors = torch.softmax(rows @ of_classes, dim=-1)
            factors.scatter_add_(2, labels[..., None], factors.new_full((*labels.shape, 1), -1.0))
            # The product is computed transposed: with few classes, the other order takes almost twice as long.
            sums = (factors.transpose(1, 2) @ rows).transpose(1, 2).flatten(1)
        else:
            scores = (rows @ weights[:, :, None])[..., 0]
            slopes = self._slopes(scores, labels.to(weights.dtype))
            sums = (slopes[:, None, :] @ rows)[:, 0]
        if self.strong_convexity:
            sums += self.strong_convexity * records.shape[1] * weights
        return sums

    def _slopes(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Return the derivatives of the losses with respect to their scores."""
        if self.loss == "logistic":
            return -labels * torch.sigmoid(-labels * scores)
        if self.loss == "squared":
            return scores - labels
        return torch.where(labels * scores < 1, -labels, torch.zeros_like(labels))


class GivenRecords:
    """Records of any loss whose gradients can be computed.

    Exactness only requires that gradients are summed over records: a record's gradient may depend on its row and the
    weights, but not on the other members of the batch.
    """

    def __init__(self, gradients: Callable[[Tensor, Tensor], Tensor], rows: Tensor, *, dimension: int) -> None:
        """Store the records.

        Args:
            gradients: Function that returns the gradient of each record, shape ``(trials, m, d)``, given weights, shape
                ``(trials, d)``, and rows, shape ``(trials, m, ...)``.
            rows: Records in any form, including labels, shape ``(n, ...)``.
            dimension: Number of parameters, ``d``.
        """
        self.rows = rows
        self._gradients = gradients
        self._dimension = dimension

    @property
    def dimension(self) -> int:
        """Number of parameters, ``d``."""
        return self._dimension

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.rows)

    def sums(self, weights: Tensor, records: Tensor) -> Tensor:
        """Return, for each trial, the sum of the gradients of the given records' losses; see `RecordGradients.sums`.

        Raises:
            ParameterError: The function's result has the wrong shape.
        """
        gradients = self._gradients(weights, self.rows[records])
        if gradients.shape != (*records.shape, self._dimension):
            raise ParameterError(
                f"gradients must have shape (trials, m, d) = {(*records.shape, self._dimension)}, "
                f"got {tuple(gradients.shape)}"
            )
        return gradients.sum(dim=1)
