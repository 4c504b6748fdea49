"""Prepared data: what is checked, the digest, the file."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from certified_unlearning import files
from certified_unlearning.data import prepared
from certified_unlearning.data.prepared import PreparedData, unit_rows
from certified_unlearning.data.stored_rows import StoredRows
from certified_unlearning.errors import DataError, StorageError


def changed(array: np.ndarray, at: object, value: float) -> np.ndarray:
    array = array.copy()
    array[at] = value
    return array


@pytest.mark.parametrize(
    ("field", "change", "message"),
    [
        ("train_features", lambda a: changed(a, (3, 2), np.nan), "training part: the value in row 3, column 2 is nan"),
        ("test_features", lambda a: changed(a, (1, 4), np.inf), "test part: the value in row 1, column 4 is inf"),
        ("train_features", lambda a: a * np.float32(1 + 2e-6), "has norm 1.00000"),
        ("train_labels", lambda a: changed(a, 7, 0), "the label of row 7 is 0, expected -1 or +1"),
        ("train_labels", lambda a: changed(a, 7, -128), "the label of row 7 is -128"),
        ("train_labels", lambda a: np.abs(a), "training part: class -1 has no records"),
        ("test_labels", lambda a: -np.abs(a), "test part: class +1 has no records"),
        ("train_labels", lambda a: a[:-1], "40 rows of features, but labels of shape (39,)"),
        ("train_labels", lambda a: a.astype(np.int64), "labels int64, expected a float32 matrix and int8"),
        ("train_features", lambda a: a.astype(np.float64), "features are float64"),
        ("test_features", lambda a: a[:, :4], "test records have 4 features, training records 5"),
    ],
)
def test_unusable_data_are_refused(
    small: PreparedData, field: str, change: Callable[[np.ndarray], np.ndarray], message: str
) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        replace(small, **{field: change(getattr(small, field))})


def test_rows_are_scaled_to_norm_one_and_a_zero_row_has_no_direction() -> None:
    rows = unit_rows(np.array([[3.0, 4.0], [1e-100, 0.0]]), "data")
    np.testing.assert_allclose(rows, [[0.6, 0.8], [1, 0]], rtol=1e-7)
    with pytest.raises(DataError, match="data: row 1 is all zero"):
        unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]), "data")
    with pytest.raises(DataError, match="data: the value in row 0, column 1 is nan"):
        unit_rows(np.array([[3.0, np.nan]]), "data")


def test_the_digest_sees_every_array_and_their_order(small: PreparedData) -> None:
    digests = {small.sha256}
    for field in ("train_features", "train_labels", "test_features", "test_labels"):
        digests.add(replace(small, **{field: getattr(small, field)[::-1].copy()}).sha256)
    assert len(digests) == 5


def test_data_are_checked_hashed_and_summed_block_by_block(
    small: PreparedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = small.summary()
    monkeypatch.setattr(prepared, "_ROWS_AT_ONCE", 7)
    in_blocks = replace(small).summary()
    assert in_blocks.pop("largest_eigenvalue") == pytest.approx(whole.pop("largest_eigenvalue"), rel=1e-14)
    assert in_blocks == whole
    with pytest.raises(DataError, match="the value in row 38, column 2 is nan"):
        replace(small, train_features=changed(small.train_features, (38, 2), np.nan))
    with pytest.raises(DataError, match=r"row 39 has norm 1\.4"):
        replace(small, train_features=changed(small.train_features, 39, np.float32(0.632)))


def test_the_largest_eigenvalue_is_that_of_the_mean_outer_product(small: PreparedData) -> None:
    gram = sum(np.outer(row, row) for row in small.train_features.astype(np.float64)) / 40
    assert small.largest_eigenvalue == pytest.approx(max(np.linalg.eigvals(gram).real), rel=1e-12)


def test_saving_and_loading_changes_nothing(small: PreparedData, tmp_path: Path) -> None:
    small.save(tmp_path / "a.safetensors")
    loaded = PreparedData.load(tmp_path / "a.safetensors")
    assert loaded.sha256 == small.sha256
    assert loaded.summary() == small.summary()
    loaded.save(tmp_path / "b.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()


def test_the_file_is_the_one_that_safetensors_writes(small: PreparedData, tmp_path: Path) -> None:
    path = tmp_path / "data.safetensors"
    replace(small, name="klein, ü").save(path)
    with safetensors.safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
    assert path.read_bytes() == safetensors.numpy.save(safetensors.numpy.load_file(path), metadata)


def test_training_features_that_stay_in_their_file_are_the_same_data(
    small: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "data.safetensors"
    small.save(path)
    monkeypatch.setattr(prepared, "_ROWS_AT_ONCE", 7)
    stored = PreparedData.load(path, in_memory=False)
    assert isinstance(stored.train_features, StoredRows)
    assert np.array_equal(stored.train_features[:], small.train_features)
    assert stored.summary() == PreparedData.load(path).summary()
    stored.save(tmp_path / "copy.safetensors")
    assert (tmp_path / "copy.safetensors").read_bytes() == path.read_bytes()


def test_only_what_exceeds_a_quarter_of_the_memory_stays_in_its_file(
    small: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "data.safetensors"
    small.save(path)
    size = path.stat().st_size
    for memory, kind in ((4 * size, np.ndarray), (4 * size - 4, StoredRows)):
        monkeypatch.setattr(prepared.os, "sysconf", {"SC_PAGE_SIZE": 4, "SC_PHYS_PAGES": memory // 4}.__getitem__)
        assert isinstance(PreparedData.load(path).train_features, kind)


def test_more_than_two_classes_are_named_and_counted(three_classes: PreparedData, tmp_path: Path) -> None:
    assert three_classes.label_values == (0, 1, 2)
    three_classes.save(tmp_path / "three.safetensors")
    loaded = PreparedData.load(tmp_path / "three.safetensors")
    assert loaded.classes == ("ant", "bee", "cow")
    assert loaded.sha256 == three_classes.sha256
    assert loaded.summary() == three_classes.summary()
    assert loaded.summary()["classes"] == {"train": dict.fromkeys(("ant", "bee", "cow"), 10)} | {
        "test": dict.fromkeys(("ant", "bee", "cow"), 3)
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: changed(a, 7, 3), "three, training part: the label of row 7 is 3, expected 0 to 2"),
        (lambda a: changed(a, 7, -1), "three, training part: the label of row 7 is -1, expected 0 to 2"),
        (lambda a: np.where(a == 1, 2, a).astype(np.int8), "three, training part: class bee has no records"),
    ],
)
def test_wrong_labels_of_three_classes_are_refused(
    three_classes: PreparedData, change: Callable[[np.ndarray], np.ndarray], message: str
) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        replace(three_classes, train_labels=change(three_classes.train_labels))


def test_two_classes_have_the_digest_and_the_file_that_they_always_had(tmp_path: Path) -> None:
    features, labels = np.eye(4, dtype=np.float32), np.array([1, -1, 1, -1], np.int8)
    data = PreparedData("eye", "axes", features, labels, features[::-1].copy(), labels, "none")
    # From the version before there were more classes: results name data sets by this digest.
    assert data.sha256 == "effc7b1338460817b19e25248987db21f6601058924d53ac7c38e985c98b4984"
    data.save(tmp_path / "eye.safetensors")
    assert b"classes" not in (tmp_path / "eye.safetensors").read_bytes()


def test_the_summary_counts_the_classes(small: PreparedData) -> None:
    summary = small.summary()
    assert summary["classes"] == {"train": {"-1": 20, "+1": 20}, "test": {"-1": 5, "+1": 5}}
    assert (summary["n"], summary["n_test"], summary["d"]) == (40, 10, 5)
    assert summary["sha256"] == small.sha256


@pytest.mark.parametrize("in_memory", [True, False])
def test_every_damaged_file_is_refused(small: PreparedData, tmp_path: Path, in_memory: bool) -> None:
    path = tmp_path / "data.safetensors"
    small.save(path)
    content = path.read_bytes()
    flipped = bytearray(content)
    flipped[content.index(small.train_features.tobytes())] ^= 1  # The last bit of a feature: only the digest sees it.
    wrong_label = content[:-1] + b"\x05"
    another_type = content.replace(b'"dtype":"F32","shape":[40,5]', b'"dtype":"I32","shape":[40,5]')
    assert another_type != content
    for damaged in (content[:-10], content[:40], b"", bytes(flipped), wrong_label, another_type):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=re.escape(str(path))):
            PreparedData.load(path, in_memory=in_memory)
    with pytest.raises(DataError, match="cannot read"):
        PreparedData.load(tmp_path / "absent.safetensors", in_memory=in_memory)


def test_another_safetensors_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    path.write_bytes(safetensors.numpy.save({"weights": np.zeros(3)}))
    with pytest.raises(DataError, match="is not a prepared data set"):
        PreparedData.load(path)


def test_a_full_disk_leaves_the_old_file(small: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "data.safetensors"
    path.write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(StorageError, match="No space left on device"):
        small.save(path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
