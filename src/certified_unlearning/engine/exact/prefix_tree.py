"""Noisy sums over prefixes of ordered records; after an edit, the sums have the same distribution as in a fresh run.

Source: Ullah (2024), chapter 5 (Algorithms 12 and 13, 30 to 32, section D.6.2), as a Fenwick tree. The nodes that a
prefix sum can read are the left children of the dissertation's binary tree. Exactly one of these nodes is completed at
each position. Node ``t`` sums the positions ``t - lb(t) + 1`` to ``t``. Here, ``lb(t)`` is the lowest set bit of ``t``,
which is 2 to the power of the node's *height*. So one noisy node per position suffices.

All trials run side by side. They have the same records, but each trial has its own order, so an edit is at a different
position in each trial. Positions count from 1; position 0 of every tensor is unused or contains zeros.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from certified_unlearning.accounting.tv.tree import nodes_of_prefix
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.reflection import reflection_step
from certified_unlearning.errors import ParameterError

POSITIONS_AT_ONCE = 1 << 10
"""Number of positions whose nodes are listed together; the lists need a few hundred kilobytes."""


class PrefixMethod(Protocol):
    """A learner that processes records one by one, and sees them only through noisy prefix sums of increments.

    The results of `increments` and `updates` must depend only on their arguments. A call may have a different position
    for each trial.
    """

    @property
    def dimension(self) -> int:
        """Number of entries of a model, and of an increment, ``d``."""

    def start(self) -> Tensor:
        """Return the first model, shape ``(d,)``."""

    def increments(self, positions: Tensor, models: Tensor, previous: Tensor, records: Tensor) -> Tensor:
        """Return the increments ``p_t(w_t, w_(t - 1), z_t)``, which records add to the sums.

        Args:
            positions: Positions ``t``, shape ``(k,)``, int64.
            models: Models ``w_t``, shape ``(k, d)``.
            previous: Models ``w_(t - 1)``, shape ``(k, d)``; at position 1, ``w_1``.
            records: Records ``z_t``, shape ``(k,)``, int64.

        Returns:
            The increments, shape ``(k, d)``.
        """

    def updates(self, positions: Tensor, models: Tensor, prefixes: Tensor) -> Tensor:
        """Return the next models, ``U_t(w_t, noisy sum of positions 1 to t)``; the shapes are those of `increments`."""


@dataclass
class TreeWork:
    """The work of an operation on a tree, for each trial. All attributes have shape ``(trials,)`` and type int64.

    Attributes:
        queries: Number of increments computed.
        tests: Number of nodes tested.
        rejections: 1 if any node was rejected, otherwise 0.
        learned_again: Number of positions that were relearned.
    """

    queries: Tensor
    tests: Tensor
    rejections: Tensor
    learned_again: Tensor


class PrefixTree:
    """The state of a learner for many trials: order, increments, sums, noisy sums and models.

    Attributes:
        method: The learner.
        sigmas: Standard deviation of a node's noise for each height, shape ``(heights,)``. It never changes.
        size: Current number of records, ``n``.
        order: Record at each position, shape ``(trials, capacity + 1)``, int64.
        increments: Increment of each position, shape ``(trials, capacity + 1, d)``.
        sums: Sum of each node without noise, shape ``(trials, capacity + 1, d)``.
        noisy: Noisy sum of each node, shape ``(trials, capacity + 1, d)``.
        models: Models, shape ``(trials, capacity + 2, d)``: ``w_t`` is at index ``t``, and ``w_1`` at index 0 as well.
    """

    def __init__(self, method: PrefixMethod, sigmas: Tensor, order: Tensor) -> None:
        """Create the initial state, in which nothing has been learned.

        Args:
            method: The learner.
            sigmas: Standard deviation of a node's noise for each height, shape ``(heights,)``, float64.
            order: Records of each trial in its order, shape ``(trials, n)``.

        Raises:
            ParameterError: Noise is missing for one of the heights that this number of records needs.
        """
        trials, size = order.shape
        self.method = method
        self.sigmas = sigmas
        self.size = size
        self._require_heights(size)
        shape = (trials, size + 1, method.dimension)
        start = method.start().to(order.device)
        self.order = torch.cat([order.new_full((trials, 1), -1), order], dim=1)
        self.increments, self.sums, self.noisy = (start.new_zeros(shape) for _ in range(3))
        self.models = start.new_zeros(trials, size + 2, method.dimension)
        self.models[:, :2] = start

    @classmethod
    def learn(cls, method: PrefixMethod, sigmas: Tensor, order: Tensor, draws: Draws) -> tuple["PrefixTree", TreeWork]:
        """Return the state after learning every record once in each trial's order; see the class for the arguments."""
        tree = cls(method, sigmas, order)
        work = tree._nothing_done()
        tree._learn_from(torch.ones_like(order[:, 0]), draws, work)
        work.learned_again.zero_()
        return tree, work

    @property
    def trials(self) -> int:
        """Number of trials."""
        return len(self.order)

    def delete(self, record: int, draws: Draws) -> TreeWork:
        """Delete a record; the last record of the order moves to its position (Lemma 35).

        Raises:
            ParameterError: There is no such record, or it is the only one.
        """
        found = self.order[:, 1 : self.size + 1] == record
        if not bool(found.any(dim=1).all()):
            raise ParameterError(f"record {record} is not among the {self.size} records that were learned")
        if self.size == 1:
            raise ParameterError(f"record {record} is the only one left: there is nothing to learn without it")
        work = self._nothing_done()
        positions = found.int().argmax(dim=1) + 1
        last = self.order[:, self.size].clone()
        self._drop_last()
        rows = (positions <= self.size).nonzero()[:, 0]
        restarts = torch.full_like(positions, self.size + 1)
        self._replace(rows, positions[rows], last[rows], draws, restarts, work)
        self._learn_from(restarts, draws, work)
        return work

    def insert(self, record: int, positions: Tensor, draws: Draws) -> TreeWork:
        """Insert a record at a position; the record that was there moves to the end.

        Args:
            record: Record that is not present.
            positions: Position in each trial, shape ``(trials,)``, from 1 to ``n + 1``. Position ``n + 1`` appends the
                record. A uniform order stays uniform if positions are drawn anew, and uniformly.
            draws: Source of fresh random numbers.

        Raises:
            ParameterError: The record is already present, a position is invalid, or there is no noise for this number
                of records.
        """
        if not bool(((positions >= 1) & (positions <= self.size + 1)).all()):
            raise ParameterError(f"positions must be from 1 to {self.size + 1}, got {positions.tolist()[:9]}")
        if bool((self.order[:, 1 : self.size + 1] == record).any()):
            raise ParameterError(f"record {record} was learned already: a record is never inserted twice")
        self._require_heights(self.size + 1)
        work = self._nothing_done()
        self._reserve(self.size + 1)
        rows = (positions <= self.size).nonzero()[:, 0]
        self.order[:, self.size + 1] = record
        self.order[rows, self.size + 1] = self.order[rows, positions[rows]]
        restarts = torch.full_like(positions, self.size + 1)
        new = torch.full_like(rows, record)
        self._replace(rows, positions[rows], new, draws, restarts, work)
        self.size += 1
        self._learn_from(restarts, draws, work)
        work.learned_again -= 1  # The new last position was not learned before, so it does not count as relearned.
        return work

    def prefixes(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """Return the noisy sums of positions 1 to ``length`` of some trials, shape ``(k, d)``.

        The trials are ``rows``, shape ``(k,)``, and ``lengths`` has one length for each of them.
        """
        bits = torch.arange(self.size.bit_length(), device=lengths.device)
        shifted = lengths[:, None] >> bits
        return self.noisy[rows[:, None], (shifted & 1) * (shifted << bits)].sum(dim=1)

    def tensors(self) -> dict[str, Tensor]:
        """Return the state as tensors to store, which contain only present records."""
        present = slice(0, self.size + 1)
        return {
            "order": self.order[:, present].contiguous(),
            "increments": self.increments[:, present].contiguous(),
            "sums": self.sums[:, present].contiguous(),
            "noisy": self.noisy[:, present].contiguous(),
            "models": self.models[:, : self.size + 2].contiguous(),
            "sigmas": self.sigmas,
        }

    @classmethod
    def from_tensors(cls, method: PrefixMethod, tensors: dict[str, Tensor]) -> "PrefixTree":
        """Return the state with these stored tensors.

        Raises:
            ParameterError: A tensor is missing, or its shape does not fit the method.
        """
        if missing := {"order", "increments", "sums", "noisy", "models", "sigmas"} - tensors.keys():
            raise ParameterError(f"the stored tree lacks these tensors: {', '.join(sorted(missing))}")
        tree = cls(method, tensors["sigmas"], tensors["order"][:, 1:])
        for name in ("increments", "sums", "noisy", "models"):
            expected = getattr(tree, name).shape
            if tensors[name].shape != expected:
                raise ParameterError(f"{name} must have shape {tuple(expected)}, got {tuple(tensors[name].shape)}")
            setattr(tree, name, tensors[name].clone())
        return tree

    def _replace(
        self, rows: Tensor, positions: Tensor, records: Tensor, draws: Draws, restarts: Tensor, work: TreeWork
    ) -> None:
        """Replace records, and test the nodes that contain the new records.

        The nodes are tested from the lowest node upwards, until a node is rejected. If node ``t`` is rejected, its
        value is reflected, and model ``t + 1`` is computed from it. The trial must then be relearned from ``t + 1`` on,
        and this position is written into ``restarts``.
        """
        models, previous = self.models[rows, positions], self.models[rows, positions - 1]
        self.increments[rows, positions] = self.method.increments(positions, models, previous, records)
        self.order[rows, positions] = records
        work.queries[rows] += 1
        nodes = positions
        while len(rows := rows[nodes <= self.size]):
            nodes = nodes[nodes <= self.size]
            accepted = self._test(rows, nodes, draws)
            work.tests[rows] += 1
            if not bool(accepted.all()):
                rejected, stopped = rows[~accepted], nodes[~accepted]
                work.rejections[rejected] = 1
                restarts[rejected] = stopped + 1
                self._update_model(rejected, stopped)
            rows, nodes = rows[accepted], nodes[accepted]
            nodes = nodes + lowest_bit(nodes)

    def _test(self, rows: Tensor, nodes: Tensor, draws: Draws) -> Tensor:
        """Update nodes to the sums of their children and increments; return whether each node kept its noisy value."""
        old, new = self.sums[rows, nodes], self._sums_below(rows, nodes)
        sigmas = self.sigmas[heights(nodes)]
        values, accepted = reflection_step(self.noisy[rows, nodes], old, new, sigmas, draws.uniform(len(rows)))
        self.sums[rows, nodes] = new
        self.noisy[rows, nodes] = values
        return accepted

    def _update_model(self, rows: Tensor, positions: Tensor) -> None:
        """Use the noisy prefix sums to compute the models that follow the given positions."""
        prefixes = self.prefixes(rows, positions)
        self.models[rows, positions + 1] = self.method.updates(positions, self.models[rows, positions], prefixes)

    def _learn_from(self, restarts: Tensor, draws: Draws, work: TreeWork) -> None:
        """Relearn each trial, starting at its position in ``restarts``.

        If this position is beyond the last position, nothing is relearned.
        """
        starts, rows = restarts.sort(stable=True)
        reached = torch.searchsorted(starts, torch.arange(self.size + 2, device=starts.device), right=True).tolist()
        for first in range(1, self.size + 1, POSITIONS_AT_ONCE):
            last = min(first + POSITIONS_AT_ONCE, self.size + 1)
            positions = [position for position in range(first, last) if reached[position]]
            # All lists are moved to the device before the first position is learned, so that no position waits for a
            # copy.
            children = _whole([_children(position) for position in positions], rows.device)
            prefixes = _whole([nodes_of_prefix(position) for position in positions], rows.device)
            for position, below, prefix in zip(positions, children, prefixes, strict=True):
                self._learn(rows[: reached[position]], position, below, prefix, draws)
        count = (self.size + 1 - restarts).clamp(min=0)
        work.queries += count
        work.learned_again += count

    def _learn(self, rows: Tensor, position: int, children: Tensor, prefix: Tensor, draws: Draws) -> None:
        """Learn one position in all given trials. Most of a run's time is spent here.

        Args:
            rows: The trials.
            position: Position to learn.
            children: Nodes whose sums are added to the increment of this position, to give the sum of its node.
            prefix: Nodes that the prefix sum reads.
            draws: Source of fresh random numbers.
        """
        positions = torch.full_like(rows, position)
        models, previous = self.models[rows, position], self.models[rows, position - 1]
        sums = self.method.increments(positions, models, previous, self.order[rows, position])
        self.increments[rows, position] = sums
        height = len(children)
        if height:
            sums = sums + self.sums[rows[:, None], children].sum(dim=1)
        self.sums[rows, position] = sums
        self.noisy[rows, position] = sums + draws.normal(*sums.shape) * self.sigmas[height]
        prefixes = self.noisy[rows[:, None], prefix].sum(dim=1)
        self.models[rows, position + 1] = self.method.updates(positions, models, prefixes)

    def _sums_below(self, rows: Tensor, nodes: Tensor) -> Tensor:
        """Return the sums of nodes ``t``: their increments plus the sums of their children.

        The children of a node are ``t - 1, t - 2, t - 4, ...``.

        Sums are recomputed rather than updated by an edit's difference, because the rounding errors of many edits would
        add up.
        """
        steps = 2 ** torch.arange(int(heights(nodes).max()), device=nodes.device)
        children = torch.where(steps < lowest_bit(nodes)[:, None], nodes[:, None] - steps, 0)
        return self.increments[rows, nodes] + self.sums[rows[:, None], children].sum(dim=1)

    def _drop_last(self) -> None:
        """Erase the last position and the model after it."""
        for tensor in (self.increments, self.sums, self.noisy):
            tensor[:, self.size] = 0
        self.order[:, self.size] = -1
        self.models[:, self.size + 1] = 0
        self.size -= 1

    def _reserve(self, size: int) -> None:
        """Make room for more positions, at least twice as many as before."""
        missing = size - (self.order.shape[1] - 1)
        if missing <= 0:
            return
        missing = max(missing, self.order.shape[1])
        self.order = torch.cat([self.order, self.order.new_full((self.trials, missing), -1)], dim=1)
        for name in ("increments", "sums", "noisy", "models"):
            tensor = getattr(self, name)
            more = tensor.new_zeros(self.trials, missing, tensor.shape[2])
            setattr(self, name, torch.cat([tensor, more], dim=1))

    def _require_heights(self, size: int) -> None:
        if not 1 <= size < 2 ** len(self.sigmas):
            raise ParameterError(
                f"noise for {len(self.sigmas)} heights suffices for 1 to {2 ** len(self.sigmas) - 1} records, got "
                f"{size}: plan for the largest number of records that may be present at any time, and learn again"
            )

    def _nothing_done(self) -> TreeWork:
        return TreeWork(*(torch.zeros_like(self.order[:, 0]) for _ in range(4)))


def _children(position: int) -> list[int]:
    """Return a node's children; their number is the node's height."""
    height = (position & -position).bit_length() - 1
    return [position - 2**below for below in range(height)]


def _whole(lists: Sequence[Sequence[int]], device: torch.device) -> Sequence[Tensor]:
    """Return lists of whole numbers as tensors on a device, moved there together."""
    together = torch.tensor([number for each in lists for number in each], dtype=torch.int64, device=device)
    return torch.split(together, [len(each) for each in lists])


def lowest_bit(positions: Tensor) -> Tensor:
    """Return the lowest set bits of whole numbers above 0."""
    return positions & -positions


def heights(nodes: Tensor) -> Tensor:
    """Return the heights of nodes, int64: the base-2 logarithms of their lowest set bits."""
    return torch.frexp(lowest_bit(nodes).double()).exponent.long() - 1
