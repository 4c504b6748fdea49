"""CIFAR-10: both archives, what is refused in them, the split, the labels; and a part of the real images."""

import hashlib
import io
import os
import re
import sys
import tarfile
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from certified_unlearning.data import cifar10, hog
from certified_unlearning.data.adult import ADULT
from certified_unlearning.data.cifar10 import CAT_AGAINST_SHIP, CLASSES, TEN_CLASSES, parse_binary, parse_jpeg
from certified_unlearning.data.dataset import DataSet
from certified_unlearning.data.features import Extractor, extract
from certified_unlearning.data.fetch import fetch
from certified_unlearning.data.raw_file import RawFile
from certified_unlearning.errors import DataError, ParameterError

needs_pillow = pytest.mark.skipif(find_spec("PIL") is None, reason="the extra 'images' is not installed")


def images(count: int, seed: int = 0) -> np.ndarray:
    """Flat colour images with some noise: JPEG changes them little."""
    generator = np.random.default_rng(seed)
    colours = generator.integers(20, 236, (count, 1, 1, 3))
    return (colours + generator.integers(-8, 9, (count, 32, 32, 3))).astype(np.uint8)


def batch(pixels: np.ndarray, numbers: np.ndarray) -> bytes:
    records = [
        bytes([number]) + image.transpose(2, 0, 1).tobytes() for image, number in zip(pixels, numbers, strict=True)
    ]
    return b"".join(records)


def tar(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def batches() -> dict[str, bytes]:
    """Five training batches of 6 records and a test batch of 20, with every class in both parts."""
    numbers = np.arange(30) % 10
    files = {
        f"data_batch_{at + 1}.bin": batch(images(6, seed=at), numbers[6 * at : 6 * at + 6]) for at in (4, 1, 0, 2, 3)
    }
    return files | {"batches.meta.txt": b"airplane\n", "test_batch.bin": batch(images(20, seed=5), np.arange(20) % 10)}


def encoded(pixels: np.ndarray, kind: str = "JPEG") -> bytes:
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, kind, quality=95)
    return stream.getvalue()


def jpegs() -> dict[str, bytes]:
    """Three training and two test images of each class."""
    files = {}
    for part, count in (("train", 3), ("test", 2)):
        for number, label in enumerate(CLASSES):
            for at, image in enumerate(images(count, seed=10 * count + number)):
                files[f"{part}/{label}/{at:04d}.jpg"] = encoded(image)
    return files


def zipped(files: dict[str, bytes], order: Callable[[list[str]], list[str]] = list) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in order(list(files)):
            archive.writestr(name, files[name])
    return stream.getvalue()


def publish(monkeypatch: pytest.MonkeyPatch, binary: bytes, copy: bytes = b"") -> None:
    """Make synthetic archives the published ones."""

    def raw(path: str, content: bytes, lossy_copy: RawFile | None = None) -> RawFile:
        return RawFile(path, hashlib.sha256(content).hexdigest(), "", (), lossy_copy=lossy_copy)

    archive = raw("cifar10/batches.tar.gz", binary, raw("cifar10/jpeg.zip", copy))
    monkeypatch.setattr(cifar10, "ARCHIVE", archive)


def put(root: Path, name: str, content: bytes) -> None:
    (root / "cifar10").mkdir(exist_ok=True)
    (root / "cifar10" / name).write_bytes(content)


@pytest.fixture
def mean_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instead of hog: each image's mean colour, which tells where a record came from."""

    def load(raw_root: Path) -> Extractor:
        return Extractor("hog", "mean colour", "not learned", {}, lambda part: part.mean(axis=(1, 2)))

    monkeypatch.setattr(hog, "load", load)


def test_binary_batches_are_read_in_their_order_with_every_pixel_and_class_in_its_place() -> None:
    train, test = parse_binary(tar(batches()), "archive")
    assert train.images.shape == (30, 32, 32, 3)
    np.testing.assert_array_equal(train.images, np.concatenate([images(6, seed=at) for at in range(5)]))
    np.testing.assert_array_equal(test.images, images(20, seed=5))
    assert train.numbers.tolist() == [*range(10)] * 3
    assert test.numbers.tolist() == [*range(10)] * 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda files: files.pop("data_batch_4.bin"), "archive lacks the batch data_batch_4.bin"),
        (
            lambda files: files.update({"test_batch.bin": files["test_batch.bin"][:-1]}),
            "archive, test_batch.bin has 61459 bytes, expected records of 3073",
        ),
        (lambda files: files.update({"test_batch.bin": b""}), "archive, test_batch.bin has 0 bytes"),
        (
            lambda files: files.update({"test_batch.bin": b"\x0a" + files["test_batch.bin"][1:]}),
            "archive, test_batch.bin: a record has class 10, expected 0 to 9",
        ),
    ],
)
def test_a_wrong_batch_is_named(change: Callable[[dict[str, bytes]], object], message: str) -> None:
    files = batches()
    change(files)
    with pytest.raises(DataError, match=re.escape(message)):
        parse_binary(tar(files), "archive")


@pytest.mark.parametrize("damage", [lambda content: content[:-2000], lambda content: b"", lambda content: b"\x80\x04}"])
def test_a_damaged_archive_is_refused(damage: Callable[[bytes], bytes]) -> None:
    with pytest.raises(DataError, match=r"^archive is truncated or damaged") as caught:
        parse_binary(damage(tar(batches())), "archive")
    assert "\n" not in str(caught.value)
    with pytest.raises(DataError, match=r"^archive is truncated or damaged"):
        parse_jpeg(damage(zipped({"train/cat/0.jpg": bytes(3000)})), "archive")


@needs_pillow
def test_jpeg_images_are_read_by_class_and_name() -> None:
    train, test = parse_jpeg(zipped(jpegs()), "archive")
    assert train.numbers.tolist() == sorted([*range(10)] * 3)
    assert test.numbers.tolist() == sorted([*range(10)] * 2)
    for number in range(10):
        original = images(3, seed=30 + number)
        difference = train.images[3 * number : 3 * number + 3].mean(axis=(1, 2)) - original.mean(axis=(1, 2))
        assert np.abs(difference).max() < 2  # Mean colours differ by more than that; JPEG changes them by less.


@needs_pillow
def test_the_order_of_the_zip_archive_is_irrelevant_to_the_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mean_colours: None
) -> None:
    def shuffled(names: list[str]) -> list[str]:
        return [str(name) for name in np.random.default_rng(1).permutation(names)]

    digests = set()
    for order in (list, shuffled, lambda names: names[::-1]):
        copy = zipped(jpegs(), order)
        publish(monkeypatch, b"", copy)
        put(tmp_path, "jpeg.zip", copy)
        digests.add((TEN_CLASSES.prepare(tmp_path, 0).sha256, CAT_AGAINST_SHIP.prepare(tmp_path, 7).sha256))
    assert len(digests) == 1


@needs_pillow
@pytest.mark.parametrize("folder", ["train/cat", "test/truck"])
def test_a_missing_class_folder_is_named(folder: str) -> None:
    files = {name: content for name, content in jpegs().items() if not name.startswith(folder)}
    with pytest.raises(DataError, match=rf"^archive has no images {folder}/\*\.jpg$"):
        parse_jpeg(zipped(files | {f"{folder}/": b""}), "archive")


@needs_pillow
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lambda: encoded(images(1)[0])[:-300], "archive, test/ship/0001.jpg is not a complete JPEG image"),
        (lambda: b"\xff\xd8 no image", "archive, test/ship/0001.jpg is not a complete JPEG image"),
        (lambda: b"", "archive, test/ship/0001.jpg is not a complete JPEG image"),
        (lambda: encoded(images(1)[0], "PNG"), "archive, test/ship/0001.jpg is not a complete JPEG image"),
        (
            lambda: encoded(images(1)[0][:31]),
            "archive, test/ship/0001.jpg: (32, 31) pixels, RGB, expected (32, 32), RGB",
        ),
        (lambda: encoded(images(1)[0, :, :, 0]), "archive, test/ship/0001.jpg: (32, 32) pixels, L, expected"),
    ],
)
def test_a_wrong_jpeg_image_is_named_in_one_sentence(content: Callable[[], bytes], message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)) as caught:
        parse_jpeg(zipped(jpegs() | {"test/ship/0001.jpg": content()}), "archive")
    assert "\n" not in str(caught.value)


@needs_pillow
def test_a_flipped_bit_in_a_zip_member_is_refused() -> None:
    files = jpegs()
    content = bytearray(zipped(files))
    content[content.index(files["train/cat/0001.jpg"]) + 400] ^= 1
    with pytest.raises(DataError, match=r"damaged .*CRC.*train/cat/0001\.jpg"):
        parse_jpeg(bytes(content), "archive")


def test_the_jpeg_copy_needs_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(ParameterError, match=r"JPEG copy of CIFAR-10 needs Pillow.*certified-unlearning\[images\]"):
        parse_jpeg(zipped({}), "archive")


def test_cat_is_plus_one_and_ship_minus_one_and_rows_have_norm_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mean_colours: None
) -> None:
    content = tar(batches())
    publish(monkeypatch, content)
    put(tmp_path, "batches.tar.gz", content)
    data = CAT_AGAINST_SHIP.prepare(tmp_path, 0)
    assert data.train_labels.tolist() == [1, -1] * 3
    assert data.test_labels.tolist() == [1, -1] * 2
    colours = np.concatenate([images(6, seed=at) for at in range(5)])[[3, 8, 13, 18, 23, 28]].mean(axis=(1, 2))
    expected = colours / np.linalg.norm(colours, axis=1, keepdims=True)
    np.testing.assert_allclose(data.train_features, expected, rtol=1e-6)
    assert data.summary()["classes"] == {"train": {"-1": 3, "+1": 3}, "test": {"-1": 2, "+1": 2}}
    assert (data.name, data.features) == ("cifar10-cat-vs-ship", "mean colour of original images")
    assert data.preprocessing == (
        "cat = +1, ship = -1; original images; mean colour (not learned); rows of norm 1; published split"
    )


def test_ten_classes_have_the_labels_0_to_9(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mean_colours: None
) -> None:
    content = tar(batches())
    publish(monkeypatch, content)
    put(tmp_path, "batches.tar.gz", content)
    data = TEN_CLASSES.prepare(tmp_path, 0, features="hog")
    assert data.train_labels.tolist() == [*range(10)] * 3
    assert data.summary()["classes"]["test"] == dict.fromkeys(CLASSES, 2)
    np.testing.assert_allclose(np.linalg.norm(data.train_features, axis=1), 1, atol=1e-6)
    assert data.sha256 == TEN_CLASSES.prepare(tmp_path, 1).sha256


@needs_pillow
def test_the_original_images_are_preferred_and_the_record_says_which_were_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mean_colours: None
) -> None:
    binary, copy = tar(batches()), zipped(jpegs())
    publish(monkeypatch, binary, copy)
    put(tmp_path, "jpeg.zip", copy)
    lossy = TEN_CLASSES.prepare(tmp_path, 0)
    assert lossy.features == "mean colour of lossy JPEG copies of the images"
    assert "lossy JPEG copies" in lossy.preprocessing
    put(tmp_path, "batches.tar.gz", binary)
    original = TEN_CLASSES.prepare(tmp_path, 0)
    assert original.features == "mean colour of original images"
    assert "lossy" not in original.preprocessing
    assert original.sha256 != lossy.sha256


@needs_pillow
def test_an_archive_with_another_digest_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mean_colours: None
) -> None:
    publish(monkeypatch, tar(batches()), zipped(jpegs()))
    changed = jpegs() | {"train/cat/0000.jpg": encoded(images(1, seed=99)[0])}
    put(tmp_path, "jpeg.zip", zipped(changed))
    with pytest.raises(
        DataError, match=r"jpeg\.zip is not the published cifar10/jpeg\.zip: the SHA-256 of its content"
    ):
        TEN_CLASSES.prepare(tmp_path, 0)
    put(tmp_path, "batches.tar.gz", tar(batches() | {"data_batch_1.bin": batch(images(6, seed=99), np.arange(6))}))
    with pytest.raises(DataError, match=r"batches\.tar\.gz is not the published cifar10/batches\.tar\.gz"):
        TEN_CLASSES.prepare(tmp_path, 0)


def test_a_missing_archive_is_named(tmp_path: Path, mean_colours: None) -> None:
    with pytest.raises(DataError, match=r"cannot read .*cifar-10-binary\.tar\.gz: No such file"):
        TEN_CLASSES.prepare(tmp_path, 0)


@pytest.mark.parametrize(
    ("data_set", "features", "message"),
    [
        (TEN_CLASSES, "pixels", "the data set cifar10 has no features 'pixels'; it has hog and resnet18"),
        (ADULT, "hog", "the data set adult has no features 'hog'; it offers no choice"),
    ],
)
def test_features_that_a_data_set_does_not_have_are_refused(
    tmp_path: Path, data_set: DataSet, features: str, message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        data_set.prepare(tmp_path, 0, features=features)


@needs_pillow
def test_a_part_of_the_real_copy_is_prepared_and_cats_can_be_told_from_ships(tmp_path: Path) -> None:
    if not os.environ.get("UNLEARNING_DATA"):
        pytest.skip("UNLEARNING_DATA is not set: no real CIFAR-10 here")
    pytest.importorskip("skimage", reason="the extra 'images' is not installed")
    from sklearn.linear_model import LogisticRegression

    (path,) = fetch(TEN_CLASSES, tmp_path)  # Checks the digest.
    if path.suffix != ".zip":
        pytest.skip("UNLEARNING_DATA holds the original images, this test reads the JPEG copy")
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        assert len(names) == 60_000
        assert {name.rsplit("/", 1)[0] for name in names} == {f"{p}/{c}" for p in ("train", "test") for c in CLASSES}
        files = {name: archive.read(name) for name in names if re.search("/0[01][0-9]{2}.jpg", name)}
    train, test = cifar10.parse_jpeg(zipped(files), "a part of the copy")
    vectors, labels = [], []
    for part in (train, test):
        chosen = np.isin(part.numbers, [3, 8])
        vectors.append(extract(hog.load(tmp_path), part.images[chosen], tmp_path / "features"))
        labels.append(part.numbers[chosen])
    assert [len(part) for part in vectors] == [400, 400]
    # 400 guesses reach 0.75 with probability 3e-24; the images and features are fixed, so it is always or never.
    assert LogisticRegression(C=10, max_iter=1000).fit(vectors[0], labels[0]).score(vectors[1], labels[1]) > 0.75
