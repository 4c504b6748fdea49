"""The distributions of records for measured rates; rows have one nonzero entry, so the best models are known.

A record of block ``j`` is ``(e_j, y)``, and its block has probability ``p_j``. For squared and logistic loss, ``y`` is
1 with probability ``q_j`` and -1 otherwise; for absolute loss, it is ``w*_j``. There are few distinct records, so a
batch is described by the number of copies of each record.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from certified_unlearning.engine.exact.gradients import GivenRecords, LinearRecords, RecordGradients

Loss = Literal["squared", "logistic", "absolute"]


@dataclass(frozen=True, eq=False)
class Blocks:
    """A distribution of records.

    Attributes:
        loss: The loss: ``(w_j - y)^2 / 2``, ``log(1 + exp(-y w_j))`` or ``|w_j - y|``.
        shares: The probabilities ``p`` of the blocks, shape ``(blocks,)``.
        best: The best model ``w*``, shape ``(blocks,)``.
    """

    loss: Loss
    shares: Tensor
    best: Tensor

    @property
    def labels(self) -> Tensor:
        """The labels of all distinct records, shape ``(2 blocks,)``: first one label of every block, then the other."""
        if self.loss == "absolute":
            return self.best.repeat(2)
        return torch.cat([torch.ones_like(self.best), -torch.ones_like(self.best)])

    @property
    def law(self) -> Tensor:
        """The probability of each record, shape ``(2 blocks,)``."""
        first = {
            "squared": (1 + self.best) / 2,
            "logistic": torch.sigmoid(self.best),
            "absolute": torch.ones_like(self.best),
        }[self.loss]
        return torch.cat([self.shares * first, self.shares * (1 - first)])

    def excess(self, weights: Tensor) -> Tensor:
        """Return the excess risk of models for the distribution of records.

        Args:
            weights: The models, shape ``(trials, d)``, with ``d`` at least the number of blocks. The records' rows are
                0 in all columns beyond the number of blocks.
        """
        own = weights[:, : len(self.best)]
        if self.loss == "squared":
            lost = (own - self.best).square() / 2
        elif self.loss == "absolute":
            lost = (own - self.best).abs()
        else:
            first = torch.sigmoid(self.best)
            here, there = (torch.nn.functional.softplus(each) - first * each for each in (own, self.best))
            lost = here - there
        return lost @ self.shares

    def gradients(self, rows: Tensor, labels: Tensor) -> RecordGradients:
        """Return the gradients of records with given rows and labels; a row is ``e_j`` or a projection of ``e_j``."""
        if self.loss != "absolute":
            return LinearRecords(rows, labels, loss=self.loss)
        features = rows.shape[1]

        def slopes(weights: Tensor, records: Tensor) -> Tensor:
            columns, targets = records[..., :features], records[..., features]
            scores = (columns @ weights[:, :, None])[..., 0]
            return (scores - targets).sign()[..., None] * columns

        return GivenRecords(slopes, torch.cat([rows, labels[:, None]], dim=1), dimension=features)


def geometric(blocks: int, *, length: float, loss: Loss = "squared") -> Blocks:
    """Return a distribution in which each block has half the probability of the block before.

    All entries of the best model are equal. For every ``T``, a descent of ``T`` steps of size ``eta`` learns the blocks
    with a share above ``1 / (eta T)``, and no other blocks. Its excess risk is therefore of the order ``1 / T``, as in
    the bounds, whereas other distributions allow faster learning.

    Args:
        blocks: The number of blocks.
        length: The norm of the best model.
        loss: The loss of a record.
    """
    shares = 0.5 ** torch.arange(1, blocks + 1, dtype=torch.float64)
    return Blocks(loss, shares / shares.sum(), torch.full((blocks,), length / math.sqrt(blocks), dtype=torch.float64))
