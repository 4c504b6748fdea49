"""Columns of text as sparse rows. scikit-learn's `HashingVectorizer` hashes each text on its own and learns nothing.

A row begins with the numbers of all columns without text. The hashed values of each text column follow. The hashed
values of one text have norm 1, or are all zero if the text has no words.
"""

import os
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.preprocessing import normalize

from certified_unlearning.data.tables.declaration import Table, Text
from certified_unlearning.data.tables.table_values import Rows
from certified_unlearning.errors import ParameterError
from certified_unlearning.text import counted

VECTORS = 12
"""Approximate number of values per weight that learning keeps in memory: steps, gradients, products."""
FITS = 0.25
"""Share of the memory that a model of the proposed width may use."""


def hashed(texts: Sequence[str], how: Text) -> csr_array:
    """Return texts as rows of norm 1, shape ``(n, how.width)``; the row of a text without words has no entries."""
    vectorizer = HashingVectorizer(n_features=how.width, ngram_range=how.ngrams, analyzer=how.analyzer)
    rows = csr_array(vectorizer.transform(texts))
    rows.eliminate_zeros()  # Hashed words may cancel each other.
    return rows


def with_text(numbers: NDArray[np.float64], rows: Rows, table: Table) -> csr_array:
    """Return the numbers of rows, followed by the text columns.

    Raises:
        DataError: A text column holds something other than text.
    """
    parts = [hashed(rows.prose(column), table.text[column]) for column in columns_of_text(table)]
    return hstack([csr_array(numbers), *parts], format="csr")


def columns_of_text(table: Table) -> list[str]:
    """Return the text columns of a resolved table, in their order in rows."""
    return [column for column in table.features or () if column in table.text]


def unit(rows: csr_array) -> csr_array:
    """Return every row divided by its norm; rows of zeros stay unchanged."""
    # Divide by the largest value first, because squares of very large and very small values overflow or vanish.
    return normalize(normalize(rows, norm="max"), norm="l2", copy=False)


def norms(rows: csr_array) -> NDArray[np.float64]:
    """Return the norm of every row."""
    return np.sqrt(rows.power(2).sum(axis=1))  # type: ignore[no-any-return]


def require_memory(table: Table, features: int, scores: int) -> None:
    """Raise `ParameterError` if the machine has too little memory for what learning needs besides the rows.

    Args:
        table: The declaration.
        features: Number of columns of a row.
        scores: Number of scores of a record.
    """
    needed, memory = VECTORS * 8 * features * scores, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed <= memory:
        return
    column = max(table.text, key=lambda each: table.text[each].width)
    width = 1 << max(1, int(FITS * memory / (VECTORS * 8 * scores)).bit_length() - 1)
    raise ParameterError(
        f"weights for {counted(features, 'column')} and {counted(scores, 'score')} per record need "
        f"{_gigabytes(needed)} of memory, but this machine has {_gigabytes(memory)}; 2^{width.bit_length() - 1} = "
        f"{width:,} columns need {_gigabytes(VECTORS * 8 * width * scores)}: use --text {column}={width}"
    )


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:.2g} GB"


def without_words(table: Table, rows: csr_array) -> Mapping[str, int]:
    """Return, for each text column of a resolved table, the number of rows in which the column has no words."""
    return {column: int((np.diff(rows[:, place].indptr) == 0).sum()) for column, place in _places(table, rows.shape[1])}


def _places(table: Table, width: int) -> Iterator[tuple[str, slice]]:
    start = width - sum(how.width for how in table.text.values())
    for column in columns_of_text(table):
        yield column, slice(start, start := start + table.text[column].width)
