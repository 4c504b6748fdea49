"""Records of many trials at once, with separate data for each trial, and records that each represent several copies.

The engine runs all trials on the same records. In an experiment, each trial has its own records, which for squared
loss are given by two moments. Some experiments have many equal records; computations use only one of them.
"""

from collections.abc import Iterable

import torch
from torch import Tensor

from certified_unlearning.accounting.private.losses import ScalarLoss
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.errors import ParameterError


class StackedMoments(BoundedRecords):
    """Each trial's records for squared loss, given by their moments; rows may have further columns of zeros."""

    def __init__(
        self, squares: Tensor, moments: Tensor, *, n: int, features: int, loss: ScalarLoss, row_norm: float
    ) -> None:
        """Take the moments of each trial's records; the records must meet their bounds.

        Args:
            squares: ``X'X / n``, shape ``(trials, active, active)``, or its diagonal if it is diagonal, ``(trials,
                active)``.
            moments: ``X'y / n``, shape ``(trials, active)``.
            n: The number of records of each data set.
            features: The number of columns of a row; those after the active ones are zero.
            loss: The loss, which must be squared.
            row_norm: The bound ``X`` on the norm of rows.

        Raises:
            ParameterError: The loss is not squared.
        """
        if loss.name != "squared":
            raise ParameterError(f"two moments determine the gradients of squared loss, not of the {loss.name} loss")
        self.loss, self.row_norm = loss, row_norm
        self.rows = squares.new_zeros(0, features)
        self._n, self._squared, self._crossed = n, squares, moments

    @classmethod
    def of(cls, data: Iterable[BoundedRecords], *, features: int | None = None) -> "StackedMoments":
        """Return the moments of several data sets of the same size, optionally with further columns of zeros."""
        squares, moments = [], []
        for each in data:  # The data sets are read one after another, and only their moments are kept.
            squares.append(each.rows.T @ each.rows / len(each))
            moments.append(each.targets @ each.rows / len(each))
        return cls(
            torch.stack(squares),
            torch.stack(moments),
            n=len(each),
            features=features or each.features,
            loss=each.loss,
            row_norm=each.row_norm,
        )

    def __len__(self) -> int:
        """Return the number of records of each data set."""
        return self._n

    def mean_gradients(self, weights: Tensor) -> Tensor:
        """Return each trial's mean gradient on its own records, shape ``(trials, features)``."""
        active = weights[:, : self._crossed.shape[1]]
        curved = (
            active * self._squared if self._squared.ndim == 2 else torch.einsum("ti,tij->tj", active, self._squared)
        )
        gradients = (curved - self._crossed).mul_(2)
        missing = weights.shape[1] - active.shape[1]
        return torch.nn.functional.pad(gradients, (0, missing)) if missing else gradients


class RepeatedRecords(BoundedRecords):
    """Records that each occur several times: computations use one copy, and counts include all copies."""

    def __init__(self, rows: Tensor, targets: Tensor, *, copies: int, loss: ScalarLoss, row_norm: float) -> None:
        """Take the distinct records and enforce their bounds.

        Raises the same errors as `BoundedRecords`.
        """
        super().__init__(rows, targets, loss=loss, row_norm=row_norm)
        self._copies = copies

    def __len__(self) -> int:
        """Return the number of records, including copies."""
        return self._copies * len(self.rows)

    def mean_gradients(self, weights: Tensor) -> Tensor:
        """Return the mean of the records' gradients, shape ``(trials, features)``."""
        # This is a sum over distinct records; the engine divides by the number of all records.
        return super().mean_gradients(weights).mul_(self._copies)
