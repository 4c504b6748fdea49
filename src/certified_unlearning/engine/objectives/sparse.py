"""Sparse rows: CSR matrices in float64, whose blocks are views, and whose rows can be erased.

SciPy's products add the stored entries of a row, or of a column, one after another. `terms` returns the number of these
entries.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from certified_unlearning.accounting.residual.rounding import Terms, sparse_block_rows, sparse_terms
from certified_unlearning.errors import DataError

Array = NDArray[np.float64]


def canonical(X: Any) -> csr_array:
    """Return a sparse matrix as CSR, with sorted and valid indices and without duplicate entries.

    The norm of a row is the norm of its entries only if no column occurs twice in it. The result may share arrays with
    ``X``, which is not changed.

    Raises:
        DataError: An index is out of range, or the arrays are inconsistent.
    """
    csr = X.tocsr()
    try:
        # A new matrix is created, because the old one's flags about its order may be out of date.
        rows = csr_array((csr.data, csr.indices, csr.indptr), shape=csr.shape)
        rows.check_format(full_check=True)
    except ValueError as error:
        raise DataError(f"the sparse matrix X is damaged: {error}") from error
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def with_entries(rows: csr_array, entries: NDArray[Any]) -> csr_array:
    """Return a matrix with other values in the same positions."""
    return csr_array((entries, rows.indices, rows.indptr), shape=rows.shape)


def entries_of_rows(rows: csr_array) -> NDArray[Any]:
    """Return the number of entries of each row."""
    return np.diff(rows.indptr)


def norms(rows: csr_array) -> Array:
    """Return the norms of rows without duplicate entries; infinite if a square overflows."""
    with np.errstate(over="ignore"):
        squares = np.square(rows.data, dtype=np.float64)
        return np.sqrt(with_entries(rows, squares) @ np.ones(rows.shape[1]))  # type: ignore[no-any-return]


def multiplied(rows: csr_array, factors: Array) -> csr_array:
    """Return the matrix with each row multiplied by the corresponding number."""
    return with_entries(rows, rows.data * np.repeat(factors, entries_of_rows(rows)))


def divided(rows: csr_array, by: Array) -> csr_array:
    """Return the matrix with each row divided by the corresponding number."""
    return with_entries(rows, rows.data / np.repeat(by, entries_of_rows(rows)))


def with_constant(rows: csr_array, *, factor: float, constant: float) -> csr_array:
    """Return rows times a factor, in new arrays, with a further column that has the same number in each row."""
    records, features = rows.shape
    entries = rows.nnz + records
    kind = np.int32 if max(entries, features + 1) <= np.iinfo(np.int32).max else np.int64
    indptr = rows.indptr.astype(kind) + np.arange(records + 1, dtype=kind)
    own = np.ones(entries, dtype=bool)
    own[indptr[1:] - 1] = False
    data, indices = np.zeros(entries), np.full(entries, features, dtype=kind)
    data[own], indices[own] = rows.data, rows.indices
    data *= factor
    data[indptr[1:] - 1] = constant
    return csr_array((data, indices, indptr), shape=(records, features + 1))


def wiped(rows: csr_array, gone: NDArray[np.int64]) -> csr_array:
    """Return a copy of the matrix in which the given rows are empty.

    The new arrays hide how many entries those rows had.
    """
    counts = entries_of_rows(rows).copy()
    stays = np.ones(len(counts), dtype=bool)
    stays[gone] = False
    kept = np.repeat(stays, counts)
    counts[gone] = 0
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(rows.indptr.dtype)
    return csr_array((rows.data[kept], rows.indices[kept], indptr), shape=rows.shape)


def block_size(rows: csr_array) -> int:
    """Return the number of rows that are multiplied at once."""
    records, features = rows.shape
    return sparse_block_rows(records, features, rows.nnz)


def blocks(rows: csr_array) -> Iterator[tuple[slice, csr_array]]:
    """Yield, for each block, the slice of its rows, and the block itself, which is a view of the matrix."""
    size, ends = block_size(rows), rows.indptr
    for first in range(0, rows.shape[0], size):
        last = min(first + size, rows.shape[0])
        own = slice(ends[first], ends[last])
        parts = rows.data[own], rows.indices[own], ends[first : last + 1] - ends[first]
        yield slice(first, last), csr_array(parts, shape=(last - first, rows.shape[1]))


def terms(rows: csr_array) -> Terms:
    """Return the largest number of terms in a row's score, and the largest number in a sum over rows in `blocks`."""
    return sparse_terms(
        records=rows.shape[0],
        block=block_size(rows),
        in_a_row=int(entries_of_rows(rows).max(initial=0)),
        in_a_column=int(np.bincount(rows.indices, minlength=1).max()),
    )
