"""One run shared by several processes, each with some of the rows; its bits do not depend on the number of processes.

The rows are divided into blocks, whose number is a power of two and depends only on the number of rows (`row_cut.cut`).
Each block's gradient is computed by one process with one thread, from the block's own memory. The gradients of the
blocks are added in the order of a balanced binary tree. First, each process adds the gradients of its own blocks. Then
all processes exchange these sums, and each process makes the remaining additions. On one machine, the sums are
exchanged through shared memory (`board`) instead of messages. Every process computes everything else itself. This
includes noise: noise has addresses (`randomness`), so all processes draw the same numbers. Together with the sums of
gradients, the processes exchange checksums of their weights' bits; if a single weight differs, the checksums differ.

The number of successive additions is at most the number that `accounting.core.rounding` assumes. These additions add up
the rows of a block, the parts of products, a constant part, and the sums on the levels of the tree.
"""

import json
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from safetensors.torch import load, save
from torch import Tensor, distributed

from certified_unlearning.engine.board import Board, board
from certified_unlearning.engine.checkpoint import Checkpoint
from certified_unlearning.engine.objectives.rows import Scratch
from certified_unlearning.errors import DivergedError, ParameterError, ProcessError

Node: TypeAlias = tuple[int, int]
"""A node of the tree: the number of its first block, and the number of its last block plus 1."""
MARK = 16
"""Number of bytes that identify a process's weights; they come before the process's sums."""


@dataclass(frozen=True)
class RowShards:
    """One of the processes that share a run.

    Attributes:
        rank: Number of this process, from 0.
        ranks: Number of processes.
        launcher: Id of the process that started this process; when the launcher ends, this process ends, too. None if
            this process does not depend on a launcher.
    """

    rank: int = 0
    ranks: int = 1
    launcher: int | None = None
    _shared: "_Shared" = field(default_factory=lambda: _Shared(), repr=False, compare=False)

    @property
    def writes(self) -> bool:
        """Whether this process writes the files of the run."""
        return self.rank == 0

    def own(self, blocks: int) -> range:
        """Return the blocks whose gradients this process computes; a single block is computed by every process."""
        return self._of_rank(self.rank, blocks)

    def _of_rank(self, rank: int, blocks: int) -> range:
        if blocks == 1:  # Waiting for another process would take longer than computing the gradient.
            return range(1)
        return range(blocks * rank // self.ranks, blocks * (rank + 1) // self.ranks)

    def total(self, blocks: int, gradient_of: Callable[[int], Tensor], weights: Tensor, scratch: Scratch) -> Tensor:
        """Return the sum of all blocks' gradients; the sum's bits do not depend on the number of processes.

        Args:
            blocks: Number of blocks, a power of two.
            gradient_of: Function that returns the gradient of one of this process's blocks; the next call may overwrite
                it.
            weights: Weights at which gradients are computed; the result has their shape.
            scratch: Memory for the result; the next call overwrites it.

        Raises:
            ProcessError: A process ended.
            DivergedError: The processes have different weights.
        """
        if self.launcher is not None and os.getppid() != self.launcher:
            raise ProcessError(
                "the program that started the processes of this run has ended, so these processes end, too"
            )
        if self.ranks == 1 or blocks == 1:
            total = scratch.take("total", weights.shape, weights)
            _add_up(total, 0, blocks, gradient_of, scratch)
            return total
        nodes = [_nodes((0, blocks), self._of_rank(rank, blocks)) for rank in range(self.ranks)]
        shape = max(map(len, nodes)), *weights.shape
        size = MARK + math.prod(shape) * weights.element_size()
        shared = self._shared.with_room(size, self) if weights.device.type == "cpu" else None
        if shared is None:
            received = scratch.take("received", (self.ranks, size), _BYTES.to(weights.device))
            own = scratch.take("sent", (size,), received)
        else:
            with _companions(self):
                received = shared.turn()[:, :size]
            own = received[self.rank]
        sums = own[MARK:].view(weights.dtype).view(shape)
        for place, (first, end) in enumerate(nodes[self.rank]):
            _add_up(sums[place], first, end, gradient_of, scratch)
        # The bits of the weights are added as whole numbers, so the sum is exact in any order. The second number
        # identifies the layout.
        as_integers = weights.reshape(-1).view({4: torch.int32, 8: torch.int64}[weights.element_size()])
        mark = own[:MARK].view(torch.int64)
        mark[0] = as_integers.sum(dtype=torch.int64)
        mark[1] = hash((blocks, weights.element_size(), *weights.shape))
        with _companions(self):
            if shared is None:
                distributed.all_gather(list(received), own)
            else:
                shared.wait()
        marks = received[:, :MARK]
        if bool((marks != marks[0]).any()):
            raise DivergedError(
                f"the {self.ranks} processes of this run have different weights, so their results differ: all "
                "processes need the same kind of processor, device and software; the next start begins anew"
            )
        known = {
            node: each[MARK:].view(weights.dtype).view(shape)[place]
            for theirs, each in zip(nodes, received, strict=True)
            for place, node in enumerate(theirs)
        }
        return _joined((0, blocks), known, scratch)

    def of_first(self, content: bytes | None) -> bytes | None:
        """Return to every process what the first process passed."""
        if self.ranks == 1:
            return content
        length = torch.tensor([-1 if content is None else len(content)])
        with _companions(self):
            distributed.broadcast(length, 0)
            if int(length) < 0:
                return None
            sent = torch.frombuffer(bytearray(content), dtype=torch.uint8) if self.writes and content else None
            sent = torch.empty(int(length), dtype=torch.uint8) if sent is None else sent
            distributed.broadcast(sent, 0)
        return bytes(sent.numpy())

    def all_can(self, one: bool) -> bool:
        """Return whether all processes passed True."""
        can = torch.tensor([int(one)])
        with _companions(self):
            distributed.all_reduce(can, distributed.ReduceOp.MIN)
        return bool(can)

    def close(self) -> None:
        """Signal to the other processes that this process has left the run."""
        self._shared.close()


class _Shared:
    """The board of a process; its size is the largest size needed so far."""

    def __init__(self) -> None:
        self._board: Board | None = None
        self._tried = 0

    def with_room(self, size: int, shards: RowShards) -> Board | None:
        """Return a board with ``size`` bytes for every process; None if no such board can be made.

        Each size is tried only once.
        """
        if size > self._tried:
            self.close()
            self._tried = size
            self._board = board(
                size, rank=shards.rank, ranks=shards.ranks, of_first=shards.of_first, all_can=shards.all_can
            )
        return self._board

    def close(self) -> None:
        if self._board is not None:
            self._board.close()
            self._board = None


_BYTES = torch.empty(0, dtype=torch.uint8)
ALONE = RowShards()
"""A run with a single process, which has all rows."""


def local_rank() -> int:
    """Return the number of this process on its machine, which is also the number of its GPU."""
    return int(os.environ.get("LOCAL_RANK", "0"))


@contextmanager
def row_shards() -> Iterator[RowShards]:
    """Join the processes of a run that `torchrun` or another launcher started.

    Without a launcher, this is the only process.

    The function uses the environment variables that PyTorch's launcher sets: ``RANK``, ``WORLD_SIZE``, ``MASTER_ADDR``,
    ``MASTER_PORT`` and, on GPUs, ``LOCAL_RANK``.

    Raises:
        ParameterError: A variable is missing or is not a number.
        ProcessError: Another process cannot be reached.
    """
    if os.environ.get("WORLD_SIZE", "1") == "1":
        yield ALONE
        return
    place = local_rank()
    if place < torch.cuda.device_count():
        torch.cuda.set_device(place)
    try:
        distributed.init_process_group()
    except ValueError as error:
        raise ParameterError(f"WORLD_SIZE says that several processes share this run, but: {error}") from error
    except RuntimeError as error:
        raise ProcessError(f"the processes of this run cannot reach each other: {error}") from error
    shards = RowShards(distributed.get_rank(), distributed.get_world_size(), os.getppid())
    try:
        yield shards
    finally:
        shards.close()
        distributed.destroy_process_group()


class SharedCheckpoint(Checkpoint):
    """A checkpoint for all processes of a run; only the first process writes and reads it.

    Args:
        own: Checkpoint that only the first process uses.
        shards: The place of this process among the processes of the run.
    """

    def __init__(self, own: Checkpoint, shards: RowShards) -> None:
        self._own = own
        self._shards = shards

    def is_due(self) -> bool:
        """Return whether this process must write now."""
        return self._shards.writes and self._own.is_due()

    def save(self, tensors: dict[str, Tensor], position: dict[str, Any]) -> None:
        """Replace the file if this process is the one that writes it."""
        if self._shards.writes:
            self._own.save(tensors, position)

    def load(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Return the state to every process.

        Only the first process reads the file, because other processes may see files late or not at all.
        """
        saved = self._own.load() if self._shards.writes else None
        content = None
        if saved is not None:
            tensors, position = saved
            written = torch.frombuffer(bytearray(json.dumps(position).encode()), dtype=torch.uint8)
            content = save({f"kept/{name}": each.contiguous() for name, each in tensors.items()} | {"place": written})
        content = self._shards.of_first(content)
        if content is None:
            return None
        sent = load(content)
        position = json.loads(bytes(sent.pop("place").numpy()))
        return {name.removeprefix("kept/"): each for name, each in sent.items()}, position

    def delete(self) -> None:
        """Delete the file if this process is the one that writes it."""
        if self._shards.writes:
            self._own.delete()


def _nodes(node: Node, own: range) -> list[Node]:
    """Return the largest nodes of the tree that contain only blocks in ``own``, from first to last."""
    first, end = node
    if own.start <= first and end <= own.stop:
        return [node]
    if end <= own.start or own.stop <= first:
        return []
    middle = (first + end) // 2
    return _nodes((first, middle), own) + _nodes((middle, end), own)


def _add_up(out: Tensor, first: int, end: int, gradient_of: Callable[[int], Tensor], scratch: Scratch) -> None:
    """Fill ``out`` with the sum of the gradients of a node's blocks."""
    if end - first == 1:
        out.copy_(gradient_of(first))
        return
    middle = (first + end) // 2
    _add_up(out, first, middle, gradient_of, scratch)
    if end - middle == 1:
        out.add_(gradient_of(middle))
        return
    others = scratch.take(f"{end - middle} blocks", out.shape, out)
    _add_up(others, middle, end, gradient_of, scratch)
    out.add_(others)


def _joined(node: Node, known: dict[Node, Tensor], scratch: Scratch) -> Tensor:
    """Return the sum of a node's blocks. Known sums stay unchanged, because other processes may read them."""
    if node in known:
        return known[node]
    first, end = node
    middle = (first + end) // 2
    left, right = _joined((first, middle), known, scratch), _joined((middle, end), known, scratch)
    return torch.add(left, right, out=scratch.take(f"blocks {first} to {end}", left.shape, left))


@contextmanager
def _companions(shards: RowShards) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise ProcessError(
            f"another of the {shards.ranks} processes of this run ended or cannot be reached; "
            "to continue from the last checkpoint, start the run again"
        ) from error
