"""Digits, MNIST and Adult: what is parsed, what is refused, and the published facts about the real files."""

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from certified_unlearning.data import adult, mnist
from certified_unlearning.data.adult import ADULT, ALL_COLUMNS
from certified_unlearning.data.cifar10 import TEN_CLASSES
from certified_unlearning.data.dataset import DataSet
from certified_unlearning.data.digits import DIGITS
from certified_unlearning.data.mnist import THREE_AGAINST_EIGHT
from certified_unlearning.data.sets import find
from certified_unlearning.errors import DataError, ParameterError


def idx(array: np.ndarray) -> bytes:
    sizes = np.array(array.shape, ">u4").tobytes()
    return bytes([0, 0, 8, array.ndim]) + sizes + array.astype(np.uint8).tobytes()


def adult_line(age: str = "39", hours: str = "40", income: str = "<=50K") -> str:
    return (
        f"{age}, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, "
        f"2174, 0, {hours}, United-States, {income}"
    )


def test_an_idx_file_is_parsed() -> None:
    array = np.arange(24).reshape(2, 3, 4)
    assert np.array_equal(mnist.parse_idx(idx(array), 3, "images"), array)


@pytest.mark.parametrize(
    ("content", "dimensions", "message"),
    [
        (idx(np.zeros((2, 3, 4)))[:-1], 3, "labels is truncated: it has 39 bytes, but its header announces 40"),
        (idx(np.zeros(5)) + b"x", 1, "labels is too long: it has 14 bytes, but its header announces 13"),
        (idx(np.zeros(5))[:6], 1, "labels is truncated: it has 6 bytes, but its header alone takes 8"),
        (b"", 1, "it starts with nothing, expected 00 00 08 01"),
        (idx(np.zeros((2, 3, 4))), 1, "it starts with 00 00 08 03, expected 00 00 08 01"),
        (b"\x00\x00\x0d\x01" + idx(np.zeros(5))[4:], 1, "it starts with 00 00 0d 01, expected 00 00 08 01"),
        (b"\x00\x00\x08\x03" + b"\xff" * 12, 3, f"its header announces {16 + (2**32 - 1) ** 3}"),
    ],
)
def test_a_damaged_idx_file_is_refused(content: bytes, dimensions: int, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        mnist.parse_idx(content, dimensions, "labels")


def mnist_arrays() -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    arrays = []
    for digits in ([3, 8, 1, 3, 8], [8, 3, 0]):
        arrays += [generator.integers(0, 256, (len(digits), 28, 28)).astype(np.uint8), np.uint8(digits)]
    return arrays


def test_threes_and_eights_are_selected_and_scaled() -> None:
    train_images, train_digits, test_images, test_digits = mnist_arrays()
    data = mnist.three_against_eight(train_images, train_digits, test_images, test_digits)
    assert data.train_labels.tolist() == [1, -1, 1, -1]
    assert data.test_labels.tolist() == [-1, 1]
    row = train_images[3].reshape(-1) / 255 - 0.5
    np.testing.assert_allclose(data.train_features[2], row / np.sqrt(np.sum(row**2)), rtol=1e-6)


def test_mnist_without_a_class_names_it() -> None:
    train_images, train_digits, test_images, _ = mnist_arrays()
    with pytest.raises(DataError, match="test part: the class of digit 8 has no records"):
        mnist.three_against_eight(train_images, train_digits, test_images, np.uint8([3, 3, 0]))


def test_images_and_labels_must_belong_together() -> None:
    train_images, train_digits, test_images, test_digits = mnist_arrays()
    with pytest.raises(DataError, match="there are 4 images, but 5 labels"):
        mnist.three_against_eight(train_images[:4], train_digits, test_images, test_digits)
    with pytest.raises(DataError, match=r"images have \(27, 28\) pixels"):
        mnist.three_against_eight(train_images[:, 1:], train_digits, test_images, test_digits)


def test_adult_lines_are_parsed() -> None:
    text = "\n".join([adult_line(), adult_line(age="?", hours="12", income=">50K"), ""])
    values, words, labels = adult.parse(text.encode(), "adult.data")
    np.testing.assert_array_equal(values, [[39, 77516, 13, 2174, 0, 40], [np.nan, 77516, 13, 2174, 0, 12]])
    assert words.shape == (2, 8)
    assert (words[0] == words[1]).all()
    assert words[0, 0] == "State-gov"
    assert labels.tolist() == [-1, 1]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (adult_line().rsplit(",", 3)[0] + ", <=50K", "adult.data, line 2: 13 columns, expected the 15 columns age"),
        (adult_line(age="old"), "adult.data, line 2: age is 'old', expected a number"),
        (adult_line(hours="nan"), "adult.data, line 2: hours-per-week is 'nan', expected a finite number"),
        (adult_line(hours="inf"), "adult.data, line 2: hours-per-week is 'inf', expected a finite number"),
        (adult_line(income="50K"), "adult.data, line 2: income is '50K', expected >50K or <=50K"),
    ],
)
def test_a_bad_adult_line_is_named(line: str, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        adult.parse(f"{adult_line()}\n{line}\n".encode(), "adult.data")


def adult_values() -> tuple[np.ndarray, np.ndarray]:
    values = np.random.default_rng(1).normal(50, 10, (200, 6))
    return values, np.tile(np.array([1, -1], np.int8), 100)


def test_adult_is_scaled_by_its_training_part_only() -> None:
    values, labels = adult_values()
    values[:, 0] = np.arange(200)  # So that a row tells where it came from.
    data = adult.split_and_scale(values, labels, seed=7)
    assert (data.n, len(data.test_labels)) == (180, 20)
    order = np.random.RandomState(7).permutation(200)
    test, train = values[order[:20]], values[order[20:]]
    for part, expected in ((data.train_features, train), (data.test_features, test)):
        scaled = (expected - train.mean(axis=0)) / train.std(axis=0)
        np.testing.assert_allclose(part, scaled / np.linalg.norm(scaled, axis=1, keepdims=True), rtol=1e-5, atol=1e-7)


def test_words_become_indicators_of_the_values_that_the_training_part_has() -> None:
    values, labels = adult_values()
    words = np.full((200, 8), "same", dtype="<U8")
    words[:, 0] = np.resize(["a", "b", "?"], 200)
    order = np.random.RandomState(7).permutation(200)
    words[order[0], 0] = "new"  # A test record's.
    data = adult.split_and_scale(values, labels, 7, words)
    plain = adult.split_and_scale(values, labels, 7)
    assert data.d == 6 + 3 + 7
    assert data.train_labels.tolist() == plain.train_labels.tolist()
    for part, of_numbers, chosen in (
        (data.train_features, plain.train_features, order[20:]),
        (data.test_features, plain.test_features, order[:20]),
    ):
        # Rows of norm 1: numbers and indicators are shrunk alike.
        directions = part[:, :6] / np.linalg.norm(part[:, :6], axis=1, keepdims=True)
        np.testing.assert_allclose(directions, of_numbers, atol=1e-6)
        assert ((part[:, 6:9] > 0) == (words[chosen, :1] == ["?", "a", "b"])).all()
        assert (part[:, 9:] > 0).all()
    assert not data.test_features[0, 6:9].any()


def test_missing_adult_values_become_the_training_median() -> None:
    values, labels = adult_values()
    order = np.random.RandomState(7).permutation(200)
    missing_test, missing_train = order[0], order[20]
    values[[missing_test, missing_train], 2] = np.nan
    filled = values.copy()
    filled[[missing_test, missing_train], 2] = np.median(values[order[21:], 2])
    assert adult.split_and_scale(values, labels, 7).sha256 == adult.split_and_scale(filled, labels, 7).sha256


def test_a_constant_adult_column_and_a_class_without_records_are_refused() -> None:
    values, labels = adult_values()
    with pytest.raises(DataError, match=r"adult, training part: class -1 has no records"):
        adult.split_and_scale(values, np.ones_like(labels), 7)
    values[:, 4] = 3
    with pytest.raises(DataError, match="column capital-loss has fewer than two different values"):
        adult.split_and_scale(values, labels, 7)


def test_too_few_adult_records_are_refused(tmp_path: Path) -> None:
    (tmp_path / "adult").mkdir()
    (tmp_path / "adult" / "adult.data").write_text(f"{adult_line()}\n")
    with pytest.raises(DataError, match="has 1 records, expected 32561"):
        ADULT.prepare(tmp_path, 0)


def test_a_missing_raw_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read .*train-images-idx3-ubyte\.gz: No such file"):
        THREE_AGAINST_EIGHT.prepare(tmp_path, 0)


def test_digits_are_split_by_the_seed_and_stratified(tmp_path: Path) -> None:
    data = DIGITS.prepare(tmp_path, 123)
    assert (data.n, len(data.test_labels), data.d) == (1437, 360, 64)
    assert data.sha256 == DIGITS.prepare(tmp_path, 123).sha256
    assert data.sha256 != DIGITS.prepare(tmp_path, 124).sha256
    # 891 of the 1 797 digits are even.
    assert np.count_nonzero(data.train_labels == 1) == pytest.approx(891 * 0.8, abs=1)
    np.testing.assert_allclose(np.linalg.norm(data.train_features, axis=1), 1, atol=1e-6)


def test_an_unknown_data_set_is_refused() -> None:
    known = "digits, mnist-3-vs-8, mnist-10, adult, adult-14, cifar10-cat-vs-ship, cifar10"
    with pytest.raises(ParameterError, match=f"'mnist'; known data sets are {known}"):
        find("mnist")


@pytest.mark.parametrize(
    ("module", "costly"), [("data", {"sklearn", "torch", "numpy"}), ("data.sets", {"sklearn", "torch", "pandas"})]
)
def test_importing_the_package_and_the_list_of_data_sets_is_cheap(module: str, costly: set[str]) -> None:
    code = f"import sys, certified_unlearning.{module}; print({costly} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_real_mnist_is_as_published(real_raw_root: Path) -> None:
    data = THREE_AGAINST_EIGHT.prepare(real_raw_root, 0)
    assert (data.n, len(data.test_labels), data.d) == (11_982, 1_984, 784)
    assert np.count_nonzero(data.train_labels == 1) == 6131
    # Specification, section 5: the value that reproduces Table 2; 1e-8 leaves room for float32 storage.
    assert data.largest_eigenvalue == pytest.approx(0.7308741769, abs=1e-8)


def test_real_adult_is_as_published(real_raw_root: Path) -> None:
    data = ADULT.prepare(real_raw_root, 123)
    assert (data.n, len(data.test_labels), data.d) == (29_304, 3_257, 6)
    everything = ALL_COLUMNS.prepare(real_raw_root, 123)
    # One of the 102 words stands in a single record, which is in the test part of this split.
    assert (everything.n, everything.d) == (29_304, 6 + 101)
    assert (everything.train_labels == data.train_labels).all()


@pytest.mark.parametrize("data_set", [THREE_AGAINST_EIGHT, ADULT], ids=lambda data_set: data_set.name)
def test_the_real_files_in_place_are_the_published_bytes(real_raw_root: Path, data_set: DataSet) -> None:
    for raw in data_set.raw_files:
        assert hashlib.md5((real_raw_root / raw.path).read_bytes()).hexdigest() == raw.md5


def test_a_real_file_with_another_content_is_refused(real_raw_root: Path, tmp_path: Path) -> None:
    (tmp_path / "adult").mkdir()
    content = (real_raw_root / "adult" / "adult.data").read_text().replace("39,", "38,", 1)
    (tmp_path / "adult" / "adult.data").write_text(content)
    with pytest.raises(DataError, match=r"is not the published adult/adult\.data"):
        ADULT.prepare(tmp_path, 0)


def test_dvc_files_name_the_published_md5_and_address() -> None:
    yaml = pytest.importorskip("yaml")
    root = Path(__file__).parents[2] / "data" / "raw"
    for raw in (*THREE_AGAINST_EIGHT.raw_files, *ADULT.raw_files, *TEN_CLASSES.raw_files):
        content = yaml.safe_load((root / f"{raw.path}.dvc").read_text())
        assert content["meta"]["source"] == raw.addresses[0]
        assert content["outs"][0]["md5"] == raw.md5
        assert content["outs"][0]["path"] == Path(raw.path).name
