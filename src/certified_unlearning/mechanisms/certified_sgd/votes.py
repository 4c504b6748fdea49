"""The label of an ensemble some of whose votes are not known: given only where none of them could change it."""

from dataclasses import dataclass

import torch
from torch import Tensor

NO_ANSWER = -1
"""Stands for the label where votes that are not known could change it."""


@dataclass(frozen=True)
class Votes:
    """What an ensemble says of some records.

    Attributes:
        labels: Shape ``(records,)``: the class with most votes, the first one of several; `NO_ANSWER` where votes that
            are not known could make another class that.
        abstaining: Shape ``(records,)``: how many shards' votes are not known.
    """

    labels: Tensor
    abstaining: Tensor


def decided(possible: Tensor) -> Votes:
    """Return the labels that every assignment of votes gives.

    Another class wins under some assignment if it wins where every shard that may vote for it does: so few cases decide
    for all assignments, and no label is withheld without need.

    Args:
        possible: Shape ``(shards, records, classes)``: which classes a shard may vote for; one, where it is known.
    """
    known = possible.sum(dim=-1) == 1
    sure = (possible & known[..., None]).sum(dim=0)
    may = (possible & ~known[..., None]).sum(dim=0)
    # Of class i's known votes over the most that class j can have; of two with as many the first one wins.
    lead = sure[:, :, None] - (sure + may)[:, None, :]
    classes = torch.arange(possible.shape[-1], device=possible.device)
    wins = (lead > 0) | ((lead == 0) & (classes[:, None] < classes)) | (classes[:, None] == classes)
    winner = wins.all(dim=-1)
    return Votes(torch.where(winner.any(dim=-1), winner.long().argmax(dim=-1), NO_ANSWER), (~known).sum(dim=0))
