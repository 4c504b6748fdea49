"""Functions that read a copy that `export` or `track` made; no ledger is needed."""

from pathlib import Path
from typing import Any

import safetensors.numpy
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, field_validator

from certified_unlearning.data.tables.declaration import Table
from certified_unlearning.data.tables.table import count_features
from certified_unlearning.errors import DataError
from certified_unlearning.files import read_model
from certified_unlearning.ledger.copies.exports import COLUMNS, WEIGHTS
from certified_unlearning.ledger.directory import ModelDirectory


class CopiedModel(BaseModel):
    """The content of a copy's `columns.json`, which says how a table becomes rows.

    It states neither the place nor the owners of the training data.

    Attributes:
        table: The declaration by which a table becomes rows and labels.
        intercept: Whether the model has an intercept: rows ``x`` then become ``(x, 1) / sqrt(2)``.
        version: The number of the model's version.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    table: Table
    intercept: bool
    version: int

    @field_validator("table", mode="before")
    @classmethod
    def _without_path(cls, table: Any) -> Any:
        return {**table, "path": COLUMNS} if isinstance(table, dict) else table


def is_copy(path: Path) -> bool:
    """Return whether a directory holds a copy of a model, and no ledger."""
    return (path / COLUMNS).exists() and not ModelDirectory(path).ledger.exists()


def read_copy(path: Path) -> tuple[CopiedModel, NDArray[Any]]:
    """Read a copy.

    Args:
        path: The directory of the copy.

    Returns:
        The content of `columns.json`, and the weights, shape ``(scores of a record, features)``.

    Raises:
        DataError: A file cannot be read, or the weights do not fit the declaration.
    """
    copied, file = read_model(path / COLUMNS, CopiedModel, "the declaration of a copy's columns"), path / WEIGHTS
    try:
        weights = safetensors.numpy.load(file.read_bytes())["weights"]
    except OSError as error:
        raise DataError(f"cannot read {file}: {error.strerror}") from error
    except (safetensors.SafetensorError, KeyError) as error:
        raise DataError(f"{file} does not hold a model's weights: {error}") from error
    count = count_features(copied.table) + copied.intercept
    if weights.ndim != 2 or weights.shape[1] != count:
        raise DataError(f"{file} has weights of shape {weights.shape}, but {COLUMNS} declares {count} in a row")
    return copied, weights
