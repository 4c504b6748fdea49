"""Files of the results as parts of a page: read or refused, embedded, offered as downloads."""

import base64
import gzip
import io
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from PIL import Image, UnidentifiedImageError

from certified_unlearning.errors import DataError


@dataclass(frozen=True)
class Download:
    """A file inside the page: ``name`` is what a browser saves it as, ``size`` is for people (``12 kB``)."""

    name: str
    uri: str
    size: str


@dataclass(frozen=True)
class EmbeddedImage:
    """An image inside the page, with its size in pixels."""

    uri: str
    width: int
    height: int


def required(path: Path, rule: str) -> Path:
    """Return the path.

    Raises:
        DataError: There is nothing; the message names the workflow's rule that makes it.
    """
    if not path.exists():
        raise DataError(f"the report needs {path}, which does not exist; the workflow's rule {rule} makes it")
    return path


def read_csv(path: Path) -> pd.DataFrame:
    """Read a table as the texts that the file holds.

    Raises:
        DataError: The file is no table.
    """
    try:
        return pd.read_csv(path, dtype=str, keep_default_na=False)
    except ValueError as error:
        raise DataError(f"{path} is not a table: {error}") from error


def image(path: Path) -> EmbeddedImage:
    """Embed an image as lossless WebP: the same pixels in half the space of Matplotlib's PNG.

    Raises:
        DataError: The file is no image.
    """
    content = io.BytesIO()
    try:
        with Image.open(path) as picture:
            picture.save(content, "WEBP", lossless=True)
            return EmbeddedImage(_data_uri(content.getvalue(), "image/webp"), picture.width, picture.height)
    except (UnidentifiedImageError, OSError, SyntaxError) as error:
        raise DataError(f"{path} is not an image: {error}") from error


def download(path: Path, name: str) -> Download:
    """Offer a file under a name."""
    return _download(path.read_bytes(), name, _MEDIA_TYPES[path.suffix])


def archive(paths: Sequence[Path], name: str) -> Download:
    """Offer several files as one compressed tar archive; the same files give the same archive."""
    content = io.BytesIO()
    # Without dates: they are when a job ran, not what it found.
    with (
        gzip.GzipFile(fileobj=content, mode="wb", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as files,
    ):
        for path in paths:
            entry = tarfile.TarInfo(path.name)
            entry.size = path.stat().st_size
            with path.open("rb") as file:
                files.addfile(entry, file)
    return _download(content.getvalue(), name, "application/gzip")


_MEDIA_TYPES = {".csv": "text/csv", ".pdf": "application/pdf", ".html": "text/html", ".json": "application/json"}


def _download(content: bytes, name: str, media_type: str) -> Download:
    size = f"{len(content)} bytes" if len(content) < 1000 else f"{round(len(content) / 1000):,} kB"
    return Download(name, _data_uri(content, media_type), size)


def _data_uri(content: bytes, media_type: str) -> str:
    return f"data:{media_type};base64,{base64.b64encode(content).decode('ascii')}"
