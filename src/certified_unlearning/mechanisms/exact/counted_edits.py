"""Approximate unlearning by counting: a private model stays in use for some edits, and then a new one is computed.

It serves as a comparison for exact unlearning. It works with any private learner and reads no edited record (Ullah,
dissertation, Johns Hopkins University, 2024, Algorithm 25 and Theorem 50). The guarantee covers one published model,
for requests that are chosen without looking at models. It does not cover several models together.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from certified_unlearning.accounting.core.groups import GroupBudget
from certified_unlearning.engine.exact.alive import Alive

PrivateLearner = Callable[[Tensor, float, float], Tensor]
"""A function that takes the ids of the records, epsilon and delta, and returns a model.

The model must be (epsilon, delta)-indistinguishable from the model of any records that differ by one deletion or
insertion.
"""


@dataclass
class CountedEdits:
    """A published model, and the number of edits for which it was used.

    Attributes:
        budget: The guarantee, and the number of edits after which a new model is computed.
        learner: The private learner.
        alive: The present records.
        model: The published model.
        edits: Number of edits since the model was computed; always below `GroupBudget.edits`.
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
        """Delete some records and insert others.

        Each deletion and each insertion counts as one edit.

        Args:
            removed: Ids of present records.
            inserted: Ids that were never used, ascending.

        Returns:
            Whether a new model was computed.

        Raises:
            ParameterError: A removed id is absent, or an inserted id is not new.
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
