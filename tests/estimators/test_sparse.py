"""Sparse records: the same results as dense ones, bit for bit, and a sentence where they do not fit."""

import numpy as np
import pytest
from scipy import sparse

from certified_unlearning.errors import DataError
from certified_unlearning.estimators import (
    CertifiedLogisticRegression,
    LangevinLogisticRegression,
    PublishedStateDescentToDelete,
    SecretStateDescentToDelete,
)
from certified_unlearning.estimators.scaling import dense

C = 0.02
FORMATS = [sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix]
ESTIMATORS = [
    CertifiedLogisticRegression(C=C, random_state=0),
    LangevinLogisticRegression(C=C, epsilon=5, batch_size=None, random_state=0, feature_ranges=(-1, 1)),
    LangevinLogisticRegression(C=C, epsilon=5, batch_size=150, random_state=0),
    SecretStateDescentToDelete(C=C, epsilon=5, random_state=0, normalize=True, fit_intercept=False),
    PublishedStateDescentToDelete(C=C, epsilon=5, random_state=0, data_norm=2),
]


@pytest.fixture
def few_numbers(parity):
    """Rows that are mostly zero, and two labels."""
    rows, labels = parity
    return np.where(np.abs(rows) > 0.12, rows, 0.0), labels


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: kind.__name__)
def test_sparse_records_give_the_same_bits_as_dense_ones(estimator, kind, few_numbers):
    rows, labels = few_numbers
    made = kind(rows)
    of_dense = estimator.fit(rows, labels).unlearn([3, 8])
    scores = of_dense.decision_function(rows)
    of_sparse = estimator.fit(made, labels).unlearn([3, 8])
    assert (of_sparse.decision_function(rows) == scores).all()
    assert (of_sparse.decision_function(made) == scores).all()
    assert (of_sparse.predict_proba(made) == of_dense.predict_proba(rows)).all()
    assert of_sparse.quality(made, labels) == of_dense.quality(rows, labels)


def test_float32_stays_float32(few_numbers):
    rows, labels = few_numbers
    rows = rows.astype(np.float32)
    model = LangevinLogisticRegression(C=C, random_state=0, epsilon=5)
    found = model.fit(sparse.csr_array(rows), labels).coef_
    assert (found == model.fit(rows, labels).coef_).all()


def test_the_callers_matrix_is_left_alone(few_numbers):
    rows, labels = few_numbers
    made = sparse.csr_matrix(rows)
    CertifiedLogisticRegression(C=C).fit(made, labels).unlearn([1])
    assert (made.toarray() == rows).all()


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_what_does_not_fit_in_memory_is_refused_before_it_is_made(estimator):
    wide = sparse.csr_matrix((np.ones(4), (range(4), range(4))), shape=(1_000_000, 50_000_000))
    with pytest.raises(
        DataError, match=r"1,000,000 records of 50,000,000 features.*takes 8e\+05 GB, but this machine has"
    ):
        estimator.fit(wide, np.arange(1_000_000) % 2)


def test_memory_that_another_program_has_gives_the_same_sentence():
    class Full(sparse.csr_matrix):
        def toarray(self, *_, **__):
            raise MemoryError

    with pytest.raises(DataError, match="3 records of 2 features, and becomes dense rows"):
        dense(Full(np.ones((3, 2))))
