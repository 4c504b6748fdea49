"""Randomness is addressed, not consumed: what a trial draws depends on its address and step alone.

An address names (seed, data set, mechanism, sweep point, trial, phase). Its noise comes in blocks of `BLOCK_STEPS`
steps, each from a counter-based generator of its own, so that neither the batch a trial runs in nor the point a run
is resumed at changes a single bit on a given device. CPU and CUDA generators differ from each other.

On the CPU the bits are AES-128's in counter mode, keyed by the address: nobody who sees some of the noise can tell the
rest. That is also the fastest generator here, for processors have instructions for it.
"""

import hashlib
import json
import math
from collections.abc import Sequence

import numpy as np
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from torch import Tensor

BLOCK_STEPS = 16
"""Steps per noise block. Changing it changes every random number."""
NUMBERS_AT_ONCE = 1 << 17
"""About as many numbers are made together as stay in a processor's cache; this changes none of them."""


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
            Fewer steps are other numbers, not the first of more, but made of the same bits: an address is to be used
            in one shape and type only.
        keys: One address key for each trial.
        block: Number of the block in each trial's stream.
    """
    if out.is_cuda:
        device_generator = torch.Generator(out.device)
        for trial, key in zip(out, keys, strict=True):
            device_generator.manual_seed(address(str(key), block) & (2**63 - 1))
            trial.normal_(generator=device_generator)
        return
    flat = out.view(len(keys), -1)
    pairs = -(-flat.shape[1] // 2)
    at_once = max(1, NUMBERS_AT_ONCE // (2 * pairs))
    for first in range(0, len(keys), at_once):
        some = slice(first, first + at_once)
        bits = _random_bits(keys[some], block, 2 * pairs, out.dtype)
        _box_muller(bits[:, :pairs], bits[:, pairs:], out=flat[some])


def normal_rows(keys: Sequence[int], like: Tensor) -> Tensor:
    """Return one standard normal row for each key, of the shape, dtype and device of ``like`` (trials, d)."""
    rows = like.new_empty(len(keys), 1, like.shape[1])
    fill_block(rows, keys, 0)
    return rows[:, 0]


def _random_bits(keys: Sequence[int], block: int, count: int, dtype: torch.dtype) -> Tensor:
    """Return ``count`` random signed integers for each key, as wide as ``dtype``."""
    bits = np.empty((len(keys), count), {torch.float32: np.int32, torch.float64: np.int64}[dtype])
    zeros = bytes(bits[0].nbytes)
    counter = modes.CTR((block << 64).to_bytes(16, "big"))
    for row, key in zip(bits, keys, strict=True):
        cipher = Cipher(algorithms.AES128(key.to_bytes(16, "little")), counter)
        cipher.encryptor().update_into(zeros, row.data.cast("B"))
    return torch.from_numpy(bits)


def _box_muller(radius_bits: Tensor, angle_bits: Tensor, *, out: Tensor) -> None:
    """Make two independent normal numbers of every two integers (Box and Muller, 1958)."""
    largest = -float(torch.iinfo(radius_bits.dtype).min)
    half = radius_bits.shape[1]
    # The size of a signed integer is a uniform number; its 0 stands for all below one half, whose middle is a quarter.
    radius = radius_bits.to(out.dtype).abs_().clamp_(min=0.25).div_(largest).log_().mul_(-2).sqrt_()
    angle = angle_bits.to(out.dtype).mul_(math.pi / largest)
    torch.mul(radius, angle.cos(), out=out[:, :half])
    out[:, half:] = (angle.sin_() * radius)[:, : out.shape[1] - half]
