"""Training rows in blocks, as views of a tensor, or read from a source if they do not fit in memory."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Replacements: TypeAlias = tuple[Tensor, Tensor, Tensor]
"""Replacements of removed records: indices of these records, shape ``(s,)``, new features ``(s, features)`` and new
labels ``(s,)``.
"""


def replacements_like(features: "Tensor | StreamedRows", labels: Tensor, given: Replacements | None) -> Replacements:
    """Return ``given`` on the device of ``features``, or an empty set of replacements if ``given`` is None."""
    if given is None:
        indices = torch.empty(0, dtype=torch.int64)
        given = indices, torch.empty(0, features.shape[1], dtype=features.dtype), labels[:0]
    indices, new_features, new_labels = given
    return indices.to(features.device), new_features.to(features.device), new_labels.to(features.device)


class Scratch:
    """Memory that is used again and again.

    Objectives may share it if only one of them works at a time, even with streamed rows.
    """

    def __init__(self) -> None:
        self._kept: dict[str, Tensor] = {}

    def take(self, purpose: str, shape: Sequence[int], like: Tensor) -> Tensor:
        """Return an uninitialised tensor of a shape; the next tensor for the same purpose uses the same memory."""
        numbers = math.prod(shape)
        kept = self._kept.get(purpose)
        if kept is None or len(kept) < numbers:
            # Steps run in inference mode, and tensors created in that mode cannot be changed outside it.
            with torch.inference_mode(False):
                kept = self._kept[purpose] = like.new_empty(numbers)
        return kept[:numbers].view(shape)


class RowSource(Protocol):
    """Rows that are not in memory, such as `data.stored_rows.StoredRows`."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""

    def read_into(self, out: NDArray[np.float32], start: int) -> None:
        """Fill ``out`` with rows, beginning with row ``start``.

        ``out`` is contiguous and has shape (rows, features).
        """


class StreamedRows:
    """Rows of a source, from which slices can be taken as from a tensor; each slice is read when it is taken.

    All slices share one piece of memory: a slice is valid until the next one is taken.

    Args:
        source: The source of the rows.
        dtype: Type of the slices.
        device: Device of the slices.
        factors: Factor by which each row is multiplied, shape ``(n,)``; None if all factors are 1.
        scratch: Memory into which rows are read; by default, new memory that is not shared.
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
        """Return these rows, each multiplied by its factor; the result shares memory with this object."""
        return StreamedRows(self._source, dtype=self.dtype, device=self.device, factors=factors, scratch=self._scratch)

    def part(self, rows: slice) -> "StreamedRows":
        """Return some of these rows; the result shares memory with this object."""
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
        # The memory is aligned like a tensor's rows, so that products of equal numbers have equal bits.
        read = self._scratch.take("rows", (stop - start, self.shape[1]), self._like)
        self._source.read_into(read.numpy(), start)
        block = read.to(self.device, self.dtype)
        return block if self._factors is None else block.mul_(self._factors[start:stop, None])


@dataclass(frozen=True)
class _Part:
    """Consecutive rows of a source, as a source."""

    source: RowSource
    first: int
    shape: tuple[int, int]

    def read_into(self, out: NDArray[np.float32], start: int) -> None:
        self.source.read_into(out, self.first + start)


class RowBlocks:
    """The current rows of a data set, block by block; removed records are replaced in place.

    The blocks of a tensor equal those of streamed rows, so a step gives the same bits with either.

    Attributes:
        n: Number of rows.

    Args:
        rows: Rows, shape ``(n, features)``. A tensor is changed by replacements. Streamed rows are replaced in each
            block after it is read.
        indices: Positions of the rows that can be replaced, in the order of their removal, all different, shape
            ``(s,)``.
        replacements: Rows that replace these rows, shape ``(s, features)``.
        rows_at_once: Number of rows in a block.
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
        """Make the first ``count`` of the possible replacements, and no others."""
        if isinstance(self._rows, Tensor):
            self._rows[self._indices] = torch.cat([self._replacements[:count], self._originals[count:]])
            return
        # Replacements are sorted into blocks here, once per phase, so that a step on a GPU does not wait for a search.
        starts = self._indices[:count] // self._rows_at_once * self._rows_at_once
        self._overlay = {
            start: (self._indices[:count][starts == start] - start, self._replacements[:count][starts == start])
            for start in set(starts.tolist())
        }

    def __iter__(self) -> Iterator[tuple[slice, Tensor]]:
        """Yield the place and the rows of each block; the rows are valid until the next block is requested."""
        for start in range(0, self.n, self._rows_at_once):
            where = slice(start, min(start + self._rows_at_once, self.n))
            block = self._rows[where]
            if start in self._overlay:
                block.index_copy_(0, *self._overlay[start])
            yield where, block
