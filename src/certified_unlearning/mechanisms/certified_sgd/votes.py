"""The label of an ensemble with unknown votes: given only where none of them could change it."""

from dataclasses import dataclass

import torch
from torch import Tensor

NO_ANSWER = -1
"""Replaces the label where unknown votes could change it."""


@dataclass(frozen=True)
class Votes:
    """The answers of an ensemble for some records.

    Attributes:
        labels: Shape ``(records,)``: the class with most votes, the first one in a tie; `NO_ANSWER` where unknown votes
            could change it.
        abstaining: Shape ``(records,)``: number of shards with unknown votes.
    """

    labels: Tensor
    abstaining: Tensor


def decided(possible: Tensor) -> Votes:
    """Return the labels that every assignment of votes gives.

    Another class wins under some assignment if it wins when every shard that may vote for it does. So few cases decide
    for all assignments, and no label is withheld unnecessarily.

    Args:
        possible: Shape ``(shards, records, classes)``: which classes a shard may vote for; a single one if known.
    """
    known = possible.sum(dim=-1) == 1
    sure = (possible & known[..., None]).sum(dim=0)
    may = (possible & ~known[..., None]).sum(dim=0)
    # Class i's known votes minus the most that class j can have; in a tie the first one wins.
    lead = sure[:, :, None] - (sure + may)[:, None, :]
    classes = torch.arange(possible.shape[-1], device=possible.device)
    wins = (lead > 0) | ((lead == 0) & (classes[:, None] < classes)) | (classes[:, None] == classes)
    winner = wins.all(dim=-1)
    return Votes(torch.where(winner.any(dim=-1), winner.long().argmax(dim=-1), NO_ANSWER), (~known).sum(dim=0))
