"""Generalised linear models that learn in few dimensions: rates do not depend on the number of features.

Source: Ullah (2024), Algorithm 14, Theorems 28 and 29; the projection is that of Johnson and Lindenstrauss. A random
matrix is drawn once, before any record is read, and is kept for all edits. It projects the rows. A base learner runs on
projected rows, in the ball of radius ``2 |w*|``, with the constants of
`accounting.tv.one_pass.GeneralisedLinearProblem`. Models are then lifted back, without another projection.

If the matrix stretches a row to more than twice its norm, edits cost more, but they stay exact. Even then, the matrix
must be kept. If another matrix were drawn, the choice of the matrix would depend on records, and unlearning would not
be exact.
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
        matrix: The matrix, shape ``(k, features)``, float64, with independent entries from ``N(0, 1 / k)``.
    """

    matrix: Tensor

    @classmethod
    def draw(cls, *, dimension: int, features: int, draws: Draws) -> Self:
        """Draw a projection, which must be kept for all edits.

        Args:
            dimension: Number of columns ``k`` of projected rows.
            features: Number of features of a row.
            draws: Fresh randomness.

        Raises:
            ParameterError: A count is below 1.
        """
        require_count(least=1, dimension=dimension, features=features)
        return cls(draws.normal(dimension, features) / math.sqrt(dimension))

    @property
    def dimension(self) -> int:
        """Number of columns of projected rows, ``k``."""
        return self.matrix.shape[0]

    def records(self, rows: Tensor, labels: Tensor, *, loss: Loss, classes: int = 2) -> LinearRecords:
        """Return the records with projected rows.

        Arguments and errors are those of `LinearRecords`.

        Raises:
            ParameterError: Rows do not have the projection's number of features.
        """
        if rows.ndim != 2 or rows.shape[1] != self.matrix.shape[1]:
            raise ParameterError(f"rows must have shape (n, {self.matrix.shape[1]}), got {tuple(rows.shape)}")
        return LinearRecords(rows @ self.matrix.T, labels, loss=loss, classes=classes)

    def lift(self, models: Tensor) -> Tensor:
        """Return models of unprojected rows. They give the scores that ``models`` give to projected rows.

        Args:
            models: Models of projected rows, shape ``(trials, k)``, or ``(trials, k x classes)`` in the order of
                `LinearRecords`.

        Returns:
            The lifted models, shape ``(trials, features)``, or ``(trials, features x classes)``.
        """
        of_classes = models.view(len(models), self.dimension, -1)
        return (self.matrix.T @ of_classes).flatten(1)
