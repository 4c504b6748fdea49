"""Result files as parts of a page: checked, embedded, and offered as downloads."""

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
    """A file embedded in the page: a browser saves it as ``name``; ``size`` is a text such as ``12 kB``."""

    name: str
    uri: str
    size: str


@dataclass(frozen=True)
class EmbeddedImage:
    """An image embedded in the page, with its size in pixels, at which it is shown if there is room."""

    uri: str
    width: int
    height: int


def required(path: Path, rule: str) -> Path:
    """Return the path, after checking that it exists.

    Raises:
        DataError: The path does not exist; the message names the workflow's rule that creates it.
    """
    if not path.exists():
        raise DataError(f"the report needs {path}, which does not exist; {_made_by(rule)}")
    return path


def _made_by(rule: str) -> str:
    return f"the workflow's rule {rule} makes this file"


def read_csv(path: Path, rule: str) -> pd.DataFrame:
    """Read a table without converting its texts.

    Raises:
        DataError: The file is missing, or is not a table with rows; the message names the workflow's rule that creates
            it.
    """
    try:
        frame = pd.read_csv(required(path, rule), dtype=str, keep_default_na=False)
    except ValueError as error:
        raise DataError(f"{path} is not a table: {str(error).strip()}; {_made_by(rule)}") from error
    if frame.empty:
        raise DataError(f"{path} is a table without rows; {_made_by(rule)}")
    return frame


_MOST_HEIGHT = 544
"""Half the height of a usual screen, so that a figure and its text are visible together."""


def image(path: Path) -> EmbeddedImage:
    """Embed an image as lossless WebP, which needs half the space of Matplotlib's PNG for the same pixels.

    The encoder's effort is low. Encoding takes half the time of the default effort, and its result is one seventh
    larger.

    Raises:
        DataError: The file is not an image.
    """
    content = io.BytesIO()
    try:
        with Image.open(path) as picture:
            picture.save(content, "WEBP", lossless=True, quality=0, method=1)
            scale = min(1.0, _MOST_HEIGHT / picture.height)
            uri = _data_uri(content.getvalue(), "image/webp")
            return EmbeddedImage(uri, round(scale * picture.width), round(scale * picture.height))
    except (UnidentifiedImageError, OSError, SyntaxError) as error:
        raise DataError(f"{path} is not an image: {error}") from error


def download(path: Path, name: str, rule: str) -> Download:
    """Embed a file as a download with the given name.

    Raises:
        DataError: The file is missing; or it does not begin and end like files of its kind, because it is empty,
            truncated or of another kind. The message names the workflow's rule that creates it.
    """
    content = required(path, rule).read_bytes()
    media_type, begin, end = _FORMATS[path.suffix]
    if not (content.startswith(begin) and content.rstrip().endswith(end)):
        raise DataError(f"{path} is not a whole {path.suffix[1:].upper()} file; {_made_by(rule)}")
    return _download(content, name, media_type)


def archive(paths: Sequence[Path], name: str) -> Download:
    """Embed several files as one compressed tar archive; the same files give the same archive."""
    content = io.BytesIO()
    # Dates are left out, because they depend on the time of the job.
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


_FORMATS = {
    ".csv": ("text/csv", b"", b""),  # No bytes to check: reading the table is a better check.
    ".pdf": ("application/pdf", b"%PDF-", b"%%EOF"),
    ".svg": ("image/svg+xml", b"<?xml", b"</svg>"),
    ".html": ("text/html", b"<table", b"</table>"),
}
"""Media type by suffix, and the bytes with which this project's files of that kind begin and end."""


def _download(content: bytes, name: str, media_type: str) -> Download:
    size = f"{len(content)} bytes" if len(content) < 1000 else f"{round(len(content) / 1000):,} kB"
    return Download(name, _data_uri(content, media_type), size)


def _data_uri(content: bytes, media_type: str) -> str:
    return f"data:{media_type};base64,{base64.b64encode(content).decode('ascii')}"
