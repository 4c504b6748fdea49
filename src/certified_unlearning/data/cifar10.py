"""CIFAR-10: 60 000 colour images of ten classes, from the published binary archive or from a JPEG copy of it."""

import io
import tarfile
import zipfile
import zlib
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.data.dataset import DataSet
from certified_unlearning.data.features import Extractor, extract, import_extra
from certified_unlearning.data.fetch import check, in_place, read
from certified_unlearning.data.prepared import PreparedData, unit_rows
from certified_unlearning.data.raw_file import RawFile
from certified_unlearning.errors import DataError

ARCHIVE = RawFile(
    # Of the published versions (Python, Matlab, binary), only this one consists of plain bytes. The batches of the
    # Python version are pickles, and unpickling can run code.
    "cifar10/cifar-10-binary.tar.gz",
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    "c32a1d4ab5d03f1284b67883e8d87530",
    ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
    lossy_copy=RawFile(
        "cifar10/cifar10-jpeg.zip",
        "cd7a4371e075145697873ef11961d3a787889dbb1058f046d9987108fd0a738b",
        "8f4cdc0a4df8039470218bea174c0511",
        (),
    ),
)
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
PIXELS = 32
"""Height and width of an image."""

BATCHES = {"train": tuple(f"data_batch_{number}.bin" for number in range(1, 6)), "test": ("test_batch.bin",)}


class Part(NamedTuple):
    """The training or the test part.

    Attributes:
        images: uint8, shape ``(count, 32, 32, 3)``.
        numbers: Classes as positions in `CLASSES`; uint8, shape ``(count,)``.
    """

    images: NDArray[np.uint8]
    numbers: NDArray[np.uint8]


def cat_vs_ship(raw_root: Path, seed: int, features: str = "hog") -> PreparedData:
    """Prepare cat (+1) against ship (-1); 10 000 training and 2 000 test records.

    Args:
        raw_root: Directory where `fetch.fetch` put the archive. Features are cached below it.
        seed: Not used, because CIFAR-10 has a fixed split.
        features: ``hog`` or ``resnet18``, the module that computes the features.

    Raises:
        DataError: The archive is missing, damaged or not the published one.
        ParameterError: An extra that the features or the archive need is not installed.
    """
    labels = {CLASSES.index("cat"): 1, CLASSES.index("ship"): -1}
    return _prepare("cifar10-cat-vs-ship", raw_root, features, labels, "cat = +1, ship = -1", ("-1", "+1"))


def ten_classes(raw_root: Path, seed: int, features: str = "hog") -> PreparedData:
    """Prepare all ten classes, labels 0 to 9; 50 000 training and 10 000 test records.

    Arguments and errors are those of `cat_vs_ship`.
    """
    labels = {number: number for number in range(len(CLASSES))}
    return _prepare("cifar10", raw_root, features, labels, "ten classes, labels 0 to 9", CLASSES)


def read_images(raw_root: Path) -> tuple[Part, Part, str]:
    """Read the available archive, preferring the published one to the JPEG copy.

    Returns:
        The training part, the test part, and a description of the images.

    Raises:
        DataError: The archive is missing, damaged or not the published one.
        ParameterError: The archive is the JPEG copy, and Pillow is not installed.
    """
    published = ARCHIVE
    raw = in_place(published, raw_root)
    path = raw_root / raw.path
    content = read(raw, path)
    parse = parse_binary if raw is published else parse_jpeg
    # Parse before checking the digest, because parsing errors say more than a wrong digest does.
    train, test = parse(content, path)
    check(raw, content, path)
    return train, test, "original images" if raw is published else "lossy JPEG copies of the images"


def parse_binary(content: bytes, where: str | Path) -> tuple[Part, Part]:
    """Parse the published binary version (format: https://www.cs.toronto.edu/~kriz/cifar.html, "Binary version").

    Args:
        content: A gzipped tar archive of six batches. A record is one byte for the class, followed by 32 x 32 bytes
            each for red, green and blue, row by row.
        where: Name of the archive in error messages.

    Returns:
        The training and the test part, in the order of the archive's batches.

    Raises:
        DataError: The archive is damaged or lacks a batch, or a batch is cut short or has an unknown class.
    """
    batches = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
            for member in archive:
                if file := archive.extractfile(member):
                    batches[Path(member.name).name] = file.read()
    except (tarfile.TarError, OSError, EOFError, KeyError, zlib.error) as error:
        raise DataError(f"{where} is truncated or damaged ({error})") from error
    parts = []
    for names in BATCHES.values():
        for name in names:
            if name not in batches:
                raise DataError(f"{where} lacks the batch {name}")
        records = np.concatenate([_records(batches[name], f"{where}, {name}") for name in names])
        planes = records[:, 1:].reshape(-1, 3, PIXELS, PIXELS)
        parts.append(Part(np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), records[:, 0]))
    return parts[0], parts[1]


def parse_jpeg(content: bytes, where: str | Path) -> tuple[Part, Part]:
    """Parse a zip archive of JPEG images, ``train/<class>/<name>.jpg`` and ``test/<class>/<name>.jpg``.

    Args:
        content: The archive.
        where: Name of the archive in error messages.

    Returns:
        The training and the test part, each sorted by class and then by name.

    Raises:
        DataError: The archive is damaged, a class has no images, or an image is not a JPEG of 32 x 32 colour pixels.
        ParameterError: Pillow is not installed.
    """
    pillow = import_extra("PIL.Image", "images", "the JPEG copy of CIFAR-10 needs Pillow")
    parts = []
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            files = sorted(name for name in archive.namelist() if not name.endswith("/"))
            for part in BATCHES:
                folders = [[name for name in files if name.startswith(f"{part}/{label}/")] for label in CLASSES]
                for label, names in zip(CLASSES, folders, strict=True):
                    if not names:
                        raise DataError(f"{where} has no images {part}/{label}/*.jpg")
                counts = [len(names) for names in folders]
                images = np.empty((sum(counts), PIXELS, PIXELS, 3), np.uint8)
                for at, name in enumerate(chain(*folders)):
                    images[at] = _decode(pillow, archive.read(name), f"{where}, {name}")
                parts.append(Part(images, np.repeat(np.arange(len(CLASSES), dtype=np.uint8), counts)))
    except (zipfile.BadZipFile, EOFError, zlib.error) as error:
        raise DataError(f"{where} is truncated or damaged ({error})") from error
    return parts[0], parts[1]


def _prepare(
    name: str, raw_root: Path, features: str, labels: dict[int, int], meaning: str, classes: tuple[str, ...]
) -> PreparedData:
    # Comes before decoding, so that a missing extra is reported at once. Imported here, because PyTorch takes seconds.
    extractor = _extractor(features, raw_root)
    train, test, source = read_images(raw_root)

    def prepared(part: Part, where: str) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
        chosen = np.isin(part.numbers, list(labels))
        vectors = extract(extractor, part.images[chosen], raw_root / "cifar10" / "features")
        values = np.array([labels[number] for number in part.numbers[chosen].tolist()], np.int8)
        return unit_rows(vectors.astype(np.float64), f"{name}, {where} part"), values

    train_features, train_labels = prepared(train, "training")
    test_features, test_labels = prepared(test, "test")
    return PreparedData(
        name=name,
        features=f"{extractor.title} of {source}",
        train_features=train_features,
        train_labels=train_labels,
        test_features=test_features,
        test_labels=test_labels,
        preprocessing=f"{meaning}; {source}; {extractor.title} ({extractor.privacy}); rows of norm 1; published split",
        classes=classes,
    )


def _records(content: bytes, where: str) -> NDArray[np.uint8]:
    size = 1 + 3 * PIXELS**2
    if not content or len(content) % size:
        raise DataError(f"{where} has {len(content)} bytes, expected records of {size}")
    records = np.frombuffer(content, np.uint8).reshape(-1, size)
    if records[:, 0].max() >= len(CLASSES):
        raise DataError(f"{where}: a record has class {records[:, 0].max()}, expected 0 to {len(CLASSES) - 1}")
    return records


def _decode(pillow: Any, content: bytes, where: str) -> NDArray[np.uint8]:
    try:
        with pillow.open(io.BytesIO(content), formats=["JPEG"]) as image:
            if image.size != (PIXELS, PIXELS) or image.mode != "RGB":
                raise DataError(f"{where}: {image.size} pixels, {image.mode}, expected {(PIXELS, PIXELS)}, RGB")
            return np.asarray(image)
    except OSError as error:
        raise DataError(f"{where} is not a complete JPEG image") from error


def _extractor(features: str, raw_root: Path) -> Extractor:
    # Imported here, because each needs a separate package.
    if features == "resnet18":
        from certified_unlearning.data import resnet18

        return resnet18.load(raw_root)
    from certified_unlearning.data import hog

    return hog.load(raw_root)


FEATURES = ("hog", "resnet18")
CAT_AGAINST_SHIP = DataSet(
    "cifar10-cat-vs-ship", "CIFAR-10 cat vs ship", cat_vs_ship, raw_files=(ARCHIVE,), features=FEATURES
)
TEN_CLASSES = DataSet("cifar10", "CIFAR-10", ten_classes, classes=10, raw_files=(ARCHIVE,), features=FEATURES)
