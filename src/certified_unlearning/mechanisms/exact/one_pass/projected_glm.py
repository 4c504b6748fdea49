"""Generalised linear models learned in few dimensions: rates without the number of features (Johnson-Lindenstrauss).

Source: Ullah (2024), Algorithm 14, Theorems 28 and 29. Rows are projected by a random matrix that is drawn once, before
any record is read, and kept over all edits; a base learner runs on projected rows, in the ball of radius ``2 |w*|``,
with the constants of `accounting.tv.one_pass.GeneralisedLinearProblem`; models are lifted back, not projected.

Rows that the matrix stretches to more than twice their norm affect the cost of edits, not their exactness. Drawing
another matrix because of them would make the matrix depend on records, and unlearning no longer exact.
"""

import math
from dataclasses import dataclass
from typing import Self

from torch import Tensor

from certified_unlearning.accounting.core.checks import require_count
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.gradients import LinearRecords, Loss
from certified_unlearning.errors import ParameterError


@dataclass(frozen=True)
class Projection:
    """A random projection of rows.

    Attributes:
        matrix: Shape ``(k, features)``, float64: independent entries of law ``N(0, 1 / k)``.
    """

    matrix: Tensor

    @classmethod
    def draw(cls, *, dimension: int, features: int, draws: Draws) -> Self:
        """Draw a projection, once and for all.

        Args:
            dimension: Number of columns ``k`` that rows are projected to.
            features: Number of features of a row.
            draws: Fresh randomness.

        Raises:
            ParameterError: A count is below 1.
        """
        require_count(least=1, dimension=dimension, features=features)
        return cls(draws.normal(dimension, features) / math.sqrt(dimension))

    @property
    def dimension(self) -> int:
        """``k``."""
        return self.matrix.shape[0]

    def records(self, rows: Tensor, labels: Tensor, *, loss: Loss, classes: int = 2) -> LinearRecords:
        """Return the records of projected rows; arguments and errors are those of `LinearRecords`.

        Raises:
            ParameterError: Rows have another number of features.
        """
        if rows.ndim != 2 or rows.shape[1] != self.matrix.shape[1]:
            raise ParameterError(f"rows must have shape (n, {self.matrix.shape[1]}), got {tuple(rows.shape)}")
        return LinearRecords(rows @ self.matrix.T, labels, loss=loss, classes=classes)

    def lift(self, models: Tensor) -> Tensor:
        """Return models of unprojected rows, with the scores that ``models`` give projected rows.

        Args:
            models: Shape ``(trials, k)``, or ``(trials, k x classes)`` as `LinearRecords` has them.

        Returns:
            Shape ``(trials, features)``, or ``(trials, features x classes)``.
        """
        of_classes = models.view(len(models), self.dimension, -1)
        return (self.matrix.T @ of_classes).flatten(1)
