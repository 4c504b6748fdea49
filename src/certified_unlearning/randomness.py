"""Randomness is addressed, not consumed: what a trial draws depends on its address and step alone.

An address names (seed, data set, mechanism, sweep point, trial, phase). Its noise comes in blocks of `BLOCK_STEPS`
steps, each from a counter-based generator of its own, so that neither the batch a trial runs in nor the point a run
is resumed at changes a single bit on a given device. CPU and CUDA generators differ from each other.
"""

import hashlib
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

BLOCK_STEPS = 16
"""Steps per noise block. Changing it changes every random number."""


def address(*parts: str | int | float) -> int:
    """Return the 128-bit key of an address."""
    digest = hashlib.sha256(json.dumps(parts).encode()).digest()
    return int.from_bytes(digest[:16], "little")


def generator(*parts: str | int | float) -> np.random.Generator:
    """Return a NumPy generator for an address, for draws that are not part of the dynamics."""
    return np.random.Generator(np.random.Philox(key=address(*parts)))


def fill_block(out: Tensor, keys: Sequence[int], block: int) -> None:
    """Fill ``out`` with standard normal numbers.

    Args:
        out: Shape ``(trials, steps, d)`` with ``steps <= BLOCK_STEPS``, contiguous; float32 or float64, CPU or CUDA.
        keys: One address key for each trial.
        block: Number of the block in each trial's stream.
    """
    if out.is_cuda:
        device_generator = torch.Generator(out.device)
        for trial, key in zip(out, keys, strict=True):
            device_generator.manual_seed(address(str(key), block) & (2**63 - 1))
            trial.normal_(generator=device_generator)
        return
    array = out.numpy()

    def fill(first: int) -> None:
        for trial, key in zip(array[first::workers], keys[first::workers], strict=True):
            stream = np.random.Generator(np.random.Philox(key=key, counter=block << 64))
            stream.standard_normal(dtype=array.dtype.type, out=trial)

    # NumPy draws without holding the interpreter's lock; each trial has a generator of its own.
    workers = min(torch.get_num_threads(), len(keys))
    if workers == 1:
        fill(0)  # To start a thread would take longer than a small block.
        return
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(fill, range(workers)))


def normal_rows(keys: Sequence[int], like: Tensor) -> Tensor:
    """Return one standard normal row for each key, of the shape, dtype and device of ``like`` (trials, d)."""
    rows = like.new_empty(len(keys), 1, like.shape[1])
    fill_block(rows, keys, 0)
    return rows[:, 0]
