"""Keyed digests, which only the owner of the key can compute or use to test a guess.

The module has no heavy imports.
"""

import hashlib
import hmac
from pathlib import Path


def digest_of_file(path: Path, key: bytes) -> str:
    """Return the keyed digest of a file.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hmac.new(key, digestmod="sha256")).hexdigest()
