"""Public rows, as given to `fit`: they are checked, and refused if they do not fit the records."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse, vstack
from sklearn.utils import check_array, column_or_1d

from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.text import counted


@dataclass(frozen=True)
class PublicRows:
    """Rows that nobody will ask to remove.

    Attributes:
        features: Features, shape ``(p, features)``, float64; sparse if the records are.
        labels: Classes in the learners' form, or targets from -1 to 1.
    """

    features: Any
    labels: NDArray[Any]

    @property
    def count(self) -> int:
        """Number of public rows."""
        return len(self.labels)

    def after(self, features: Any, labels: NDArray[Any]) -> tuple[Any, NDArray[Any]]:
        """Return the features and labels of records, followed by those of the public rows."""
        joined = vstack if issparse(features) else np.concatenate
        return joined([features, self.features]), np.concatenate([labels, self.labels])


def require_both(public_X: Any, public_y: Any) -> None:
    """Raise `ParameterError` if only one of ``public_X`` and ``public_y`` is given."""
    if (public_X is None) != (public_y is None):
        given, missing = ("public_X", "public_y") if public_y is None else ("public_y", "public_X")
        raise ParameterError(f"give public_X and public_y together, or neither; {given} came without {missing}")


def checked_features(public_X: Any, X: Any, *, features: int) -> Any:
    """Return the features of public rows after the checks that scikit-learn makes for ``X``.

    Args:
        public_X: Features of the public rows.
        X: Features of the records, as given to `fit`.
        features: Number of columns of ``X``.

    Raises:
        DataError: ``X`` and ``public_X`` have different columns, or only one of them is sparse.
    """
    if issparse(public_X) != issparse(X):
        kinds = ("sparse", "dense") if issparse(public_X) else ("dense", "sparse")
        raise DataError(f"public_X is {kinds[0]}, but X is {kinds[1]}; give both as arrays, or both as sparse matrices")
    checked = check_array(
        public_X, accept_sparse="csr", dtype=(np.float64, np.float32), input_name="public_X", ensure_min_features=0
    )
    if checked.shape[1] != features:
        raise DataError(
            f"public_X has {counted(checked.shape[1], 'column')}, but X has {features}; they need the same columns"
        )
    named, expected = _names(public_X), _names(X)
    if named is not None and expected is not None and named != expected:
        place = next(place for place, pair in enumerate(zip(named, expected, strict=True)) if pair[0] != pair[1])
        raise DataError(
            f"column {place} of public_X is named {named[place]!r}, but that of X {expected[place]!r}; give public_X "
            "the columns of X, in their order"
        )
    return checked


def checked_length(public_y: Any, rows: int) -> NDArray[Any]:
    """Return public labels or targets as an array; raise `DataError` if there is not one for each public row."""
    values: NDArray[Any] = column_or_1d(public_y, warn=True)
    if len(values) != rows:
        raise DataError(f"public_y has {counted(len(values), 'value')}, but public_X has {counted(rows, 'row')}")
    return values


def class_numbers(public_y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of each public row's class.

    Args:
        public_y: Classes of the public rows.
        classes: Classes of the records, sorted.

    Raises:
        DataError: No record has the class of a public row.
    """
    found, which = np.unique(public_y, return_inverse=True)
    known = {label: number for number, label in enumerate(classes.tolist())}
    others = [label for label in found.tolist() if label not in known]
    if others:
        raise DataError(
            f"public_y holds the class {others[0]!r}, but the classes of y are {classes.tolist()}; a class needs a "
            "record in y, so leave these public rows out"
        )
    return np.array([known[label] for label in found.tolist()], dtype=np.int64)[which]


def require_private(named: NDArray[Any], *, records: int, public_rows: int) -> None:
    """Raise `ParameterError` if a request names a public row; public rows are numbered after the records."""
    if named.dtype.kind not in "iu":
        return  # `RecordStore.removable` refuses such a number.
    public = named[(named >= records) & (named < records + public_rows)]
    if len(public):
        raise ParameterError(
            f"indices names record {public[0]}, but the records of X are numbered 0 to {records - 1}; the "
            f"{counted(public_rows, 'row')} of public_X stay in the model and cannot be removed"
        )


def _names(X: Any) -> list[Any] | None:
    """Return the names of a data frame's columns."""
    return list(X.columns) if hasattr(X, "columns") else None
