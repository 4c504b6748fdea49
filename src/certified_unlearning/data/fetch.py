"""Find raw files in the directory that UNLEARNING_DATA names, in the DVC cache, or on the network.

No file is put in place before its content is checked. The check uses the SHA-256 of the decompressed bytes, because
recompressing the same bytes gives a different file. Archives (``.tar.gz``, ``.zip``) are checked without decompression.
"""

import configparser
import gzip
import hashlib
import os
import sys
import urllib.request
import zlib
from collections.abc import Callable
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError

from certified_unlearning.data.dataset import DataSet
from certified_unlearning.data.raw_file import RawFile
from certified_unlearning.errors import DataError
from certified_unlearning.files import atomic_path, write_json


def fetch(data_set: DataSet, raw_root: Path) -> list[Path]:
    """Put the raw files of a data set in place.

    Returns:
        The paths of the files; empty for a data set that needs no files.

    Raises:
        DataError: A file is damaged, or cannot be found.
        StorageError: ``raw_root`` cannot be written to.
    """
    return [fetch_file(raw, raw_root) for raw in data_set.raw_files]


def fetch_file(raw: RawFile, raw_root: Path, *, timeout: float = 20.0) -> Path:
    """Put one raw file in place, unless it is already there.

    A wrong file in ``raw_root``, or in the directory that UNLEARNING_DATA names, causes an error at once. The DVC cache
    and the addresses are tried in turn. If a lossy copy is available, nothing is downloaded.

    Args:
        raw: The file.
        raw_root: The directory below which the file is put.
        timeout: Seconds without an answer after which an address counts as failed.

    Returns:
        The file's path, or that of its lossy copy.

    Raises:
        DataError: The file is damaged, or cannot be found.
        StorageError: ``raw_root`` cannot be written to.
    """
    target = raw_root / raw.path
    if target.exists():
        check(raw, read(raw, target), target)
        return target
    failures = []
    directory = os.environ.get("UNLEARNING_DATA")
    if not directory:
        failures.append("UNLEARNING_DATA is not set")
    elif not (own := Path(directory) / raw.path).exists():
        failures.append(f"{own} does not exist")
    else:
        check(raw, read(raw, own), own)
        _put(raw, own.read_bytes(), target)
        return target
    copy = raw.lossy_copy
    roots = [raw_root, *([Path(directory)] if directory else [])]
    if copy and not any((root / copy.path).exists() for root in roots):
        copy = None
    places: list[tuple[str, Callable[[], bytes]]] = [("the DVC cache", partial(_from_dvc_cache, raw, raw_root))]
    if copy is None:
        places += [(address, partial(_download, address, timeout)) for address in raw.addresses]
    for place, load in places:
        try:
            content = load()
            check(raw, _decompress(raw, content, place), place)
        except DataError as error:
            failures.append(str(error))
        except (OSError, HTTPException) as error:
            failures.append(f"{place} failed ({_reason(error)})")
        else:
            _put(raw, content, target)
            return target
    if copy is not None:
        return fetch_file(copy, raw_root)
    instead = f" ({raw.lossy_copy.path} works, too, but is lossy)" if raw.lossy_copy else ""
    raise DataError(
        f"{raw.path} could not be obtained: {'; '.join(failures)}; download the file by other means, and save it as "
        f"{target}, or as {raw.path} in the directory that UNLEARNING_DATA names{instead}"
    )


def in_place(raw: RawFile, raw_root: Path) -> RawFile:
    """Return the raw file, or its lossy copy if only that was put in place."""
    copy = raw.lossy_copy
    return copy if copy and not (raw_root / raw.path).exists() and (raw_root / copy.path).exists() else raw


def read(raw: RawFile, path: Path) -> bytes:
    """Return the decompressed content of a raw file, not yet checked against the digest.

    Raises:
        DataError: The file is missing or is not a complete gzip file.
    """
    try:
        return _decompress(raw, path.read_bytes(), path)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error


def check(raw: RawFile, content: bytes, place: str | Path) -> None:
    """Check decompressed content against the published digest.

    Raises:
        DataError: The content differs; the message names both digests.
    """
    found = hashlib.sha256(content).hexdigest()
    if found != raw.sha256:
        kind = "decompressed content" if raw.compressed else "content"
        raise DataError(
            f"{place} is not the published {raw.path}: the SHA-256 of its {kind} is {found}, expected {raw.sha256}"
        )


def as_published(raw: RawFile, content: bytes) -> bytes:
    """Return the published file if ``content`` differs from it only in the gzip header; otherwise return ``content``.

    In some copies of MNIST, the header of the training images lacks the name and the time. With the original header the
    file has the published MD5, and DVC recognises it.
    """
    plain_header = b"\x1f\x8b\x08\x00"  # RFC 1952: the method is deflate, and the header is only the ten fixed bytes.
    if raw.gzip_header and content.startswith(plain_header):
        restored = raw.gzip_header + content[10:]
        if hashlib.md5(restored, usedforsecurity=False).hexdigest() == raw.md5:
            return restored
    return content


def write_manifest(data_set: DataSet, raw_root: Path, path: Path) -> None:
    """Write the sources of a data set: each raw file with the size and SHA-256 of its decompressed bytes.

    The manifest depends on content alone: not on the source of the files, nor on their compression.

    Raises:
        DataError: A raw file is missing or damaged.
        StorageError: The manifest cannot be written.
    """
    manifest: dict[str, Any] = {"dataset": data_set.name}
    if data_set.content_sha256 is not None:
        manifest |= {"source": f"{data_set.package} (embedded)", "sha256": data_set.content_sha256()}
    if data_set.raw_files:
        manifest["files"] = [_entry(in_place(raw, raw_root), raw_root) for raw in data_set.raw_files]
    write_json(path, manifest)


def _entry(raw: RawFile, raw_root: Path) -> dict[str, str | int]:
    content = read(raw, raw_root / raw.path)
    check(raw, content, raw_root / raw.path)
    return {"path": raw.path, "size": len(content), "sha256": raw.sha256}


def _put(raw: RawFile, content: bytes, target: Path) -> None:
    with atomic_path(target) as temporary:
        temporary.write_bytes(as_published(raw, content))


def _decompress(raw: RawFile, content: bytes, place: str | Path) -> bytes:
    if not raw.compressed:
        return content
    try:
        return gzip.decompress(content)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
        raise DataError(f"{place} is truncated or damaged ({error}): its MD5 is {md5}, expected {raw.md5}") from error


def _from_dvc_cache(raw: RawFile, raw_root: Path) -> bytes:
    """Return the file from the cache of the DVC repository around ``raw_root``."""
    above = (directory / ".dvc" for directory in raw_root.resolve().parents)
    repository = next((directory for directory in above if directory.is_dir()), None)
    if repository is None:
        raise DataError(f"{raw_root} is not in a DVC repository")
    config = configparser.ConfigParser(interpolation=None)
    try:
        config.read([repository / "config", repository / "config.local"], encoding="utf-8")
    except configparser.Error as error:
        raise DataError(f"the DVC configuration cannot be read ({' '.join(str(error).split())})") from error
    cache = repository / config.get("cache", "dir", fallback="cache")
    path = cache / "files" / "md5" / raw.md5[:2] / raw.md5[2:]
    if not path.exists():
        raise DataError(f"the DVC cache {cache} does not contain the file")
    return path.read_bytes()


def _download(address: str, timeout: float) -> bytes:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    print(f"downloading {address}", file=sys.stderr, flush=True)
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()
    console = Console(stderr=True)
    content = bytearray()
    with (
        urllib.request.urlopen(address, timeout=timeout) as response,
        Progress(*columns, console=console, disable=not console.is_terminal) as progress,
    ):
        announced = response.headers.get("Content-Length")
        task = progress.add_task(address.rsplit("/", 1)[1], total=float(announced) if announced else None)
        while chunk := response.read(1 << 16):
            content += chunk
            progress.advance(task, len(chunk))
    if announced and len(content) != int(announced):
        raise ConnectionError(f"the connection closed after {len(content)} of {announced} bytes")
    return bytes(content)


def _reason(error: Exception) -> str:
    if isinstance(error, HTTPError):
        return f"HTTP {error.code} {error.reason}"
    if isinstance(error, URLError) and isinstance(error.reason, OSError):
        error = error.reason
    return getattr(error, "strerror", None) or str(error)
