"""A prepared data set of features and labels, its checks, its digest and its file format. Rows have norm at most 1."""

import hashlib
import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
from numpy.typing import NDArray

from certified_unlearning.data.stored_rows import StoredRows
from certified_unlearning.errors import DataError
from certified_unlearning.files import atomic_path
from certified_unlearning.vocabulary import ClassesFrom

NORM_TOLERANCE = 1e-6
"""Tolerated excess of a stored row's norm over 1: float32 rounding stays below it; forgotten scaling does not."""

_ROWS_AT_ONCE = 16_384
"""Number of rows that are read, checked, hashed and written together."""

_SAFETENSORS_TYPES = {"<f4": "F32", "|i1": "I8"}
_ARRAYS = ("train_features", "train_labels", "test_features", "test_labels")
_STRINGS = ("name", "features", "preprocessing")
_TWO_CLASSES = ("-1", "+1")


@dataclass(frozen=True, eq=False)
class PreparedData:
    """Classification data in the form that all mechanisms use.

    Attributes:
        name: The data set's name.
        features: Name of the features in records and certificates.
        train_features: float32, shape ``(n, d)``; every row has Euclidean norm at most 1. Either an array, or rows that
            stay in their file.
        train_labels: int8, shape ``(n,)``; each is one of `label_values`.
        test_features: float32, shape ``(n_test, d)``.
        test_labels: int8, shape ``(n_test,)``.
        preprocessing: Description of the preprocessing of the raw records.
        classes: The names of the classes, in the order of `label_values`.
        classes_from: The source of the list of classes; None if a built-in data set fixes the list.

    Raises:
        DataError: A value is not finite, a row's norm is above 1, an array has a wrong shape or dtype, a label is not
            in `label_values`, or a class has no records in one of the parts.
    """

    name: str
    features: str
    train_features: NDArray[np.float32] | StoredRows
    train_labels: NDArray[np.int8]
    test_features: NDArray[np.float32]
    test_labels: NDArray[np.int8]
    preprocessing: str
    classes: tuple[str, ...] = _TWO_CLASSES
    classes_from: ClassesFrom | None = None

    def __post_init__(self) -> None:
        for part, features, labels in (
            ("training", self.train_features, self.train_labels),
            ("test", self.test_features, self.test_labels),
        ):
            _check_features(f"{self.name}, {part} part", features, labels)
            _check_labels(f"{self.name}, {part} part", labels, dict(zip(self.label_values, self.classes, strict=True)))
        if self.test_features.shape[1] != self.d:
            raise DataError(
                f"{self.name}: test records have {self.test_features.shape[1]} features, training records {self.d}"
            )

    @property
    def n(self) -> int:
        """Number of training records."""
        return int(self.train_features.shape[0])

    @property
    def d(self) -> int:
        """Number of features."""
        return int(self.train_features.shape[1])

    @property
    def label_values(self) -> tuple[int, ...]:
        """The labels: -1 and +1 for two classes (binary logistic loss), else 0, 1, 2, ... (softmax)."""
        return (-1, 1) if len(self.classes) == 2 else tuple(range(len(self.classes)))

    @cached_property
    def sha256(self) -> str:
        """Digest of the four arrays: their names, dtypes, shapes and bytes."""
        digest = hashlib.sha256()
        for name in _ARRAYS:
            array = getattr(self, name)
            digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
            for _, rows in _blocks(array):
                digest.update(rows.data)
        return digest.hexdigest()

    @cached_property
    def largest_eigenvalue(self) -> float:
        """``lambda_max(X'X / n)`` of the training features, computed in float64."""
        products = np.zeros((self.d, self.d))
        for _, rows in _blocks(self.train_features):
            features = rows.astype(np.float64)
            products += features.T @ features
        return float(np.linalg.eigvalsh(products / self.n)[-1])

    @property
    def majority(self) -> float:
        """The test accuracy of always predicting the training part's most frequent class."""
        counts = self._class_counts(self.train_labels)
        tested = self._class_counts(self.test_labels)
        return tested[max(counts, key=counts.__getitem__)] / len(self.test_labels)

    def summary(self) -> dict[str, Any]:
        """Return a summary of the data set, ready for JSON."""
        return {
            "name": self.name,
            "features": self.features,
            "preprocessing": self.preprocessing,
            "n": self.n,
            "n_test": len(self.test_labels),
            "d": self.d,
            "majority": self.majority,
            "classes": {"train": self._class_counts(self.train_labels), "test": self._class_counts(self.test_labels)},
            "largest_eigenvalue": self.largest_eigenvalue,
            "sha256": self.sha256,
            **self._origin_of_classes,
        }

    @property
    def _origin_of_classes(self) -> dict[str, ClassesFrom]:
        return {} if self.classes_from is None else {"classes_from": self.classes_from}

    def save(self, path: str | Path) -> None:
        """Write the data set as safetensors, atomically.

        Raises:
            StorageError: The file cannot be written.
        """
        strings = {name: getattr(self, name) for name in _STRINGS} | {"sha256": self.sha256} | self._origin_of_classes
        if self.classes != _TWO_CLASSES:
            strings["classes"] = self.classes
        # There is a single metadata entry, because safetensors writes several entries in random order, and equal data
        # should give equal files.
        header: dict[str, Any] = {"__metadata__": {"prepared": json.dumps(strings)}}
        # safetensors' own writer needs all arrays in memory. Like it, this code writes wide types first.
        arrays = sorted(_ARRAYS, key=lambda name: (-getattr(self, name).dtype.itemsize, name))
        end = 0
        for name in arrays:
            array = getattr(self, name)
            start, end = end, end + math.prod(array.shape) * array.dtype.itemsize
            header[name] = {
                "dtype": _SAFETENSORS_TYPES[array.dtype.str],
                "shape": array.shape,
                "data_offsets": [start, end],
            }
        encoded = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
        encoded += b" " * (-len(encoded) % 8)
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            file.write(len(encoded).to_bytes(8, "little") + encoded)
            for name in arrays:
                for _, rows in _blocks(getattr(self, name)):
                    file.write(rows.data)

    @classmethod
    def load(cls, path: str | Path, *, in_memory: bool | None = None) -> "PreparedData":
        """Read a data set that `save` wrote.

        Args:
            path: The file.
            in_memory: Whether the training features are read into memory or stay in the file; by default they stay
                there if the file is larger than a quarter of the machine's memory. All checks are made either way.

        Raises:
            DataError: The file is missing, damaged, or not a prepared data set.
        """
        try:
            if in_memory is None:
                in_memory = Path(path).stat().st_size <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
            with safetensors.safe_open(str(path), framework="numpy") as file:
                strings = json.loads((file.metadata() or {})["prepared"])
                expected = strings.pop("sha256")
                classes = tuple(strings.pop("classes", _TWO_CLASSES))
                arrays: dict[str, Any] = {} if in_memory else {"train_features": _stored_rows(path, "train_features")}
                arrays |= {name: file.get_tensor(name) for name in file.keys() if name not in arrays}  # noqa: SIM118
            data = cls(**strings, **arrays, classes=classes)
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror or error}") from error
        except safetensors.SafetensorError as error:
            raise DataError(f"{path} is damaged or not a safetensors file: {error}") from error
        except (KeyError, TypeError, json.JSONDecodeError) as error:
            raise DataError(f"{path} is not a prepared data set: {error}") from error
        except DataError as error:
            raise DataError(f"{path} is damaged: {error}") from error
        if data.sha256 != expected:
            raise DataError(f"{path} is damaged: its arrays have SHA-256 {data.sha256}, expected {expected}")
        return data

    def _class_counts(self, labels: NDArray[np.int8]) -> dict[str, int]:
        values = zip(self.classes, self.label_values, strict=True)
        return {name: int(np.count_nonzero(labels == value)) for name, value in values}


def unit_rows(features: NDArray[np.float64], where: str) -> NDArray[np.float32]:
    """Scale each row to Euclidean norm 1, in float64, and store it as float32.

    Args:
        features: Shape ``(records, d)``.
        where: Name of the data in error messages.

    Raises:
        DataError: A value is not finite, or a row is all zero and has no direction.
    """
    _check_finite(where, features)
    norms = np.linalg.norm(features, axis=1, keepdims=True)
    zero = np.flatnonzero(norms == 0)
    if zero.size:
        raise DataError(f"{where}: row {zero[0]} is all zero and cannot be scaled to norm 1")
    return np.asarray(features / norms, np.float32)


def _blocks(array: NDArray[Any] | StoredRows) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield the index of each block's first row, and the block as a contiguous array."""
    for start in range(0, len(array), _ROWS_AT_ONCE):
        yield start, np.ascontiguousarray(array[start : start + _ROWS_AT_ONCE])


def _stored_rows(path: str | Path, name: str) -> StoredRows:
    with Path(path).open("rb") as file:
        header_bytes = int.from_bytes(file.read(8), "little")
        entry = json.loads(file.read(header_bytes))[name]
    if entry["dtype"] != "F32" or len(entry["shape"]) != 2:
        raise DataError(f"{name} is {entry['dtype']} of shape {entry['shape']}, expected a float32 matrix")
    return StoredRows(path, 8 + header_bytes + entry["data_offsets"][0], tuple(entry["shape"]))


def _check_features(where: str, features: NDArray[np.float32] | StoredRows, labels: NDArray[np.int8]) -> None:
    if features.dtype != np.float32 or features.ndim != 2 or labels.dtype != np.int8:
        raise DataError(
            f"{where}: features are {features.dtype} of shape {features.shape} and labels {labels.dtype}, "
            f"expected a float32 matrix and int8"
        )
    if labels.shape != features.shape[:1]:
        raise DataError(f"{where}: {len(features)} rows of features, but labels of shape {labels.shape}")
    for start, rows in _blocks(features):
        _check_finite(where, rows, start)
        norms = np.linalg.norm(rows.astype(np.float64), axis=1)
        long = np.flatnonzero(norms > 1 + NORM_TOLERANCE)
        if long.size:
            raise DataError(f"{where}: row {start + long[0]} has norm {norms[long[0]]:.7g}, expected at most 1")


def _check_labels(where: str, labels: NDArray[np.int8], classes: dict[int, str]) -> None:
    wrong = np.flatnonzero(~np.isin(labels, list(classes)))
    if wrong.size:
        expected = "-1 or +1" if -1 in classes else f"0 to {len(classes) - 1}"
        raise DataError(f"{where}: the label of row {wrong[0]} is {labels[wrong[0]]}, expected {expected}")
    for value, name in classes.items():
        if value not in labels:
            raise DataError(f"{where}: class {name} has no records")


def _check_finite(where: str, features: NDArray[Any], first_row: int = 0) -> None:
    wrong = np.argwhere(~np.isfinite(features))
    if wrong.size:
        row, column = wrong[0]
        raise DataError(f"{where}: the value in row {first_row + row}, column {column} is {features[row, column]}")
