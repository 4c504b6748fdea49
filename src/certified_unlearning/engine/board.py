"""Memory that all processes of a run see, where they are on one machine: what one wrote there nobody has to send.

To wait for the others is to look again and again whether they are there. A process that sleeps until a message wakes it
came back so late that a step of 12 ms on two processes took 15 (`benchmarks/README.md`); one that has looked for long
sleeps between looks. Whether another one still lives is seen by a lock, which ends with its process.

Linux on x86-64 only: there a file can surely lie in this machine's memory, and all processors see what one wrote in
the order in which it was written.
"""

import mmap
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

if sys.platform == "linux":
    import fcntl

MEMORY = Path("/dev/shm")
"""Where files lie in the memory of one machine."""
LINE = 64
"""Bytes that processors exchange at once: each process' count has as many of its own."""
LOOKING = 5e-3
"""Seconds before a process that looks for the others sleeps in between."""
SLEEP = 1e-4
"""Seconds that it sleeps."""
ASKING = 0.5
"""Seconds between two looks at whether the others live."""


class Board:
    """Memory with two sides in turn, on each of which every process has its place.

    Who has read one side says so by being there when the other one is full, before anybody writes on the first again.

    Args:
        descriptor: Of a file in memory, which this process has open only once.
        size: Bytes of a process' place.
        rank: Which of the processes this is.
        ranks: How many there are.
    """

    def __init__(self, descriptor: int, size: int, rank: int, ranks: int) -> None:
        self._rank, self._ranks = rank, ranks
        self._descriptor = descriptor
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, rank)
        memory = mmap.mmap(descriptor, _bytes(size, ranks))
        self._sides = torch.frombuffer(memory, dtype=torch.uint8)[LINE * ranks :].view(2, ranks, size)
        self._counts = np.frombuffer(memory, np.int64, LINE * ranks // 8)[:: LINE // 8]
        self._count = 0

    def turn(self) -> Tensor:
        """Return the other side, shape ``(ranks, size)``: this process may write in its own place."""
        self._count += 1
        return self._sides[self._count % 2]

    def wait(self) -> None:
        """Say that this process' place is written, and wait until all others are.

        Raises:
            RuntimeError: A process ended.
        """
        self._counts[self._rank] = self._count
        for rank in range(self._ranks):
            begun = asked = time.monotonic()
            while self._counts[rank] < self._count:
                now = time.monotonic()
                if now - begun < LOOKING:
                    os.sched_yield()
                    continue
                time.sleep(SLEEP)
                if now - asked > ASKING:
                    asked = now
                    # Its last count may have come between.
                    if self._has_ended(rank) and self._counts[rank] < self._count:
                        raise RuntimeError(f"process {rank} has ended")

    def close(self) -> None:
        """Let the others see that this process has ended."""
        os.close(self._descriptor)

    def _has_ended(self, rank: int) -> bool:
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, rank)
        except OSError:
            return False
        fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, rank)
        return True


def board(
    size: int,
    *,
    rank: int,
    ranks: int,
    of_first: Callable[[bytes | None], bytes | None],
    all_can: Callable[[bool], bool],
) -> Board | None:
    """Make memory that all processes see, all of them together.

    Args:
        size: Bytes of a process' place; made a multiple of `LINE`.
        rank: Which of the processes this is.
        ranks: How many there are.
        of_first: Returns to all what the first process gives.
        all_can: Returns to all whether all gave True.

    Returns:
        None, to all, if one of them is on another machine or of another kind, or there is no room.
    """
    size = -(-size // LINE) * LINE
    path = _reserved(_bytes(size, ranks)) if rank == 0 and _is_suitable() else None
    found: Board | None = None
    try:
        name = of_first(None if path is None else str(path).encode())
        if name is not None and _is_suitable():
            found = _opened(Path(name.decode()), size, rank, ranks)
        seen = all_can(found is not None)
    finally:
        if path is not None:
            path.unlink()  # It stays until the last process that sees it ends.
    if found is not None and not seen:
        found.close()
        return None
    return found


def _bytes(size: int, ranks: int) -> int:
    return (LINE + 2 * size) * ranks


def _is_suitable() -> bool:
    return sys.platform == "linux" and platform.machine() == "x86_64" and MEMORY.is_dir()


def _reserved(size: int) -> Path | None:
    """Return a file of so many zeros in memory; None where there is no room."""
    try:
        descriptor, name = tempfile.mkstemp(prefix="unlearning-", dir=MEMORY)
    except OSError:
        return None
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError:
        Path(name).unlink()
        return None
    finally:
        os.close(descriptor)
    return Path(name)


def _opened(path: Path, size: int, rank: int, ranks: int) -> Board | None:
    """Return the board that the first process made; None if it is not there: that is on another machine."""
    try:
        return Board(os.open(path, os.O_RDWR), size, rank, ranks)
    except OSError:
        return None
