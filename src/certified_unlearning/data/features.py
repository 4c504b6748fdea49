"""Features of images: functions from pixels to vectors, applied in chunks, with results cached by content."""

import hashlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.files import atomic_path, content_key

CHUNK = 50
"""Number of images that are processed at a time. For 50 images of 224 x 224 pixels, ResNet-18 needs about 300 MB."""


@dataclass(frozen=True)
class Extractor:
    """A function from images to features.

    Attributes:
        name: Name in `prepare`.
        title: Name in records and certificates.
        privacy: A sentence on whether the function depends on the data that it is applied to.
        identity: Everything besides the pixels that determines the features: parameters, versions, the digest of its
            weights.
        apply: Maps uint8 images, shape ``(count, 32, 32, 3)``, to floats, shape ``(count, d)``.
    """

    name: str
    title: str
    privacy: str
    identity: Mapping[str, Any]
    apply: Callable[[NDArray[np.uint8]], NDArray[Any]]


def extract(extractor: Extractor, images: NDArray[np.uint8], cache: Path) -> NDArray[np.float32]:
    """Return the features of images; use the cache if it has them.

    A damaged file in the cache is named on standard error and replaced.

    Args:
        extractor: The function.
        images: Shape ``(count, 32, 32, 3)``.
        cache: The directory for results. Each file is named after the features and the digest of everything that
            determines them.

    Returns:
        Shape ``(count, d)``.

    Raises:
        StorageError: The cache cannot be written.
    """
    digest = hashlib.sha256(f"{images.shape}".encode() + images.tobytes()).hexdigest()
    key = content_key({"images": digest, **extractor.identity})
    path = cache / f"{extractor.name}-{key}.safetensors"
    if path.exists():
        try:
            return _read(path)
        except DataError as error:
            print(f"{error}; the features are computed again", file=sys.stderr, flush=True)
    features = _apply(extractor, images)
    # The features' digest is stored with them: safetensors detects a wrong length, but not a flipped bit.
    content = safetensors.numpy.save({"features": features}, {"sha256": _sha256(features)})
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)
    return features


def import_extra(module: str, extra: str, need: str) -> Any:
    """Import a module that an optional extra installs.

    Args:
        module: The module's name.
        extra: The extra of this package that installs the module.
        need: Words for the message that say what needs the package, such as "features 'hog' need scikit-image".

    Raises:
        ParameterError: The module cannot be imported.
    """
    try:
        return import_module(module)
    # A torchvision that was built for another PyTorch version raises the last two of these errors.
    except (ImportError, OSError, RuntimeError) as error:
        reason = str(error).partition("\n")[0]
        raise ParameterError(
            f"{need}, but {module} cannot be imported ({reason}): pip install 'certified-unlearning[{extra}]'"
        ) from error


def _apply(extractor: Extractor, images: NDArray[np.uint8]) -> NDArray[np.float32]:
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    print(f"computing {extractor.title} of {len(images)} images", file=sys.stderr, flush=True)
    starts = track(range(0, len(images), CHUNK), "features", console=console, disable=not console.is_terminal)
    chunks = [extractor.apply(images[start : start + CHUNK]).astype(np.float32) for start in starts]
    return np.concatenate(chunks)


def _read(path: Path) -> NDArray[np.float32]:
    try:
        with safetensors.safe_open(str(path), framework="numpy") as file:
            features: NDArray[np.float32] = file.get_tensor("features")
            expected = (file.metadata() or {}).get("sha256")
    except (OSError, safetensors.SafetensorError) as error:
        raise DataError(f"{path} is damaged ({error})") from error
    if _sha256(features) != expected:
        raise DataError(f"{path} is damaged (its features do not match the digest in the file)")
    return features


def _sha256(features: NDArray[np.float32]) -> str:
    return hashlib.sha256(f"{features.dtype.str} {features.shape}".encode() + features.tobytes()).hexdigest()
