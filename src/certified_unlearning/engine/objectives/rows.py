"""Training rows in blocks: views of a tensor, or read from where they lie because they do not fit in memory."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Replacements: TypeAlias = tuple[Tensor, Tensor, Tensor]
"""Replacements of removed records: their indices ``(s,)``, features ``(s, features)`` and labels ``(s,)``."""


def replacements_like(features: "Tensor | StreamedRows", labels: Tensor, given: Replacements | None) -> Replacements:
    """Return ``given`` on the device of ``features``, or an empty set of replacements where there are none."""
    if given is None:
        indices = torch.empty(0, dtype=torch.int64)
        given = indices, torch.empty(0, features.shape[1], dtype=features.dtype), labels[:0]
    indices, new_features, new_labels = given
    return indices.to(features.device), new_features.to(features.device), new_labels.to(features.device)


class Scratch:
    """Memory that is taken again and again; objectives that take turns may share one, streamed rows as well."""

    def __init__(self) -> None:
        self._kept: dict[str, Tensor] = {}

    def take(self, purpose: str, shape: Sequence[int], like: Tensor) -> Tensor:
        """Return a tensor of a shape, filled with anything; the next one for the same purpose is the same memory."""
        numbers = math.prod(shape)
        kept = self._kept.get(purpose)
        if kept is None or len(kept) < numbers:
            # Steps are taken in inference mode, and what is made there cannot be changed elsewhere.
            with torch.inference_mode(False):
                kept = self._kept[purpose] = like.new_empty(numbers)
        return kept[:numbers].view(shape)


class RowSource(Protocol):
    """Rows that lie somewhere else than in memory, such as `data.stored_rows.StoredRows`."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""

    def read_into(self, out: NDArray[np.float32], start: int) -> None:
        """Fill ``out`` (rows, features), contiguous, with the rows from ``start`` on."""


class StreamedRows:
    """Rows of a source as tensors: like a tensor's, slices of rows can be taken, but each is read when it is taken.

    All slices share one piece of memory: taking the next one overwrites the one before.

    Args:
        source: The source of the rows.
        dtype: Type of the slices.
        device: Device of the slices.
        factors: Factor on each row, shape ``(n,)``; by default none.
        scratch: Where rows are read into; by default separate memory.
    """

    def __init__(
        self,
        source: RowSource,
        *,
        dtype: torch.dtype,
        device: torch.device,
        factors: Tensor | None = None,
        scratch: Scratch | None = None,
    ) -> None:
        self.shape = source.shape
        self.dtype = dtype
        self.device = device
        self._source = source
        self._factors = factors
        self._scratch = scratch or Scratch()
        self._like = torch.empty(0)

    def scaled(self, factors: Tensor) -> "StreamedRows":
        """Return these rows, each times its factor; they share memory with these."""
        return StreamedRows(self._source, dtype=self.dtype, device=self.device, factors=factors, scratch=self._scratch)

    def part(self, rows: slice) -> "StreamedRows":
        """Return some of these rows, which share memory with these."""
        start, stop, _ = rows.indices(self.shape[0])
        return StreamedRows(
            _Part(self._source, start, (stop - start, self.shape[1])),
            dtype=self.dtype,
            device=self.device,
            factors=None if self._factors is None else self._factors[start:stop],
            scratch=self._scratch,
        )

    def __getitem__(self, rows: slice) -> Tensor:
        start, stop, _ = rows.indices(self.shape[0])
        # Aligned as a tensor's rows are: products of equal numbers then have equal bits.
        read = self._scratch.take("rows", (stop - start, self.shape[1]), self._like)
        self._source.read_into(read.numpy(), start)
        block = read.to(self.device, self.dtype)
        return block if self._factors is None else block.mul_(self._factors[start:stop, None])


@dataclass(frozen=True)
class _Part:
    """Some rows of a source, one after another."""

    source: RowSource
    first: int
    shape: tuple[int, int]

    def read_into(self, out: NDArray[np.float32], start: int) -> None:
        self.source.read_into(out, self.first + start)


class RowBlocks:
    """The current rows of a data set whose removed records are replaced in place, block by block.

    Both kinds of rows give the same blocks, so a step on them gives the same bits.

    Attributes:
        n: Number of rows.

    Args:
        rows: A tensor of shape ``(n, features)``, which is changed, or rows to stream, where replacements are
            laid over each block that was read.
        indices: Rows that are replaced, in the order of their removal, all different, shape ``(s,)``.
        replacements: What replaces them, shape ``(s, features)``.
        rows_at_once: Rows in a block.
    """

    def __init__(
        self, rows: Tensor | StreamedRows, indices: Tensor, replacements: Tensor, *, rows_at_once: int
    ) -> None:
        self.n = rows.shape[0]
        self._rows = rows
        self._indices = indices
        self._replacements = replacements
        self._rows_at_once = rows_at_once
        self._originals = rows[indices] if isinstance(rows, Tensor) else replacements[:0]
        self._overlay: dict[int, tuple[Tensor, Tensor]] = {}

    def remove(self, count: int) -> None:
        """Replace the first ``count`` rows that can be removed, and no others."""
        if isinstance(self._rows, Tensor):
            self._rows[self._indices] = torch.cat([self._replacements[:count], self._originals[count:]])
            return
        # Sorted into blocks here, once a phase, so that a step on a GPU need not wait for a search.
        starts = self._indices[:count] // self._rows_at_once * self._rows_at_once
        self._overlay = {
            start: (self._indices[:count][starts == start] - start, self._replacements[:count][starts == start])
            for start in set(starts.tolist())
        }

    def __iter__(self) -> Iterator[tuple[slice, Tensor]]:
        """Yield each block's place and its rows, which hold until the next block is asked for."""
        for start in range(0, self.n, self._rows_at_once):
            where = slice(start, min(start + self._rows_at_once, self.n))
            block = self._rows[where]
            if start in self._overlay:
                block.index_copy_(0, *self._overlay[start])
            yield where, block
