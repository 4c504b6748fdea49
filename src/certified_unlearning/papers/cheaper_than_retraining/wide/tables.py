"""Wide rows for measurements: dense float32 rows like embeddings, and sparse rows like TF-IDF."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.preprocessing import normalize

from certified_unlearning.papers.cheaper_than_retraining.tables import LABEL_NOISE
from certified_unlearning.papers.cheaper_than_retraining.wide.sweep import WideTable

TEST_RECORDS = 5000
WORDS_OF_A_TEXT = 65
"""The number of words drawn for a text; some words are drawn twice."""


@dataclass(frozen=True, eq=False)
class Records:
    """Records of several classes.

    Attributes:
        rows: The rows, shape ``(n, d)``, of norm 1: a float32 array, or a CSR matrix.
        labels: The labels 0, 1, ..., shape ``(n,)``.
        test_rows: Test rows of the same distribution.
        test_labels: The labels of the test rows.
    """

    rows: Any
    labels: NDArray[np.int64]
    test_rows: Any
    test_labels: NDArray[np.int64]


def made(table: WideTable, *, seed: int) -> Records:
    """Return the records of a table; the same arguments give the same records.

    A record's label is the class whose direction has the largest score, after noise is added to every score.
    """
    draw = np.random.default_rng([seed, table.n, table.features, table.classes])
    n = table.n + TEST_RECORDS
    rows = _embeddings(draw, n, table.features) if table.rows == "embeddings" else _texts(draw, n, table.features)
    scores = rows @ draw.standard_normal((table.features, table.classes)).astype(rows.dtype)
    scores += LABEL_NOISE * scores.std() * draw.standard_normal(scores.shape)
    labels = scores.argmax(axis=1)
    return Records(rows[: table.n], labels[: table.n], rows[table.n :], labels[table.n :])


def _embeddings(draw: np.random.Generator, n: int, features: int) -> NDArray[np.float32]:
    """Return rows whose variances fall as ``1 / k`` along directions other than the columns."""
    rows = draw.standard_normal((n, features), dtype=np.float32)
    rows /= np.sqrt(np.arange(1, features + 1, dtype=np.float32))
    rows = rows @ np.linalg.qr(draw.standard_normal((features, features)))[0].astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def _texts(draw: np.random.Generator, n: int, features: int) -> csr_array:
    """Return rows of words; frequencies fall as ``1 / rank``, and weights are logs of inverse document frequencies."""
    frequency = 1 / np.arange(1, features + 1)
    frequency /= frequency.sum()
    words = np.searchsorted(np.cumsum(frequency)[:-1], draw.random((n, WORDS_OF_A_TEXT)))
    counts = csr_array(
        (np.ones(words.size), words.ravel(), np.arange(0, words.size + 1, WORDS_OF_A_TEXT)), shape=(n, features)
    )
    counts.sum_duplicates()
    rare = 1 - np.log(1 - (1 - frequency) ** WORDS_OF_A_TEXT)  # The expected number of texts that contain a word.
    counts.data *= rare[counts.indices]
    return csr_array(normalize(counts))
