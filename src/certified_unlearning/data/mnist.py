"""MNIST, 3 against 8 or all ten digits, from the four published IDX files."""

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.data.dataset import DataSet
from certified_unlearning.data.fetch import check, read
from certified_unlearning.data.prepared import PreparedData, unit_rows
from certified_unlearning.data.raw_file import RawFile
from certified_unlearning.errors import DataError


def _mnist(name: str, sha256: str, md5: str, gzip_header: bytes | None = None) -> RawFile:
    mirrors = (
        "https://ossci-datasets.s3.amazonaws.com/mnist",
        "https://storage.googleapis.com/cvdf-datasets/mnist",
    )
    addresses = tuple(f"{mirror}/{name}" for mirror in mirrors)
    return RawFile(f"mnist/{name}", sha256, md5, addresses, gzip_header)


RAW_FILES = (
    _mnist(
        "train-images-idx3-ubyte.gz",
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        # RFC 1952: deflate, with name; written 1996-11-18 15:36:26 UTC on Unix.
        b"\x1f\x8b\x08\x08" + (848_331_386).to_bytes(4, "little") + b"\x00\x03train-images.idx3-ubyte\x00",
    ),
    _mnist(
        "train-labels-idx1-ubyte.gz",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "d53e105ee54ea40749a09fcbcd1e9432",
    ),
    _mnist(
        "t10k-images-idx3-ubyte.gz",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "9fb629c4189551a2d022fa330f9573f3",
    ),
    _mnist(
        "t10k-labels-idx1-ubyte.gz",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        "ec29112dd5afa0611ce80d1b7f02629c",
    ),
)
PIXELS = 28
"""Height and width of an image."""


def prepare(raw_root: Path, seed: int) -> PreparedData:
    """Prepare 3 (+1) against 8 (-1): pixels / 255 - 0.5, rows of norm 1.

    There are 11 982 training and 1 984 test records.

    Args:
        raw_root: Directory where `fetch.fetch` put the files.
        seed: Not used, because MNIST has a fixed split.

    Raises:
        DataError: A file is missing, damaged or not the published one.
    """
    return three_against_eight(*_parsed(raw_root))


def prepare_ten_digits(raw_root: Path, seed: int) -> PreparedData:
    """Prepare all ten digits: pixels from -1 to 1, divided by 28, the largest possible norm.

    There are 60 000 training and 10 000 test records. One constant for all rows preserves relative norms.

    Args:
        raw_root: Directory where `fetch.fetch` put the files.
        seed: Not used, because MNIST has a fixed split.

    Raises:
        DataError: A file is missing, damaged or not the published one.
    """
    train_images, train_labels, test_images, test_labels = _parsed(raw_root)
    return PreparedData(
        name=TEN_DIGITS.name,
        features="pixels",
        train_features=_scaled(train_images, train_labels, "MNIST, training part"),
        train_labels=train_labels.astype(np.int8),
        test_features=_scaled(test_images, test_labels, "MNIST, test part"),
        test_labels=test_labels.astype(np.int8),
        preprocessing="pixels / 127.5 - 1, divided by 28; published split",
        classes=tuple(str(digit) for digit in range(10)),
    )


def _scaled(images: NDArray[np.uint8], digits: NDArray[np.uint8], where: str) -> NDArray[np.float32]:
    _require_fitting(images, digits, where)
    pixels = images.reshape(len(images), -1).astype(np.float32)
    return (pixels / np.float32(127.5) - np.float32(1)) / np.float32(PIXELS)


def _parsed(raw_root: Path) -> list[NDArray[np.uint8]]:
    """Return the training images and labels, followed by the test images and labels."""
    arrays = []
    for raw, dimensions in zip(RAW_FILES, (3, 1, 3, 1), strict=True):
        path = raw_root / raw.path
        content = read(raw, path)
        # Parse before checking the digest, because parsing errors say more than a wrong digest does.
        arrays.append(parse_idx(content, dimensions, path))
        check(raw, content, path)
    return arrays


def parse_idx(content: bytes, dimensions: int, where: str | Path) -> NDArray[np.uint8]:
    """Parse an IDX file of unsigned bytes (format: http://yann.lecun.com/exdb/mnist/, "file formats").

    Args:
        content: The decompressed bytes: magic number ``00 00 08 dimensions``, big-endian sizes, values.
        dimensions: Number of dimensions that the array in the file must have.
        where: Name of the file in error messages.

    Raises:
        DataError: The magic number is wrong, or the file is longer or shorter than its header says.
    """
    magic = bytes([0, 0, 8, dimensions])
    if content[:4] != magic:
        raise DataError(
            f"{where} is not an IDX file of unsigned bytes in {dimensions} dimensions: "
            f"it starts with {content[:4].hex(' ') or 'nothing'}, expected {magic.hex(' ')}"
        )
    header = 4 + 4 * dimensions
    if len(content) < header:
        raise DataError(f"{where} is truncated: it has {len(content)} bytes, but its header alone takes {header}")
    sizes = [int(size) for size in np.frombuffer(content, ">u4", dimensions, offset=4)]
    expected = header + math.prod(sizes)
    if len(content) != expected:
        problem = "truncated" if len(content) < expected else "too long"
        raise DataError(f"{where} is {problem}: it has {len(content)} bytes, but its header announces {expected}")
    return np.frombuffer(content, np.uint8, offset=header).reshape(sizes)


def three_against_eight(
    train_images: NDArray[np.uint8],
    train_labels: NDArray[np.uint8],
    test_images: NDArray[np.uint8],
    test_labels: NDArray[np.uint8],
) -> PreparedData:
    """Select and normalise the two digits.

    Args:
        train_images: Shape ``(records, 28, 28)``.
        train_labels: Shape ``(records,)``, 0 to 9.
        test_images: As ``train_images``.
        test_labels: As ``train_labels``.

    Raises:
        DataError: Images and labels do not match, or a digit has no records.
    """
    train = _select(train_images, train_labels, "MNIST, training part")
    test = _select(test_images, test_labels, "MNIST, test part")
    return PreparedData(
        name="mnist-3-vs-8",
        features="pixels",
        train_features=train[0],
        train_labels=train[1],
        test_features=test[0],
        test_labels=test[1],
        preprocessing="3 = +1, 8 = -1; pixels / 255 - 0.5; rows of norm 1; published split",
    )


def _select(
    images: NDArray[np.uint8], digits: NDArray[np.uint8], where: str
) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
    _require_fitting(images, digits, where)
    for digit in (3, 8):
        if digit not in digits:
            raise DataError(f"{where}: the class of digit {digit} has no records")
    chosen = (digits == 3) | (digits == 8)
    pixels = images[chosen].reshape(-1, PIXELS**2)
    labels = np.where(digits[chosen] == 3, 1, -1).astype(np.int8)
    return unit_rows(pixels / 255 - 0.5, where), labels


def _require_fitting(images: NDArray[np.uint8], digits: NDArray[np.uint8], where: str) -> None:
    """Raise `DataError` unless there are images of the right size, and a label for each."""
    if images.shape[1:] != (PIXELS, PIXELS):
        raise DataError(f"{where}: images have {images.shape[1:]} pixels, expected {(PIXELS, PIXELS)}")
    if len(images) != len(digits):
        raise DataError(f"{where}: there are {len(images)} images, but {len(digits)} labels")


THREE_AGAINST_EIGHT = DataSet("mnist-3-vs-8", "MNIST 3 vs 8", prepare, raw_files=RAW_FILES, preset="mnist")
TEN_DIGITS = DataSet(
    "mnist-10", "MNIST, ten digits", prepare_ten_digits, classes=10, raw_files=RAW_FILES, preset="exact"
)
