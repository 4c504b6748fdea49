"""Estimators as files: safetensors with JSON in the header, written atomically and read without running code."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
from numpy.typing import NDArray
from safetensors.numpy import save as serialised

from certified_unlearning.errors import DataError
from certified_unlearning.files import atomic_path


def write(path: str | Path, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any] | None]) -> None:
    """Write a file with a header and arrays; arrays that are None are left out.

    Raises:
        StorageError: The file cannot be written.
    """
    content = serialised(
        {name: np.ascontiguousarray(array) for name, array in arrays.items() if array is not None},
        {"estimator": json.dumps(header, default=_plain_number)},
    )
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)


def read(path: str | Path, kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a file that `write` wrote.

    Args:
        path: Path of the file.
        kind: Name of the ``class`` that the file's header must contain.

    Raises:
        DataError: The file is missing or damaged, or contains something else.
    """
    try:
        with safetensors.safe_open(str(path), framework="numpy") as file:
            header = json.loads((file.metadata() or {})["estimator"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        found = header["class"]
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    except safetensors.SafetensorError as error:
        raise DataError(f"{path} is damaged or not a safetensors file: {error}") from error
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise no_estimator(path, error) from error
    if found != kind:
        raise DataError(f"{path} holds a {found}, not a {kind}")
    return header, arrays


def no_estimator(path: str | Path, error: Exception) -> DataError:
    """Return the error for a file whose header is not that of an estimator."""
    return DataError(f"{path} holds no estimator of this package: {error}")


def _plain_number(value: Any) -> Any:
    """Convert NumPy numbers, as set by parameter searches, to Python numbers, and ranges of budgets to lists."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, range):
        return [*value]
    raise TypeError(f"{value!r} cannot be written as JSON")
