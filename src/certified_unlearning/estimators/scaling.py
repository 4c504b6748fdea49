"""Conversion of sparse rows to dense rows, scaling of features to public ranges, and scaling of rows to norm at most 1.

Nothing here is learned from the records. The scaling of a record depends only on this record and the given numbers. So
a removed record has no effect on the scaling of others.
"""

import math
import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse

from certified_unlearning.engine.objectives import sparse
from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.text import counted

Array = NDArray[np.float64]
COPIES = 2
"""Number of arrays that are in memory at the same time: the features, and the rows computed from the features."""
FITS = 0.25
"""Largest share of the memory that rows may take; error messages propose a width that respects this limit."""


def dense(X: Any) -> NDArray[Any]:
    """Return records as an array; rows of a sparse matrix become dense rows with the same numbers.

    Raises:
        DataError: X is sparse, and its dense rows would not fit in memory.
    """
    if not issparse(X):
        return X  # type: ignore[no-any-return]
    records, features = X.shape
    needed, memory = COPIES * records * features * np.dtype(np.float64).itemsize, _memory()
    if needed > memory:
        raise _too_large(records, features, needed, memory)
    try:
        return X.toarray()  # type: ignore[no-any-return]
    except MemoryError as error:
        raise _too_large(records, features, needed, memory) from error


class PublicScaling:
    """A map from records to rows of norm at most 1; the map depends only on public numbers.

    Values outside their range are clipped to it, and each range is mapped to [-1, 1]. The norm of the rows is then
    limited in one of three ways. With ``normalize``, rows are divided by their own norm. With ``data_norm``, longer
    rows are scaled down to it, and then all rows are divided by it. With ranges alone, all rows are divided by
    ``sqrt(features)``, the largest possible norm.
    """

    def __init__(self, *, features: int, ranges: ArrayLike | None, data_norm: float | None, normalize: bool) -> None:
        """Store the numbers after checking them.

        Args:
            features: Number of features.
            ranges: One pair ``(low, high)`` for all features, or one pair for each feature.
            data_norm: Largest norm of a row.
            normalize: Whether rows are divided by their own norm.

        Raises:
            ParameterError: A number is invalid.
        """
        self._ranges = None if ranges is None else _checked_ranges(ranges, features)
        self._norm = None if data_norm is None else _checked_norm(data_norm, normalize)
        self._normalize = normalize
        self._largest = math.sqrt(features)

    @property
    def keeps_zeros(self) -> bool:
        """Whether scaling leaves zeros unchanged, so that sparse rows stay sparse.

        This is the case if there are no ranges, or if each range has the form ``-a`` to ``a``.
        """
        if self._ranges is None:
            return True
        low, high = self._ranges
        return bool((low == -high).all())

    def __call__(self, X: Any) -> Any:
        """Return records as rows of norm at most 1, up to rounding in float64; sparse records require `keeps_zeros`."""
        if issparse(X):
            return self._of_sparse(X)
        scaled: Array = X.astype(np.float64, copy=False)
        if self._ranges is not None:
            low, high = self._ranges
            # The quotient is at most 1 under any rounding, because its numerator is never larger than its denominator.
            scaled = 2 * ((np.clip(scaled, low, high) - low) / (high - low)) - 1
        if self._normalize:
            return unit(scaled)
        if self._norm is None:
            return scaled / self._largest
        with np.errstate(over="ignore"):
            # The norm is computed after the division, because squares of very small numbers are 0. A norm that
            # overflows is infinite, and so it counts as longer.
            divided = scaled / self._norm
            longer = np.linalg.norm(divided, axis=1, keepdims=True) > 1
        rows: Array = np.where(longer, unit(scaled), divided)
        return rows

    def _of_sparse(self, rows: csr_array) -> csr_array:
        rows = rows.astype(np.float64, copy=False)
        if self._ranges is not None:
            _, high = self._ranges
            ends = high[rows.indices]
            rows = sparse.with_entries(rows, np.clip(rows.data, -ends, ends) / ends)
        if self._normalize:
            return unit(rows)
        if self._norm is None:
            return sparse.with_entries(rows, rows.data / self._largest)
        with np.errstate(over="ignore"):
            divided = sparse.with_entries(rows, rows.data / self._norm)
        longer = np.repeat(sparse.norms(divided) > 1, sparse.entries_of_rows(rows))
        return sparse.with_entries(rows, np.where(longer, unit(rows).data, divided.data))


def unit(features: Any) -> Any:
    """Return every row divided by its norm; a row of zeros is unchanged."""
    if issparse(features):
        largest = np.abs(features).max(axis=1).toarray().ravel()
        rows = sparse.divided(features, np.where(largest > 0, largest, 1))
        norms = sparse.norms(rows)
        return sparse.divided(rows, np.where(norms > 0, norms, 1))
    largest = np.abs(features).max(axis=1, keepdims=True)
    # Rows are first divided by their largest value, because squares of very large values overflow, and those of very
    # small ones are 0.
    features = features / np.where(largest > 0, largest, 1)
    norms = np.linalg.norm(features, axis=1, keepdims=True)
    return features / np.where(norms > 0, norms, 1)


def _checked_ranges(ranges: ArrayLike, features: int) -> tuple[Array, Array]:
    """Return the lower and upper ends of all features' ranges."""
    try:
        ends = np.asarray(ranges, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise _no_ranges(features, repr(ranges)) from error
    if ends.shape not in ((2,), (features, 2)):
        raise _no_ranges(features, f"shape {ends.shape}")
    low, high = np.broadcast_to(ends, (features, 2)).T
    with np.errstate(over="ignore", invalid="ignore"):
        wrong = ~((low < high) & np.isfinite(high - low))
    if wrong.any():
        place = int(wrong.argmax())
        raise ParameterError(
            "a range in feature_ranges must go from a number to a larger one, got "
            f"({low[place]:g}, {high[place]:g})" + (f" for feature {place}" if ends.ndim == 2 else "")
        )
    return low, high


def _no_ranges(features: int, got: str) -> ParameterError:
    return ParameterError(
        f"feature_ranges must be a pair (low, high), or one for each of the {features} features, got {got}"
    )


def _checked_norm(data_norm: float, normalize: bool) -> float:
    if normalize:
        raise ParameterError(
            f"give normalize or data_norm, not both: either rows are divided by their own norm or by data_norm = "
            f"{data_norm!r}"
        )
    if isinstance(data_norm, bool) or not isinstance(data_norm, int | float | np.number) or not 0 < data_norm < np.inf:
        raise ParameterError(f"data_norm must be a finite number above 0, got {data_norm!r}")
    return float(data_norm)


def _too_large(records: int, features: int, needed: float, memory: int) -> DataError:
    width = 1 << max(0, int(FITS * memory / needed * features).bit_length() - 1)
    narrower = (
        f"; rows of 2**{width.bit_length() - 1} = {width:,} hashed features need "
        f"{needed * width / features / 1e9:.2g} GB"
        if 1 < width < features
        else ""
    )
    return DataError(
        f"X is sparse, with {counted(records, 'record')} of {counted(features, 'feature')}, and is converted to "
        f"dense rows here: that takes {needed / 1e9:.3g} GB, but this machine has {memory / 1e9:.3g} GB of "
        f"memory{narrower}. CertifiedLogisticRegression and CertifiedRidge keep rows sparse if rows are scaled by "
        "normalize, by data_norm, or by feature_ranges from -a to a"
    )


def _memory() -> int:
    """Return the size of this machine's memory in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
