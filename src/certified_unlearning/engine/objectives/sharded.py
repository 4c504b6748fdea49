"""Objectives whose rows are distributed over the processes of a run: full batches and cyclic mini-batches."""

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from certified_unlearning.engine.minibatch import CyclicObjective
from certified_unlearning.engine.objectives.linear import LinearObjective
from certified_unlearning.engine.objectives.rows import Replacements, Scratch, StreamedRows
from certified_unlearning.engine.row_cut import cut
from certified_unlearning.engine.row_shards import ALONE, RowShards


class BlockObjective(Protocol):
    """Interface of the objective of one block of rows."""

    def remove(self, count: int) -> None:
        """Change the objective to that of the block after the first ``count`` removals of the block's rows."""

    def loss_gradient(self, weights: Tensor) -> Tensor:
        """Return the sum of the losses' gradients."""


class _Blocks:
    """The blocks of this process. Each block has an objective, and a list of the removals that change its rows."""

    def __init__(
        self, n: int, d: int, blocks: int, shards: RowShards, strong_convexity: float, normaliser: int
    ) -> None:
        self.n, self.d = n, d
        self._blocks = blocks
        self._shards = shards
        self._strong_convexity = strong_convexity
        self._normaliser = normaliser
        self._own: dict[int, tuple[BlockObjective, Tensor]] = {}
        self._scratch = Scratch()

    def remove(self, count: int) -> None:
        """Change the objective to that of the data after the first ``count`` removals."""
        for objective, numbers in self._own.values():
            objective.remove(int((numbers < count).sum()))

    def descend(self, weights: Tensor, step_size: float) -> None:
        """Replace ``weights`` (trials, d) by ``weights - step_size * gradient``, in place.

        Raises:
            ProcessError: Another process ended, or has different weights (`DivergedError`).
        """
        gradient = self._shards.total(
            self._blocks, lambda block: self._own[block][0].loss_gradient(weights), weights, self._scratch
        )
        weights.mul_(1 - step_size * self._strong_convexity).add_(gradient, alpha=-step_size / self._normaliser)


class ShardedObjective(_Blocks):
    """The mean loss of all records; each process stores and processes only its own blocks.

    Args:
        rows: Rows, shape ``(n, features)``; from a tensor, only this process's own rows are copied.
        labels: Labels, shape ``(n,)``.
        loss: Function that makes an objective from a block of rows with their labels and replacements, such as
            `LogisticObjective` with all its other arguments fixed.
        d: Number of weights of one trial.
        strong_convexity: Coefficient of the l2 regulariser, lambda.
        replacements: Rows and labels that replace removed records.
        normaliser: Divisor of the sum of the losses; by default ``n``.
        shards: The place of this process among the processes of the run.
    """

    def __init__(
        self,
        rows: Tensor | StreamedRows,
        labels: Tensor,
        *,
        loss: Callable[[Tensor | StreamedRows, Tensor, Replacements], LinearObjective],
        d: int,
        strong_convexity: float,
        replacements: Replacements,
        normaliser: int | None = None,
        shards: RowShards = ALONE,
    ) -> None:
        n = rows.shape[0]
        blocks = cut(n)
        super().__init__(n, d, len(blocks), shards, strong_convexity, normaliser or n)
        indices, new_rows, new_labels = replacements
        for number in shards.own(len(blocks)):
            block = blocks[number]
            here = ((indices >= block.start) & (indices < block.stop)).nonzero().view(-1)
            of_block = indices[here] - block.start, new_rows[here], new_labels[here]
            own = rows[block] if isinstance(rows, Tensor) else rows.part(block)
            objective = loss(own, labels[block], of_block)
            objective.scratch = self._scratch
            self._own[number] = objective, here


class ShardedCycle(_Blocks):
    """The mean loss of one mini-batch after another; each mini-batch is divided into blocks.

    Args:
        rows: Signed rows in the order of `dealt_order`, as for `engine.minibatch.CyclicObjective`; they are copied.
        labels: Labels, shape ``(n,)``.
        classes: Number of classes.
        batch_size: Batch size, ``b``.
        strong_convexity: Coefficient of the l2 regulariser, lambda.
        replacements: Rows and labels that replace removed records.
        shards: The place of this process among the processes of the run.
    """

    def __init__(
        self,
        rows: Tensor,
        labels: Tensor,
        *,
        classes: int,
        batch_size: int,
        strong_convexity: float,
        replacements: Replacements,
        shards: RowShards = ALONE,
    ) -> None:
        blocks = cut(batch_size)
        d = rows.shape[1] * (1 if classes == 2 else classes)
        super().__init__(len(rows), d, len(blocks), shards, strong_convexity, batch_size)
        indices, new_rows, new_labels = replacements
        # A shorter last batch is filled with rows of zeros, whose gradient is zero.
        missing = -len(rows) % batch_size
        batches = torch.cat([rows, rows.new_zeros(missing, rows.shape[1])]).view(-1, batch_size, rows.shape[1])
        their_labels = torch.cat([labels, labels.new_zeros(missing)]).view(-1, batch_size)
        batch, place = indices // batch_size, indices % batch_size
        self._cycles: list[CyclicObjective] = []
        for number in shards.own(len(blocks)):
            block = blocks[number]
            here = ((place >= block.start) & (place < block.stop)).nonzero().view(-1)
            length = block.stop - block.start
            of_block = batch[here] * length + place[here] - block.start, new_rows[here], new_labels[here]
            objective = CyclicObjective(
                batches[:, block].reshape(-1, rows.shape[1]),
                their_labels[:, block].reshape(-1),
                classes=classes,
                batch_size=length,
                strong_convexity=strong_convexity,
                replacements=of_block,
            )
            self._cycles.append(objective)
            self._own[number] = objective, here

    def seek(self, step: int) -> None:
        """Continue at step ``step`` of the cycle; steps are counted from 0."""
        for objective in self._cycles:
            objective.seek(step)

    def noisy_steps(self, *_: object, **__: object) -> int:
        """Return 0: compiled steps are not possible, because each step is a sum over blocks of several processes."""
        return 0
