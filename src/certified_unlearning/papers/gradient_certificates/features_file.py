"""Users' own data: rows, labels and a split in one ``.npz`` or Parquet file."""

import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from certified_unlearning.errors import DataError

PARTS = ("train", "test")
"""The values of ``split``."""
_NEEDED = ("rows", "labels", "split")
_KNOWN = (*_NEEDED, "new")


@dataclass(frozen=True, eq=False)
class FeaturesFile:
    """The contents of a features file.

    Attributes:
        rows: The features of each record, float64: shape ``(records, features)``, or ``(records, channels, height,
            width)`` for images.
        labels: The labels, whole numbers from 0, shape ``(records,)``.
        test: Whether each record is a test record, shape ``(records,)``.
        new: Whether each record is of a class that pre-training must not see, shape ``(records,)``; None if the file
            has no ``new``.
    """

    rows: NDArray[np.float64]
    labels: NDArray[np.int64]
    test: NDArray[np.bool_]
    new: NDArray[np.bool_] | None = None

    @property
    def classes(self) -> int:
        """The number of classes."""
        return int(self.labels.max()) + 1


def read(path: str) -> FeaturesFile:
    """Read and check a features file; the same file is read only once.

    Args:
        path: The path of a ``.npz`` file with the arrays ``rows``, ``labels``, ``split`` and optionally ``new``, or of
            a Parquet file. A Parquet file has the columns ``labels``, ``split``, optionally ``new``, and either
            ``rows`` (lists of numbers) or a column of numbers for each feature.

    Raises:
        DataError: The file cannot be read, or its contents are wrong.
    """
    try:
        state = Path(path).stat()
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    return _read(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=1)
def _read(path: str, _changed: int, _size: int) -> FeaturesFile:
    return _checked(_parquet(path) if path.endswith(".parquet") else _npz(path), path)


def _npz(path: str) -> dict[str, NDArray[np.generic]]:
    try:
        # No pickle: an array of Python objects could run code.
        file = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} cannot be read as an .npz file: {_reason(error)}") from error
    if isinstance(file, np.ndarray):
        raise DataError(f"{path} is a single array, not an .npz file; write the file with np.savez")
    with file:
        return {name: _array(file, name, path) for name in file.files}


def _array(file: "np.lib.npyio.NpzFile", name: str, path: str) -> NDArray[np.generic]:
    try:
        found: NDArray[np.generic] = file[name]
    # RuntimeError: the archive is encrypted, or its compression is unknown to Python.
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError) as error:
        if "Object arrays" in str(error):
            raise DataError(
                f"{path}: `{name}` holds Python objects, which are not read; make it an array of numbers, or an array "
                "of words with np.array(..., dtype=str)"
            ) from error
        raise DataError(f"{path}: `{name}` cannot be read: {_reason(error)}") from error
    return found


def _reason(error: Exception) -> str:
    """Return the first line of an error's message, or the error's type if it has no message."""
    return str(error).partition("\n")[0] or type(error).__name__


def _parquet(path: str) -> dict[str, NDArray[np.generic]]:
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read as Parquet: {_reason(error)}") from error
    for name, values in zip(table.column_names, table.columns, strict=True):
        if values.null_count:
            raise DataError(
                f"{path}: `{name}` has {values.null_count} missing values, but must have a value for every record"
            )
    found = {name: table[name].to_numpy() for name in ("labels", "split", "new") if name in table.column_names}
    if "rows" in table.column_names:
        found["rows"] = _of_lists(table["rows"], path)
    else:
        features = [name for name in table.column_names if name not in _KNOWN]
        wrong = next((name for name in features if not _is_number(table.schema.field(name).type)), None)
        if wrong is not None:
            raise DataError(
                f"{path}: `{wrong}` holds {table.schema.field(wrong).type}, but every column except `labels`, `split` "
                "and `new` is a feature and must hold numbers"
            )
        if features:
            found["rows"] = np.column_stack([table[name].to_numpy().astype(np.float64) for name in features])
    if "split" in found:
        found["split"] = found["split"].astype(str)
    return found


def _of_lists(column: pa.ChunkedArray, path: str) -> NDArray[np.generic]:
    """Return lists of numbers as a matrix.

    Raises:
        DataError: The values are not lists of numbers, or the lists differ in length.
    """
    kind = column.type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
        raise DataError(f"{path}: `rows` must hold lists of numbers, got {kind}")
    if not _is_number(kind.value_type):
        raise DataError(f"{path}: `rows` must hold lists of numbers, got lists of {kind.value_type}")
    lists = column.combine_chunks()
    lengths = pc.list_value_length(lists)
    least, most = (each.as_py() or 0 for each in pc.min_max(lengths).values())
    if least != most:
        raise DataError(
            f"{path}: the lists of `rows` must have the same length, got lists of {least} to {most} numbers"
        )
    found: NDArray[np.generic] = lists.flatten().to_numpy(zero_copy_only=False).reshape(len(lists), most)
    return found


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _checked(found: Mapping[str, NDArray[np.generic]], path: str) -> FeaturesFile:
    """Return the contents of the arrays as a `FeaturesFile`.

    Raises:
        DataError: Something is missing or wrong.
    """
    missing = next((name for name in _NEEDED if name not in found), None)
    if missing is not None:
        raise DataError(
            f"{path} has no `{missing}`: it must have `rows`, `labels` and `split`, but has "
            f"{', '.join(f'`{each}`' for each in found) or 'nothing'}"
        )
    unknown = next((name for name in found if name not in _KNOWN), None)
    if unknown is not None:
        raise DataError(f"{path} has `{unknown}`, which is none of {', '.join(f'`{each}`' for each in _KNOWN)}")
    rows = _rows(found["rows"], path)
    flat = {name: found[name] for name in _KNOWN[1:] if name in found}
    for name, values in flat.items():
        if values.shape != (len(rows),):
            raise DataError(
                f"{path}: `{name}` must have shape ({len(rows)},), with one value for each row, got {values.shape}"
            )
    labels, test = _labels(flat["labels"], path), _test(flat["split"], path)
    gone = np.setdiff1d(np.arange(labels.max() + 1), labels[~test])
    if len(gone):
        raise DataError(
            f"{path}: no training record has the label {gone[0]}, but the labels go from 0 to {labels.max()}"
        )
    if not labels.max():
        raise DataError(f"{path}: all `labels` are 0, but at least two classes are needed")
    return FeaturesFile(rows, labels, test, _new(flat["new"], test, path) if "new" in flat else None)


def _rows(values: NDArray[np.generic], path: str) -> NDArray[np.float64]:
    if values.dtype.kind not in "iuf":
        raise DataError(f"{path}: `rows` must hold numbers, got {values.dtype}")
    if values.ndim == 3:
        values = values[:, None]
    if values.ndim not in (2, 4) or 0 in values.shape:
        raise DataError(
            f"{path}: `rows` must have the shape (records, features) or, for images, (records, height, width) or "
            f"(records, channels, height, width), and no dimension of length 0, got {values.shape}"
        )
    rows = values.astype(np.float64)
    finite = np.isfinite(rows.reshape(len(rows), -1)).all(axis=1)
    if not finite.all():
        raise DataError(f"{path}: row {int(np.argmin(finite))} of `rows` holds a number that is not finite")
    return rows


def _labels(values: NDArray[np.generic], path: str) -> NDArray[np.int64]:
    numbers = values.astype(np.float64) if values.dtype.kind in "iufb" else None
    if numbers is None or not (np.isfinite(numbers) & (numbers >= 0) & (numbers == np.floor(numbers))).all():
        place = 0 if numbers is None else int(np.argmax(~((numbers >= 0) & (numbers == np.floor(numbers)))))
        raise DataError(f"{path}: `labels` must be whole numbers of at least 0, got {values[place]!r} at index {place}")
    if numbers.max() >= len(numbers):
        raise DataError(
            f"{path}: `labels` must be below the number of records, {len(numbers)}, got {int(numbers.max())}"
        )
    return numbers.astype(np.int64)


def _test(values: NDArray[np.generic], path: str) -> NDArray[np.bool_]:
    words = values.astype(str)
    unknown = ~np.isin(words, PARTS)
    if unknown.any():
        place = int(np.argmax(unknown))
        raise DataError(
            f"{path}: `split` must be train or test for each row, got {str(words[place])!r} at index {place}"
        )
    for part in PARTS:
        if part not in words:
            raise DataError(f"{path}: `split` must be {part} for at least one record")
    found: NDArray[np.bool_] = words == PARTS[1]
    return found


def _new(values: NDArray[np.generic], test: NDArray[np.bool_], path: str) -> NDArray[np.bool_]:
    if values.dtype.kind != "b":
        raise DataError(f"{path}: `new` must hold booleans, got {values.dtype}")
    new: NDArray[np.bool_] = values.astype(bool)
    for part, own in (("train", new[~test]), ("test", new[test])):
        if own.all() or not own.any():
            raise DataError(
                f"{path}: `new` must be true for some {part} records and false for others, but is true for "
                f"{int(own.sum())} of {len(own)} {part} records"
            )
    return new
