"""Normal numbers for one release, in NumPy, with the transform of `randomness`; this is fast for a few numbers.

With a key, the numbers are those of `randomness.normal_rows`, computed from the same bits of the same cipher by the
same transform. So `accounting.core.rounding.resolution` holds for them, too. (Logarithm, cosine and sine may differ in
their last bits.) Without a key, the bits come from the operating system. For twenty numbers, the overhead of PyTorch's
calls is several times the work, and creating a cipher takes as long.
"""

import math
import os
import secrets

import numpy as np
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from certified_unlearning.engine.randomness import FINE_FROM, fine_radius

LARGEST = 2**63
_LOW, _HIGH = FINE_FROM[torch.float64]


def normal_numbers(count: int, key: int | None = None) -> NDArray[np.float64]:
    """Return standard normal numbers, shape ``(count,)``.

    Args:
        count: Number of values, at least 1.
        key: Key of 128 bits, which gives the numbers of `randomness.normal_rows` in float64. If None, random bits come
            from the operating system, and are not stored.
    """
    pairs = -(-count // 2)
    bits = np.frombuffer(_bits(16 * pairs, key), dtype=np.int64)
    size = np.abs(bits[:pairs].astype(np.float64))
    radius = np.sqrt(-2 * np.log(np.maximum(size, 1.0) / LARGEST))
    if size.min() < _LOW or size.max() > _HIGH:
        fine_key = secrets.randbits(128) if key is None else key
        for place in np.flatnonzero((size < _LOW) | (size > _HIGH)).tolist():
            radius[place] = fine_radius(abs(int(bits[place])), LARGEST, fine_key, 0, place)
    angle = bits[pairs:] * (math.pi / LARGEST)
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:count]


def _bits(count: int, key: int | None) -> bytes:
    """Return random bytes."""
    if key is None:
        return os.urandom(count)
    return Cipher(algorithms.AES128(key.to_bytes(16, "little")), modes.CTR(bytes(16))).encryptor().update(bytes(count))
