"""Quantized mini-batch descent (Algorithms 23 and 24): gradients are rounded to a grid with a random offset.

An edit that moves a gradient within its cell changes no iterate. If the gradient leaves the cell, the iteration
descends along the middle of the new cell of the *same* grid. The printed Algorithm 24 draws a fresh offset after a
failed test. The resulting distribution is wrong: old offsets would survive only if the gradient stayed within its cell.
"""

from dataclasses import dataclass

from torch import Tensor

from certified_unlearning.accounting.core.checks import require_positive
from certified_unlearning.engine.exact.couplings import cells, quantized
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.mechanisms.exact.trajectory import Descent


@dataclass(frozen=True, kw_only=True)
class QuantizedSgd(Descent):
    """The constants of quantized descent.

    Attributes:
        quantum: Width ``tau`` of a cell in each coordinate of a mean gradient, above 0.
    """

    quantum: float

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(quantum=self.quantum)

    def randomness(self, gradients: Tensor, draws: Draws) -> Tensor:
        """Return offsets, uniform on [-1/2, 1/2)."""
        return draws.uniform(*gradients.shape) - 0.5

    def directions(self, gradients: Tensor, randomness: Tensor) -> Tensor:
        """Return the rounded gradients."""
        return quantized(gradients, self.quantum, randomness)

    def couple(self, randomness: Tensor, old: Tensor, new: Tensor, draws: Draws) -> tuple[Tensor, Tensor]:
        """Keep the offsets. A direction stays the same if no coordinate leaves its cell."""
        same = cells(old, self.quantum, randomness) == cells(new, self.quantum, randomness)
        return randomness, same.all(dim=-1)

    def rejection(self, randomness: Tensor, old: Tensor, change: Tensor) -> Tensor:
        """Return 1 if a coordinate leaves its cell, otherwise 0."""
        same = cells(old, self.quantum, randomness) == cells(old + change, self.quantum, randomness)
        return 1 - same.all(dim=1).to(change.dtype)
