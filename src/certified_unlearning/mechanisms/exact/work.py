"""Counts of the work of learning or of an edit."""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor


@dataclass
class Work:
    """Counts for one operation or for several, for each trial; all of shape ``(trials,)``, int64.

    Attributes:
        gradients: Number of gradients of single records' losses.
        rejection_tests: Number of values that were tested.
        recomputations: Number of edits after which a part of the run was recomputed.
        iterations_run_again: Number of iterations that were recomputed.
    """

    gradients: Tensor
    rejection_tests: Tensor
    recomputations: Tensor
    iterations_run_again: Tensor

    @classmethod
    def none(cls, trials: int) -> Self:
        """Return counts of zero."""
        return cls(*(torch.zeros(trials, dtype=torch.int64) for _ in range(4)))

    def __iadd__(self, other: "Work") -> Self:
        """Add the counts of another operation."""
        self.gradients += other.gradients
        self.rejection_tests += other.rejection_tests
        self.recomputations += other.recomputations
        self.iterations_run_again += other.iterations_run_again
        return self
