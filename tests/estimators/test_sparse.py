"""Sparse records: the same results as dense ones, bit for bit where they become dense; a sentence where they can't."""

import copy
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from certified_unlearning import certificate
from certified_unlearning.certificate import residual as certificates
from certified_unlearning.errors import AssumptionError, DataError
from certified_unlearning.estimators import (
    CertifiedLogisticRegression,
    CertifiedRidge,
    LangevinLogisticRegression,
    PublishedStateDescentToDelete,
    SecretStateDescentToDelete,
)
from certified_unlearning.estimators.scaling import dense
from certified_unlearning.mechanisms.refit_plan import Counts, RefitPlan
from certified_unlearning.mechanisms.refits import requests as refits

C = 0.02
FORMATS = [sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix]
ESTIMATORS = [
    CertifiedLogisticRegression(C=C, random_state=0, feature_ranges=(-1, 2)),
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
    wide = sparse.csr_matrix((np.ones(4), (range(4), range(4))), shape=(1_000_000, 5_000_000))
    with pytest.raises(
        DataError,
        match=r"1,000,000 records of 5,000,000 features.*takes 8e\+04 GB, but this machine has [\d.]+ GB of memory; "
        r"rows of 2\*\*\d+ = [\d,]+ hashed features need [\d.]+ GB\. CertifiedLogisticRegression",
    ):
        estimator.fit(wide, np.arange(1_000_000) % 2)


def test_memory_that_another_program_has_gives_the_same_sentence():
    class Full(sparse.csr_matrix):
        def toarray(self, *_, **__):
            raise MemoryError

    with pytest.raises(DataError, match="3 records of 2 features, and is converted to dense rows"):
        dense(Full(np.ones((3, 2))))


def words(n: int, d: int, classes: int, seed: int = 0) -> tuple[sparse.csr_array, np.ndarray]:
    """Rows of norm 1 with about 20 entries, as of short texts, whose classes prefer some words; a tenth at random."""
    draw = np.random.default_rng(seed)
    labels = draw.integers(classes, size=n)
    counts = draw.poisson(20, size=n) + 1
    common = (d * draw.random(counts.sum()) ** 4).astype(int)
    of_class = (np.repeat(labels, counts) + classes * (d // classes * draw.random(counts.sum()) ** 4).astype(int)) % d
    columns = np.where(draw.random(counts.sum()) < 0.3, of_class, common)
    rows = sparse.csr_array((np.ones(counts.sum()), (np.repeat(np.arange(n), counts), columns)), shape=(n, d))
    rows.sum_duplicates()
    norms = np.sqrt(rows.multiply(rows).sum(axis=1))
    labels = np.where(draw.random(n) < 0.1, draw.integers(classes, size=n), labels)
    return sparse.csr_array(rows.multiply(1 / norms[:, None])), labels


def made_of(kind: type, **options: object) -> CertifiedLogisticRegression | CertifiedRidge:
    return kind(**({"target_range": (0, 1), "alpha": 1.0} if kind is CertifiedRidge else {}), **options)


@pytest.mark.parametrize("options", [{}, {"normalize": True}, {"data_norm": 0.5}, {"feature_ranges": (-0.4, 0.4)}])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", [CertifiedLogisticRegression, CertifiedRidge])
def test_certified_models_keep_rows_sparse_and_they_are_those_of_dense_ones(kind, options, fit_intercept, few_numbers):
    features, labels = few_numbers
    model = made_of(kind, **options, fit_intercept=fit_intercept, random_state=0)
    targets = labels == "odd" if kind is CertifiedRidge else labels
    of_dense, of_sparse = (copy.deepcopy(model.fit(each, targets)) for each in (features, sparse.csc_matrix(features)))
    assert sparse.issparse(of_sparse._store.rows)
    assert of_sparse._store.rows.toarray() == pytest.approx(of_dense._store.rows, abs=1e-15)
    said = of_sparse.certificate_
    certificate.verify(said)
    apart = 2 * said.budget / said.strong_convexity
    for each in (of_dense, of_sparse):
        answer = each.predict if kind is CertifiedRidge else each.predict_proba
        assert answer(sparse.coo_array(features)) == pytest.approx(answer(features), abs=1e-12)
        each.unlearn([3, 8])
    assert np.linalg.norm(of_sparse._model.weights - of_dense._model.weights) <= apart
    certificate.verify(of_sparse.certificate_)


@pytest.mark.parametrize("classes", [2, 4])
def test_a_wide_sparse_model_is_scikit_learns_and_takes_no_dense_copy(classes: int, monkeypatch: pytest.MonkeyPatch):
    rows, labels = words(3000, 40_000, classes)
    size = rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a sparse matrix became dense")

    monkeypatch.setattr(sparse.csr_array, "toarray", refuse)
    tracemalloc.start()
    model = CertifiedLogisticRegression(random_state=0).fit(rows[:2400], labels[:2400])
    model.unlearn([5, 7])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * size + 10 * model._weights.nbytes, "a solver has some vectors; a dense table would be 768 MB"
    theirs = LogisticRegression(max_iter=1000).fit(rows[:2400], labels[:2400])
    assert abs(model.score(rows[2400:], labels[2400:]) - theirs.score(rows[2400:], labels[2400:])) <= 0.002
    assert model.predict_proba(rows[2400:]) == pytest.approx(theirs.predict_proba(rows[2400:]), abs=0.05)
    said = model.certificate_
    assert (said.mechanism, said.sparse, said.scheduled_reads) == ("certified-refit", True, 1)
    certificate.verify(said)
    again = CertifiedLogisticRegression(random_state=0).fit(
        rows[[*range(5), 6, *range(8, 2400)]], labels[[*range(5), 6, *range(8, 2400)]]
    )
    assert np.linalg.norm(again._model.weights - model._model.weights) <= 2e-3


def test_nothing_of_removed_rows_is_kept_but_that_they_are_empty(tmp_path: Path):
    rows, labels = words(500, 3000, 3)
    rows = sparse.csr_array(rows * 0.5)
    first, last = rows.indptr[17:19]
    rows.data[first:last] = 0.123456789 / np.arange(1, last - first + 1)
    marks = [(0.123456789 / place * np.sqrt(0.5)).tobytes() for place in np.arange(1.0, last - first + 1)]
    model = CertifiedLogisticRegression().fit(rows, labels)
    before = model._store.rows
    model.save(tmp_path / "before")
    assert any(mark in (tmp_path / "before").read_bytes() for mark in marks), "the search would find it"
    model.unlearn([17, 40])
    kept = model._store.rows
    assert np.flatnonzero(np.diff(kept.indptr) == 0).tolist() == [17, 40]
    assert kept.nnz == before.nnz - before[[17, 40]].nnz
    others = np.setdiff1d(np.arange(500), [17, 40])
    assert (kept[others].toarray() == before[others].toarray()).all()
    assert not np.isin(before[[17]].data[:-1], kept.data).any(), "the last one is the intercept's"
    assert model._store.labels[[17, 40]].tolist() == [0, 0]
    for written in (model, CertifiedLogisticRegression.load(tmp_path / "before").unlearn([17, 40])):
        written.save(tmp_path / "after")
        assert not any(mark in (tmp_path / "after").read_bytes() for mark in marks)


@pytest.mark.parametrize("kind", [CertifiedLogisticRegression, CertifiedRidge])
@pytest.mark.parametrize("d", [40, 3000])
def test_a_saved_model_unlearns_as_the_one_that_was_saved(kind, d: int, tmp_path: Path):
    rows, labels = words(300, d, 2)
    model = made_of(kind, random_state=0).fit(rows, labels).unlearn([4])
    model.save(tmp_path / "model")
    again = kind.load(tmp_path / "model")
    assert sparse.issparse(again._store.rows)
    for each in (model, again):
        each.unlearn([9, 2])
    assert again.coef_.tobytes() == model.coef_.tobytes()
    assert again.certificate_ == model.certificate_
    model.save(tmp_path / "handed out", training_data=False)
    assert (kind.load(tmp_path / "handed out").predict(rows) == model.predict(rows)).all()


def test_a_file_whose_sparse_rows_are_damaged_is_refused(tmp_path: Path):
    rows, labels = words(300, 2000, 2)
    CertifiedLogisticRegression().fit(rows, labels).save(tmp_path / "model")
    with safetensors.safe_open(tmp_path / "model", framework="numpy") as file:
        arrays, header = {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118
    arrays["training_columns"][3] = 1_000_000
    safetensors.numpy.save_file(arrays, tmp_path / "model", header)
    with pytest.raises(DataError, match="no estimator of this package: the sparse matrix X is damaged"):
        CertifiedLogisticRegression.load(tmp_path / "model")


def test_an_interrupted_removal_leaves_sparse_rows_as_they_were(monkeypatch: pytest.MonkeyPatch):
    rows, labels = words(300, 2000, 3)
    model = CertifiedLogisticRegression(random_state=0).fit(rows, labels)
    before, coefficients = model._store.rows.toarray(), model.coef_

    def interrupted(*_: object) -> None:
        assert not model._store.rows[[5]].nnz, "the row was wiped by now"
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(refits, "refit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.unlearn([5])
    assert (model._store.rows.toarray() == before).all()
    assert (model.coef_ == coefficients).all()
    assert model.remaining_.size == 300
    assert model.unlearn([5]).remaining_.size == 299


def test_a_row_whose_column_has_two_entries_is_as_long_as_their_sum():
    """The norm of the entries would be .85, and the row that the model learns from has 1.2."""
    twice = sparse.csr_array((np.full(6, 0.6), [0, 0, 1, 2, 1, 2], [0, 2, 4, 6]), shape=(3, 3))
    with pytest.raises(DataError, match=r"row 0 of X has norm 1\.2,"):
        CertifiedLogisticRegression().fit(twice, [0, 1, 1])
    half = sparse.csr_array((np.full(6, 0.3), [0, 0, 1, 2, 1, 2], [0, 2, 4, 6]), shape=(3, 3))
    model = CertifiedLogisticRegression(fit_intercept=False).fit(half, [0, 1, 1])
    assert model._store.rows.nnz == 5
    assert half.nnz == 6, "the caller's matrix is left alone"


def test_an_index_out_of_range_is_refused():
    wrong = sparse.csr_array(np.eye(4))
    wrong.indices[2] = 77
    with pytest.raises(DataError, match="the sparse matrix X is damaged"):
        CertifiedLogisticRegression().fit(wrong, [0, 1, 1, 0])


def test_float32_numbers_of_sparse_rows_are_scaled_in_float64():
    rows, labels = words(200, 1500, 2)
    model = CertifiedLogisticRegression(normalize=True).fit(rows.astype(np.float32), labels)
    kept = model._store.rows
    assert kept.dtype == np.float64
    assert np.sqrt(kept.multiply(kept).sum(axis=1)) == pytest.approx(np.ones(200), abs=1e-15)


def test_sums_that_are_too_long_for_the_budget_are_refused_with_what_is_enough():
    rows, labels = words(200, 1500, 2)
    with pytest.raises(AssumptionError, match=r"sigma = 1e-11 allows .*; sigma = [\d.e-]+ is enough"):
        CertifiedLogisticRegression(sigma=1e-11).fit(rows, labels)
    # Not so few numbers that every table is refused: the least sums fit, those of these rows do not.
    with pytest.raises(AssumptionError, match="is enough"):
        CertifiedLogisticRegression(sigma=4e-12).fit(rows, labels)


def test_few_sparse_columns_take_newton_steps_where_these_are_enough():
    rows, labels = words(20_000, 30, 2)
    model = CertifiedLogisticRegression(C=80 / 20_000).fit(rows, labels).unlearn([3, 4])
    said = model.certificate_
    assert (said.mechanism, said.sparse, said.scheduled_reads) == ("newton-removal", False, 0)
    certificate.verify(said)
    assert CertifiedLogisticRegression().fit(rows, labels).certificate_.sparse, "at C = 1 every request would read"


def test_a_certificate_of_sparse_rows_that_says_newton_removal_is_refused():
    rows, labels = words(300, 2000, 2)
    said = CertifiedLogisticRegression().fit(rows, labels).certificate_
    certificate.verify(said)
    with pytest.raises(certificate.CertificateError, match="mechanism"):
        certificate.verify(said.model_copy(update={"mechanism": "newton-removal"}))


def test_a_certificate_of_wide_sparse_rows_holds_where_dense_ones_round_too_much():
    options = {"n": 20_000, "classes": 4, "strong_convexity": 2.5e-5, "epsilon": 1, "delta": 1e-6, "sigma": 1e-3}
    plan = RefitPlan.make(features=50_001, sparse=True, **options)
    said = certificates.of(plan, Counts().after(3, "scheduled"), noise_source="system entropy")
    certificate.verify(said)
    with pytest.raises(AssumptionError, match="but rounding in float64 may be"):
        certificate.verify(said.model_copy(update={"sparse": False}))
    with pytest.raises(AssumptionError, match="but rounding in float64 may be"):
        RefitPlan.make(features=50_001, **options)
