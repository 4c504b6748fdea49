"""Memory shared by all processes of a run on one machine; using it is faster than sending messages.

A process polls to wait for the other processes. Sleeping until a message arrives was slower: a step of 12 ms took 15 ms
with two processes (`benchmarks/README.md`). After polling for long, a process sleeps between polls. Each process holds
a lock that is released when the process ends, so the other processes see whether that process is alive.

The memory is a file without a name. It vanishes when all processes that have it open have ended, however they end.
Processes of another machine or user cannot open it.

The module works only on Linux on x86-64, where all processors see writes in the order in which they were made.
"""

import mmap
import os
import platform
import secrets
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

if sys.platform == "linux":
    import fcntl

SHARE = 4
"""A board uses at most the machine's memory divided by this number. All of it is reserved when the board is created."""
LINE = 64
"""Number of bytes that processors exchange at once. Counters of different processes are in different blocks of this
size."""
LOOKING = 5e-3
"""Seconds of polling after which a process begins to sleep between polls."""
SLEEP = 1e-4
"""Seconds of sleep between two polls."""
ASKING = 0.5
"""Seconds between two checks of whether the other processes are alive."""


class Board:
    """Shared memory with two sides that are used in turn. Every process has its own place on each side.

    When a process signals that it has written on one side, it has finished reading the other side. So when all
    processes have signalled this, the other side can be written again.

    Args:
        descriptor: Descriptor of a file in memory. This process must not open the file a second time.
        size: Number of bytes of one process's place.
        rank: Number of this process.
        ranks: Number of processes.
    """

    def __init__(self, descriptor: int, size: int, rank: int, ranks: int) -> None:
        self._rank, self._ranks = rank, ranks
        self._descriptor = descriptor
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, rank)
        memory = mmap.mmap(descriptor, _bytes(size, ranks))
        self._sides = torch.frombuffer(memory, dtype=torch.uint8)[LINE * ranks :].view(2, ranks, size)
        self._counts = np.frombuffer(memory, np.int64, LINE * ranks // 8)[:: LINE // 8]
        self._count = 0
        self._waits = False

    def turn(self) -> Tensor:
        """Return the side to write next, shape ``(ranks, size)``; this process may write only in its own place.

        Raises:
            RuntimeError: `wait` was interrupted, so it is unknown which step the other processes have reached.
        """
        if self._waits:
            raise RuntimeError("the last wait for the other processes was interrupted")
        return self._sides[(self._count + 1) % 2]

    def wait(self) -> None:
        """Signal that this process has finished writing, and wait until all other processes have finished, too.

        Raises:
            RuntimeError: A process ended.
        """
        self._waits = True
        self._count += 1
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
                    # The last count of an ended process may have arrived after the first check.
                    if self._has_ended(rank) and self._counts[rank] < self._count:
                        raise RuntimeError(f"process {rank} has ended")
        self._waits = False

    def close(self) -> None:
        """Tell the other processes that this process has ended."""
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
    """Create shared memory; all processes must call this function together.

    Args:
        size: Number of bytes for each process; rounded up to a multiple of `LINE`.
        rank: Number of this process.
        ranks: Number of processes.
        of_first: Function that returns, in every process, the value that the first process passed to it.
        all_can: Function that tells every process whether all processes passed True.

    Returns:
        The memory. All processes get None if they do not share one machine, if this module does not work on that
        machine, or if there is no room.
    """
    size = -(-size // LINE) * LINE
    reserved = _reserved(_bytes(size, ranks)) if rank == 0 and _is_suitable() else None
    seen = False
    try:
        address = of_first(None if reserved is None else _address_of(reserved))
        if reserved is None and address is not None and _is_suitable():
            reserved = _opened(address, _bytes(size, ranks))
        found = None if reserved is None else _written_on(reserved, size, rank, ranks)
        seen = all_can(found is not None)
    finally:
        if not seen and reserved is not None:
            os.close(reserved)
    return found if seen else None


def _bytes(size: int, ranks: int) -> int:
    return (LINE + 2 * size) * ranks


def _is_suitable() -> bool:
    # Python may lack this function if it was built for an old system.
    return sys.platform == "linux" and platform.machine() == "x86_64" and hasattr(os, "memfd_create")


def _reserved(size: int) -> int | None:
    """Return the descriptor of a nameless file of zeros in memory; None if there is no room."""
    if size > os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // SHARE:
        return None
    try:
        # This name is not in any directory; it distinguishes this file from others.
        descriptor = os.memfd_create(f"unlearning-{secrets.token_hex(16)}")
    except OSError:
        return None
    try:
        os.fchmod(descriptor, 0o600)
        os.posix_fallocate(descriptor, 0, size)
    except BaseException as error:
        os.close(descriptor)
        if isinstance(error, OSError):
            return None
        raise
    return descriptor


def _address_of(descriptor: int) -> bytes | None:
    """Return the path at which other processes of this machine find an open file, and the file's identity.

    The result is None if the file's identity is unknown.
    """
    path = Path(f"/proc/{os.getpid()}/fd/{descriptor}")
    try:
        return f"{path}\n{path.readlink()}".encode()
    except OSError:
        return None


def _opened(address: bytes, size: int) -> int | None:
    """Return a descriptor of the first process's file; None if ``address`` leads to no file, or to another file."""
    path, called = address.decode().split("\n")
    try:
        if str(Path(path).readlink()) != called:
            return None
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return None
    if os.fstat(descriptor).st_size != size:
        os.close(descriptor)
        return None
    return descriptor


def _written_on(descriptor: int, size: int, rank: int, ranks: int) -> Board | None:
    try:
        return Board(descriptor, size, rank, ranks)
    except OSError:
        return None
