"""Approximate unlearning by counting: a private model stays in use over some edits, then it is computed anew.

This is a comparison for exact unlearning. It works with any private learner and reads no edited record (Ullah,
dissertation, Johns Hopkins University, 2024, Algorithm 25 and Theorem 50). The guarantee covers the model published at
a time, for requests chosen without looking at models; it does not cover several models together.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from certified_unlearning.accounting.core.groups import GroupBudget
from certified_unlearning.engine.exact.alive import Alive

PrivateLearner = Callable[[Tensor, float, float], Tensor]
"""Given the ids of the records, epsilon and delta, returns a model that is (epsilon, delta)-indistinguishable from the
one of any records that one deletion or insertion makes of these."""


@dataclass
class CountedEdits:
    """A published model, and the number of edits it has been used for.

    Attributes:
        budget: The guarantee.
        learner: The private learner.
        alive: The present records.
        model: The published model.
        edits: Number of edits since it was computed; always below `GroupBudget.edits`.
    """

    budget: GroupBudget
    learner: PrivateLearner
    alive: Alive
    model: Tensor
    edits: int = 0

    @classmethod
    def learn(cls, budget: GroupBudget, learner: PrivateLearner, ids: Tensor) -> "CountedEdits":
        """Publish a model of some records."""
        return cls(budget, learner, Alive(ids), learner(ids, budget.learner_epsilon, budget.learner_delta))

    def edit(self, removed: Sequence[int], inserted: Sequence[int]) -> bool:
        """Delete some records and insert others; each of them counts as one edit.

        Args:
            removed: Ids of present records.
            inserted: Ids that were never used, ascending.

        Returns:
            Whether the model was computed anew.

        Raises:
            ParameterError: An id does not fit.
        """
        device = self.alive.ids.device
        self.alive.edit(*(torch.tensor(ids, dtype=torch.int64, device=device) for ids in (removed, inserted)))
        self.edits += len(removed) + len(inserted)
        if self.edits < self.budget.edits:
            return False
        budget = self.budget
        self.model = self.learner(self.alive.ids.sort().values, budget.learner_epsilon, budget.learner_delta)
        self.edits = 0
        return True
