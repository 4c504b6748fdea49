"""What only the owner of a key can write, or guess anything from. Free of heavy imports."""

import hashlib
import hmac
from pathlib import Path


def digest_of_file(path: Path, key: bytes) -> str:
    """Return the keyed digest of any file.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hmac.new(key, digestmod="sha256")).hexdigest()
