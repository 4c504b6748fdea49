"""Addresses of noise: an address names (seed, data set, mechanism, sweep point, trial, phase). It needs no PyTorch."""

import hashlib
import json


def address(*parts: str | int | float) -> int:
    """Return the 128-bit key of an address."""
    digest = hashlib.sha256(json.dumps(parts).encode()).digest()
    return int.from_bytes(digest[:16], "little")
