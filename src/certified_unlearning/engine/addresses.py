"""Addresses of noise.

An address names the seed, data set, mechanism, sweep point, trial and phase. This module needs no PyTorch.
"""

import hashlib
import json


def address(*parts: str | int | float) -> int:
    """Return the 128-bit key of an address."""
    digest = hashlib.sha256(json.dumps(parts).encode()).digest()
    return int.from_bytes(digest[:16], "little")
