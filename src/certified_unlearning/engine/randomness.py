"""Random numbers by address: a trial's draws depend only on its address and the step.

An address names the seed, data set, mechanism, sweep point, trial and phase. A trial's noise is generated in blocks of
`BLOCK_STEPS` steps, and each block has its own counter-based generator. So, on a given device, no bit of a trial's
noise depends on the other trials of its batch, or on where a run was resumed. The numbers of CPU and CUDA generators
differ.

On a CPU, the bits come from AES-128 in counter mode, and the key is the address. So the rest of the noise cannot be
predicted from a part of it. This is also the fastest generator available, because processors have instructions for AES.
On a GPU, the bits come from PyTorch's generator.
"""

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray
from torch import Tensor

from certified_unlearning.engine.addresses import address as address

BLOCK_STEPS = 16
"""Number of steps in a block of noise. Changing it changes every random number."""
NUMBERS_AT_ONCE = 1 << 17
"""Approximate number of values that are generated together, so that they fit in a processor's cache; it does not affect
the values.
"""
FINE_FROM = {torch.float32: (2.0**12, 2.0**31 - 2.0**15), torch.float64: (2.0**40, 2.0**63 - 2.0**43)}
"""Limits for random whole numbers, one pair for each type. Between them, a number gives a radius with enough precision.
Near 0, where radii are large, whole numbers are too coarse. Near the largest number, where radii are small, floats are
too coarse. In both cases, the radius is drawn with 1024 more bits.

`accounting.core.rounding.resolution` depends on these numbers.
"""


def generator(*parts: str | int | float) -> np.random.Generator:
    """Return a NumPy generator for an address; it is meant for random numbers other than the noise of descent."""
    return np.random.Generator(np.random.Philox(key=address(*parts)))


def fill_block(out: Tensor, keys: Sequence[int], block: int) -> None:
    """Fill ``out`` with the standard normal numbers of one block; see `fill_blocks`.

    Args:
        out: Tensor to fill, shape ``(trials, steps, d)``.
        keys: Address of each trial.
        block: Number of the block in each trial's stream.
    """
    fill_blocks(out[:, None], keys, block)


def fill_blocks(out: Tensor, keys: Sequence[int], first: int) -> None:
    """Fill ``out`` with standard normal numbers; they do not depend on the number of blocks that are filled together.

    Args:
        out: Tensor to fill, shape ``(trials, blocks, steps, d)`` with ``steps <= BLOCK_STEPS``, contiguous; float32 or
            float64, on a CPU or CUDA. The numbers depend on ``steps``: a tensor with fewer steps does not get the first
            numbers of a tensor with more steps, although both are computed from the same bits. Therefore, an address
            must be used with only one shape and type.
        keys: Address of each trial.
        first: Number of the first of these blocks in each trial's stream.
    """
    _, blocks, steps, dimension = out.shape
    places = [(key, first + number) for key in keys for number in range(blocks)]
    out = out.view(len(places), steps, dimension)
    # Both numbers of a pair belong to the same step, so that the noise of one step reveals nothing about a later
    # step's.
    pairs = steps * -(-dimension // 2)
    at_once = len(places) if out.is_cuda else max(1, NUMBERS_AT_ONCE // (2 * pairs))
    for start in range(0, len(places), at_once):
        some = slice(start, start + at_once)
        bits = _random_bits(places[some], 2 * pairs, out)
        radius = _radius(bits[:, :pairs], places[some])
        _box_muller(radius.view(len(bits), steps, -1), bits[:, pairs:].view(len(bits), steps, -1), out=out[some])


def normal_rows(keys: Sequence[int], like: Tensor) -> Tensor:
    """Return a row of standard normal numbers for each key.

    The result has the shape ``(trials, d)``, and has the dtype and the device of ``like``.
    """
    rows = like.new_empty(len(keys), 1, like.shape[1])
    fill_block(rows, keys, 0)
    return rows[:, 0]


def cipher_bits(key: int, blocks: range, count: int) -> NDArray[np.int64]:
    """Return the random integers from which a CPU computes blocks of float64 numbers, shape ``(blocks, count)``.

    Args:
        key: Key of one trial.
        blocks: Numbers of the blocks, in order.
        count: Number of integers in a block; even.
    """
    # The counters of counter mode are encrypted all at once, because creating a cipher takes longer than encrypting one
    # block.
    counters = np.empty((len(blocks), count // 2, 2), dtype=">u8")
    counters[..., 0], counters[..., 1] = np.array(blocks)[:, None], np.arange(count // 2)
    encryptor = Cipher(algorithms.AES128(key.to_bytes(16, "little")), modes.ECB()).encryptor()
    return np.frombuffer(encryptor.update(counters.tobytes()), dtype=np.int64).reshape(len(blocks), count)


Places: TypeAlias = Sequence[tuple[int, int]]
"""A key for each trial, and the number of a block in the stream of this key."""


def _random_bits(places: Places, count: int, like: Tensor) -> Tensor:
    """Return ``count`` random signed integers for each place; their width and device are those of ``like``."""
    if like.is_cuda:
        return _bits_of_torch(places, count, like)
    bits = np.empty((len(places), count), {torch.float32: np.int32, torch.float64: np.int64}[like.dtype])
    zeros = bytes(bits[0].nbytes)
    for row, (key, block) in zip(bits, places, strict=True):
        counter = modes.CTR((block << 64).to_bytes(16, "big"))
        cipher = Cipher(algorithms.AES128(key.to_bytes(16, "little")), counter)
        cipher.encryptor().update_into(zeros, row.data.cast("B"))
    return torch.from_numpy(bits)


def _bits_of_torch(places: Places, count: int, like: Tensor) -> Tensor:
    """Return `_random_bits` from PyTorch's counter-based generator, which runs on a GPU and is not cryptographic."""
    dtype = {torch.float32: torch.int32, torch.float64: torch.int64}[like.dtype]
    bits = torch.empty(len(places), count, dtype=dtype, device=like.device)
    generator = torch.Generator(like.device)
    for row, (key, block) in zip(bits, places, strict=True):
        generator.manual_seed(address(str(key), block) & (2**63 - 1))
        row.random_(torch.iinfo(dtype).min, None, generator=generator)
    return bits


def _radius(bits: Tensor, places: Places) -> Tensor:
    """Return ``sqrt(-2 log U)`` for every integer; the integer's absolute value determines the uniform number ``U``."""
    largest = -torch.iinfo(bits.dtype).min
    dtype = {torch.int32: torch.float32, torch.int64: torch.float64}[bits.dtype]
    size = bits.to(dtype).abs_()
    low, high = FINE_FROM[dtype]
    least, most = map(float, torch.aminmax(size))
    rare = ((size < low) | (size > high)).nonzero().tolist() if least < low or most > high else []
    radius = size.div_(largest).log_().mul_(-2).sqrt_()
    for row, place in rare:
        key, block = places[row]
        radius[row, place] = fine_radius(abs(int(bits[row, place])), largest, key, block, place)
    return radius


def fine_radius(number: int, largest: int, key: int, block: int, place: int) -> float:
    """Return ``sqrt(-2 log U)``, where ``U`` is uniform among the numbers that round to ``number / largest``."""
    counter = modes.CTR((block << 64 | 1 << 63 | 8 * place).to_bytes(16, "big"))
    drawn = Cipher(algorithms.AES128(key.to_bytes(16, "little")), counter).encryptor().update(bytes(128))
    share = (int.from_bytes(drawn, "little") + 1) / 2**1024
    if number == 0:  # The number 0 occurs half as often as any other absolute value, which occurs with two signs.
        return math.sqrt(-2 * (math.log(share / 2) - math.log(largest)))
    if number == largest:  # The largest number also stands for half as wide an interval, because no ``U`` is above 1.
        return math.sqrt(-2 * math.log1p(-share / 2 / largest))
    below_largest = largest - number + 0.5 - share
    if below_largest < largest / 2:
        return math.sqrt(-2 * math.log1p(-below_largest / largest))
    return math.sqrt(-2 * (math.log(number - 0.5 + share) - math.log(largest)))


def _box_muller(radius: Tensor, angle_bits: Tensor, *, out: Tensor) -> None:
    """Make two independent normal numbers from a radius and a random integer (Box and Muller, 1958)."""
    half = radius.shape[-1]
    angle = angle_bits.to(out.dtype).mul_(math.pi / -float(torch.iinfo(angle_bits.dtype).min))
    rest = out.shape[-1] - half
    torch.mul(radius, angle.cos(), out=out[..., :half])
    torch.mul(radius[..., :rest], angle[..., :rest].sin_(), out=out[..., half:])
