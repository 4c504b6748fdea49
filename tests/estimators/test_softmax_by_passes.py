"""Three classes and more, where learning anew is dear: requests correct the weights by passes, and say so."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression

from certified_unlearning import certificate
from certified_unlearning.certificate.base import CertificateError
from certified_unlearning.estimators import CertifiedLogisticRegression
from certified_unlearning.mechanisms import refit_plan
from certified_unlearning.mechanisms.certified_refit import objective_of


def clouds(n: int, d: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(n + d + classes)
    labels = draw.integers(classes, size=n)
    rows = draw.standard_normal((classes, d))[labels] + 2 * draw.standard_normal((n, d))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32), labels


def fitted(
    n: int = 6000, d: int = 40, classes: int = 5, **options: object
) -> tuple[np.ndarray, np.ndarray, CertifiedLogisticRegression]:
    rows, labels = clouds(n, d, classes)
    given = {"C": 100 / n, "sigma": 1e-3, "random_state": 0, "fit_intercept": False}
    return rows, labels, CertifiedLogisticRegression(1, 1e-6, **given | options).fit(rows, labels)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_after_requests_it_is_as_accurate_as_scikit_learns_fit_on_what_is_left(kind: type):
    rows, labels, model = fitted()
    assert model._plan.by_passes
    model.fit(rows.astype(kind), labels)
    assert model._store.rows.dtype == kind
    gone = np.random.default_rng(0).permutation(6000)[:400]
    for each in np.array_split(gone, 20):
        model.unlearn(each)
    kept = np.delete(np.arange(6000), gone)
    theirs = LogisticRegression(C=100 / 6000, fit_intercept=False, tol=1e-8, max_iter=1000)
    theirs.fit(rows[kept].astype(float), labels[kept])
    distance = np.linalg.norm(model._model.weights - theirs.coef_.ravel())
    assert distance <= 1.01 * model._plan.budget / model._plan.strong_convexity
    assert abs(model.score(rows, labels) - theirs.score(rows, labels)) <= 0.002
    said = model.certificate_
    assert (said.mechanism, said.loss, said.passes) == ("certified-refit", "softmax", 20)
    assert (said.scheduled_reads, said.unscheduled_reads, said.records_between_reads) == (0, 0, 600)
    certificate.verify(said)


def test_a_planned_reading_comes_and_the_words_say_what_is_secret():
    _, _, model = fitted(records_between_reads=25)
    for first in range(0, 60, 10):
        model.unlearn(range(first, first + 10))
    said = model.certificate_
    assert (said.passes, said.scheduled_reads) == (4, 2)
    certificate.verify(said)
    report = model.privacy_report()
    assert (
        "data were read again 2 times as planned. For 4 other requests, data were read to correct the weights" in report
    )
    assert "steps of earlier requests), which depends on removed records until the model is learned anew" in report
    assert "how many passes over the rows a request needed" in report


def test_a_certificate_in_which_a_request_neither_passes_nor_reads_is_refused():
    """There is no Newton step that could have answered it."""
    _, _, model = fitted()
    stated = model.unlearn([1]).unlearn([2]).certificate_
    certificate.verify(stated)
    for passes in (0, 1, 3, None):
        with pytest.raises(CertificateError):
            certificate.verify(stated.model_copy(update={"passes": passes}))


def test_a_saved_model_goes_on_bit_for_bit(tmp_path: Path):
    _, _, model = fitted()
    model.unlearn([1, 2]).unlearn([3])
    model.save(tmp_path / "model", training_data=True)
    again = CertifiedLogisticRegression.load(tmp_path / "model")
    model.unlearn([4, 5]).unlearn([6])
    again.unlearn([4, 5]).unlearn([6])
    assert again.coef_.tobytes() == model.coef_.tobytes()
    assert again._model.residual == model._model.residual
    assert (again._model.guide.steps == model._model.guide.steps).all()
    assert again.certificate_ == model.certificate_
    model.save(tmp_path / "published", training_data=False)
    assert model._model.weights.tobytes() not in (tmp_path / "published").read_bytes()


def test_an_interrupted_request_leaves_it_as_it_was(monkeypatch: pytest.MonkeyPatch):
    rows, _, model = fitted()
    model.unlearn([9])
    before, coef = model._model, model.coef_.copy()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(type(objective_of(model._plan, rows, model._store.labels)), "gradient", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.unlearn([10])
    assert model._model is before
    assert (model.coef_ == coef).all()
    assert model._store.rows[10].any()
    assert model.unlearn([10]).certificate_.passes == 2


def test_no_copy_of_float32_rows_is_made_in_float64():
    rows, labels = clouds(40_000, 60, 4)
    tracemalloc.start()
    model = CertifiedLogisticRegression(1, 1e-6, C=100 / 40_000, fit_intercept=False).fit(rows, labels)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert model._store.rows.dtype == np.float32
    assert peak < 3 * rows.nbytes


def test_more_classes_than_a_byte_counts_are_no_limit():
    rows, labels, model = fitted(4000, 20, 300, C=0.5)
    assert model._plan.by_passes
    model.unlearn(range(20))
    assert model.coef_.shape == (300, 20)
    assert model.score(rows, labels) > 10 / 300
    certificate.verify(model.certificate_)


@pytest.mark.parametrize("options", [{"strict_timing": True}, {"records_between_reads": 0}], ids=str)
def test_where_time_or_state_must_tell_nothing_every_request_learns_anew(options: dict[str, object]):
    _, _, model = fitted(**options)
    said = model.unlearn([1]).certificate_
    assert (said.passes, said.scheduled_reads) == (None, 1)
    certificate.verify(said)


def test_sparse_rows_learn_anew_as_before():
    rows, labels = clouds(6000, 40, 5)
    model = CertifiedLogisticRegression(1, 1e-6, C=100 / 6000, random_state=0).fit(csr_array(rows), labels)
    said = model.unlearn([1, 2]).certificate_
    assert (said.passes, said.scheduled_reads) == (None, 1)
    certificate.verify(said)


def test_class_weights_are_those_of_the_exact_refit(monkeypatch: pytest.MonkeyPatch):
    weights = {0: 2.0, 1: 0.5}
    rows, labels, model = fitted(6000, 40, 5, class_weight=weights)
    assert model._plan.by_passes
    model.unlearn(range(50)).unlearn(range(50, 60))
    monkeypatch.setattr(refit_plan, "DEAR", np.inf)
    anew = CertifiedLogisticRegression(1, 1e-6, C=100 / 6000, sigma=1e-6, fit_intercept=False, class_weight=weights)
    anew.fit(rows, labels).unlearn(range(60))
    distance = np.linalg.norm(model._model.weights - anew._model.weights)
    assert distance <= 1.01 * model._plan.budget / model._plan.strong_convexity
