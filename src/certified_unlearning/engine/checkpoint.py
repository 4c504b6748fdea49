"""Checkpoints of long simulations: the state is saved regularly, with a key that identifies the simulation's inputs."""

import json
import time
from pathlib import Path
from typing import Any

import safetensors
from safetensors.torch import load, save
from torch import Tensor

from certified_unlearning.errors import DataError
from certified_unlearning.files import atomic_path


class Checkpoint:
    """One file with the latest state of one simulation.

    Args:
        path: Path of the file.
        key: Hash of the simulation's inputs. A file with another key is ignored.
        every_seconds: Least time between two saves, in seconds.
    """

    def __init__(self, path: Path, key: str, every_seconds: float = 20.0) -> None:
        self._path = path
        self._key = key
        self._every_seconds = every_seconds
        self._last_save = time.monotonic()

    def is_due(self) -> bool:
        """Return whether the last save was long enough ago that it is time for another."""
        return time.monotonic() - self._last_save >= self._every_seconds

    def save(self, tensors: dict[str, Tensor], position: dict[str, Any]) -> None:
        """Replace the file by one with this state, atomically."""
        metadata = {"key": self._key, "position": json.dumps(position)}
        content = save({name: tensor.contiguous() for name, tensor in tensors.items()}, metadata)
        with atomic_path(self._path) as temporary:
            temporary.write_bytes(content)
        self._last_save = time.monotonic()

    def load(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Return the saved state, or None if there is none for this key.

        Raises:
            DataError: The file is damaged.
        """
        if not self._path.exists():
            return None
        try:
            with safetensors.safe_open(str(self._path), framework="pt") as file:
                metadata = file.metadata() or {}
        except safetensors.SafetensorError as error:
            raise DataError(f"{self._path} is damaged ({error}); delete it to start over") from error
        if metadata.get("key") != self._key:
            return None
        return load(self._path.read_bytes()), json.loads(metadata["position"])

    def delete(self) -> None:
        """Delete the file, after the result has been stored durably."""
        self._path.unlink(missing_ok=True)
