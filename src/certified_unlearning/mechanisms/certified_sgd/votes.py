"""The label of an ensemble with unknown votes.

The label is given only if no unknown vote could change it.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

NO_ANSWER = -1
"""The value that replaces a label if unknown votes could change the label."""


@dataclass(frozen=True)
class Votes:
    """The answers of an ensemble for some records.

    Attributes:
        labels: The class with the most votes, the first one in a tie; `NO_ANSWER` if unknown votes could change the
            label. Shape ``(records,)``.
        abstaining: Number of shards with unknown votes, shape ``(records,)``.
    """

    labels: Tensor
    abstaining: Tensor


def decided(possible: Tensor) -> Votes:
    """Return the labels that are the same for every possible assignment of the unknown votes.

    If another class wins under any assignment, it also wins if all shards that may vote for it do vote for it. So a few
    assignments decide for all, and no label is withheld unnecessarily.

    Args:
        possible: Whether each shard may vote for each class, shape ``(shards, records, classes)``. If only one class is
            possible, the vote is known.
    """
    known = possible.sum(dim=-1) == 1
    sure = (possible & known[..., None]).sum(dim=0)
    may = (possible & ~known[..., None]).sum(dim=0)
    # The known votes for class i, minus the largest possible number for class j. In a tie, the first class wins.
    lead = sure[:, :, None] - (sure + may)[:, None, :]
    classes = torch.arange(possible.shape[-1], device=possible.device)
    wins = (lead > 0) | ((lead == 0) & (classes[:, None] < classes)) | (classes[:, None] == classes)
    winner = wins.all(dim=-1)
    return Votes(torch.where(winner.any(dim=-1), winner.long().argmax(dim=-1), NO_ANSWER), (~known).sum(dim=0))
